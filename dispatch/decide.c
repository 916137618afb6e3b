#include "decide.h"

#include <math.h>

#include "c2c.h"
#include "small.h"
#include "ops/lapack/in_panels.h"
#include "ops/rules/lapack_rules.h"
#include "ops/overlap.h"
#include "ops/rules/rules.h"

void accel_machine_init(struct accel_machine *machine, const struct model_curve *cpu_curve,
                        const struct model_curve *gpu_curve)
{
    *machine = (struct accel_machine){.gpu = DEVICE_UNTRIED,
                                      .gpu_memory = INT64_MAX,
                                      .cpu_curve = cpu_curve,
                                      .gpu_curve = gpu_curve,
                                      .up_gbps = MODEL_COPY_GBPS,
                                      .down_gbps = MODEL_COPY_GBPS,
                                      .digest_gbps = MODEL_COPY_GBPS,
                                      .scan_gbps = MODEL_COPY_GBPS,
                                      .cpu_slowdown = 1,
                                      .gpu_gain = 1,
                                      .gpu_slowdown = 1,
                                      .gpu_beside = 1,
                                      .gpu_share = 1};
}

/* Kernels need elements at multiples of their size; the CPU does not. */
static bool is_aligned(const struct accel_span *x, int64_t batch)
{
    return !x->ptr || (x->place != ACCEL_DEVICE && x->place != ACCEL_MANAGED) ||
           c2c_is_aligned(x, batch);
}

/* The checks that only a call that would run on the GPU needs. */
static bool suits_gpu(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (!is_aligned(&call->span[i], call->batch))
            return false;
    return !overlap_in_call(call);
}

/* Of numbers up to this one, any two multiply to less than 2^60 bytes of elements. */
#define SMALL_SIZE (((int64_t)1 << 28) - 1)

/* Returns whether no operand extends over 2^63 bytes. Where the original judges sizes (LAPACKE's
 * rows), they may be any. */
static bool extents_fit(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        int64_t elements;
        if (call->batch <= 1 && ((x->rows | x->cols | x->ld) & ~SMALL_SIZE) == 0)
            continue;
        if (x->rows < 0 || x->cols < 0 || !accel_mul(x->rows, x->cols, &elements) ||
            elements > INT64_MAX / 16 || accel_extent(x, x->array ? 1 : call->batch) < 0)
            return false;
    }
    return true;
}

/* Not supported are also memory that our kernels do not reach, and extents beyond 2^63 bytes. */
static bool is_supported(const struct accel_call *call)
{
    if (!accel_call_is_supported(call) || !extents_fit(call))
        return false;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (x->place == ACCEL_REMOTE)
            return false;
        /* Products of a batch whose results overlap depend on each other. */
        if (!x->array && call->batch > 1 &&
            (x->stride < 0 || ((x->access & ACCEL_WRITE) && overlap_in_strides(x, call->batch))))
            return false;
    }
    return true;
}

/* Estimates are not exact: a call stays on the CPU if the GPU would gain less than a twentieth. */
#define GAIN 0.95

/* Returns the milliseconds of a schedule that takes `ms`, as measured calls correct them. */
static double corrected_ms(const struct accel_machine *machine, const struct model_work *work,
                           double ms)
{
    const struct model_work time =
        model_work_of_time(work, ms + machine->gpu_curve->ms[MODEL_CALL]);
    return machine->schedule_curve ? model_ms(machine->schedule_curve, &time)
                                   : time.term[MODEL_CALL];
}

/* Returns the time of the call's schedule, in blocks or in panels, or a time that no schedule is
 * below, if that is not less than less_ms; negative: the call has no schedule. */
static double simulated_ms(const struct problem *problem, const struct accel_machine *machine,
                           const struct model_work *work, unsigned there, double less_ms)
{
    const struct accel_call *call = problem->call;
    const struct scheduled *scheduled = &problem->scheduled;
    const struct schedule_rates *rates = &machine->schedule;
    const bool panels = problem->in_panels;
    if (!(rates->up > 0) || !problem_has_schedule(problem))
        return -1;
    if (panels && lapack_is_kept_whole(call, there, machine->gpu_memory))
        return -1;
    const double floor = corrected_ms(machine, work,
                                      panels ? lapack_panels_floor_ms(call, rates)
                                             : scheduled_floor_ms(scheduled, rates, there));
    if (floor >= less_ms && !machine->wants_all)
        return floor;
    const double ms = panels ? lapack_panels_ms(call, rates, machine->gpu_memory)
                             : scheduled_ms(scheduled, rates, machine->gpu_memory, there);
    return ms > 0 ? corrected_ms(machine, work, ms) : -1;
}

