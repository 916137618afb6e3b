#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "call/shape.h"
#include "dispatch/decide.h"
#include "dispatch/small.h"
#include "ops/lapack/in_panels.h"
#include "ops/rules/lapack_rules.h"
#include "ops/rules/rules.h"
#include "ops/typical.h"
#include "tests/lib/decide_cases.h"

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

/* The log has the times of calls that no GPU runs, too. */
static void assert_estimated(const struct accel_call *call, const struct accel_machine *machine)
{
    const struct accel_decision decision = decide_with(call, machine, &defaults, 4);
    assert_true(decision.est_cpu_ms > 0 && decision.est_gpu_ms > 0 && decision.est_own_ms > 0);
}

static void unsupported(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_call call = product("dgemm", 5, 6, 7);
    (void)state;
    /* OpenBLAS's conjugate without transposition */
    call.blas.given[1] = call.blas.flag[ACCEL_transb] = 'R';
    assert_decision(&call, &ready, &defaults, false, ACCEL_UNSUPPORTED);
    assert_estimated(&call, &ready);
    call = product("dgemv", 5, 6, 0);
    call.span[ACCEL_x].inc = call.span[ACCEL_y].inc = 1;
    call.blas.given[0] = call.blas.flag[ACCEL_trans] = 'R';
    assert_decision(&call, &ready, &defaults, false, ACCEL_UNSUPPORTED);
    assert_estimated(&call, &ready);
    call = product("zgemm", INT64_MAX / 2, 1, INT64_MAX / 2); /* sizes whose bytes overflow */
    assert_decision(&call, &ready, &defaults, false, ACCEL_UNSUPPORTED);
    const struct accel_decision decision = decide_with(&call, &ready, &defaults, 4);
    assert_true(decision.est_cpu_ms == 0 && decision.est_gpu_ms == 0 && decision.est_own_ms == 0);
    /* Up to 2^63 bytes */
    struct accel_settings forced = defaults;
    forced.policy = ACCEL_POLICY_GPU;
    for (int beyond = 0; beyond < 2; beyond++) {
        call = product("zgemm", INT64_MAX / 16 + beyond, 1, 1);
        assert_decision(&call, &ready, &forced, !beyond, beyond ? ACCEL_UNSUPPORTED : ACCEL_FORCED);
        call = product("zgemm", 2, 2, 1);
        call.span[ACCEL_c].ld = INT64_MAX / 16 - 2 + beyond;
        assert_decision(&call, &ready, &forced, !beyond, beyond ? ACCEL_UNSUPPORTED : ACCEL_FORCED);
    }
}

/* By every policy, wherever the operands are. */
static void arithmetic_that_no_gpu_has(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_settings s = defaults;
    struct accel_call small = product("dgemm", 5, 6, 7), large = product("dgemm", 4000, 4000, 4000),
                      empty = product("dgemm", 0, 6, 7);
    (void)state;
    ready.arithmetic = "rounds_up";
    assert_decision(&large, &ready, &s, false, ACCEL_UNSUPPORTED);
    assert_estimated(&large, &ready);
    assert_decision(&empty, &ready, &s, false, ACCEL_EMPTY);
    s.policy = ACCEL_POLICY_GPU;
    assert_decision(&small, &ready, &s, false, ACCEL_UNSUPPORTED);
    small.span[ACCEL_b].place = ACCEL_DEVICE;
    assert_decision(&small, &ready, &s, false, ACCEL_UNSUPPORTED);
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
                              .op = accel_op_of(routine(name)),
                              .blas.size = {[ACCEL_m] = m, [ACCEL_n] = n},
                              .blas.flag = {[ACCEL_jobz] = 'V'},
                              .blas.has_work = true,
                              .batch = 1,
                              .parts = 1};
    for (int i = 0; i < call.routine->args; i++)
        if (call.routine->arg[i].kind == ACCEL_ARG_FLAG && call.routine->arg[i].slot == ACCEL_uplo)
            call.blas.flag[ACCEL_uplo] = 'L';
        else if (call.routine->arg[i].kind == ACCEL_ARG_LWORK)
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

