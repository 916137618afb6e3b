#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/decide.h"
#include "dispatch/small.h"
#include "gpu/scheduled.h"
#include "ops/lapack/in_panels.h"
#include "ops/lapack/rules.h"
#include "ops/rules.h"
#include "ops/shape.h"
#include "ops/names.h"
#include "tests/lib/routine.h"

static const struct accel_settings defaults = {.on = true, .memory_share = 0.8};

static struct accel_call product(const char *name, int64_t m, int64_t n, int64_t k)
{
    struct accel_call call = {.routine = routine(name),
                              .blas.size = {m, n, k},
                              .blas.flag = {'N', 'N'},
                              .batch = 1,
                              .parts = 1};
    call.blas.scalar[ACCEL_alpha].re = 1;
    call.span[ACCEL_a] =
        (struct accel_span){.rows = m, .cols = k, .ld = m > 0 ? m : 1, .access = ACCEL_READ};
    call.span[ACCEL_b] =
        (struct accel_span){.rows = k, .cols = n, .ld = k > 0 ? k : 1, .access = ACCEL_READ};
    call.span[ACCEL_c] =
        (struct accel_span){.rows = m, .cols = n, .ld = m > 0 ? m : 1, .access = ACCEL_READWRITE};
    for (int i = 0; i < 3; i++)
        call.span[i].dtype = call.routine->dtype;
    return call;
}

/* gemv: y := A x + y */
static struct accel_call times_vector(int64_t m, int64_t n)
{
    struct accel_call call = {.routine = routine("dgemv"),
                              .blas.size = {m, n, 0},
                              .blas.flag = {[ACCEL_trans] = 'N'},
                              .batch = 1,
                              .parts = 1};
    call.blas.scalar[ACCEL_alpha].re = call.blas.scalar[ACCEL_beta].re = 1;
    call.span[ACCEL_a] = (struct accel_span){
        .rows = m, .cols = n, .ld = m, .dtype = ACCEL_FLOAT64, .access = ACCEL_READ};
    call.span[ACCEL_x] = (struct accel_span){
        .rows = 1, .cols = n, .ld = 1, .inc = 1, .dtype = ACCEL_FLOAT64, .access = ACCEL_READ};
    call.span[ACCEL_y] = (struct accel_span){
        .rows = 1, .cols = m, .ld = 1, .inc = 1, .dtype = ACCEL_FLOAT64, .access = ACCEL_READWRITE};
    return call;
}

static struct accel_machine machine(enum device_state state)
{
    struct accel_machine m;
    accel_machine_init(&m, NULL, NULL);
    m.gpu = state;
    m.gpu_memory = (int64_t)1 << 34;
    return m;
}

/* With nominal figures for the call's routine, of a CPU library with so many threads. */
static struct accel_decision decide_with(const struct accel_call *call,
                                         const struct accel_machine *machine,
                                         const struct accel_settings *settings, int threads)
{
    struct accel_machine m = *machine;
    struct model_curve cpu, gpu;
    const struct model_rates cpu_rates = model_cpu_rates(threads), gpu_rates = model_gpu_rates();
    model_nominal_cpu(&cpu, call->routine, &cpu_rates);
    model_nominal_gpu(&gpu, call->routine, &gpu_rates);
    m.cpu_curve = &cpu;
    m.gpu_curve = &gpu;
    return accel_decide(call, &m, settings);
}

#define assert_decision(call, machine, settings, on_gpu, reason)                                   \
    do {                                                                                           \
        const struct accel_decision d_ = decide_with(call, machine, settings, 4);                  \
        assert_string_equal(accel_why_name(d_.why), accel_why_name(reason));                       \
        assert_int_equal(d_.gpu, on_gpu);                                                          \
    } while (0)

static void sizes(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_call tiny = product("dgemm", 8, 8, 8), large = product("dgemm", 4000, 4000, 4000),
                      skinny = product("dgemm", 4000, 1, 4000);
    (void)state;
    assert_decision(&tiny, &ready, &defaults, false, ACCEL_SMALL);
    assert_decision(&large, &ready, &defaults, true, ACCEL_FASTER);
    /* As many bytes as operations: moving them costs more. */
    assert_decision(&skinny, &ready, &defaults, false, ACCEL_SLOWER);
}

static void place_changes_the_cost(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_call call = product("dgemm", 4000, 1, 4000);
    (void)state;
    for (int i = 0; i < ACCEL_SPANS; i++)
        call.span[i].place = ACCEL_MANAGED;
    assert_decision(&call, &ready, &defaults, true, ACCEL_FASTER);
}

static void level_2_stays_with_its_matrix(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_settings forced = defaults;
    struct accel_call call = times_vector(20000, 20000), tiny = times_vector(3, 3);
    (void)state;
    /* Whatever the model says of the link. */
    ready.up_gbps = ready.down_gbps = 1e9;
    assert_decision(&call, &ready, &defaults, false, ACCEL_SLOWER);
    call.span[ACCEL_a].place = ACCEL_MANAGED;
    assert_decision(&call, &ready, &defaults, true, ACCEL_FASTER);
    call.span[ACCEL_a].place = ACCEL_DEVICE;
    assert_decision(&call, &ready, &defaults, true, ACCEL_DEVICE_DATA);
    tiny.span[ACCEL_y].place = ACCEL_DEVICE;
    assert_decision(&tiny, &ready, &defaults, true, ACCEL_DEVICE_DATA);
    forced.policy = ACCEL_POLICY_GPU;
    tiny.span[ACCEL_y].place = ACCEL_HOST;
    assert_decision(&tiny, &ready, &forced, true, ACCEL_FORCED);
    tiny.blas.flag[ACCEL_trans] = 'R'; /* of a row-major call with 'C' */
    assert_decision(&tiny, &ready, &forced, true, ACCEL_FORCED);
    tiny.span[ACCEL_x].inc = 0;
    assert_decision(&tiny, &ready, &forced, false, ACCEL_BAD_ARGUMENT);
}