/* Returns the milliseconds on the device, alone there and with nothing to load. less_ms: with less,
 * the call goes there. A schedule is not looked for if none can take so little. there: operands
 * that need no copy, as bits 1 << enum accel_matrix. */
static double device_ms(const struct problem *problem, const struct accel_machine *machine,
                        const struct model_work *work, unsigned there, double less_ms)
{
    const double added = model_ms(machine->gpu_curve, work) +
                         model_copies_ms(work, machine->up_gbps, machine->down_gbps);
    const double simulated = simulated_ms(problem, machine, work, there, less_ms);
    return simulated < 0 ? added : simulated;
}

/* Returns the bytes that need not go up, as the device has them. */
static double cached_bytes(const struct accel_call *call, const struct gpu_cached *cached)
{
    double bytes = 0;
    if (!accel_uses_solver(call->routine))
        return (double)(cached->digested_bytes + cached->watched_bytes);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (cached->operands & 1u << i)
            bytes += lapack_sent_bytes(call, &call->span[i], false);
    return bytes;
}

/* Returns the milliseconds on the device, without a wait for others. work: the call's there.
 * cpu_ms: the CPU's; infinity: the time is wanted, whatever that is. */
static double own_ms(const struct problem *problem, const struct accel_machine *machine,
                     struct model_work work, const struct c2c_choice *choice, double cpu_ms)
{
    const double digested = (double)machine->cached.digested_bytes;
    const double watched = (double)machine->cached.watched_bytes;
    const double read = digested - (double)machine->cached.beside_bytes;
    const double besides =
        machine->gpu_first_ms + (read / machine->digest_gbps + watched / machine->scan_gbps) * 1e-6;
    /* Operands that are read where they are have no part in the schedule. */
    struct accel_call as_run;
    struct problem placed;
    if (choice->placed) {
        as_run = accel_placed_call(problem->call, choice->placed);
        problem_of(&placed, &as_run);
        problem = &placed;
    }
    work.up_bytes -= cached_bytes(problem->call, &machine->cached) + choice->bytes;
    work.up_bytes = work.up_bytes > 0 ? work.up_bytes : 0;
    work.term[MODEL_OPERATION] /= machine->gpu_gain;
    const double slower = machine->gpu_slowdown * machine->gpu_share;
    const double less_ms = (GAIN * cpu_ms - besides) / slower - choice->ms;
    return slower * (device_ms(problem, machine, &work, machine->cached.operands, less_ms) +
                     choice->ms) +
           besides;
}

double accel_estimate_gpu_ms(struct problem *problem, const struct accel_machine *machine,
                             const struct accel_settings *settings)
{
    const struct c2c_choice choice = c2c_choose(problem->call, machine, settings->c2c);
    return own_ms(problem, machine, *problem_work(problem, true), &choice, INFINITY);
}

static bool exceeds_memory(const struct accel_call *call, const struct accel_machine *machine)
{
    return accel_uses_solver(call->routine) && lapack_gpu_bytes(call) > (double)machine->gpu_memory;
}

static void estimate(struct accel_decision *decision, struct problem *problem,
                     const struct accel_machine *machine, enum accel_c2c policy)
{
    const struct c2c_choice choice =
        c2c_choose(problem->call, machine, machine->prefetches ? ACCEL_C2C_COPY : policy);
    decision->placed = choice.placed;
    decision->est_cpu_ms =
        machine->cpu_slowdown * model_ms(machine->cpu_curve, problem_work(problem, false));
    decision->est_own_ms =
        machine->decomposed_ms > 0
            ? machine->decomposed_ms
            : own_ms(problem, machine, *problem_work(problem, true), &choice, decision->est_cpu_ms);
    decision->est_gpu_ms = machine->gpu_beside * decision->est_own_ms + machine->gpu_wait_ms;
}

/* To bring a matrix to the device, or only to read it for a digest, takes as long as the CPU needs
 * for the call. */
static bool must_move(const struct accel_call *call, const struct accel_machine *machine)
{
    return accel_only_moves(call->routine) && call->span[0].place == ACCEL_HOST &&
           machine->cached.watched_bytes < accel_bytes(&call->span[0]);
}

/* A cached matrix is idle memory, of which the device's pool leaves no more than a quarter of what
 * is free. */