/* A matrix above the device's memory is factored there in panels, if it is not above it by too
 * much, and lies in host memory. Most of it comes up several times: that takes its time. */
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
        ready.schedule.compute = accel_op_of(call.routine)->cost->nominal.gpu_share *
                                 model_gpu_rates().gflops[call.routine->dtype];
        ready.schedule.column_ms = accel_op_of(call.routine)->cost->nominal.gpu_step_ms;
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
    /* By inner calls, it goes where their sum is less than the CPU's time. */
    const double cpu_ms = decide_with(&eigen, &small, &defaults, 4).est_cpu_ms;
    small.decomposed_ms = cpu_ms / 2;
    const struct accel_decision decomposed = decide_with(&eigen, &small, &defaults, 4);
    assert_true(decomposed.gpu && decomposed.why == ACCEL_FASTER);
    assert_true(decomposed.est_own_ms == small.decomposed_ms);
    small.decomposed_ms = 2 * cpu_ms;
    const struct accel_decision slower = decide_with(&eigen, &small, &defaults, 4);
    assert_true(!slower.gpu && slower.why == ACCEL_SLOWER);
}

/* A matrix that fits comes up while it is factored: its estimate is less than the sum of copies and
 * kernels, where the copies take long enough, and no more than that where they do not. */
static void lapack_while_it_comes_up(void **state)
{
    static const char *const names[] = {"dpotrf", "dgetrf", "dgeqrf", "zpotrf", "sgetrf", "cgeqrf"};
    int saved = 0;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct accel_call call = factorisation(names[i], 8000, 8000);
        struct accel_machine ready = machine(DEVICE_READY);
        ready.wants_all = true;
        ready.up_gbps = ready.down_gbps = 12;
        const double sum = decide_with(&call, &ready, &defaults, 4).est_gpu_ms;
        ready.schedule = schedule_nominal;
        ready.schedule.up = ready.schedule.down = 12;
        ready.schedule.compute = accel_op_of(call.routine)->cost->nominal.gpu_share *
                                 model_gpu_rates().gflops[call.routine->dtype];
        ready.schedule.column_ms = accel_op_of(call.routine)->cost->nominal.gpu_step_ms;
        const double up_ms = lapack_sent_bytes(&call, &call.span[ACCEL_a], false) / 12e6;
        const double overlapped = decide_with(&call, &ready, &defaults, 4).est_gpu_ms;
        assert_true(overlapped <= sum && overlapped > sum - 2.5 * up_ms);
        saved += overlapped < sum - 0.3 * up_ms;
        ready.up_gbps = ready.down_gbps = ready.schedule.up = ready.schedule.down = 1e5;
        assert_true(lapack_panels_ms(&call, &ready.schedule, ready.gpu_memory) < 0);
    }
    assert_true(saved >= 4);
}

static char memory; /* nobody reads it */

static struct accel_call packed(const char *name, int64_t n)
{
    struct accel_call call;
    shape_typical(&call, routine(name), (int64_t[ACCEL_DIMENSIONS]){[ACCEL_n] = n});
    call.span[ACCEL_a].ptr = &memory;
    return call;
}

static struct accel_effort effort(const struct accel_call *call, bool device)
{
    return call->op->cost->effort(call, device);
}

/* An element that the CPU reads is multiplied, and added, once: the megabytes. On the GPU, they are
 * the steps of other solvers. */
static void efforts_of_packed_triangles(void **state)
{
    const struct accel_call factored = packed("dpptrf", 2000), complex = packed("zpptrf", 2000),
                            inverse = packed("dpptri", 2000), single = packed("spptri", 2000);
    struct accel_call solved = packed("dpptrs", 2000);
    const double mb = 2000. * 2000 * 2000 / 6 * 8 * 1e-6;
    (void)state;
    solved.blas.size[ACCEL_nrhs] = 3;
    assert_float_equal(effort(&factored, false).steps, mb, 1e-9 * mb);
    assert_float_equal(effort(&complex, false).steps, 2 * mb, 1e-9 * mb);
    assert_float_equal(effort(&inverse, false).steps, 2 * mb, 1e-9 * mb);
    assert_float_equal(effort(&single, false).steps, mb, 1e-9 * mb);
    assert_float_equal(effort(&solved, false).steps, 2000. * 2000 * 3 * 8 * 1e-6, 1e-9 * mb);
    assert_true(effort(&inverse, true).steps == shape_steps(&inverse));
    assert_true(effort(&inverse, true).operations == accel_flops(&inverse));
}

