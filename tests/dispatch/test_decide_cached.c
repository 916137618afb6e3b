/* Decisions of calls whose inputs are on the device, or would be worth prefetch; and those that
 * nothing near would change. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ops/typical.h"
#include "tests/lib/decide_cases.h"

/* A slim product pays if its matrix is on the device, unless it takes as long to see that it is
 * unchanged. */
static void cached_inputs(void **state)
{
    struct accel_machine m = machine(DEVICE_READY);
    struct accel_call call = product("dgemm", 8000, 16, 8000);
    const double bytes = 8.0 * 8000 * 8000;
    const struct accel_decision brought = decide_with(&call, &m, &defaults, 8);
    (void)state;
    assert_false(brought.gpu);
    m.cached = (struct gpu_cached){.operands = 1u << ACCEL_a, .digested_bytes = (int64_t)bytes};
    m.digest_gbps = 80;
    const struct accel_decision kept = decide_with(&call, &m, &defaults, 8);
    assert_true(kept.gpu);
    const double saved = bytes / m.up_gbps * 1e-6 - bytes / 80 * 1e-6;
    assert_in_range((int64_t)(1e6 * (brought.est_own_ms - kept.est_own_ms)),
                    (int64_t)(1e6 * saved) - 2, (int64_t)(1e6 * saved) + 2);
    m.cached.beside_bytes = (int64_t)bytes / 2; /* a digest of a triangle reads that alone */
    const struct accel_decision triangle = decide_with(&call, &m, &defaults, 8);
    const double read = bytes / 2 / 80 * 1e-6;
    assert_in_range((int64_t)(1e6 * (kept.est_own_ms - triangle.est_own_ms)),
                    (int64_t)(1e6 * read) - 2, (int64_t)(1e6 * read) + 2);
    m.cached.beside_bytes = 0;
    m.digest_gbps = 20;
    assert_false(decide_with(&call, &m, &defaults, 8).gpu);
}

/* A call of LAPACK of order 4000 on a machine that has schedules. */
static struct accel_call solver_call(const char *name, int64_t nrhs, struct accel_machine *m)
{
    struct accel_call call;
    m->schedule = schedule_nominal;
    m->schedule.up = m->schedule.down = MODEL_COPY_GBPS;
    m->schedule.compute = 28e3;
    m->digest_gbps = 80;
    shape_typical(&call, routine(name), (int64_t[ACCEL_DIMENSIONS]){4000, 4000, 4000, nrhs});
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call.span[i].rows > 0)
            call.span[i].ptr = (void *)((uintptr_t)(i + 1) << 40);
    return call;
}

/* Factors that are there need no schedule of panels: what is decided does not depend on a log, and
 * the copy does not count. */
static void kept_factors(void **state)
{
    static const char *const names[] = {"dpotrs", "dgetrs", "dtrtrs", "dpotri",
                                        "dtrtri", "dpotrf", "dgetrf", "dgeqrf"};
    const int64_t bytes = 8LL * 4000 * 4000;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int threads = 1; threads <= 256; threads *= 2)
            for (int64_t nrhs = 1; nrhs <= 1000; nrhs *= 10) {
                struct accel_machine m = machine(DEVICE_READY);
                const struct accel_call call = solver_call(names[i], nrhs, &m);
                m.wants_all = true;
                const struct accel_decision brought = decide_with(&call, &m, &defaults, threads);
                m.cached = (struct gpu_cached){.operands = 1u << ACCEL_a, .digested_bytes = bytes};
                const struct accel_decision exact = decide_with(&call, &m, &defaults, threads);
                m.wants_all = false;
                const struct accel_decision brief = decide_with(&call, &m, &defaults, threads);
                assert_int_equal(brief.gpu, exact.gpu);
                if (i < 3) /* a factorisation is one kernel then */
                    assert_true(exact.est_own_ms < brought.est_own_ms);
            }
}

/* A matrix that the kernel knows to be unchanged is not even read: then a product by a vector pays,
 * as it does not by a digest, which reads what the CPU would. */
static void watched_inputs(void **state)
{
    struct accel_machine m = machine(DEVICE_READY);
    struct accel_call call = product("dgemm", 8000, 16, 8000);
    struct accel_call vector = times_vector(8000, 8000);
    const int64_t bytes = 8LL * 8000 * 8000;
    (void)state;
    m.cached.watched_bytes = bytes;
    m.digest_gbps = 20;
    m.scan_gbps = 300;
    assert_true(decide_with(&call, &m, &defaults, 8).gpu);
    assert_true(decide_with(&vector, &m, &defaults, 8).gpu);
    m.scan_gbps = 10;
    assert_false(decide_with(&vector, &m, &defaults, 8).gpu);
    m.scan_gbps = 300;
    m.cached = (struct gpu_cached){.digested_bytes = bytes};
    m.digest_gbps = 300;
    assert_decision(&vector, &m, &defaults, false, ACCEL_SLOWER);
    m.cached = (struct gpu_cached){.watched_bytes = bytes - 1}; /* another operand */
    assert_decision(&vector, &m, &defaults, false, ACCEL_SLOWER);
}

/* A call that would gain if its largest input were there says so, and by how much; one that is to
 * bring it runs on the GPU at a loss. */
