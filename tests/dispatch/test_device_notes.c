/*
 * What is noted of a device, which the test plays: routines that are warm or left alone, memory
 * that was short, precisions that it lacks.
 */
#include "tests/lib/own_clock.h"
#include "tests/lib/played_device.h"
#include "tests/lib/routine.h"
#include "tests/lib/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output/message.h"
#include "call/matrix.h"
#include "dispatch/cost/cost.h"
#include "dispatch/devices.h"
#include "dispatch/oom_backoff.h"
#include "dispatch/quarantine.h"
#include "dispatch/precision.h"
#include "dispatch/warm_up.h"
#include "ops/op.h"
#include "ops/typical.h"

static struct accel_settings settings = {.on = true};
static const struct accel_ranks ranks = {.size = 1, .local_size = 1};
static struct dispatch_device device;
static struct played_device played;
static bool is_gone;
static int messages, runs;
static char message[1000];

bool __wrap_gpu_is_gone(void);

bool __wrap_gpu_is_gone(void)
{
    return is_gone;
}

static bool take_message(const char *text)
{
    messages++;
    snprintf(message, sizeof message, "%s", text);
    return true;
}

static double element(const struct accel_span *x, int64_t i)
{
    const char *at = (const char *)x->ptr + i * gpu_size_of(x);
    if (x->dtype == ACCEL_INT32 || x->dtype == ACCEL_INT64)
        return (double)accel_integer(x, i);
    return accel_is_double(x->dtype) ? *(const double *)at : (double)*(const float *)at;
}

/* Of a packed triangle: whether element i is on the diagonal. */
static bool is_on_diagonal(const struct accel_call *call, int64_t i)
{
    const int64_t n = call->blas.size[ACCEL_n];
    for (int64_t j = 0; j < n; j++)
        if (triangle_place(call->blas.flag[ACCEL_uplo], n, j, j) == i)
            return true;
    return false;
}

/* A call that computes next to nothing: the identity, pivots that exchange nothing, small
 * vectors. */
static enum gpu_status run(struct played_device *on, const struct accel_call *call,
                           struct gpu_host *host)
{
    (void)on;
    runs++;
    assert_false(host->original(host->context, call)); /* a part that is refused is left undone */
    for (int s = 0; s < ACCEL_SPANS; s++) {
        const struct accel_span *const x = &call->span[s];
        assert_int_equal(x->ptr != NULL, x->access != 0);
        if (!x->ptr || x->dtype == ACCEL_BFLOAT16)
            continue;
        const bool pivots = x->dtype == ACCEL_INT32 || x->dtype == ACCEL_INT64;
        for (int64_t i = 0; i < x->rows * x->cols; i++) {
            const int64_t row = x->rows ? i % x->rows : 0, col = x->rows ? i / x->rows : 0;
            const double value = element(x, i);
            if (call->op->traits.packed && s == ACCEL_a)
                assert_true(value == (double)is_on_diagonal(call, i));
            else if (x->inc && pivots)
                assert_true(value == (double)(i + 1));
            else if (x->inc)
                assert_true(value > 0 && value < 0.1);
            else
                assert_true(value == (row == col));
        }
    }
    return GPU_OK;
}

static int prepare(void **state)
{
    (void)state;
    settings = (struct accel_settings){.on = true};
    play_device(&played, &device, 3);
    atomic_store(&devices_at(0)->state, DEVICE_ABSENT); /* the process has no other one */
    played.run = run;
    messages = runs = 0;
    is_gone = false;
    return 0;
}

/* ---- Warm routines ---- */

static void costs_of_first_calls(void **state)
{
    const struct accel_routine *const dgemm = routine("dgemm"), *const dgetrf = routine("dgetrf"),
                                      *const dpotrf = routine("dpotrf"),
                                      *const dlaswp = routine("dlaswp");
    const struct cost_first first = cost_first_calls(NULL);
    (void)state;
    assert_true(first.kernels_ms > 0 && first.solver_ms > 0);
    assert_true(warm_up_cost_ms(&device, dgemm) == first.kernels_ms);
    assert_true(warm_up_cost_ms(&device, dlaswp) == first.kernels_ms);
    assert_true(warm_up_cost_ms(&device, dgetrf) == first.kernels_ms + first.solver_ms);
    assert_false(warm_up_is_done(&device, dgetrf));
    warm_up_note(&device, dlaswp); /* has no need of the solver */
    assert_true(warm_up_cost_ms(&device, dgetrf) == first.kernels_ms + first.solver_ms);
    warm_up_note(&device, dgetrf);
    assert_true(warm_up_is_done(&device, dgetrf) && !warm_up_is_done(&device, dgemm));
    assert_true(warm_up_cost_ms(&device, dgetrf) == 0);
    assert_true(warm_up_cost_ms(&device, dpotrf) == first.kernels_ms); /* it is open */
}