static void batches(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_settings forced = defaults;
    struct accel_call call = product("dgemm_batch_strided", 100, 100, 100);
    (void)state;
    forced.policy = ACCEL_POLICY_GPU;
    ready.up_gbps = ready.down_gbps = 5;
    call.batch = 5000;
    for (int i = 0; i < 3; i++)
        call.span[i].stride = 100 * 100;
    assert_decision(&call, &ready, &defaults, false, ACCEL_SLOWER); /* to be moved */
    for (int i = 0; i < 3; i++)
        call.span[i].place = ACCEL_MANAGED;
    assert_decision(&call, &ready, &defaults, true, ACCEL_FASTER);
    call.span[ACCEL_a].stride = 0;
    assert_decision(&call, &ready, &defaults, true, ACCEL_FASTER);
    /* Results that overlap are computed one after the other. */
    call.span[ACCEL_c].stride = 100 * 100 - 1;
    assert_decision(&call, &ready, &forced, false, ACCEL_UNSUPPORTED);
    call.span[ACCEL_c].ld = 5000 * 100; /* beside one another in one matrix */
    call.span[ACCEL_c].stride = 100;
    assert_decision(&call, &ready, &forced, true, ACCEL_FORCED);
    call.span[ACCEL_c].ld--;
    assert_decision(&call, &ready, &forced, false, ACCEL_UNSUPPORTED);
    /* Not all of them are looked at. */
    call.span[ACCEL_c].ld = INT64_MAX / 1600;
    assert_decision(&call, &ready, &forced, true, ACCEL_FORCED);
    call.batch = INT64_MAX / 160000;
    for (int i = 0; i < 2; i++)
        call.span[i].stride = 0;
    assert_decision(&call, &ready, &forced, false, ACCEL_UNSUPPORTED);
    call.batch = 5000;
    call.span[ACCEL_c].ld = 100;
    call.span[ACCEL_c].stride = -100 * 100;
    assert_decision(&call, &ready, &forced, false, ACCEL_UNSUPPORTED);
    call.batch = 1;
    assert_decision(&call, &ready, &forced, true, ACCEL_FORCED);
    call.batch = 0;
    assert_decision(&call, &ready, &forced, false, ACCEL_EMPTY);
    call.batch = -1;
    assert_decision(&call, &ready, &forced, false, ACCEL_BAD_ARGUMENT);
    call.batch = INT64_MAX / 4;
    call.span[ACCEL_c].stride = 100 * 100;
    assert_decision(&call, &ready, &forced, false, ACCEL_UNSUPPORTED);
}

static void batches_with_pointers(void **state)
{
    static double c[4 * 9];
    void *pointers[] = {c + 27, c, c + 18, c + 9};
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_settings forced = defaults;
    struct accel_call call = product("dgemm_batch", 3, 3, 3);
    (void)state;
    forced.policy = ACCEL_POLICY_GPU;
    call.batch = 4;
    for (int i = 0; i < 3; i++)
        call.span[i].array = pointers;
    assert_decision(&call, &ready, &forced, true, ACCEL_FORCED);
    pointers[3] = c + 10;
    assert_decision(&call, &ready, &forced, false, ACCEL_UNSUPPORTED);
    pointers[3] = c;
    assert_decision(&call, &ready, &forced, false, ACCEL_UNSUPPORTED);
    call.span[ACCEL_c].ld = 12; /* a row of blocks in one matrix */
    for (int i = 0; i < 4; i++)
        pointers[i] = c + 3 * i;
    assert_decision(&call, &ready, &forced, true, ACCEL_FORCED);
    pointers[2] = c + 5;
    assert_decision(&call, &ready, &forced, false, ACCEL_UNSUPPORTED);
    pointers[2] = c + 12; /* the first one's second column; not the second one's */
    pointers[3] = c + 18;
    assert_decision(&call, &ready, &forced, false, ACCEL_UNSUPPORTED);
}

static void device_data_goes_where_it_is(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_call call = product("sgemm", 2, 2, 2);
    (void)state;
    call.span[ACCEL_b].place = ACCEL_DEVICE;
    assert_decision(&call, &ready, &defaults, true, ACCEL_DEVICE_DATA);
    call.blas.size[ACCEL_k] = 0; /* C is to be scaled, and the CPU may not reach it */
    assert_decision(&call, &ready, &defaults, true, ACCEL_DEVICE_DATA);
}

static void policies(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_settings s = defaults;
    struct accel_call tiny = product("zgemm", 1, 1, 1), large = product("zgemm", 4000, 4000, 4000);
    (void)state;
    s.policy = ACCEL_POLICY_GPU;
    assert_decision(&tiny, &ready, &s, true, ACCEL_FORCED);
    s.policy = ACCEL_POLICY_CPU;
    assert_decision(&large, &ready, &s, false, ACCEL_USER);
    s.on = false;
    assert_decision(&large, &ready, &s, false, ACCEL_OFF);
}

static void gpu_states(void **state)
{
    static const struct {
        enum device_state gpu;
        bool on_gpu;
        enum accel_why why;
    } expected[] = {{DEVICE_UNTRIED, true, ACCEL_FORCED}, {DEVICE_STARTING, false, ACCEL_WARMING},
                    {DEVICE_READY, true, ACCEL_FORCED},   {DEVICE_ABSENT, false, ACCEL_NO_GPU},
                    {DEVICE_FAILED, false, ACCEL_ERROR},  {DEVICE_FORKED, false, ACCEL_FORKED}};
    struct accel_settings s = defaults;
    struct accel_call call = product("cgemm", 10, 10, 10);
    (void)state;
    s.policy = ACCEL_POLICY_GPU;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct accel_machine m = machine(expected[i].gpu);
        assert_decision(&call, &m, &s, expected[i].on_gpu, expected[i].why);
    }
}

