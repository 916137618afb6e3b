/*
 * The times of panels, by plain versions: bounds, kernels, copies, and schedules; and what comes
 * down of a panel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "gpu/pack/chunks.h"
#include "gpu/plan/panels.h"
#include "tests/lib/draw.h"
#include "tests/lib/rates.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

static struct panels_call any_call(int64_t most)
{
    static const int64_t sizes[] = {4, 8, 16};
    struct panels_call call = {.kind = (enum panels_kind)below(4),
                               .m = 1 + below(most),
                               .n = 1 + below(most),
                               .size = sizes[below(3)],
                               .per_term = 2};
    if (call.kind == PANELS_CHOLESKY)
        call.n = call.m;
    if (call.kind != PANELS_APPLY)
        return call;
    call.order = 1 + below(call.m);
    call.sweeps = 1 + (int)below(2);
    call.triangle = below(3) == 0;
    if (call.triangle)
        call.n = call.order = call.m;
    for (int i = 0; i < call.sweeps; i++)
        call.sweep[i] = (struct panels_sweep){.reflects = below(2),
                                              .backwards = below(2),
                                              .from_panel = call.triangle,
                                              .to_panel = !call.triangle && call.n >= call.order &&
                                                          below(3) == 0};
    return call;
}

static bool is_triangle(const struct panels_call *call)
{
    return call->kind == PANELS_CHOLESKY || call->triangle;
}

/* ---- One kernel ---- */

static struct schedule_rates plain = {.up = 3,
                                      .down = 2,
                                      .compute = 5,
                                      .half = 7,
                                      .copy_ms = 0.002,
                                      .kernel_ms = 0.005,
                                      .wait_ms = 0.01,
                                      .column_ms = 0.0002,
                                      .row_ms = 0.0004,
                                      .call_ms = 0.004,
                                      .chunk_share = 0.2,
                                      .launch_ms = 0.003};

/* Returns the milliseconds of so many multiply-adds, by the rate, and half of it for products as
 * short as 7. */
static double product_ms(double terms, double shortest)
{
    return 2 * terms * (shortest + 7) / shortest / (plain.compute * 1e6);
}

/* Of `wide` columns that are factored: the sum of what each does to those behind it, where
 * `most` is the other size. QR does twice as much, Cholesky solves below its triangle. */
static double factor_ms(const struct panels_call *call, double rows, double cols)
{
    const double wide = fmin(rows, cols), most = fmax(rows, cols);
    const bool cholesky = call->kind == PANELS_CHOLESKY;
    const double terms = cholesky ? wide * wide * most / 2 - wide * wide * wide / 3
                                  : wide * wide * most / 2 - wide * wide * wide / 6;
    const double chain = wide * (0.0002 + (cholesky && rows > cols ? 0.0004 : 0));
    return 0.005 + chain + product_ms(call->kind == PANELS_QR ? 2 * terms : terms, cols);
}

static void whole_matrices(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        const struct panels_call call = any_call(900);
        const double m = (double)call.m, n = (double)call.n, k = (double)call.order;
        const double share = is_triangle(&call) ? (double)chunks_triangle_sent(call.m, call.size) /
                                                      m / m / (double)call.size
                                                : 1;
        const double bytes = m * n * share * (double)call.size;
        double kernels = 0.01 + factor_ms(&call, m, n);
        if (call.kind == PANELS_APPLY)
            kernels = call.sweeps * (0.005 + product_ms(k * k * n / 2, fmin(n, k)));
        assert_true(is_about(panels_down_ms(&call, &plain), 0.002 + bytes / 2e6));
        assert_true(is_about(panels_whole_ms(&call, &plain), 0.002 + bytes / 3e6 + kernels));
    }
}

/* Returns the multiply-adds of one sweep, column by column: a column of the other matrix meets
 * the columns of the panels on its side, in the rows from its diagonal on; a triangle's product
 * or solution half of them. */
