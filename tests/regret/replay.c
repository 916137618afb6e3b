/* Usage: replay TIMES MODEL
 *
 * Decides every call of a recording (record.c) with the figures of a model file, as libaccel would
 * with a GPU that has nothing else to do, and adds up what the chosen sides took. Prints a table,
 * and each call that was measured on both sides and took more than 1.5 times its better side. Exit
 * status 1 where there is one, or where the sum is more than 1.05 times that of the better sides,
 * with the times that were extrapolated or without. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/decide.h"
#include "dispatch/cost/calibration.h"
#include "dispatch/cost/cost.h"
#include "ops/typical.h"

static const double most_sum = 1.05, most_call = 1.5;
static long scheduled_calls;

struct sums {
    long calls, on_gpu, gpu_better;
    double chosen, best, cpu, gpu;
    double most_lost; /* by one call */
    char call[128];
};

struct worst {
    long calls; /* beyond most_call */
    double ratio;
    char call[128];
};

static const struct accel_routine *routine_of(const char *name)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (strcmp(accel_routines[i].name, name) == 0)
            return &accel_routines[i];
    return NULL;
}

/* Whether the recording's first line says that calls of Level 3 ran by schedules: copies and
 * kernels of older ones did not overlap, and are added. */
static bool has_schedules(FILE *times)
{
    char line[256];
    const bool there = fgets(line, sizeof line, times) && strstr(line, " schedules ");
    rewind(times);
    return there;
}

/* The routine's line in whichever of the sections has it: the CPU's libraries have one each. */
static bool find_curve(const struct calibration *file, const char *prefix,
                       const struct accel_routine *routine, struct model_curve *curve)
{
    struct calibration rest = *file;
    struct calibration_section section;
    while (calibration_find(&rest, prefix, true, &section)) {
        if (calibration_section_curve(&section, routine, curve))
            return true;
        size_t behind = (size_t)(section.text - rest.text) + section.length;
        rest.text += behind;
        rest.length -= behind;
    }
    return false;
}

static bool read_sizes(const char *text, const struct accel_routine *routine,
                       int64_t size[ACCEL_DIMENSIONS])
{
    memset(size, 0, ACCEL_DIMENSIONS * sizeof *size);
    for (int i = 0; i < ACCEL_DIMENSIONS; i++) {
        char *end;
        if (!accel_has_dimension(routine, i))
            continue;
        size[i] = strtoll(text, &end, 10);
        if (end == text)
            return false;
        text = *end == 'x' ? end + 1 : end;
    }
    return *text == 0;
}

/* Negative where the call has no time. */
static double read_time(const char *text, bool *extrapolated)
{
    if (*text == '~') {
        *extrapolated = true;
        text++;
    }
    return *text == '-' ? -1 : atof(text);
}

/* Returns the curves of the device that the model file has; exits without one. */
static struct cost_curves *device_of(const struct calibration *file)
{
    struct calibration rest = *file;
    struct calibration_section section;
    char name[CALIBRATION_KEY_BYTES];
    int64_t memory_bytes;
    struct cost_curves *const device =
        calibration_next_gpu(&rest, name, &section) ? cost_curves_named(name, &memory_bytes) : NULL;
    if (!device) {
        fprintf(stderr, "replay: the model has no GPU\n");
        exit(2);
    }
    return device;
}

static void set_schedule(struct accel_machine *machine, struct problem *problem,
                         struct cost_curves *device)
{
    if (!problem_has_schedule(problem))
        return;
    machine->schedule = cost_schedule_rates(device, problem, GPU_NATIVE);
    scheduled_calls++;
}

static struct accel_decision decide(const struct accel_call *call, const struct calibration *file,
                                    struct cost_curves *device, bool schedules)
{
    static const struct accel_settings settings = {.on = true};
    static const struct dispatch_library library = {.name = "recorded"};
    static const struct accel_routine *last;
    static struct model_curve cpu;
    struct accel_machine machine;
    struct problem problem;
    problem_of(&problem, call);
    if (call->routine != last) { /* a recording has all calls of a routine together */
        const struct model_rates cpu_rates = model_cpu_rates(1);
        last = call->routine;
        model_nominal_cpu(&cpu, call->routine, &cpu_rates);
        if (!find_curve(file, "[cpu ", call->routine, &cpu))
            fprintf(stderr, "replay: %s is not in the model\n", call->routine->name);
    }
    accel_machine_init(&machine, &cpu, NULL);
    machine.gpu = DEVICE_READY;
    if (schedules)
        set_schedule(&machine, &problem, device);
    cost_borrow(&machine, device, call->routine, &library, 1);
    machine.cpu_curve = &cpu; /* whichever library's: the recording is of one */
    const struct accel_decision decision = accel_decide(&problem, &machine, &settings);
    cost_give_back();
    return decision;
}