static void nothing_to_compute(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_settings s = defaults;
    (void)state;
    s.policy = ACCEL_POLICY_GPU;
    for (int i = 0; i < 3; i++) {
        struct accel_call call = product("dgemm", i == 0 ? 0 : 5, i == 1 ? 0 : 5, i == 2 ? 0 : 5);
        assert_decision(&call, &ready, &s, false, ACCEL_EMPTY);
    }
    struct accel_call scaled = product("dgemm", 5, 5, 5);
    scaled.blas.scalar[ACCEL_alpha].re = 0;
    assert_decision(&scaled, &ready, &s, false, ACCEL_EMPTY);
    scaled.blas.scalar[ACCEL_alpha].im = 1;
    assert_decision(&scaled, &ready, &s, true, ACCEL_FORCED);
}

static void bad_arguments(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_call call;
    (void)state;
#define FAULT(change, name)                                                                        \
    do {                                                                                           \
        call = product("dgemm", 5, 6, 7);                                                          \
        change;                                                                                    \
        assert_string_equal(accel_call_fault(&call), name);                                        \
        assert_decision(&call, &ready, &defaults, false, ACCEL_BAD_ARGUMENT);                      \
    } while (0)
    FAULT(call.blas.layout = ACCEL_NO_LAYOUT, "layout");
    FAULT(call.blas.flag[ACCEL_transa] = '?', "transa");
    FAULT(call.blas.flag[ACCEL_transb] = '?', "transb");
    FAULT(call.blas.size[ACCEL_m] = -1, "m");
    FAULT(call.blas.size[ACCEL_n] = -1, "n");
    FAULT(call.blas.size[ACCEL_k] = INT64_MIN, "k");
    FAULT(call.span[ACCEL_a].ld = 4, "lda");
    FAULT(call.span[ACCEL_b].ld = 6, "ldb");
    FAULT(call.span[ACCEL_c].ld = 0, "ldc");
    call = product("dgemm", 0, 0, 0);
    assert_null(accel_call_fault(&call)); /* but a leading dimension of 0 is wrong even then */
    call.span[ACCEL_c].ld = 0;
    assert_string_equal(accel_call_fault(&call), "ldc");
}

static void unsupported(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_call call = product("dgemm", 5, 6, 7);
    (void)state;
    call.blas.given[1] = call.blas.flag[ACCEL_transb] =
        'R'; /* OpenBLAS's conjugate without transposition */
    assert_decision(&call, &ready, &defaults, false, ACCEL_UNSUPPORTED);
    call = product("dgemv", 5, 6, 0);
    call.span[ACCEL_x].inc = call.span[ACCEL_y].inc = 1;
    call.blas.given[0] = call.blas.flag[ACCEL_trans] = 'R';
    assert_decision(&call, &ready, &defaults, false, ACCEL_UNSUPPORTED);
    call = product("zgemm", INT64_MAX / 2, 1, INT64_MAX / 2); /* sizes whose bytes overflow */
    assert_decision(&call, &ready, &defaults, false, ACCEL_UNSUPPORTED);
}

static void no_memory(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_call large = product("dgemm", 4000, 4000, 4000);
    (void)state;
    ready.gpu_memory = 1 << 20;
    assert_decision(&large, &ready, &defaults, false, ACCEL_NO_MEMORY);
}

static struct accel_call factorisation(const char *name, int64_t m, int64_t n)
{
    struct accel_call call = {.routine = routine(name),
                              .blas.size = {[ACCEL_m] = m, [ACCEL_n] = n},
                              .blas.flag = {[ACCEL_uplo] = 'L', [ACCEL_jobz] = 'V'},
                              .blas.has_work = true,
                              .batch = 1,
                              .parts = 1};
    for (int i = 0; i < call.routine->args; i++)
        if (call.routine->arg[i].kind == ACCEL_ARG_LWORK)
            call.blas.size[call.routine->arg[i].slot] = (int64_t)1 << 40;
    call.span[ACCEL_a] = (struct accel_span){.name = "a",
                                             .ptr = &call, /* nobody reads it */
                                             .rows = m,
                                             .cols = n,
                                             .ld = m,
                                             .dtype = call.routine->dtype,
                                             .access = ACCEL_READWRITE};
    return call;
}

/* A matrix above the device's memory is factored there in panels, if it is not above it by too much, and lies in host memory. Most of it
 * comes up several times: that takes its time. */
static void lapack_above_the_memory(void **state)
{
    static const char *const names[] = {"dpotrf", "dgetrf", "dgeqrf", "zpotrf", "sgetrf", "cgeqrf"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct accel_call call = factorisation(names[i], 20000, 20000);
        const int64_t bytes = accel_bytes(&call.span[ACCEL_a]);
        struct accel_machine ready = machine(DEVICE_READY);
        ready.up_gbps = ready.down_gbps = 25;
        ready.schedule = schedule_nominal;
        ready.schedule.compute = accel_op_of(call.routine)->nominal.gpu_share *
                                 model_gpu_rates().gflops[call.routine->dtype];
        ready.schedule.column_ms = accel_op_of(call.routine)->nominal.gpu_step_ms;
        ready.gpu_memory = 2 * bytes;
        const struct accel_decision within = decide_with(&call, &ready, &defaults, 4);
        ready.gpu_memory = bytes / 2;
        const struct accel_decision half = decide_with(&call, &ready, &defaults, 4);
        ready.gpu_memory = bytes / 16;
        const struct accel_decision little = decide_with(&call, &ready, &defaults, 4);
        assert_true(within.gpu && half.gpu);
        assert_int_equal(half.why, ACCEL_FASTER);
        assert_true(half.est_gpu_ms > 1.01 * within.est_gpu_ms);
        assert_true(little.est_gpu_ms > 1.1 * half.est_gpu_ms);
        assert_true(half.est_gpu_ms ==
                    lapack_panels_ms(&call, &ready.schedule, bytes / 2) + MODEL_LAUNCH_MS);
        ready.gpu_memory = bytes / 10000;
        assert_decision(&call, &ready, &defaults, false, ACCEL_NO_MEMORY);
        call.span[ACCEL_a].place = ACCEL_DEVICE;
        ready.gpu_memory = bytes / 2;
        assert_decision(&call, &ready, &defaults, false, ACCEL_NO_MEMORY);
    }
    struct accel_machine small = machine(DEVICE_READY);
    struct accel_call eigen = factorisation("dsyevd", 20000, 20000);
    small.gpu_memory = accel_bytes(&eigen.span[ACCEL_a]) / 2;
    assert_decision(&eigen, &small, &defaults, false, ACCEL_NO_MEMORY);
}

