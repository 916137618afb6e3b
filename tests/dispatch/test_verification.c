/*
 * Verification and copies on a device that the test plays: what is saved, judged and restored, and
 * how an original runs on copies of what the host cannot reach.
 */
#include "tests/lib/played_device.h"
#include "tests/lib/routine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output/message.h"
#include "dispatch/copies.h"
#include "dispatch/dispatch.h"
#include "dispatch/verify.h"
#include "ops/op.h"
#include "ops/typical.h"

enum { N = 6, LD = 9, PRODUCTS = 3 };

static struct dispatch_device device;
static struct played_device played;
static struct accel_settings settings;
static double a[PRODUCTS * LD * N], b[PRODUCTS * LD * N], c[PRODUCTS * LD * N];
static int messages;

static bool take_message(const char *text)
{
    (void)text;
    messages++;
    return true;
}

static int prepare(void **state)
{
    (void)state;
    play_device(&played, &device, 0);
    settings = (struct accel_settings){.on = true, .verify_every = 1};
    messages = 0;
    for (int i = 0; i < PRODUCTS * LD * N; i++) {
        a[i] = i % 5 - 2;
        b[i] = i % 7 - 3;
        c[i] = i % 3;
    }
    return 0;
}

static struct accel_call product(const char *name, int64_t batch)
{
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 0};
    double *const at[] = {a, b, c};
    struct accel_call call;
    shape_typical(&call, routine(name), size);
    call.batch = batch;
    for (int i = 0; i < 3; i++) {
        call.span[i].ptr = at[i];
        call.span[i].ld = LD;
        call.span[i].stride = LD * N;
    }
    return call;
}

/* C := alpha A B + beta C, by the definition: one product of any leading dimensions. */
static void multiply(const struct accel_call *call)
{
    const struct accel_span *x = &call->span[ACCEL_a], *y = &call->span[ACCEL_b],
                            *z = &call->span[ACCEL_c];
    for (int64_t j = 0; j < z->cols; j++)
        for (int64_t i = 0; i < z->rows; i++) {
            double sum = call->blas.scalar[ACCEL_beta].re * *(double *)gpu_element(z, i, j);
            for (int64_t k = 0; k < x->cols; k++)
                sum += call->blas.scalar[ACCEL_alpha].re * *(double *)gpu_element(x, i, k) *
                       *(double *)gpu_element(y, k, j);
            *(double *)gpu_element(z, i, j) = sum;
        }
}

static void compute(const struct accel_call *call)
{
    for (int64_t i = 0; i < call->batch; i++) {
        const struct accel_call one = accel_products_of(call, i, 1);
        multiply(&one);
    }
}

/* ---- Verification ---- */

static void judges_each_product(void **state)
{
    for (int64_t batch = 1; batch <= PRODUCTS; batch++)
        for (int wrong = -1; wrong < batch; wrong++) {
            double before[PRODUCTS * LD * N];
            struct verification v;
            prepare(state);
            const struct accel_call call =
                product(batch == 1 ? "dgemm" : "dgemm_batch_strided", batch);
            memcpy(before, c, sizeof c);
            verify_begin(&v, &played.gpu, &call, &settings);
            assert_true(v.on);
            assert_true(v.before[ACCEL_c] && !v.before[ACCEL_a] && !v.before[ACCEL_b]);
            assert_int_equal(played.fetched, batch);
            compute(&call);
            if (wrong >= 0)
                c[wrong * LD * N + LD + 1] += 1;
            const double ratio = verify_judge(&v, &call);
            assert_true(wrong < 0 ? ratio >= 0 && ratio <= 1 : ratio > 1 && ratio <= 1e9);
            assert_true(verify_restore(&v, &call));
            assert_int_equal(played.stored, batch);
            assert_memory_equal(c, before, sizeof c); /* also between the columns */
            verify_end(&v);
            assert_false(v.on || v.before[ACCEL_c]);
        }
}

static void an_error_without_bounds(void **state)
{
    struct verification v;
    const struct accel_call call = product("dgemm", 1);
    (void)state;
    verify_begin(&v, &played.gpu, &call, &settings);
    compute(&call);
    c[0] = 1e300;
    assert_true(verify_judge(&v, &call) == 1e9);
    verify_end(&v);
}