static void costs_that_gains_pay_for(void **state)
{
    const struct accel_routine *const dgemm = routine("dgemm"), *const sgemm = routine("sgemm");
    const double cost = warm_up_cost_ms(&device, dgemm);
    (void)state;
    assert_true(warm_up_counted_ms(&device, dgemm) == cost);
    /* By estimates that count what is not paid yet: a call that lost 1 ms with it has missed the
     * rest. */
    warm_up_note_gain(&device, dgemm, -1);
    assert_true(warm_up_counted_ms(&device, dgemm) > 0.99 &&
                warm_up_counted_ms(&device, dgemm) < 1.01);
    assert_true(warm_up_counted_ms(&device, sgemm) == cost);
    warm_up_note_gain(&device, dgemm, -5); /* misses nothing */
    assert_true(warm_up_counted_ms(&device, dgemm) > 0.99);
    warm_up_note_gain(&device, dgemm, -0.25);
    assert_true(warm_up_counted_ms(&device, dgemm) > 0.24 &&
                warm_up_counted_ms(&device, dgemm) < 0.26);
    warm_up_note_gain(&device, dgemm, 1);
    assert_true(warm_up_counted_ms(&device, dgemm) == 0);
    for (int i = 0; i < 3; i++)
        warm_up_note_gain(&device, sgemm, 1e300);
    assert_true(warm_up_counted_ms(&device, sgemm) == 0);
}

static void routines_that_are_warmed_up(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const struct accel_routine *const routine = &accel_routines[i];
        runs = 0;
        warm_up_run(&device, routine);
        assert_true(warm_up_is_done(&device, routine));
        assert_int_equal(runs, accel_is_blas(routine)); /* of others, no call can be made up */
    }
    prepare(state);
    is_gone = true;
    warm_up_run(&device, routine("dgemm"));
    assert_int_equal(runs, 0);
}

/* ---- Routines that are left alone ---- */

static void each_routine_for_each_reason(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < accel_routine_count; i += 7) {
        struct quarantine left = {0};
        assert_true(quarantine_add(&left, &accel_routines[i], QUARANTINE_WRONG));
        assert_false(quarantine_add(&left, &accel_routines[i], QUARANTINE_WRONG));
        for (uint32_t j = 0; j < accel_routine_count; j++) {
            assert_int_equal(quarantine_has(&left, &accel_routines[j], QUARANTINE_WRONG), i == j);
            assert_false(quarantine_has(&left, &accel_routines[j], QUARANTINE_FAILED));
        }
        assert_true(quarantine_add(&left, &accel_routines[i], QUARANTINE_FAILED));
        assert_true(quarantine_has(&left, &accel_routines[i], QUARANTINE_FAILED));
    }
}

static struct accel_call product(int64_t n)
{
    const int64_t size[ACCEL_DIMENSIONS] = {n, n, n, 0};
    struct accel_call call;
    shape_typical(&call, routine("dgemm"), size);
    return call;
}

static void after(enum gpu_status status, enum gpu_blame blame)
{
    const struct accel_call call = product(100);
    struct gpu_host host = {.blame = blame, .failure = "told to fail"};
    quarantine_by_status(&device, &call, &host, status);
}

static void what_a_failure_leaves(void **state)
{
    static const enum gpu_status failures[] = {GPU_ERROR, GPU_FINISHED_ELSE};
    static const enum gpu_status others[] = {GPU_OK,          GPU_NO_MEMORY, GPU_SHORT_ELSE,
                                             GPU_UNSUPPORTED, GPU_CHANGED,   GPU_LOST};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        after(others[i], GPU_BLAME_ROUTINE);
    assert_int_equal(messages, 0);
    assert_false(quarantine_has(&device.quarantine, routine("dgemm"), QUARANTINE_FAILED));
    for (int i = 0; i < 2; i++) {
        prepare(state);
        for (int again = 0; again < 2; again++) {
            after(failures[i], GPU_BLAME_ROUTINE);
            assert_int_equal(messages, 1);
        }
        assert_string_equal(message,
                            "dgemm is left to the CPU from here on, gpu3 goes on with other "
                            "routines: told to fail");
        for (uint32_t j = 0; j < accel_routine_count; j++)
            assert_int_equal(
                quarantine_has(&device.quarantine, &accel_routines[j], QUARANTINE_FAILED),
                &accel_routines[j] == routine("dgemm"));
        prepare(state);
        for (int again = 0; again < 2; again++) {
            after(failures[i], GPU_BLAME_LAPACK);
            assert_int_equal(messages, 1);
        }
        assert_string_equal(message,
                            "LAPACK is left to the CPU from here on, gpu3 goes on with BLAS: "
                            "told to fail");
        for (uint32_t j = 0; j < accel_routine_count; j++)
            assert_int_equal(
                quarantine_has(&device.quarantine, &accel_routines[j], QUARANTINE_FAILED),
                accel_is_lapack(&accel_routines[j]));
        assert_int_equal(device_state(&device), DEVICE_READY);
        prepare(state);
        after(failures[i], GPU_BLAME_DEVICE);
        assert_int_equal(device_state(&device), DEVICE_FAILED);
        assert_non_null(strstr(message, "gpu3 is left alone from here on, the CPU computes: "));
    }
}