/* A matrix that fits comes up while it is factored: its estimate is less than the sum of copies and kernels, where the copies take long enough,
 * and no more than that where they do not. */
static void lapack_while_it_comes_up(void **state)
{
    static const char *const names[] = {"dpotrf", "dgetrf", "dgeqrf", "zpotrf", "sgetrf", "cgeqrf"};
    int saved = 0;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct accel_call call = factorisation(names[i], 8000, 8000);
        struct accel_machine ready = machine(DEVICE_READY);
        ready.wants_all = true;
        ready.up_gbps = ready.down_gbps = 25;
        const double sum = decide_with(&call, &ready, &defaults, 4).est_gpu_ms;
        ready.schedule = schedule_nominal;
        ready.schedule.compute = accel_op_of(call.routine)->nominal.gpu_share *
                                 model_gpu_rates().gflops[call.routine->dtype];
        ready.schedule.column_ms = accel_op_of(call.routine)->nominal.gpu_step_ms;
        const double up_ms = (double)accel_bytes(&call.span[ACCEL_a]) / 25e6;
        const double overlapped = decide_with(&call, &ready, &defaults, 4).est_gpu_ms;
        assert_true(overlapped <= sum &&
                    overlapped > sum - 2.5 * up_ms); /* of a triangle, half goes */
        saved += overlapped < sum - 0.3 * up_ms;
        ready.up_gbps = ready.down_gbps = ready.schedule.up = ready.schedule.down = 1e5;
        assert_true(lapack_panels_ms(&call, &ready.schedule, ready.gpu_memory) < 0);
    }
    assert_true(saved >= 4);
}

/* What the gate lets pass without a look must be what the decision would call small, and lose little by it. */
static void gate_agrees_with_decision(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    int64_t below = (int64_t)small_gate() - 1;
    (void)state;
    assert_in_range(below, 1, 1024);
    assert_int_equal(small_gate() & (small_gate() - 1), 0);
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const int64_t size[ACCEL_DIMENSIONS] = {below, below, below, below};
        struct accel_call call;
        if (!accel_is_blas(&accel_routines[i])) /* has no sizes of its own */
            continue;
        shape_typical(&call, &accel_routines[i], size);
        if (!accel_is_blas(&accel_routines[i]) ||
            accel_only_moves(
                &accel_routines[i]) || /* has no gate: never before its matrix is there */
            (accel_is_lapack(&accel_routines[i]) && !lapack_is_supported(&call)))
            continue;
        assert_decision(&call, &ready, &defaults, false, ACCEL_SMALL);
        const struct accel_decision d = decide_with(&call, &ready, &defaults, 1);
        assert_true(d.est_cpu_ms > 0);
        assert_true(d.est_cpu_ms <= 1.5 * d.est_gpu_ms);
    }
}

/* A busy device, a place whose calls have lost, a device without room: the CPU, unless the GPU is required. */
static void circumstances(void **state)
{
    static const struct {
        bool lost, full;
        double wait_ms;
        enum accel_why why;
    } expected[] = {{false, false, 0, ACCEL_FASTER}, {false, false, 1e4, ACCEL_BUSY},
                    {true, false, 0, ACCEL_SLOWER},  {false, true, 0, ACCEL_NO_MEMORY},
                    {true, true, 1e4, ACCEL_SLOWER}, {false, false, 1e-3, ACCEL_FASTER}};
    struct accel_settings required = defaults, forced = defaults;
    struct accel_call call = product("dgemm", 2000, 2000, 2000);
    (void)state;
    required.require_gpu = true;
    forced.policy = ACCEL_POLICY_GPU;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct accel_machine m = machine(DEVICE_READY);
        m.lost = expected[i].lost;
        m.full = expected[i].full;
        m.gpu_wait_ms = expected[i].wait_ms;
        bool free = expected[i].why == ACCEL_FASTER;
        assert_decision(&call, &m, &defaults, free, expected[i].why);
        assert_decision(&call, &m, &required, true, free ? ACCEL_FASTER : ACCEL_REQUIRED);
        assert_decision(&call, &m, &forced, true, ACCEL_FORCED);
    }
}

/* More callers than cores slow the CPU down, processes that share the device the GPU. */
static void sharing(void **state)
{
    struct accel_machine m = machine(DEVICE_READY);
    struct accel_call call = product("dgemm", 150, 150, 150);
    const struct accel_decision alone = decide_with(&call, &m, &defaults, 4);
    (void)state;
    assert_false(alone.gpu);
    m.cpu_slowdown = 3;
    const struct accel_decision crowded = decide_with(&call, &m, &defaults, 4);
    assert_true(crowded.gpu);
    assert_true(crowded.est_cpu_ms > 2.99 * alone.est_cpu_ms);
    m.gpu_slowdown = 4;
    const struct accel_decision both = decide_with(&call, &m, &defaults, 4);
    assert_false(both.gpu);
    assert_true(both.est_gpu_ms > 3.99 * alone.est_gpu_ms);
}

/* A slim product pays if its matrix is on the device, unless it takes as long to see that it is unchanged. */
static void kept_inputs(void **state)
{
    struct accel_machine m = machine(DEVICE_READY);
    struct accel_call call = product("dgemm", 8000, 16, 8000);
    const double bytes = 8.0 * 8000 * 8000;
    const struct accel_decision brought = decide_with(&call, &m, &defaults, 8);
    (void)state;
    assert_false(brought.gpu);
    m.kept = (struct gpu_kept){.operands = 1u << ACCEL_a, .digested_bytes = (int64_t)bytes};
    m.digest_gbps = 80;
    const struct accel_decision kept = decide_with(&call, &m, &defaults, 8);
    assert_true(kept.gpu);
    const double saved = bytes / m.up_gbps * 1e-6 - bytes / 80 * 1e-6;
    assert_in_range((int64_t)(1e6 * (brought.est_own_ms - kept.est_own_ms)),
                    (int64_t)(1e6 * saved) - 2, (int64_t)(1e6 * saved) + 2);
    m.digest_gbps = 20;
    assert_false(decide_with(&call, &m, &defaults, 8).gpu);
}