static void count(struct sums *sums, const char *line, bool on_gpu, double cpu_ms, double gpu_ms)
{
    double lost = on_gpu ? gpu_ms - cpu_ms : cpu_ms - gpu_ms;
    if (lost > sums->most_lost) {
        sums->most_lost = lost;
        snprintf(sums->call, sizeof sums->call, "%.*s", (int)strcspn(line, "\n"), line);
    }
    sums->calls++;
    sums->on_gpu += on_gpu;
    sums->gpu_better += gpu_ms < cpu_ms;
    sums->chosen += on_gpu ? gpu_ms : cpu_ms;
    sums->best += cpu_ms < gpu_ms ? cpu_ms : gpu_ms;
    sums->cpu += cpu_ms;
    sums->gpu += gpu_ms;
}

static void judge(struct worst *worst, const char *line, const struct accel_decision *decision,
                  double cpu_ms, double gpu_ms)
{
    double ratio = decision->gpu ? gpu_ms / cpu_ms : cpu_ms / gpu_ms;
    int length = (int)strcspn(line, "\n");
    if (ratio > most_call) {
        worst->calls++;
        printf("# %.2f times the better side: %.*s, thought %.4g and %.4g ms (%s)\n", ratio, length,
               line, decision->est_cpu_ms, decision->est_gpu_ms, accel_why_name(decision->why));
    }
    if (ratio > worst->ratio) {
        worst->ratio = ratio;
        snprintf(worst->call, sizeof worst->call, "%.*s", length, line);
    }
}

/* Prints the sums; whether they are within the goal. */
static bool report(const char *which, const struct sums *sums)
{
    double ratio = sums->best > 0 ? sums->chosen / sums->best : 0;
    printf("%s: %ld calls, better on the GPU %ld, chosen for it %ld; all on the CPU %.4g s, all on "
           "the GPU "
           "%.4g s, the better of the two %.4g s, as chosen %.4g s, most lost by %s: %.4f times "
           "(<= %.2f)\n",
           which, sums->calls, sums->gpu_better, sums->on_gpu, sums->cpu * 1e-3, sums->gpu * 1e-3,
           sums->best * 1e-3, sums->chosen * 1e-3, sums->call[0] ? sums->call : "none", ratio,
           most_sum);
    return sums->calls > 0 && ratio <= most_sum;
}

int main(int argc, char **argv)
{
    struct calibration file;
    struct sums all = {0}, measured = {0};
    struct worst worst = {.ratio = 1};
    char line[256];
    FILE *times = argc == 3 ? fopen(argv[1], "r") : NULL;
    if (!times) {
        fprintf(stderr, "usage: replay TIMES MODEL\n");
        return 2;
    }
    const char *wrong = calibration_open(&file, argv[2]);
    if (wrong) {
        fprintf(stderr, "replay: %s: %s\n", argv[2], wrong);
        return 2;
    }
    const struct accel_settings settings = {.on = true, .model = argv[2], .model_given = true};
    cost_start(&settings, 1, false, true);
    struct cost_curves *const device = device_of(&file);
    const bool schedules = has_schedules(times);
    while (fgets(line, sizeof line, times)) {
        char name[32], sizes[80], cpu[32], gpu[32];
        int64_t size[ACCEL_DIMENSIONS];
        bool extrapolated = false;
        struct accel_call call;
        if (line[0] == '#' || sscanf(line, "%31s %79s %31s %31s", name, sizes, cpu, gpu) != 4)
            continue;
        const struct accel_routine *routine = routine_of(name);
        if (!routine || !read_sizes(sizes, routine, size)) {
            fprintf(stderr, "replay: %s: not a call: %s", argv[1], line);
            return 2;
        }
        double cpu_ms = read_time(cpu, &extrapolated), gpu_ms = read_time(gpu, &extrapolated);
        if (cpu_ms < 0 || gpu_ms < 0)
            continue;
        shape_typical(&call, routine, size);
        const struct accel_decision decision = decide(&call, &file, device, schedules);
        count(&all, line, decision.gpu, cpu_ms, gpu_ms);
        if (!extrapolated) {
            count(&measured, line, decision.gpu, cpu_ms, gpu_ms);
            judge(&worst, line, &decision, cpu_ms, gpu_ms);
        }
    }
    fclose(times);
    calibration_close(&file);
    bool met = report("with what is extrapolated", &all);
    met = report("measured on both sides", &measured) && met;
    printf("calls with a schedule %ld\n", scheduled_calls);
    printf("calls beyond %.1f times the better side %ld, worst %.2f (%s)\n", most_call, worst.calls,
           worst.ratio, worst.call);
    return met && worst.calls == 0 ? 0 : 1;
}