static void what_is_not_verified(void **state)
{
    struct verification v;
    struct accel_call call = product("dgemm", 1);
    settings.verify_every = 0;
    verify_begin(&v, &played.gpu, &call, &settings);
    assert_false(v.on);
    assert_true(verify_judge(&v, &call) == VERIFY_NOT_ASKED);
    verify_end(&v);
    assert_int_equal(played.fetched, 0);
    /* A result that is only written needs no copy. */
    prepare(state);
    call.blas.scalar[ACCEL_beta] = (struct accel_complex){0, 0};
    verify_begin(&v, &played.gpu, &call, &settings);
    assert_true(v.on && !v.before[ACCEL_c]);
    compute(&call);
    assert_true(verify_judge(&v, &call) >= 0);
    assert_true(verify_judge(&v, &call) <= 1);
    assert_true(verify_restore(&v, &call));
    assert_int_equal(played.stored, 0);
    verify_end(&v);
    /* Without a copy of what is overwritten, none is; this is said once. */
    call = product("dgemm", 1);
    for (int i = 0; i < 2; i++) {
        prepare(state);
        messages = i;
        played.fails = true;
        verify_begin(&v, &played.gpu, &call, &settings);
        assert_false(v.on);
        assert_int_equal(messages, 1);
        verify_end(&v);
    }
    /* The rows of what laswp exchanges are not known. */
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 1};
    prepare(state);
    shape_typical(&call, routine("dlaswp"), size);
    call.span[ACCEL_a].ptr = a;
    verify_begin(&v, &played.gpu, &call, &settings);
    assert_int_equal(played.fetched, 0);
    assert_true(verify_judge(&v, &call) < 0 && verify_judge(&v, &call) != VERIFY_NOT_ASKED);
    verify_end(&v);
    /* A device that fails when it is to give the result, or to take it back. */
    prepare(state);
    call = product("dgemm", 1);
    call.span[ACCEL_a].place = ACCEL_DEVICE;
    verify_begin(&v, &played.gpu, &call, &settings);
    compute(&call);
    assert_true(verify_judge(&v, &call) >= 0);
    assert_int_equal(played.fetched, 2);
    played.fails = true;
    assert_true(verify_judge(&v, &call) < 0);
    assert_false(verify_restore(&v, &call));
    verify_end(&v);
}

/* The factor of a definite matrix, in other memory. */
static void results_in_other_memory(void **state)
{
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 1};
    double factor[N * N];
    struct accel_call call, done;
    (void)state;
    for (int ld = N; ld <= LD; ld += LD - N) {
        shape_typical(&call, routine("dpotrf"), size);
        call.blas.flag[ACCEL_uplo] = 'L';
        call.span[ACCEL_a].ptr = a;
        call.span[ACCEL_a].ld = ld;
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++)
                a[i + j * ld] = i == j ? 10 : 1.0 / (1 + i + j);
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++) {
                double sum = a[i + j * ld];
                for (int k = 0; k < j; k++)
                    sum -= factor[i + k * N] * factor[j + k * N];
                factor[i + j * N] = i < j ? 0 : i == j ? sqrt(sum) : sum / factor[j + j * N];
            }
        done = call;
        done.span[ACCEL_a].ptr = factor;
        done.span[ACCEL_a].ld = N;
        assert_true(verify_apart(&played.gpu, &call, &done));
        factor[1] += 1e-3;
        assert_false(verify_apart(&played.gpu, &call, &done));
        factor[1] -= 1e-3;
        if (ld > N) { /* it takes a copy, which may fail */
            played.fails = true;
            assert_false(verify_apart(&played.gpu, &call, &done));
        }
    }
}

/* ---- Copies ---- */

static int originals;
static bool reached;

static void original(void *context, const struct accel_call *call)
{
    (void)context;
    originals++;
    for (int i = 0; i < 3; i++)
        if (call->span[i].place == ACCEL_DEVICE)
            reached &= call->span[i].ld == call->span[i].rows && call->span[i].ptr != a &&
                       call->span[i].ptr != b && call->span[i].ptr != c;
    multiply(call);
}
static const struct dispatch_caller caller = {.symbol = "dgemm_", .original = original};