/* ---- Calls that a schedule divides ---- */

/* A link of 10 GB/s, and the rate of model_gpu_rates(): the same figures as for a sum of copies and kernels. */
static struct accel_machine with_schedules(void)
{
    struct accel_machine m = machine(DEVICE_READY);
    m.schedule = schedule_nominal;
    m.schedule.up = m.schedule.down = MODEL_COPY_GBPS;
    m.schedule.compute = 28e3;
    return m;
}

static double expected_ms(const struct accel_call *call, const struct accel_machine *m)
{
    struct scheduled scheduled;
    assert_true(scheduled_is_divided(call, &scheduled));
    return MODEL_LAUNCH_MS +
           scheduled_ms(call, &scheduled, &m->schedule, m->gpu_memory, m->kept.operands);
}

/* The sum of copies and kernels is longer than the CPU's time; the schedule, in which they overlap, is not. */
static void overlap_pays(void **state)
{
    const struct accel_machine adds = machine(DEVICE_READY), overlaps = with_schedules();
    const struct accel_call call = product("dgemm", 2000, 2000, 2000);
    const struct accel_decision added = decide_with(&call, &adds, &defaults, 70),
                                simulated = decide_with(&call, &overlaps, &defaults, 70);
    (void)state;
    assert_false(added.gpu);
    assert_int_equal(added.why, ACCEL_SLOWER);
    assert_true(simulated.gpu);
    assert_int_equal(simulated.why, ACCEL_FASTER);
    assert_true(simulated.est_own_ms == expected_ms(&call, &overlaps));
    assert_true(simulated.est_own_ms < simulated.est_cpu_ms &&
                added.est_own_ms > simulated.est_cpu_ms);
    assert_true(simulated.est_cpu_ms == added.est_cpu_ms);
}

/* Other processes, first calls, waits, short memory and kept operands count for a schedule, too. */
static void schedules_in_circumstances(void **state)
{
    const struct accel_call call = product("dgemm", 2000, 2000, 2000);
    const double bytes = 8.0 * 2000 * 2000;
    struct accel_machine m = with_schedules();
    const double alone = decide_with(&call, &m, &defaults, 70).est_own_ms;
    (void)state;
    m.gpu_slowdown = 4;
    m.gpu_first_ms = 100;
    m.gpu_wait_ms = 7;
    m.wants_all = true;
    const struct accel_decision shared = decide_with(&call, &m, &defaults, 70);
    assert_true(shared.est_own_ms == 4 * alone + 100 && shared.est_gpu_ms == shared.est_own_ms + 7);
    m = with_schedules();
    m.gpu_memory = 24 << 20; /* of 96 MB */
    const double in_little_memory = decide_with(&call, &m, &defaults, 16).est_own_ms;
    assert_true(in_little_memory == expected_ms(&call, &m) && in_little_memory > 1.1 * alone);
    m = with_schedules();
    m.kept = (struct gpu_kept){.operands = 1u << ACCEL_a, .digested_bytes = (int64_t)bytes};
    m.digest_gbps = 80;
    const double kept = decide_with(&call, &m, &defaults, 70).est_own_ms;
    assert_true(kept == expected_ms(&call, &m) + bytes / 80 * 1e-6);
    assert_true(kept < alone - 0.7 * bytes / MODEL_COPY_GBPS * 1e-6);
    m.kept =
        (struct gpu_kept){.operands = 1u << ACCEL_a | 1u << ACCEL_b, /* only the result moves */
                          .digested_bytes = 2 * (int64_t)bytes};
    assert_true(decide_with(&call, &m, &defaults, 70).est_own_ms ==
                expected_ms(&call, &m) + 2 * bytes / 80 * 1e-6);
    assert_true(expected_ms(&call, &m) < 0.6 * alone);
}

/* Calls that are one kernel: small ones, those with a result in place, and other routines. */
static void schedules_are_for_some_calls(void **state)
{
    struct accel_call calls[] = {
        product("dgemm", 400, 400, 400), /* less than 4 MB */
        product("dgemm", 2000, 2000, 2000),
        product("dgemm_batch_strided", 100, 100, 100),
        times_vector(2000, 2000),
    };
    const struct accel_machine adds = machine(DEVICE_READY), overlaps = with_schedules();
    (void)state;
    calls[1].span[ACCEL_c].place = ACCEL_MANAGED;
    calls[2].batch = 12;
    for (int i = 0; i < 3; i++)
        calls[2].span[i].stride = 100 * 100;
    for (int i = 0; i < 4; i++) {
        const struct accel_decision one = decide_with(&calls[i], &adds, &defaults, 4),
                                    other = decide_with(&calls[i], &overlaps, &defaults, 4);
        assert_true(one.est_own_ms == other.est_own_ms && one.gpu == other.gpu);
    }
}

/* A batch has the time of its groups, which overlap; matrices that products share go up once. */
static void batches_have_schedules(void **state)
{
    struct accel_call call = product("dgemm_batch_strided", 100, 100, 100);
    struct accel_machine m = with_schedules();
    const struct accel_machine adds = machine(DEVICE_READY);
    (void)state;
    call.batch = 5000;
    for (int i = 0; i < 3; i++)
        call.span[i].stride = 100 * 100;
    m.wants_all = true;
    const double overlapping = decide_with(&call, &m, &defaults, 4).est_own_ms;
    assert_true(overlapping == expected_ms(&call, &m));
    assert_true(overlapping < 0.7 * decide_with(&call, &adds, &defaults, 4).est_own_ms);
    call.span[ACCEL_a].stride = call.span[ACCEL_b].stride = 0;
    assert_true(decide_with(&call, &m, &defaults, 4).est_own_ms < 0.6 * overlapping);
}

