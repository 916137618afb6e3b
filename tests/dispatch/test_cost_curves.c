/*
 * The curves behind cost.h, from files that each test writes: what the calibration gives to a CPU
 * library and to a GPU, what is said of it, and what is written back. Each test is a process of its
 * own, as a file is opened once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/output/message.h"
#include "dispatch/cost/cost.h"
#include "dispatch/cost/curves.h"
#include "dispatch/cost/loaded_calibration.h"
#include "dispatch/decide.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "tests/lib/problem.h"

/* ---- In a child ---- */

static char folder[] = "/tmp/accel-curves-XXXXXX";
static char path[64];
static struct accel_settings settings;
/* What was said, a line each. */
static char said[4000];

#define must(condition) ((condition) ? (void)0 : broken(#condition, __LINE__))

_Noreturn static void broken(const char *condition, int line)
{
    fprintf(stderr, "line %d: %s; said: %s\n", line, condition, said);
    _exit(1);
}

static bool takes(const char *message)
{
    strncat(said, message, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
    return true;
}

static void in_child(void (*test)(void))
{
    int status;
    unlink(path);
    const pid_t child = fork();
    if (child == 0) {
        message_to(takes);
        settings = (struct accel_settings){
            .on = true, .model = path, .model_given = true, .log = ACCEL_LOG_MOVES};
        test();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
#define IN_CHILD(test)                                                                             \
    static void test(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        in_child(test##_there);                                                                    \
    }

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) && snprintf(path, sizeof path, "%s/model", folder) > 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* ---- Libraries, calls, files ---- */

static int one_thread(const struct dispatch_library *library)
{
    (void)library;
    return 1;
}

static const struct dispatch_library libraries[] = {
    {.name = "one", .file = "/lib/one", .threads = one_thread, .kernels = KERNELS_TUNED},
    {.name = "two", .file = "/lib/two", .threads = one_thread, .kernels = KERNELS_SSE}};

static const struct accel_routine *routine(const char *name)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (strcmp(accel_routines[i].name, name) == 0)
            return &accel_routines[i];
    broken(name, __LINE__);
}

static uint32_t index_of(const char *name)
{
    return (uint32_t)(routine(name) - accel_routines);
}

static struct accel_call call_of(const char *name, int64_t order)
{
    struct accel_call call;
    shape_of_order(&call, routine(name), order);
    return call;
}

static double ms_by(struct cost_curves *p, const char *name, int64_t order)
{
    const struct accel_call call = call_of(name, order);
    struct model_work work;
    model_work_of(&call, p->device, &work);
    return model_ms(curves_routine(p, index_of(name)), &work);
}

static bool near(double a, double b, double relative)
{
    return fabs(a - b) <= relative * fabs(b);
}

static void put(const char *key, const char *body)
{
    must(!calibration_put(path, &key, &body, NULL, 1, true));
}

static void put_cpu(const char *library, int threads, const char *body)
{
    char key[CALIBRATION_KEY_BYTES];
    calibration_cpu_key(key, library, threads);
    put(key, body);
}

static void start(void)
{
    cost_start(&settings, 8, true, false);
}

/* ---- What is said of the file ---- */

static void write_text(const char *text)
{
    FILE *const file = fopen(path, "w");
    must(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static bool says(const char *text)
{
    char whole[300];
    snprintf(whole, sizeof whole, text, path);
    return strcmp(said, whole) == 0;
}

static void a_missing_file_there(void)
{
    start();
    must(!loaded_calibration()->text && !*said);
    cost_complain();
    cost_complain();
    must(!loaded_calibration_open()->text && !loaded_calibration_open()->text);
    must(says(
        "no calibration at %s (ACCEL_MODEL); built-in figures are used (run `accel calibrate`)\n"));
    char below[80];
    must(loaded_calibration_is_missed(&settings));
    write_text("x");
    must(!loaded_calibration_is_missed(&settings));
    snprintf(below, sizeof below, "%s/below", path);
    settings.model = below; /* below a file */
    must(loaded_calibration_is_missed(&settings));
    settings.learn = true;
    must(!loaded_calibration_is_missed(&settings));
    settings.learn = false;
    settings.model_given = false;
    must(!loaded_calibration_is_missed(&settings));
}
IN_CHILD(a_missing_file)

static void another_missing_file_there(void)
{
    settings.model_given = false;
    start();
    cost_complain();
    must(!loaded_calibration_open()->text && !*said);
}
IN_CHILD(another_missing_file)

static void a_wrong_file_there(void)
{
    write_text("hello\n");
    start();
    must(!loaded_calibration_open()->text && !loaded_calibration_open()->text);
    must(says("the calibration %s is not used: it is no calibration\n"));
}
IN_CHILD(a_wrong_file)

static void a_file_of_another_machine_there(void)
{
    put("[cpu \"another\" threads=1 library=\"one\"]", "dgemm 64x64x64:1\n");
    start();
    must(loaded_calibration_open()->text && loaded_calibration_open() == loaded_calibration());
    char key[CALIBRATION_KEY_BYTES], wanted[600];
    calibration_cpu_prefix(key);
    snprintf(wanted, sizeof wanted,
             "the calibration %s has nothing for %s: built-in figures are used; `accel calibrate` "
             "measures this machine\n",
             path, key + 1);
    must(strcmp(said, wanted) == 0);
    loaded_calibration_lacks("another");
    must(strcmp(said, wanted) == 0);
}
IN_CHILD(a_file_of_another_machine)

static void quiet_there(void)
{
    cost_start(&settings, 8, true, true);
    cost_complain();
    loaded_calibration_lacks("x");
    write_text("hello\n");
    must(!loaded_calibration_open()->text && !*said);
}
IN_CHILD(quiet)

static void quiet_of_another_machine_there(void)
{
    put("[cpu \"another\" threads=1 library=\"one\"]", "dgemm 64x64x64:1\n");
    cost_start(&settings, 8, true, true);
    must(loaded_calibration_open()->text && !*said);
}
IN_CHILD(quiet_of_another_machine)

static void no_path_there(void)
{
    settings.model = NULL;
    settings.model_given = false;
    start();
    must(!loaded_calibration_open()->text && !*said);
}
IN_CHILD(no_path)

/* ---- CPU libraries ---- */

/* Of other numbers of threads, the nearest one's times are scaled; the call itself is not. */
static void the_nearest_number_of_threads_there(void)
{
    put_cpu("one", 4, "dgemm 64x64x64:1 128x128x128:8 256x256x256:64 1024x1024x1024:4096\n");
    put_cpu("one", 16, "dgemm 64x64x64:100\n");
    put_cpu("two", 6, "dgemm 64x64x64:100\n");
    start();
    struct cost_curves *const same = curves_of_cpu(&libraries[0], 4);
    must(same == curves_of_cpu(&libraries[0], 4) && same->measured && same->threads_ratio == 1);
    must(curves_of_cpu_at(0) == same && !curves_of_cpu_at(1));
    must(near(ms_by(same, "dgemm", 256), 64, 0.01));
    must(atomic_load(&same->made[index_of("dgemm")]) == CURVE_CALIBRATED);
    must(!curves_learn(same, index_of("dgemm")) && !curves_learn(NULL, 0));
    struct cost_curves *const other = curves_of_cpu(&libraries[0], 6);
    must(other != same && curves_of_cpu_at(1) == other && !curves_of_cpu_at(2));
    must(other->measured && near(other->threads_ratio, 4.0 / 6, 1e-9));
    must(near(ms_by(other, "dgemm", 256), 64 * 4 / 6.0, 0.05));
    must(atomic_load(&other->made[index_of("dgemm")]) == CURVE_NOMINAL &&
         curves_learn(other, index_of("dgemm")));
    must(near(curves_of_cpu(&libraries[0], 9)->threads_ratio, 16.0 / 9,
              1e-9)); /* nearer than 9 / 4 */
    must(near(curves_of_cpu(&libraries[0], 1)->threads_ratio, 4, 1e-9));
    must(curves_of_cpu(&libraries[1], 6)->measured &&
         curves_of_cpu(&libraries[1], 6)->threads_ratio == 1);
    must(!*said);
}
IN_CHILD(the_nearest_number_of_threads)

/* Its products say how fast the library is at routines that were not measured; a probe says no
 * more. */
static void rates_of_a_section_there(void)
{
    /* 10^9 operations a second: 512^3 take 268 ms */
    put_cpu("one", 2,
            "dgemm 128x128x128:4.194 256x256x256:33.55 512x512x512:268.4 1024x1024x1024:2147\n");
    put_cpu("one", 4, "sgemm 64x64x64:1\n");
    start();
    struct cost_curves *const slow = curves_of_cpu(&libraries[0], 2), *const other = curves_of_cpu(
                                                                          &libraries[0], 4);
    must(atomic_load(&slow->rates_known) && atomic_load(&slow->probed));
    must(near(slow->rates.gflops[ACCEL_FLOAT64], 1, 0.05) &&
         near(slow->rates.gflops[ACCEL_FLOAT32], 2, 0.05));
    must(!atomic_load(&other->rates_known) && !atomic_load(&other->probed));
    must(near(other->rates.gflops[ACCEL_FLOAT64], 100, 1e-9));
    must(near(ms_by(slow, "dsyrk", 2000) / ms_by(other, "dsyrk", 2000), 100, 0.2));
    /* No more threads compute than there are cores. */
    must(near(curves_of_cpu(&libraries[1], 8)->rates.gflops[ACCEL_FLOAT64], 64, 1e-9));
    must(near(curves_of_cpu(&libraries[1], 99)->rates.gflops[ACCEL_FLOAT64], 64, 1e-9));
}
IN_CHILD(rates_of_a_section)

/* Programs with many libraries: all beyond these share curves that do not learn. */
static void many_libraries_there(void)
{
    static struct dispatch_library many[CURVES_CPU_MOST + 2];
    struct cost_curves *curves[CURVES_CPU_MOST + 2];
    start();
    for (int i = 0; i < CURVES_CPU_MOST + 2; i++) {
        many[i] = libraries[0];
        curves[i] = curves_of_cpu(&many[i], 1);
        must(curves[i] && curves[i] == curves_of_cpu(&many[i], 1));
        for (int k = 0; k < i; k++)
            must((curves[i] == curves[k]) == (k >= CURVES_CPU_MOST));
        must(curves_learn(curves[i], 0) == (i < CURVES_CPU_MOST));
    }
    must(curves_of_cpu_at(CURVES_CPU_MOST - 1) == curves[CURVES_CPU_MOST - 1] &&
         !curves_of_cpu_at(CURVES_CPU_MOST));
    must(!curves[CURVES_CPU_MOST]->library && atomic_load(&curves[CURVES_CPU_MOST]->probed));
    must(ms_by(curves[CURVES_CPU_MOST], "dgemm", 100) > 0);
    must(!curves_routine(NULL, 0)->device && curves_routine(NULL, 0)->points == 0);
}
IN_CHILD(many_libraries)

/* ---- GPUs by their names ---- */

static void gpus_of_the_list_there(void)
{
    int64_t bytes = -1;
    start();
    struct cost_curves *p = cost_curves_named("NVIDIA H100 80GB HBM3", &bytes);
    must(p && p->device && !p->measured && bytes == 80000000000);
    must(p->up_gbps == 10 && p->down_gbps == 10 && p->place_gbps == 0 && !p->one_memory);
    must(near(p->rates.gflops[ACCEL_FLOAT64], 0.7 * 67e3, 1e-9) && p->rates.gbps == 3350);
    must(cost_precision_gain(p, GPU_NATIVE) == 1 &&
         near(cost_precision_gain(p, GPU_TF32), 494 / 67.0, 1e-9) &&
         cost_precision_gain(p, GPU_BF16X9) == 1);
    const struct accel_call product = call_of("dgemm", 100), solve = call_of("dtrsm", 100);
    must(cost_call_gain(p, &product, GPU_TF32) == cost_precision_gain(p, GPU_TF32) &&
         cost_call_gain(p, &solve, GPU_TF32) == 1);
    must(!cost_is_measured(p) && !cost_is_measured(NULL) &&
         cost_precision_gain(NULL, GPU_TF32) == 1);
    must(cost_first_calls(p).kernels_ms == 50 && cost_first_calls(p).solver_ms == 500 &&
         cost_first_calls(p).start_ms == 533 && cost_first_calls(NULL).start_ms == 533 &&
         cost_first_calls(NULL).kernels_ms == 50 && cost_first_calls(NULL).solver_ms == 500);
    must(!cost_figures_of(p).file);
    p = cost_curves_named("H100 MIG 1g.10gb", &bytes);
    must(p && bytes == 10000000000 && near(p->rates.gflops[ACCEL_FLOAT64], 0.7 * 67e3 / 8, 1e-9));
    p = cost_curves_named("GB10", &bytes);
    must(p && p->one_memory && p->place_gbps == 273 && p->up_gbps == 15 && p->down_gbps == 15);
    must(!cost_curves_named("Foo 1", &bytes));
}
IN_CHILD(gpus_of_the_list)

static void calibrated_gpus_there(void)
{
    int64_t bytes = -1;
    put("[gpu \"Foo 1\" cuda=13.0 cublas=1]",
        "up_gbps=0.5\ndown_gbps=7\nshort_up_bytes=1\nshort_down_bytes=4000\nshort_down_ms=0."
        "002\nplace_gbps=9\n"
        "kernels_ms=31.2\nsolver_ms=740\nstart_ms=381\nschedule_ratio=1.25\ngain_tf32=3\ngain_"
        "bf16x9=0.5\n"
        "solve_d_blas_gbps=70\nsolve_d_blas_row_ms=0.0004\nsolve_d_own_gbps=300\nsolve_d_own_row_"
        "ms=0.0002\nsolve_d_own_nrhs=1024\nsolve_s_blas_gbps=33\n"
        "pace_d 640:1.5\ndgemm 512x512x512:1\n");
    put("[gpu \"GH200\" cuda=13.0 cublas=1]", "down_gbps=7\nplace_gbps=9\n");
    start();
    const struct cost_curves *p = cost_curves_named("foo 1", &bytes);
    must(p && p->measured && bytes == 0 && cost_is_measured(p));
    must(p->up_gbps == 0.5 && p->down_gbps == 7 && p->place_gbps == 0);
    must(p->short_up.bytes == 1 && p->short_up.ms == 0 && p->short_down.bytes == 4000 &&
         p->short_down.ms == 0.002);
    must(p->first.kernels_ms == 31.2 && p->first.solver_ms == 740 && p->first.start_ms == 381 &&
         p->schedule_ratio == 1.25);
    must(p->gain[GPU_NATIVE] == 1 && p->gain[GPU_EMULATED] == 1 && p->gain[GPU_TF32] == 3 &&
         p->gain[GPU_BF16X9] == 0.5);
    must(p->solving[ACCEL_FLOAT64][0].gbps == 70 && p->solving[ACCEL_FLOAT64][0].row_ms == 0.0004);
    must(p->solving[ACCEL_FLOAT64][1].gbps == 300 &&
         p->solving[ACCEL_FLOAT64][1].row_ms == 0.0002 && p->own_nrhs[ACCEL_FLOAT64] == 1024);
    must(p->solving[ACCEL_FLOAT32][0].gbps == 33 && p->solving[ACCEL_FLOAT32][1].gbps == 0 &&
         p->own_nrhs[ACCEL_FLOAT32] == 0);
    must(block_pace(&p->paces[ACCEL_FLOAT64], 640) == 1.5 &&
         block_pace(&p->paces[ACCEL_FLOAT32], 640) == 1);
    must(strcmp(cost_figures_of(p).file, path) == 0 &&
         cost_figures_of(p).time == loaded_calibration()->time);
    must(near(ms_by(cost_curves_named("Foo 1", &bytes), "dgemm", 512), 1, 0.01));
    p = cost_curves_named("GH200", &bytes);
    /* A value that it lacks is the known card's; without its copies it is not measured. */
    must(p->measured && !cost_is_measured(p) && p->up_gbps == 15 && p->down_gbps == 7 &&
         p->place_gbps == 9 && bytes == 96000000000);
    must(p->schedule_ratio == 1 && p->first.kernels_ms == 50);
    must(p->short_up.bytes == schedule_nominal.short_up.bytes &&
         p->short_down.bytes == schedule_nominal.short_down.bytes);
}
IN_CHILD(calibrated_gpus)

/* What a calibration says is in the rates of schedules; but what solves by a kernel of our own, and
 * the pace of blocks, are of native precision. */
static void rates_of_schedules_there(void)
{
    int64_t bytes;
    put("[gpu \"Foo 1\" cuda=13.0 cublas=1]",
        "up_gbps=0.5\ndown_gbps=7\nshort_up_bytes=1\nshort_down_bytes=4000\nshort_down_ms=0.002\n"
        "solve_d_blas_gbps=70\nsolve_d_own_gbps=300\nsolve_d_own_nrhs=1024\npace_d 640:1.5\n");
    start();
    struct cost_curves *const p = cost_curves_named("Foo 1", &bytes);
    const struct accel_call product = call_of("dgemm", 2000), solve = call_of("dtrsm", 2000),
                            other = call_of("strsm", 2000);
    const struct schedule_rates rates = rates_for(p, &solve, GPU_NATIVE);
    must(rates.up == 0.5 && rates.down == 7 && rates.short_up.bytes == 1 &&
         rates.short_down.ms == 0.002 && rates.own_nrhs == 1024);
    must(rates_for(p, &solve, GPU_EMULATED).own_nrhs == 0);
    must(rates_for(p, &other, GPU_NATIVE).own_nrhs == 0);
    must(rates_for(p, &product, GPU_NATIVE).own_nrhs == 0);
    const struct schedule_rates native = rates_for(p, &product, GPU_NATIVE),
                                emulated = rates_for(p, &product, GPU_EMULATED);
    must(block_pace(&native.paces, 640) == 1.5 && block_pace(&emulated.paces, 640) == 1);
}
IN_CHILD(rates_of_schedules)

/* A decision gets the curves of its routine, and the device's rates. */
static void what_a_decision_gets_there(void)
{
    int64_t bytes;
    struct accel_machine machine;
    start();
    struct cost_curves *const p = cost_curves_named("GB10", &bytes);
    accel_machine_init(&machine, NULL, NULL);
    cost_borrow(&machine, p, routine("dgemm"), &libraries[0], 2);
    cost_give_back();
    must(machine.cpu_curve == curves_routine(curves_of_cpu(&libraries[0], 2), index_of("dgemm")));
    must(machine.gpu_curve == curves_routine(p, index_of("dgemm")));
    must(machine.schedule_curve == &p->schedule[index_of("dgemm")]);
    must(machine.up_gbps == 15 && machine.down_gbps == 15 && machine.place_gbps == 273 &&
         machine.one_memory);
    must(p->schedule[index_of("dgemm")].ms[MODEL_CALL] == 1);
    accel_machine_init(&machine, NULL, NULL);
    cost_borrow(&machine, NULL, routine("dgetri"), &libraries[0], 2);
    cost_give_back();
    must(machine.gpu_curve == curves_routine(curves_of_device(NULL), index_of("dgetri")));
    must(machine.up_gbps == curves_of_device(NULL)->up_gbps && !machine.one_memory);
    /* The lock is free again */
    must(pthread_rwlock_trywrlock(&curves_lock) == 0);
    pthread_rwlock_unlock(&curves_lock);
}
IN_CHILD(what_a_decision_gets)

static void rates_of_products_there(void)
{
    int64_t bytes;
    put("[gpu \"Foo 1\" cuda=13.0 cublas=1]",
        "up_gbps=20\ndown_gbps=10\ndgemm 256x256x256:0.05 1024x1024x1024:1 2048x2048x2048:8 "
        "4096x4096x4096:64\n"
        "dtrsm 256x256:0.1 1024x1024:9 2048x2048:36 4096x4096:288\n");
    start();
    struct cost_curves *const p = cost_curves_named("Foo 1", &bytes);
    /* 4096^3 products in 64 ms are 2150 Gflop/s, and a little more if they filled the device */
    const double rate = cost_product_gflops(p, ACCEL_FLOAT64);
    must(rate > 2100 && rate < 2500 && cost_product_gflops(NULL, ACCEL_FLOAT64) == 0);
    const struct accel_call product = call_of("dgemm", 4096), solve = call_of("dtrsm", 4096);
    struct schedule_rates rates = rates_for(p, &product, GPU_NATIVE);
    must(rates.up == 20 && rates.down == 10 && near(rates.compute, rate, 0.05));
    const struct schedule_rates emulated = rates_for(p, &product, GPU_EMULATED);
    must(near(emulated.compute, rates.compute, 1e-9)); /* no gain is known */
    /* Blocks off the diagonal are products, and no slower than these. */
    rates = rates_for(p, &solve, GPU_NATIVE);
    must(rates.compute >= rate * (1 - 1e-9));
}
IN_CHILD(rates_of_products)

/* A factorisation's rate is that of kernels that fill the device: by that of its own, which are as
 * narrow as the matrix, it takes what was calibrated. No factorisation is faster than products. */
static void rates_of_factorisations_there(void)
{
    int64_t bytes;
    put("[gpu \"Foo 1\" cuda=13.0 cublas=1]", /* 100 Gflop/s, and of products 10^5 */
        "up_gbps=20\ndown_gbps=10\ndgemm 1024x1024x1024:0.0215 2048x2048x2048:0.172 "
        "4096x4096x4096:1.374\n"
        "dgetrf 128x128:0.01398 256x256:0.1118 512x512:0.8948 1024x1024:7.158 2048x2048:57.27\n");
    put("[gpu \"Bar 1\" cuda=13.0 cublas=1]", /* the same factorisations, and slow products */
        "up_gbps=20\ndown_gbps=10\ndgemm 1024x1024x1024:43 2048x2048x2048:344 "
        "4096x4096x4096:2749\n"
        "dgetrf 128x128:0.01398 256x256:0.1118 512x512:0.8948 1024x1024:7.158 2048x2048:57.27\n");
    start();
    struct cost_curves *const p = cost_curves_named("Foo 1", &bytes), *const slow =
                                                                          cost_curves_named("Bar 1",
                                                                                            &bytes);
    for (int64_t n = 128; n <= 1024; n *= 2) {
        const struct accel_call call = call_of("dgetrf", n);
        const struct schedule_rates rates = rates_for(p, &call, GPU_NATIVE);
        must(near(rates.compute * (double)n / ((double)n + rates.half), 100, 0.1));
    }
    const struct accel_call call = call_of("dgetrf", 1024);
    const double products = cost_product_gflops(slow, ACCEL_FLOAT64);
    must(products < 60 && rates_for(slow, &call, GPU_NATIVE).compute == products);
}
IN_CHILD(rates_of_factorisations)

/* ---- Learning ---- */

static void calls_teach_there(void)
{
    start();
    struct cost_curves *const p = curves_of_cpu(&libraries[0], 1);
    const struct accel_call call = call_of("dgemm", 100);
    const double before = ms_by(p, "dgemm", 100);
    must(!p->learned);
    learn_cpu(&call, &libraries[0], 1, &(struct cost_time){0.5 * before, 0.5 * before});
    must(p->learned && near(ms_by(p, "dgemm", 100), 0.5 * before, 0.05));
    /* What others had of the CPU does not count, and what took no longer than the estimate counts
     * as it is. */
    for (int i = 0; i < 30; i++)
        learn_cpu(&call, &libraries[0], 1, &(struct cost_time){50 * before, 0.1 * before});
    must(near(ms_by(p, "dgemm", 100), 0.5 * before, 0.05));
    for (int i = 0; i < 30; i++)
        learn_cpu(&call, &libraries[0], 1, &(struct cost_time){50 * before, 2 * before});
    must(near(ms_by(p, "dgemm", 100), 2 * before, 0.1));
    learn_cpu(&call, &libraries[0], 1, &(struct cost_time){before, 0.01 * before});
    must(near(ms_by(p, "dgemm", 100), before, 0.05));
}
IN_CHILD(calls_teach)

/* A curve is without the copies; of a call that took less than these, a tenth is left. */
static void calls_teach_of_a_gpu_there(void)
{
    int64_t bytes;
    start();
    struct cost_curves *const p = cost_curves_named("H100", &bytes);
    const struct accel_call call = call_of("dgetri", 300);
    struct model_work work;
    model_work_of(&call, true, &work);
    const double copies = model_copies_ms(&work, p->up_gbps, p->down_gbps),
                 thought = ms_by(p, "dgetri", 300);
    must(copies > 0);
    learn_gpu(p, &call, bytes, copies + thought / 2);
    must(p->learned && near(ms_by(p, "dgetri", 300), thought / 2, 0.05));
    const double less = 0.2 * thought < copies ? 0.2 * thought : copies;
    learn_gpu(p, &call, bytes, less);
    must(near(ms_by(p, "dgetri", 300), less / 10, 0.05));
}
IN_CHILD(calls_teach_of_a_gpu)

static void learn_some(struct cost_curves *device)
{
    const struct accel_call call = call_of("dgemm", 100), other = call_of("dgetri", 100);
    learn_cpu(&call, &libraries[0], 1, &(struct cost_time){0.007, 0.007});
    if (device)
        learn_gpu(device, &other, INT64_C(1) << 30, 7);
}

static char *read_text(void)
{
    static char text[1 << 20];
    FILE *const file = fopen(path, "r");
    must(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static void what_was_learned_is_kept_there(void)
{
    int64_t bytes;
    settings.learn = true;
    start();
    struct cost_curves *device[] = {cost_curves_named("H100", &bytes),
                                    cost_curves_named("H100", &bytes)};
    strcpy(device[0]->key, "[gpu \"x\"]");
    strcpy(device[1]->key, "[gpu \"x\"]");
    curves_of_cpu(&libraries[1], 1); /* which has learned nothing */
    learn_some(device[1]);
    cost_end(device, 2);
    must(!*said);
    char *const text = read_text();
    must(strstr(text, "\n[gpu \"x\"]\n") && strstr(text, " library=\"one\"]\n") &&
         !strstr(text, "library=\"two\""));
    must(strstr(text, "\ndgemm 100x100x100:0.007\n") && strstr(text, "\ndgetri 100:") &&
         !strstr(text, "gbps") && !strstr(text, "_ms="));
}
IN_CHILD(what_was_learned_is_kept)

/* What calibrations alone measure stays, each line once, beside what was learned. */
static void what_was_measured_stays_there(void)
{
    static const char *const key = "[gpu \"Foo 1\" cuda=13.0 cublas=1]";
    static const char *const kept[] = {"calibrated=1790000001",
                                       "svd_d_values 48:gesvdj",
                                       "pace_d 640:1.5",
                                       "short_up_bytes=1",
                                       "up_gbps=20",
                                       "down_gbps=10",
                                       "piece_kb=512",
                                       "kernels_ms=31.2",
                                       "solver_ms=740",
                                       "gain_tf32=3",
                                       "solve_s_blas_gbps=30",
                                       "solve_d_blas_gbps=70",
                                       "solve_d_blas_row_ms=0.0004",
                                       "solve_d_own_gbps=300",
                                       "solve_d_own_row_ms=0.0002",
                                       "solve_d_own_nrhs=1024",
                                       "schedule_ratio=1.25",
                                       "dsyrk 512x512:1"};
    enum { KEPT = sizeof kept / sizeof *kept };
    char body[1000] = "";
    int64_t bytes;
    for (int i = 0; i < KEPT; i++)
        strcat(strcat(body, kept[i]), "\n");
    put(key, body);
    settings.learn = true;
    start();
    struct cost_curves *device[] = {cost_curves_named("Foo 1", &bytes)};
    strcpy(device[0]->key, key);
    learn_some(device[0]);
    cost_end(device, 1);
    char *const text = read_text();
    must(!strstr(said, "not kept") && strstr(text, "\ndgetri 100:"));
    for (int i = 0; i < KEPT; i++) {
        char line[100];
        snprintf(line, sizeof line, "\n%s\n", kept[i]);
        const char *const there = strstr(text, line);
        if (!there || strstr(there + 1, line))
            broken(kept[i], __LINE__);
    }
    must(!strstr(text, "gain_emulated") && !strstr(text, "gain_bf16x9") &&
         !strstr(text, "place_gbps"));
}
IN_CHILD(what_was_measured_stays)

/* Only with ACCEL_LEARN=1; and not what points of another number of threads say. */
static void what_is_not_kept_there(void)
{
    put_cpu("one", 2, "dgemm 64x64x64:1\n");
    start();
    learn_some(NULL);
    char *const before = strdup(read_text());
    cost_end(NULL, 0);
    must(strcmp(read_text(), before) == 0 && !*said);
    settings.learn = true;
    must(curves_of_cpu(&libraries[0], 1)->threads_ratio == 2 &&
         curves_of_cpu(&libraries[0], 1)->learned);
    cost_end(NULL, 0);
    must(strcmp(read_text(), before) == 0 && !*said);
}
IN_CHILD(what_is_not_kept)

/* A reason of the system's stands in parentheses, and where there is none nothing does. */
static void why_it_is_not_kept_there(void)
{
    settings.learn = true;
    start();
    learn_some(NULL);
    write_text("what a user has written\n");
    cost_end(NULL, 0);
    must(says("what was learned is not kept in %s: it is no calibration\n"));
    *said = 0;
    must(unlink(path) == 0 && mkdir(path, 0700) == 0);
    cost_end(NULL, 0);
    must(rmdir(path) == 0);
    must(says("what was learned is not kept in %s: the file cannot be written (Is a directory)\n"));
    *said = 0;
    settings.model = NULL;
    cost_end(NULL, 0);
    must(strcmp(said, "what was learned is not kept: no file to write: ACCEL_MODEL, XDG_CACHE_HOME "
                      "and HOME name none\n") == 0);
}
IN_CHILD(why_it_is_not_kept)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_file),
        cmocka_unit_test(another_missing_file),
        cmocka_unit_test(a_wrong_file),
        cmocka_unit_test(a_file_of_another_machine),
        cmocka_unit_test(quiet),
        cmocka_unit_test(quiet_of_another_machine),
        cmocka_unit_test(no_path),
        cmocka_unit_test(the_nearest_number_of_threads),
        cmocka_unit_test(rates_of_a_section),
        cmocka_unit_test(many_libraries),
        cmocka_unit_test(gpus_of_the_list),
        cmocka_unit_test(calibrated_gpus),
        cmocka_unit_test(rates_of_schedules),
        cmocka_unit_test(what_a_decision_gets),
        cmocka_unit_test(rates_of_products),
        cmocka_unit_test(rates_of_factorisations),
        cmocka_unit_test(calls_teach),
        cmocka_unit_test(calls_teach_of_a_gpu),
        cmocka_unit_test(what_was_learned_is_kept),
        cmocka_unit_test(what_was_measured_stays),
        cmocka_unit_test(what_is_not_kept),
        cmocka_unit_test(why_it_is_not_kept),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