static void who_reaches_what(void **state)
{
    static const struct {
        enum accel_place place;
        bool host;
    } expected[] = {{ACCEL_HOST, true},
                    {ACCEL_DEVICE, false},
                    {ACCEL_MANAGED, true},
                    {ACCEL_PLACED, true},
                    {ACCEL_REMOTE, false}};
    (void)state;
    for (int i = 0; i < 5; i++)
        for (int s = 0; s < ACCEL_SPANS; s++) {
            struct accel_call call = product("dgemm", 1);
            call.span[s].place = expected[i].place;
            assert_int_equal(copies_host_can_reach(&call.span[s]), expected[i].host);
            assert_int_equal(copies_host_can_read(&call), expected[i].host);
        }
}

static void shapes_of_copies(void **state)
{
    struct accel_span x = {.rows = 4, .cols = 5, .ld = 9};
    (void)state;
    copies_put(&x, a);
    assert_true(x.ptr == a && x.ld == 4 && x.inc == 0);
    x = (struct accel_span){.rows = 1, .cols = 5, .ld = 3, .inc = -3};
    copies_put(&x, a);
    assert_true(x.ld == 1 && x.inc == -1);
    x = (struct accel_span){.rows = 1, .cols = 5, .ld = 3, .inc = 3};
    copies_put(&x, a);
    assert_int_equal(x.inc, 1);
    x = (struct accel_span){.rows = 0, .cols = 5, .ld = 7};
    copies_put(&x, a);
    assert_int_equal(x.ld, 7);
}

static void originals_on_copies(void **state)
{
    for (int64_t batch = 1; batch <= PRODUCTS; batch++)
        for (int far = 0; far < 8; far++) {
            double expected[PRODUCTS * LD * N];
            int copied = 0;
            prepare(state);
            struct accel_call call = product(batch == 1 ? "dgemm" : "dgemm_batch_strided", batch);
            for (int i = 0; i < 3; i++)
                if (far & 1 << i) {
                    call.span[i].place = ACCEL_DEVICE;
                    copied++;
                }
            compute(&call);
            memcpy(expected, c, sizeof c);
            prepare(state);
            originals = 0;
            reached = true;
            assert_true(copies_run(&played.gpu, &call, &caller));
            assert_true(reached);
            assert_int_equal(originals, batch);
            assert_int_equal(played.fetched, copied * batch);
            assert_int_equal(played.stored, (far & 1 << ACCEL_c ? 1 : 0) * batch);
            assert_memory_equal(c, expected, sizeof c);
            if (far == 0)
                continue;
            prepare(state);
            originals = 0;
            played.fails = true;
            assert_false(copies_run(&played.gpu, &call, &caller));
            assert_int_equal(originals, 0); /* nor any product behind it */
        }
}

/* laswp exchanges the rows that its pivots name, which may be any of the matrix: they tell how many
 * a copy needs. */
static int64_t rows_seen;
static void look_at_rows(void *context, const struct accel_call *call)
{
    (void)context;
    rows_seen = call->span[ACCEL_a].rows;
}

static void rows_that_pivots_name(void **state)
{
    static const struct dispatch_caller looks = {.symbol = "dlaswp_", .original = look_at_rows};
    const struct accel_op *op = accel_op_of(routine("dlaswp"));
    const int64_t size[ACCEL_DIMENSIONS] = {2, 2, 2, 1};
    int32_t pivots[2] = {1, 7};
    struct accel_call call;
    (void)state;
    shape_typical(&call, routine("dlaswp"), size);
    call.blas.size[ACCEL_k1] = call.blas.size[ACCEL_incx] = 1;
    call.blas.size[ACCEL_k2] = 2;
    call.span[ACCEL_x].ptr = pivots;
    call.span[ACCEL_x].dtype = ACCEL_INT32;
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_a].ld = LD;
    call.span[ACCEL_a].place = ACCEL_DEVICE;
    assert_non_null(op->rules->rows);
    assert_int_equal(op->rules->rows(&call), 7);
    assert_true(copies_run(&played.gpu, &call, &looks));
    assert_int_equal(rows_seen, 7);
}

static int start(void **state)
{
    (void)state;
    message_to(take_message);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define PREPARED(test) cmocka_unit_test_setup(test, prepare)
        PREPARED(judges_each_product),  PREPARED(an_error_without_bounds),
        PREPARED(what_is_not_verified), PREPARED(results_in_other_memory),
        PREPARED(who_reaches_what),     PREPARED(shapes_of_copies),
        PREPARED(originals_on_copies),  PREPARED(rows_that_pivots_name),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
