/* Decisions of calls that a schedule divides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/plan/scheduled.h"
#include "tests/lib/decide_cases.h"

/* A link of 10 GB/s, and the rate of model_gpu_rates(): the same figures as for a sum of copies and
 * kernels. */
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
    assert_true(scheduled_describe(call, &scheduled) && scheduled_is_divided(&scheduled));
    return MODEL_LAUNCH_MS +
           scheduled_ms(&scheduled, &m->schedule, m->gpu_memory, m->cached.operands);
}

/* The sum of copies and kernels is longer than the CPU's time; the schedule, in which they overlap,
 * is not. */
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
    m.cached = (struct gpu_cached){.operands = 1u << ACCEL_a, .digested_bytes = (int64_t)bytes};
    m.digest_gbps = 80;
    const double kept = decide_with(&call, &m, &defaults, 70).est_own_ms;
    assert_true(kept == expected_ms(&call, &m) + bytes / 80 * 1e-6);
    assert_true(kept < alone - 0.6 * bytes / MODEL_COPY_GBPS * 1e-6);
    m.cached =
        (struct gpu_cached){.operands = 1u << ACCEL_a | 1u << ACCEL_b, /* only the result moves */
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

/* A call that no schedule makes fast enough stays on the CPU without one; a decision is the same
 * where the estimate is wanted. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap_pays),
        cmocka_unit_test(schedules_in_circumstances),
        cmocka_unit_test(schedules_are_for_some_calls),
        cmocka_unit_test(batches_have_schedules),
        cmocka_unit_test(bounds_decide_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