static double terms_of(const struct panels_call *call, const struct panels_sweep *sweep)
{
    const double m = (double)call->m, n = (double)call->n, k = (double)call->order;
    const bool part = sweep->to_panel || sweep->from_panel;
    double met = n * k, squares = n * k * k;
    if (part) {
        met -= k * k / 2;
        squares -= 2 * k * k * k / 3;
    }
    return sweep->reflects ? 2 * m * met - squares : squares / 2;
}

static void least_times(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        const struct panels_call call = any_call(900);
        const double m = (double)call.m, n = (double)call.n, mn = fmin(m, n);
        const double down = m * n * (is_triangle(&call) ? 0.5 : 1);
        double up = down, terms = 0;
        switch (call.kind) {
        case PANELS_CHOLESKY:
            terms = n * n * n / 6;
            break;
        case PANELS_APPLY:
            up += m * (double)call.order / 2;
            for (int i = 0; i < call.sweeps; i++)
                terms += terms_of(&call, &call.sweep[i]);
            break;
        default: /* the sum over columns j of (m - j) (n - j) */
            terms = mn * m * n - mn * mn * (m + n) / 2 + mn * mn * mn / 3;
            terms *= call.kind == PANELS_QR ? 2 : 1;
        }
        const double ms[] = {up * (double)call.size / 1e6, 2 * terms / 1e6,
                             down * (double)call.size / 1e6};
        for (int e = 0; e < SCHEDULE_ENGINES; e++) {
            const struct schedule_rates alone = {.up = e == UP ? 1 : 1e30,
                                                 .down = e == DOWN ? 1 : 1e30,
                                                 .compute = e == COMPUTE ? 1 : 1e30};
            assert_true(is_about(panels_floor(&call, &alone), ms[e]));
        }
        const struct schedule_rates even = {.up = 1, .down = 1, .compute = 1};
        assert_true(is_about(panels_floor(&call, &even), larger(ms[0], larger(ms[1], ms[2]))));
    }
}

/* ---- Schedules ---- */

static double kernel_ms(const struct panels *p, const struct schedule_step *step)
{
    const struct panels_call *call = &p->call;
    const struct schedule_tile panel = panels_panel(p, step->j);
    if (step->p < 0)
        return factor_ms(call, (double)(call->m - panel.col), (double)panel.cols);
    const struct schedule_tile block = panels_block(p, step);
    const struct panels_columns changed = panels_changed(p, step);
    const double width = (double)(changed.end - changed.first), cols = (double)block.cols;
    const double rows = (double)block.rows - (call->kind == PANELS_CHOLESKY ? width / 2 : 0);
    const bool twice =
        call->kind == PANELS_QR || (call->kind == PANELS_APPLY && call->sweep[step->i].reflects);
    return 3 * 0.005 + (call->kind == PANELS_LU ? 0.0004 * cols : 0) +
           product_ms((twice ? 2 : 1) * rows * cols * width, fmin(width, cols));
}

/* What of a kernel are columns, or rows, that wait for each other. */
static double chain_ms(const struct panels *p, const struct schedule_step *step)
{
    const struct panels_call *call = &p->call;
    const struct schedule_tile panel = panels_panel(p, step->j);
    const double rows = (double)(call->m - panel.col), cols = (double)panel.cols;
    if (step->p >= 0)
        return call->kind == PANELS_LU ? 0.0004 * (double)panels_block(p, step).cols : 0;
    return fmin(rows, cols) *
           (0.0002 + (call->kind == PANELS_CHOLESKY && rows > cols ? 0.0004 : 0));
}

static double bytes_of(const struct panels *p, const struct schedule_step *step)
{
    if (step->operand == PANELS_LIST || step->operand == PANELS_INFO)
        return 0;
    const struct schedule_tile tile =
        step->operand == PANELS_PANEL ? panels_panel(p, step->j) : panels_block(p, step);
    return (double)(tile.rows * tile.cols * p->call.size);
}