enum { PREFETCH_PART = 5 };

/* Returns est_there_ms of a call that is slower on the device. */
static double there_ms(struct problem *problem, const struct accel_machine *machine,
                       const struct accel_settings *settings, double cpu_ms)
{
    const struct accel_call *call = problem->call;
    struct accel_machine there = *machine;
    const bool copies = !(machine->place_gbps > 0) || settings->c2c == ACCEL_C2C_COPY ||
                        (settings->c2c == ACCEL_C2C_AUTO && !machine->one_memory);
    if (!machine->may_prefetch || machine->lost || machine->full || !copies)
        return 0;
    const int operand = gpu_operand_to_prefetch(call);
    const int64_t bytes = operand < 0 ? 0 : accel_bytes(&call->span[operand]);
    const bool is_digested = operand >= 0 && machine->cached.operands & 1u << operand;
    if (bytes == 0 || bytes > machine->gpu_memory / PREFETCH_PART ||
        (is_digested && machine->cached.digested_bytes < bytes))
        return 0;
    there.cached.operands |= 1u << operand;
    there.cached.digested_bytes -= is_digested ? bytes : 0;
    there.cached.beside_bytes =
        operand == 0 ? 0 : there.cached.beside_bytes; /* of the first operand */
    there.cached.watched_bytes += bytes;
    const double ms = accel_estimate_gpu_ms(problem, &there, settings);
    return ms < GAIN * cpu_ms ? ms : 0;
}

static bool on_device(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call->span[i].place == ACCEL_DEVICE)
            return true;
    return false;
}

static struct accel_decision on_cpu(struct accel_decision decision, enum accel_why why)
{
    decision.gpu = false;
    decision.why = why;
    return decision;
}

static struct accel_decision on_gpu(struct accel_decision decision, enum accel_why why)
{
    decision.gpu = true;
    decision.why = why;
    return decision;
}

/* Returns the reason that keeps a valid call from the GPU, whatever it would gain; ACCEL_WHYS:
 * none. */
static enum accel_why obstacle(const struct accel_call *call, const struct accel_machine *machine)
{
    switch (machine->gpu) {
    case DEVICE_ABSENT:
        return ACCEL_NO_GPU;
    case DEVICE_FAILED:
        return ACCEL_ERROR;
    case DEVICE_FORKED:
        return ACCEL_FORKED;
    default:
        break;
    }
    if (machine->distrusted)
        return ACCEL_VERIFY_FAILED;
    if (machine->failed)
        return ACCEL_ERROR;
    /* BLAS runs in tiles, and some of LAPACK in panels, or by calls of these. */
    if (exceeds_memory(call, machine) && !lapack_fits_in_panels(call, machine->gpu_memory) &&
        !(machine->decomposed_ms > 0))
        return ACCEL_NO_MEMORY;
    return ACCEL_WHYS;
}

/* Decides by the estimates. */
static struct accel_decision weigh(struct accel_decision decision, struct problem *problem,
                                   const struct accel_machine *machine,
                                   const struct accel_settings *settings, bool required)
{
    const struct accel_call *call = problem->call;
    if (small_is(call))
        return on_cpu(decision, ACCEL_SMALL);
    if (must_move(call, machine) || decision.est_own_ms >= GAIN * decision.est_cpu_ms) {
        decision.est_there_ms = there_ms(problem, machine, settings, decision.est_cpu_ms);
        if (!machine->prefetches)
            return on_cpu(decision, ACCEL_SLOWER);
    }
    /* Any call runs in tiles, but tiles this small do not pay. */
    if (machine->gpu_memory < 16 << 20)
        return on_cpu(decision, ACCEL_NO_MEMORY);
    bool busy = decision.est_gpu_ms >= decision.est_cpu_ms &&
                (!machine->prefetches || machine->gpu_wait_ms > 0 || machine->gpu_beside > 1);
    if (required && (busy || machine->lost || machine->full))
        return on_gpu(decision, ACCEL_REQUIRED);
    if (machine->lost)
        return on_cpu(decision, ACCEL_SLOWER);
    if (machine->full)
        return on_cpu(decision, ACCEL_NO_MEMORY);
    return busy ? on_cpu(decision, ACCEL_BUSY) : on_gpu(decision, ACCEL_FASTER);
}