/* The CPU computes with one column of a packed triangle at a time, whatever its threads. */
static void packed_triangles(void **state)
{
    struct accel_machine ready = machine(DEVICE_READY);
    struct accel_settings forced = defaults;
    const struct accel_call large = packed("dpptrf", 2000), square = packed("dpotrf", 2000),
                            small = packed("dpptrf", 100);
    (void)state;
    ready.up_gbps = ready.down_gbps = 12;
    assert_decision(&large, &ready, &defaults, true, ACCEL_FASTER);
    assert_true(decide_with(&large, &ready, &defaults, 4).est_cpu_ms >
                5 * decide_with(&square, &ready, &defaults, 4).est_cpu_ms);
    assert_true(decide_with(&large, &ready, &defaults, 64).est_cpu_ms >
                0.9 * decide_with(&large, &ready, &defaults, 4).est_cpu_ms);
    assert_decision(&small, &ready, &defaults, false, ACCEL_SLOWER);
    const struct accel_call inverse = packed("dpptri", 2000);
    assert_decision(&inverse, &ready, &defaults, true, ACCEL_FASTER);
    assert_float_equal(decide_with(&inverse, &ready, &defaults, 4).est_cpu_ms,
                       2 * decide_with(&large, &ready, &defaults, 4).est_cpu_ms, 1);
    /* cuBLAS counts the elements by 32 bits. */
    forced.policy = ACCEL_POLICY_GPU;
    ready.gpu_memory = INT64_MAX;
    const struct accel_call most = packed("dpptrf", 65535), more = packed("dpptrf", 65536);
    assert_decision(&most, &ready, &forced, true, ACCEL_FORCED);
    assert_decision(&more, &ready, &forced, false, ACCEL_UNSUPPORTED);
}

/* What the gate lets pass without a look must be what the decision would call small, and lose
 * little by it. */
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

/* A busy device, a place whose calls have lost, a device without room: the CPU, unless the GPU is
 * required. */
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

/* Beside the calls of others a call takes longer, and waits: where it would gain alone, and does
 * not so, that is the reason. The estimate has both. */
static void calls_of_others(void **state)
{
    struct accel_machine m = machine(DEVICE_READY);
    struct accel_call call = product("dgemm", 2000, 2000, 2000);
    const struct accel_decision alone = decide_with(&call, &m, &defaults, 4);
    (void)state;
    assert_true(alone.gpu);
    const double times = alone.est_cpu_ms / alone.est_own_ms;
    m.gpu_beside = 0.9 * times;
    assert_decision(&call, &m, &defaults, true, ACCEL_FASTER);
    m.gpu_wait_ms = 0.2 * alone.est_cpu_ms;
    assert_decision(&call, &m, &defaults, false, ACCEL_BUSY);
    m.gpu_wait_ms = 0;
    m.gpu_beside = 1.1 * times;
    assert_decision(&call, &m, &defaults, false, ACCEL_BUSY);
    const struct accel_decision beside = decide_with(&call, &m, &defaults, 4);
    assert_true(beside.est_own_ms > 0.999 * alone.est_own_ms &&
                beside.est_own_ms < 1.001 * alone.est_own_ms);
    assert_true(beside.est_gpu_ms > 1.09 * beside.est_cpu_ms);
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

/* What ACCEL_REQUIRE forbids: that a call which belongs on the GPU stays away from it, other than
 * by the user's wish. */
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
    struct problem large_one, tiny_one;
    problem_of(&large_one, &large);
    problem_of(&tiny_one, &tiny);
    for (size_t i = 0; i < sizeof fallback / sizeof *fallback; i++) {
        assert_true(accel_is_fallback(&large_one, &m, &s, fallback[i]));
        /* It would not have gone there */
        assert_false(accel_is_fallback(&tiny_one, &m, &s, fallback[i]));
        assert_true(accel_is_fallback(&tiny_one, &m, &gpu, fallback[i]));
        assert_false(accel_is_fallback(&large_one, &m, &cpu, fallback[i]));
    }
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        assert_false(accel_is_fallback(&large_one, &m, &gpu, fine[i]));
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
    assert_true(accel_flops(&d) == 60);
    assert_true(accel_flops(&z) == 240);
}

static void names_of_reasons(void **state)
{
    (void)state;
    for (int i = 0; i < ACCEL_WHYS; i++)
        assert_non_null(accel_why_name((enum accel_why)i));
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
        cmocka_unit_test(arithmetic_that_no_gpu_has),
        cmocka_unit_test(batches_with_pointers),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(lapack_above_the_memory),
        cmocka_unit_test(lapack_while_it_comes_up),
        cmocka_unit_test(packed_triangles),
        cmocka_unit_test(efforts_of_packed_triangles),
        cmocka_unit_test(gate_agrees_with_decision),
        cmocka_unit_test(circumstances),
        cmocka_unit_test(calls_of_others),
        cmocka_unit_test(sharing),
        cmocka_unit_test(routines_by_name),
        cmocka_unit_test(fallbacks),
        cmocka_unit_test(pure),
        cmocka_unit_test(operation_counts),
        cmocka_unit_test(names_of_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