/* A call that no schedule makes fast enough stays on the CPU without one; a decision is the same where the estimate is wanted. */
static void bounds_decide_the_same(void **state)
{
    static const char *const names[] = {"dgemm", "sgemm", "zgemm"};
    const struct accel_call call = product("dgemm", 1000, 1000, 1000);
    struct accel_machine m = with_schedules();
    long on_gpu = 0, on_cpu = 0, bounded = 0;
    (void)state;
    const struct accel_decision fast = decide_with(&call, &m, &defaults, 500);
    assert_false(fast.gpu);
    assert_true(fast.est_own_ms != expected_ms(&call, &m));
    m.wants_all = true;
    assert_true(decide_with(&call, &m, &defaults, 500).est_own_ms == expected_ms(&call, &m));
    for (int64_t n = 600; n < 3000; n += 300)
        for (int64_t k = 100; k < 3000; k += 700)
            for (int threads = 8; threads < 1000; threads *= 2) {
                const struct accel_call one = product(names[n / 300 % 3], n, n, k);
                m.wants_all = false;
                const struct accel_decision brief = decide_with(&one, &m, &defaults, threads);
                m.wants_all = true;
                const struct accel_decision exact = decide_with(&one, &m, &defaults, threads);
                assert_true(brief.gpu == exact.gpu && brief.why == exact.why);
                on_gpu += exact.gpu;
                on_cpu += !exact.gpu;
                bounded += brief.est_own_ms != exact.est_own_ms;
                assert_true(!exact.gpu || brief.est_own_ms == exact.est_own_ms);
            }
    assert_true(on_gpu > 20 && on_cpu > 20 && bounded > 20);
}

/* A matrix that the kernel knows to be unchanged is not even read: then a product by a vector pays, as it does not by a digest, which reads
 * what the CPU would. */
static void watched_inputs(void **state)
{
    struct accel_machine m = machine(DEVICE_READY);
    struct accel_call call = product("dgemm", 8000, 16, 8000);
    struct accel_call vector = times_vector(8000, 8000);
    const int64_t bytes = 8LL * 8000 * 8000;
    (void)state;
    m.kept.watched_bytes = bytes;
    m.digest_gbps = 20;
    m.scan_gbps = 300;
    assert_true(decide_with(&call, &m, &defaults, 8).gpu);
    assert_true(decide_with(&vector, &m, &defaults, 8).gpu);
    m.scan_gbps = 10;
    assert_false(decide_with(&vector, &m, &defaults, 8).gpu);
    m.scan_gbps = 300;
    m.kept = (struct gpu_kept){.digested_bytes = bytes};
    m.digest_gbps = 300;
    assert_decision(&vector, &m, &defaults, false, ACCEL_SLOWER);
    m.kept = (struct gpu_kept){.watched_bytes = bytes - 1}; /* another operand */
    assert_decision(&vector, &m, &defaults, false, ACCEL_SLOWER);
}

/* A call that would gain if its largest input were there says so, and by how much; one that is to bring it runs on the GPU at a loss. */
static void inputs_that_are_worth_bringing(void **state)
{
    struct accel_machine able = machine(DEVICE_READY);
    struct accel_call thin = product("dgemm", 8000, 16, 8000),
                      large = product("dgemm", 4000, 4000, 4000);
    struct accel_call vector = times_vector(8000, 8000);
    const int64_t bytes = 8LL * 8000 * 8000;
    (void)state;
    able.may_bring = true;
    able.scan_gbps = 300;
    struct accel_call *const calls[] = {&vector, &thin};
    for (int i = 0; i < 2; i++) {
        calls[i]->span[ACCEL_a].ptr = &able;
        struct accel_machine m = able;
        const struct accel_decision d = decide_with(calls[i], &m, &defaults, 4);
        assert_decision(calls[i], &m, &defaults, false, ACCEL_SLOWER);
        assert_true(d.est_there_ms > 0 && d.est_there_ms < 0.95 * d.est_cpu_ms);
        const double upload_ms = (double)bytes / able.up_gbps * 1e-6,
                     scan_ms = (double)bytes / able.scan_gbps * 1e-6;
        if (i == 0)
            assert_float_equal(d.est_own_ms - d.est_there_ms, upload_ms - scan_ms, 1e-3);
        m.brings = 1u << ACCEL_a;
        const struct accel_decision brings = decide_with(calls[i], &m, &defaults, 4);
        assert_decision(calls[i], &m, &defaults, true, ACCEL_FASTER);
        assert_true(brings.est_own_ms == d.est_own_ms && brings.est_there_ms == d.est_there_ms);
        m.gpu_wait_ms = 1;
        assert_decision(calls[i], &m, &defaults, false, ACCEL_BUSY);
        m.gpu_wait_ms = 0;
        m.full = true;
        assert_decision(calls[i], &m, &defaults, false, ACCEL_NO_MEMORY);
        m.brings = 0;
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms == 0);
        m.full = false;
        m.lost = true;
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms == 0);
        m = able;
        m.gpu_memory = 5 * bytes - 1; /* it would not stay */
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms == 0);
        m = able;
        m.may_bring = false;
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms == 0);
        m = able;
        m.scan_gbps = 2; /* to see that it has not changed takes too long */
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms == 0);
        m = able;
        m.kept = (struct gpu_kept){.operands = 1u << ACCEL_a, .digested_bytes = bytes};
        m.digest_gbps = 1; /* there, but not watched */
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms > 0);
    }
    assert_true(decide_with(&large, &able, &defaults, 4).gpu);
    assert_true(decide_with(&large, &able, &defaults, 4).est_there_ms == 0);
}

static void routines_by_name(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_settings s = defaults;
    struct accel_call tiny = product("dgemm", 2, 2, 2), large = product("sgemm", 4000, 4000, 4000);
    (void)state;
    s.gpu_routines.text = "d*";
    s.cpu_routines.text = "sgemm";
    assert_decision(&tiny, &ready, &s, true, ACCEL_FORCED);
    assert_decision(&large, &ready, &s, false, ACCEL_USER);
    large.span[ACCEL_a].place = ACCEL_DEVICE; /* the CPU could not */
    assert_decision(&large, &ready, &s, true, ACCEL_DEVICE_DATA);
    s.cpu_routines.text = "*gemm"; /* never there is the stronger wish */
    assert_decision(&tiny, &ready, &s, false, ACCEL_USER);
}