static struct accel_decision decide(struct problem *problem, const struct accel_machine *machine,
                                    const struct accel_settings *settings)
{
    const struct accel_call *call = problem->call;
    struct accel_decision decision = {0};
    if (!settings->on)
        return on_cpu(decision, ACCEL_OFF);
    if (problem->fault)
        return on_cpu(decision, ACCEL_BAD_ARGUMENT);
    if (accel_is_lapack(call->routine) && lapack_is_query(call))
        return on_cpu(decision, ACCEL_WORKSPACE_QUERY);
    bool device_data = on_device(call);
    if (accel_call_empty(call) && (!device_data || accel_is_lapack(call->routine)))
        return on_cpu(decision, ACCEL_EMPTY);
    if (machine->arithmetic || !is_supported(call)) {
        if (extents_fit(call))
            estimate(&decision, problem, machine, ACCEL_C2C_COPY);
        return on_cpu(decision, ACCEL_UNSUPPORTED);
    }
    estimate(&decision, problem, machine, settings->c2c);
    if (settings->policy == ACCEL_POLICY_CPU)
        return on_cpu(decision, ACCEL_USER);
    if (!device_data && pattern_matches(&settings->cpu_routines, call->routine))
        return on_cpu(decision, ACCEL_USER);
    enum accel_why why = obstacle(call, machine);
    if (why != ACCEL_WHYS)
        return on_cpu(decision, why);
    if (device_data) /* whatever its size: the CPU could not read it */
        return on_gpu(decision, ACCEL_DEVICE_DATA);
    if (settings->policy == ACCEL_POLICY_GPU ||
        pattern_matches(&settings->gpu_routines, call->routine))
        decision = on_gpu(decision, ACCEL_FORCED);
    else
        decision = weigh(decision, problem, machine, settings, settings->require_gpu);
    return decision.gpu && machine->gpu == DEVICE_STARTING ? on_cpu(decision, ACCEL_WARMING)
                                                           : decision;
}

struct accel_decision accel_decide(struct problem *problem, const struct accel_machine *machine,
                                   const struct accel_settings *settings)
{
    const struct accel_decision decision = decide(problem, machine, settings);
    return decision.gpu && !suits_gpu(problem->call) ? on_cpu(decision, ACCEL_UNSUPPORTED)
                                                     : decision;
}

/* The device must take so many times as long, and a call must take less than this: of a longer one,
 * its decision is less than a hundredth. */
#define CLEARLY  1.1
#define SHORT_MS 0.5

bool accel_is_clear(struct problem *problem, const struct accel_machine *machine,
                    const struct accel_settings *settings, const struct accel_decision *decision)
{
    if (decision->why != ACCEL_SLOWER || machine->prefetches || decision->est_there_ms > 0 ||
        !(decision->est_cpu_ms < SHORT_MS) ||
        !(decision->est_own_ms > CLEARLY * decision->est_cpu_ms))
        return false;
    struct accel_machine all_there = *machine;
    all_there.cached = (struct gpu_cached){.operands = 0};
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const int64_t bytes = accel_bytes(&problem->call->span[i]);
        if (bytes < GPU_LEAST_CACHED_BYTES)
            continue;
        all_there.cached.operands |= 1u << i;
        all_there.cached.watched_bytes += bytes;
    }
    all_there.scan_gbps = INFINITY;
    return all_there.cached.operands == 0 ||
           accel_estimate_gpu_ms(problem, &all_there, settings) > decision->est_cpu_ms;
}

bool accel_is_fallback(struct problem *problem, const struct accel_machine *machine,
                       const struct accel_settings *settings, enum accel_why why)
{
    const struct accel_call *call = problem->call;
    switch (why) {
    case ACCEL_NO_GPU:
    case ACCEL_WARMING:
    case ACCEL_NO_MEMORY:
    case ACCEL_BUSY:
    case ACCEL_ERROR:
    case ACCEL_FORKED:
    case ACCEL_VERIFY_FAILED:
    case ACCEL_UNSUPPORTED:
        break;
    default:
        return false;
    }
    if (settings->policy == ACCEL_POLICY_CPU ||
        pattern_matches(&settings->cpu_routines, call->routine))
        return false;
    if (settings->policy == ACCEL_POLICY_GPU ||
        pattern_matches(&settings->gpu_routines, call->routine) || on_device(call))
        return true;
    if (!extents_fit(call)) /* no machine is able */
        return false;
    struct accel_decision decision = {0};
    struct accel_machine able = *machine;
    able.gpu_memory = INT64_MAX;
    estimate(&decision, problem, &able, settings->c2c);
    return weigh(decision, problem, &able, settings, true).gpu;
}