/* Replays the steps in virtual time. */
static void replay(const struct panels *p)
{
    const struct schedule *s = &p->schedule;
    double *end[SCHEDULE_ENGINES], bytes[SCHEDULE_ENGINES] = {0}, ms = 0, caller = 0;
    int done[SCHEDULE_ENGINES] = {0};
    for (int e = 0; e < SCHEDULE_ENGINES; e++) {
        end[e] = calloc((size_t)s->count + 1, sizeof(double));
        assert_non_null(end[e]);
    }
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        const int e = step->engine;
        double takes = 0;
        if (e == COMPUTE) {
            takes = kernel_ms(p, step);
            assert_true(is_about(panels_kernel_ms(p, &plain, step), takes));
            caller += 0.003 + chain_ms(p, step);
        } else {
            bytes[e] += bytes_of(p, step);
            takes = 0.002 + bytes_of(p, step) / (e == UP ? 3e6 : 2e6);
            caller += 0.004 + 0.2 * takes;
        }
        double begin = larger(end[e][done[e]], caller);
        for (int other = 0; other < SCHEDULE_ENGINES; other++)
            if (other != e && step->after[other] > 0)
                begin = larger(begin, end[other][step->after[other]] + 0.01);
        end[e][++done[e]] = begin + takes;
        ms = larger(ms, begin + takes);
    }
    assert_true(is_about(p->schedule.ms, ms) && p->times.ms == p->schedule.ms);
    assert_true(p->up_bytes == bytes[UP] && p->down_bytes == bytes[DOWN]);
    for (int e = 0; e < SCHEDULE_ENGINES; e++)
        free(end[e]);
}

/* A panel comes down once, and what has been factored with its pivots or scalars, unless it is
 * Cholesky's, and its state. First and last kernels are marked. */
static void comes_down(const struct panels *p)
{
    for (int j = 0; j < p->count; j++) {
        const bool factors = panels_factored(p, j) > 0;
        int down[4] = {0}, kernels = 0, first = 0, last = 0;
        for (int n = 0; n < p->schedule.count; n++) {
            const struct schedule_step *step = &p->schedule.step[n];
            if (step->j != j)
                continue;
            if (step->engine == COMPUTE) {
                assert_int_equal(step->first, kernels == 0);
                kernels++;
                first += step->first;
                last += step->last;
                continue;
            }
            down[step->operand] += step->engine == DOWN;
            assert_true(step->engine == UP || kernels == 0 || last == 1);
        }
        assert_int_equal(first, kernels > 0);
        assert_int_equal(last, kernels > 0);
        assert_int_equal(down[PANELS_PANEL], !p->in_core);
        assert_int_equal(down[PANELS_BLOCK], 0);
        assert_int_equal(down[PANELS_LIST],
                         !p->in_core && factors && p->call.kind != PANELS_CHOLESKY);
        assert_int_equal(down[PANELS_INFO], !p->in_core && factors);
    }
}

static void times_of_schedules(void **state)
{
    int made = 0, in_core = 0;
    (void)state;
    for (int round = 0; round < 1500; round++) {
        const struct panels_call call = any_call(500);
        const int64_t memory = 1000 + below(call.m * call.n * call.size);
        struct panels p;
        if (panels_make(&p, &call, &plain, memory)) {
            replay(&p);
            comes_down(&p);
            assert_true(panels_ms(&call, &plain, memory) == p.schedule.ms);
            made += p.count > 1;
            panels_free(&p);
        }
        plain.compute = 200; /* the kernels take about as long as the copies */
        if (panels_make_in_core(&p, &call, &plain)) {
            replay(&p);
            comes_down(&p);
            in_core++;
            panels_free(&p);
        }
        plain.compute = 5;
    }
    assert_true(made > 300 && in_core > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_matrices),
        cmocka_unit_test(least_times),
        cmocka_unit_test(times_of_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