/* What ACCEL_REQUIRE forbids: that a call which belongs on the GPU stays away from it, other than by the user's wish. */
static void fallbacks(void **state)
{
    static const enum accel_why fallback[] = {ACCEL_NO_GPU,     ACCEL_WARMING, ACCEL_NO_MEMORY,
                                              ACCEL_BUSY,       ACCEL_ERROR,   ACCEL_FORKED,
                                              ACCEL_UNSUPPORTED};
    static const enum accel_why fine[] = {ACCEL_SMALL,        ACCEL_SLOWER, ACCEL_WORKSPACE_QUERY,
                                          ACCEL_BAD_ARGUMENT, ACCEL_EMPTY,  ACCEL_OFF,
                                          ACCEL_USER};
    struct accel_machine m = machine(DEVICE_ABSENT);
    struct accel_settings s = defaults, cpu = defaults, gpu = defaults;
    struct accel_call large = product("dgemm", 4000, 4000, 4000), tiny = product("dgemm", 2, 2, 2);
    struct model_curve cpu_curve, gpu_curve;
    const struct model_rates cpu_rates = model_cpu_rates(4), gpu_rates = model_gpu_rates();
    (void)state;
    model_nominal_cpu(&cpu_curve, large.routine, &cpu_rates);
    model_nominal_gpu(&gpu_curve, large.routine, &gpu_rates);
    m.cpu_curve = &cpu_curve;
    m.gpu_curve = &gpu_curve;
    s.require_gpu = cpu.require_gpu = gpu.require_gpu = true;
    cpu.policy = ACCEL_POLICY_CPU;
    gpu.policy = ACCEL_POLICY_GPU;
    for (size_t i = 0; i < sizeof fallback / sizeof *fallback; i++) {
        assert_true(accel_is_fallback(&large, &m, &s, fallback[i]));
        assert_false(
            accel_is_fallback(&tiny, &m, &s, fallback[i])); /* it would not have gone there */
        assert_true(accel_is_fallback(&tiny, &m, &gpu, fallback[i]));
        assert_false(accel_is_fallback(&large, &m, &cpu, fallback[i]));
    }
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        assert_false(accel_is_fallback(&large, &m, &gpu, fine[i]));
}

/* Of two identical questions the answers are identical: nothing else enters. */
static void pure(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    (void)state;
    for (int64_t n = 8; n <= 16384; n *= 2) {
        struct accel_call call = product("cgemm", n, n, n);
        const struct accel_decision one = decide_with(&call, &ready, &defaults, 2),
                                    other = decide_with(&call, &ready, &defaults, 2);
        assert_true(one.gpu == other.gpu && one.why == other.why &&
                    one.est_cpu_ms == other.est_cpu_ms && one.est_gpu_ms == other.est_gpu_ms);
    }
}

static void operation_counts(void **state)
{
    struct accel_call d = product("dgemm", 2, 3, 5), z = product("zgemm", 2, 3, 5);
    (void)state;
    assert_true(d.routine->flops(&d) == 60);
    assert_true(z.routine->flops(&z) == 240);
}

static void names_of_reasons(void **state)
{
    (void)state;
    for (int i = 0; i < ACCEL_WHYS; i++)
        assert_non_null(accel_why_name((enum accel_why)i));
}

/* ---- Operands that the GPU reads in host memory ---- */

enum { PLACED_A = 1 << ACCEL_a, PLACED_B = 1 << ACCEL_b };

/* Grace: kernels read its memory at 450 GB/s, one thread copies 15 GB/s. */
static struct accel_machine grace(void)
{
    struct accel_machine m = machine(DEVICE_READY);
    m.place_gbps = 450;
    m.up_gbps = m.down_gbps = 15;
    return m;
}

/* A product whose operands are somewhere. */
static struct accel_call product_somewhere(int64_t m, int64_t n, int64_t k)
{
    struct accel_call call = product("dgemm", m, n, k);
    call.blas.scalar[ACCEL_beta].re = 1;
    for (int i = 0; i < 3; i++)
        call.span[i].ptr = (void *)((uintptr_t)(i + 1) << 40);
    return call;
}

static void reads_host_memory_in_place(void **state)
{
    const struct accel_machine host = grace();
    struct accel_settings settings = defaults;
    (void)state;
    /* Each element is read once for each 128 columns or rows of the result: 30 times as often as it is copied, in as much time. */
    struct accel_call call = product_somewhere(2000, 2000, 2000);
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A | PLACED_B);
    call = product_somewhere(8192, 8192, 8192);
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, 0);
    call = product_somewhere(8192, 500, 8192); /* A is read 4 times, B 64 times */
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A);
    call = product_somewhere(500, 8192, 8192);
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_B);
    call = product_somewhere(8192, 8192, 8192);
    settings.c2c = ACCEL_C2C_PLACE;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A | PLACED_B);
    settings.c2c = ACCEL_C2C_MIGRATE;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A | PLACED_B);
    settings.c2c = ACCEL_C2C_COPY;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, 0);
    /* A device without the host's page tables copies, whatever is asked for. */
    const struct accel_machine other = machine(DEVICE_READY);
    settings.c2c = ACCEL_C2C_PLACE;
    assert_int_equal(decide_with(&call, &other, &settings, 4).placed, 0);
}