/* ---- Memory ---- */

static void memory_that_was_short(void **state)
{
    const struct accel_call smaller = product(99), same = product(100), larger = product(101);
    struct accel_call wrong = product(200);
    (void)state;
    wrong.span[ACCEL_a].ld = 1;
    assert_false(is_full_for(&device.oom_backoff, &larger));
    for (int i = 0; i < 2; i++) {
        after(i ? GPU_SHORT_ELSE : GPU_NO_MEMORY, GPU_BLAME_DEVICE);
        assert_true(is_full_for(&device.oom_backoff, &same) &&
                    is_full_for(&device.oom_backoff, &larger));
        assert_false(is_full_for(&device.oom_backoff, &smaller) ||
                     is_full_for(&device.oom_backoff, &wrong));
        now_ms += 998;
        assert_true(is_full_for(&device.oom_backoff, &same));
        now_ms += 2;
        assert_false(
            is_full_for(&device.oom_backoff, &same)); /* after a second, it is tried again */
    }
}

/* ---- Precisions ---- */

static void precisions_of_a_device(void **state)
{
    struct accel_call call = product(100);
    unsigned char *const asked = &settings.precision[call.routine - accel_routines];
    (void)state;
    assert_int_equal(precision_of(&settings, &device, &call), GPU_NATIVE);
    *asked = GPU_EMULATED;
    assert_int_equal(precision_asked(&settings, call.routine), GPU_EMULATED);
    played.gpu.info.precisions[GPU_GEMM] = 1u << GPU_EMULATED;
    assert_int_equal(precision_of(&settings, &device, &call), GPU_EMULATED);
    assert_int_equal(messages, 0);
    /* One that the device lacks: said once. */
    played.gpu.info.precisions[GPU_GEMM] = 1u << GPU_TF32;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(precision_of(&settings, &device, &call), GPU_NATIVE);
        assert_int_equal(messages, 1);
    }
    assert_non_null(strstr(message,
                           "ACCEL_PRECISION: gpu3 (Played) cannot compute in emulated, which "
                           "needs compute capability"));
    /* Not known before there is a device. */
    atomic_store(&device.gpu, NULL);
    assert_int_equal(precision_of(&settings, &device, &call), GPU_EMULATED);
    atomic_store(&device.gpu, &played.gpu);
    /* Products in which no device computes so; of others, another word is said. */
    const int64_t size[ACCEL_DIMENSIONS] = {100, 100, 100, 0};
    shape_typical(&call, routine("dgetrf"), size);
    settings.precision[call.routine - accel_routines] = GPU_EMULATED;
    assert_int_equal(precision_of(&settings, &device, &call), GPU_NATIVE);
    shape_typical(&call, routine("sgemm"), size);
    settings.precision[call.routine - accel_routines] = GPU_BF16X9;
    assert_int_equal(precision_of(&settings, &device, &call), GPU_NATIVE);
    assert_int_equal(messages, 2);
    assert_non_null(strstr(message, "bf16x9"));
}

static int start(void **state)
{
    (void)state;
    message_to(take_message);
    device_prepare(&settings, &ranks);
    cost_start(&settings, 1, true, true);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define PREPARED(test) cmocka_unit_test_setup(test, prepare)
        PREPARED(costs_of_first_calls),        PREPARED(costs_that_gains_pay_for),
        PREPARED(routines_that_are_warmed_up), PREPARED(each_routine_for_each_reason),
        PREPARED(what_a_failure_leaves),       PREPARED(memory_that_was_short),
        PREPARED(precisions_of_a_device),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