static void inputs_that_are_worth_bringing(void **state)
{
    struct accel_machine able = machine(DEVICE_READY);
    struct accel_call thin = product("dgemm", 8000, 16, 8000),
                      large = product("dgemm", 4000, 4000, 4000);
    struct accel_call vector = times_vector(8000, 8000);
    const int64_t bytes = 8LL * 8000 * 8000;
    (void)state;
    able.may_prefetch = true;
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
        m.prefetches = 1u << ACCEL_a;
        const struct accel_decision brings = decide_with(calls[i], &m, &defaults, 4);
        assert_decision(calls[i], &m, &defaults, true, ACCEL_FASTER);
        assert_true(brings.est_own_ms == d.est_own_ms && brings.est_there_ms == d.est_there_ms);
        m.gpu_wait_ms = 1;
        assert_decision(calls[i], &m, &defaults, false, ACCEL_BUSY);
        m.gpu_wait_ms = 0;
        m.full = true;
        assert_decision(calls[i], &m, &defaults, false, ACCEL_NO_MEMORY);
        m.prefetches = 0;
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms == 0);
        m.full = false;
        m.lost = true;
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms == 0);
        m = able;
        m.gpu_memory = 5 * bytes - 1; /* it would not stay */
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms == 0);
        m = able;
        m.may_prefetch = false;
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms == 0);
        m = able;
        m.scan_gbps = 2; /* to see that it has not changed takes too long */
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms == 0);
        m = able;
        m.cached = (struct gpu_cached){.operands = 1u << ACCEL_a, .digested_bytes = bytes};
        m.digest_gbps = 1; /* there, but not watched */
        assert_true(decide_with(calls[i], &m, &defaults, 4).est_there_ms > 0);
    }
    assert_true(decide_with(&large, &able, &defaults, 4).gpu);
    assert_true(decide_with(&large, &able, &defaults, 4).est_there_ms == 0);
}

/* ---- Decisions that nothing near would change ---- */

static void short_and_by_far(void **state)
{
    static const struct {
        double slower; /* so many times as long the GPU takes */
        bool lost, clear;
    } cases[] = {{1.05, false, false},
                 {1.5, false, true},
                 {1.5, true, true},
                 /* what keeps it from the GPU may end */
                 {0.5, true, false},
                 {0.5, false, false}};
    const struct accel_call call = product("dgemm", 100, 100, 100);
    struct accel_machine m = machine(DEVICE_READY);
    const struct accel_decision even = decide_with(&call, &m, &defaults, 1);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        m.gpu_slowdown = cases[i].slower * even.est_cpu_ms / even.est_own_ms;
        m.lost = cases[i].lost;
        const struct accel_decision decision = decide_with(&call, &m, &defaults, 1);
        assert_int_equal(decision.gpu, cases[i].slower < 1 && !cases[i].lost);
        assert_int_equal(is_clear(&call, &m, &defaults, 1), cases[i].clear);
    }
}

/* Of a call of a millisecond, the decision is nothing. */
static void long_ones_are_not(void **state)
{
    struct accel_machine m = machine(DEVICE_READY);
    (void)state;
    m.gpu_slowdown = 1000;
    for (int64_t n = 64; n <= 512; n += 16) {
        const struct accel_call call = product("dgemm", n, n, n);
        const double ms = decide_with(&call, &m, &defaults, 1).est_cpu_ms;
        assert_int_equal(is_clear(&call, &m, &defaults, 1), ms < 0.5);
    }
}

/* Other reasons may be gone with the next call. */
static void other_reasons_are_not(void **state)
{
    const struct accel_call call = product("dgemm", 100, 100, 100);
    struct accel_settings by_user = defaults;
    struct accel_machine m = machine(DEVICE_ABSENT);
    (void)state;
    m.gpu_slowdown = 1000;
    assert_decision(&call, &m, &defaults, false, ACCEL_NO_GPU);
    assert_false(is_clear(&call, &m, &defaults, 1));
    m.gpu = DEVICE_READY;
    assert_true(is_clear(&call, &m, &defaults, 1));
    by_user.policy = ACCEL_POLICY_CPU;
    assert_false(is_clear(&call, &m, &by_user, 1));
    m.distrusted = true;
    assert_false(is_clear(&call, &m, &defaults, 1));
}

/* A matrix of 1 MiB may come to be on the device, and then the call may pay. */
static void what_would_pay_on_the_device_is_not(void **state)
{
    struct accel_machine m = machine(DEVICE_READY);
    const struct accel_call large = times_vector(512, 512), small = times_vector(360, 360);
    (void)state;
    m.up_gbps = 0.5;
    m.scan_gbps = 0.01; /* now it does not pay to see that it has not changed */
    for (double slower = 0.01; slower < 1; slower *= 1.2) {
        const struct accel_call *const calls[] = {&large, &small};
        m.gpu_slowdown = slower;
        for (int i = 0; i < 2; i++) {
            const struct accel_decision brought = decide_with(calls[i], &m, &defaults, 1);
            struct accel_machine there = m;
            there.cached.operands = 1u << ACCEL_a;
            there.cached.watched_bytes = accel_bytes(&calls[i]->span[ACCEL_a]);
            there.scan_gbps = INFINITY;
            const struct accel_decision kept = decide_with(calls[i], &there, &defaults, 1);
            const bool by_far = brought.why == ACCEL_SLOWER && brought.est_cpu_ms < 0.5 &&
                                brought.est_own_ms > 1.1 * brought.est_cpu_ms;
            const bool clear = is_clear(calls[i], &m, &defaults, 1);
            assert_int_equal(clear, by_far && (i == 1 || kept.est_own_ms > kept.est_cpu_ms));
        }
    }
    m.gpu_slowdown = 0.2;
    assert_false(is_clear(&large, &m, &defaults, 1));
    assert_true(is_clear(&small, &m, &defaults, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_inputs),
        cmocka_unit_test(kept_factors),
        cmocka_unit_test(watched_inputs),
        cmocka_unit_test(inputs_that_are_worth_bringing),
        cmocka_unit_test(short_and_by_far),
        cmocka_unit_test(long_ones_are_not),
        cmocka_unit_test(other_reasons_are_not),
        cmocka_unit_test(what_would_pay_on_the_device_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