static void time_of_reading_in_place(void **state)
{
    const struct accel_machine host = grace();
    struct accel_settings copies = defaults, places = defaults, migrates = defaults;
    (void)state;
    copies.c2c = ACCEL_C2C_COPY;
    places.c2c = ACCEL_C2C_PLACE;
    migrates.c2c = ACCEL_C2C_MIGRATE;
    /* A vector times a matrix: its bytes at 450 GB/s in place of 15. */
    struct accel_call call = product_somewhere(4000, 1, 4000);
    const double bytes = 8.0 * (4000.0 * 4000 + 4000), in_place = bytes / 450e6,
                 copied = bytes / 15e6;
    assert_decision(&call, &host, &copies, false, ACCEL_SLOWER);
    assert_decision(&call, &host, &defaults, true, ACCEL_FASTER);
    double gained = decide_with(&call, &host, &copies, 4).est_gpu_ms -
                    decide_with(&call, &host, &defaults, 4).est_gpu_ms;
    /* B is read 4000 / 128 times, which takes longer than a copy. */
    assert_int_equal(decide_with(&call, &host, &defaults, 4).placed, PLACED_A);
    assert_true(gained > 0.99 * (copied - in_place) && gained < copied - in_place);
    /* In place, a large product reads its factors 64 times; moved, once. */
    call = product_somewhere(8192, 8192, 8192);
    const double factors = 2 * 8.0 * 8192 * 8192,
                 base = decide_with(&call, &host, &copies, 4).est_gpu_ms - factors / 15e6;
    const double place_ms = decide_with(&call, &host, &places, 4).est_gpu_ms - base;
    const double migrate_ms = decide_with(&call, &host, &migrates, 4).est_gpu_ms - base;
    assert_true(fabs(place_ms - 64 * factors / 450e6) < 1e-6 * place_ms);
    assert_true(fabs(migrate_ms - factors / 450e6) < 1e-6 * migrate_ms);
    /* In one memory, reading costs nothing more. */
    struct accel_machine spark = grace();
    spark.place_gbps = 273;
    spark.one_memory = true;
    assert_int_equal(decide_with(&call, &spark, &defaults, 4).placed, PLACED_A | PLACED_B);
    assert_true(fabs(decide_with(&call, &spark, &defaults, 4).est_gpu_ms - base) < 1e-6 * base);
}

static void what_is_never_read_in_place(void **state)
{
    struct accel_machine host = grace();
    struct accel_settings settings = defaults;
    struct accel_call call = product_somewhere(300, 300, 300);
    (void)state;
    settings.c2c = ACCEL_C2C_PLACE;
    settings.policy = ACCEL_POLICY_GPU;
    /* Kernels need elements at multiples of their size; a copy does not. */
    call.span[ACCEL_a].ptr = (char *)call.span[ACCEL_a].ptr + 4;
    assert_decision(&call, &host, &settings, true, ACCEL_FORCED);
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_B);
    call.span[ACCEL_b].ld = (int64_t)INT32_MAX + 1; /* beyond what old libraries take */
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, 0);
    /* What the CPU cannot read, and what is on the device, needs nothing. */
    call = product_somewhere(300, 300, 300);
    call.span[ACCEL_a].place = ACCEL_DEVICE;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_B);
    /* A result that is read, too: trmm and trsm overwrite B. */
    call = product_somewhere(300, 300, 300);
    call.routine = routine("dtrsm");
    call.span[ACCEL_b].access = ACCEL_READWRITE;
    call.span[ACCEL_c] = (struct accel_span){.ptr = NULL};
    memcpy(call.blas.flag,
           (char[sizeof call.blas.flag]){
               [ACCEL_side] = 'L', [ACCEL_uplo] = 'U', [ACCEL_transa] = 'N', [ACCEL_diag] = 'N'},
           sizeof call.blas.flag);
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A);
    /* With `auto`, inputs that stay on the device are worth their copy. */
    call = product_somewhere(300, 300, 300);
    host.keeps = true;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A | PLACED_B);
    settings.c2c = ACCEL_C2C_AUTO;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, 0);
    /* One that has stayed there is used there. */
    host.keeps = false;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A | PLACED_B);
    host.kept.operands = PLACED_B;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A);
}

/* A batch by pointers is read in place if all of its matrices can be. */
static void batches_in_place(void **state)
{
    const struct accel_machine host = grace();
    struct accel_settings settings = defaults;
    struct accel_call call = product_somewhere(30, 30, 30);
    void *matrices[3] = {(void *)(uintptr_t)(1 << 20), (void *)(uintptr_t)(2 << 20),
                         (void *)(uintptr_t)(3 << 20)};
    (void)state;
    settings.c2c = ACCEL_C2C_PLACE;
    settings.policy = ACCEL_POLICY_GPU;
    call.routine = routine("dgemm_batch");
    call.batch = 3;
    call.span[ACCEL_a].array = matrices;
    call.span[ACCEL_b].stride = call.span[ACCEL_c].stride = 900;
    assert_true(decide_with(&call, &host, &settings, 4).placed & PLACED_A);
    matrices[2] = (void *)(uintptr_t)((3 << 20) + 4);
    assert_false(decide_with(&call, &host, &settings, 4).placed & PLACED_A);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(place_changes_the_cost),
        cmocka_unit_test(level_2_stays_with_its_matrix),
        cmocka_unit_test(batches),
        cmocka_unit_test(device_data_goes_where_it_is),
        cmocka_unit_test(policies),
        cmocka_unit_test(gpu_states),
        cmocka_unit_test(nothing_to_compute),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(unsupported),
        cmocka_unit_test(batches_with_pointers),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(lapack_above_the_memory),
        cmocka_unit_test(lapack_while_it_comes_up),
        cmocka_unit_test(gate_agrees_with_decision),
        cmocka_unit_test(circumstances),
        cmocka_unit_test(sharing),
        cmocka_unit_test(kept_inputs),
        cmocka_unit_test(overlap_pays),
        cmocka_unit_test(schedules_in_circumstances),
        cmocka_unit_test(schedules_are_for_some_calls),
        cmocka_unit_test(batches_have_schedules),
        cmocka_unit_test(bounds_decide_the_same),
        cmocka_unit_test(watched_inputs),
        cmocka_unit_test(inputs_that_are_worth_bringing),
        cmocka_unit_test(routines_by_name),
        cmocka_unit_test(fallbacks),
        cmocka_unit_test(pure),
        cmocka_unit_test(operation_counts),
        cmocka_unit_test(names_of_reasons),
        cmocka_unit_test(reads_host_memory_in_place),
        cmocka_unit_test(time_of_reading_in_place),
        cmocka_unit_test(what_is_never_read_in_place),
        cmocka_unit_test(batches_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
