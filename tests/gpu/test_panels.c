/*
 * Schedules in panels, without a device: each column is factored once, after all that comes before
 * it; nothing is read before it is there, and no slot overwritten while it is used; the memory is
 * enough; and in virtual time, a large matrix is near a bound that no schedule is below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "gpu/pack/pack.h"
#include "gpu/plan/panels.h"
#include "call/call.h"
#include "tests/lib/rates.h"
#include "tests/lib/schedule_waits.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

/* ---- The order ---- */

/* What the steps before have done, in the order of the list. */
struct replay {
    const struct panels *p;
    int done[SCHEDULE_ENGINES];
    /* By slot: the panel that is there; its upload; the kernel that read it for the next one */
    int panel[2], panel_up[2], panel_used[2];
    int block_up[2], block_used[2];       /* by slot: the upload; the last kernel that read it */
    const struct schedule_step *block[2]; /* by slot: the step that brought it */
    /* By panel: the download behind which it is in host memory; its last kernel */
    int down[PANELS_MOST], kernels[PANELS_MOST];
    /* Of the panel: the column that comes next, of each source or sweep */
    int64_t next[PANELS_SWEEPS];
    int source;
    bool factored, changed_by_before;
};

static int64_t bytes_of(const struct panels_call *call, bool across, struct schedule_tile tile)
{
    return (across ? pack_ld(tile.cols, call->size) * tile.rows
                   : pack_ld(tile.rows, call->size) * tile.cols) *
           call->size;
}

static bool is_triangle(const struct panels_call *call)
{
    return call->kind == PANELS_CHOLESKY || call->triangle;
}

/* The columns of the other matrix that sweep i has for panel j. */
static int64_t sweep_first(const struct panels *p, int i, int j)
{
    return p->call.sweep[i].from_panel ? accel_min(p->first[j], p->call.order) : 0;
}

static int64_t sweep_end(const struct panels *p, int i, int j)
{
    return p->call.sweep[i].to_panel ? accel_min(p->first[j + 1], p->call.order) : p->call.order;
}

static void panel_up(struct replay *r, const struct schedule_step *step)
{
    const struct panels *p = r->p;
    const int slot = step->slot;
    assert_in_range(slot, 0, p->buffers - 1);
    const struct schedule_tile panel = panels_panel(p, step->j);
    assert_true(bytes_of(&p->call, p->call.across, panel) <= p->panel_bytes);
    assert_true(panel.row == (is_triangle(&p->call) ? panel.col : 0));
    assert_true(panel.rows == p->call.m - panel.row);
    if (r->panel[slot] >= 0)
        assert_true(step->after[DOWN] >= r->down[r->panel[slot]]);
    assert_true(step->after[COMPUTE] >= r->panel_used[slot]);
    r->panel[slot] = step->j;
    r->panel_up[slot] = r->done[UP];
    r->source = 0;
    r->factored = r->changed_by_before = false;
    r->next[0] = 0;
    for (int i = 0; p->call.kind == PANELS_APPLY && i < p->call.sweeps; i++)
        r->next[i] =
            p->call.sweep[i].backwards ? sweep_end(p, i, step->j) : sweep_first(p, i, step->j);
}

static void block_up(struct replay *r, const struct schedule_step *step)
{
    const struct panels *p = r->p;
    assert_in_range(step->slot, 0, 1);
    const bool across = p->call.kind == PANELS_APPLY ? p->call.other_across : p->call.across;
    assert_true(bytes_of(&p->call, across, panels_block(p, step)) <= p->block_bytes);
    assert_true(step->after[COMPUTE] >= r->block_used[step->slot]);
    if (p->call.kind != PANELS_APPLY) {
        assert_true(step->i < step->j);
        assert_true(step->after[DOWN] >= r->down[step->i] && r->down[step->i] > 0);
    }
    r->block[step->slot] = step;
    r->block_up[step->slot] = r->done[UP];
}

static bool sweep_is_over(const struct replay *r, int i, int j)
{
    return r->next[i] ==
           (r->p->call.sweep[i].backwards ? sweep_first(r->p, i, j) : sweep_end(r->p, i, j));
}

/* Blocks come in the order of the columns, and from the diagonal on: for Cholesky, from the
 * panel's. */
static void block_is_next(struct replay *r, const struct schedule_step *step)
{
    const struct panels_call *call = &r->p->call;
    const struct schedule_tile block = panels_block(r->p, step);
    if (call->kind == PANELS_APPLY) {
        const struct panels_sweep *sweep = &call->sweep[step->i];
        int64_t *next = &r->next[step->i];
        assert_true(step->i == 0 || r->source == step->i || sweep_is_over(r, 0, step->j));
        r->source = step->i;
        assert_true((sweep->backwards ? *next - block.cols : *next) == block.col);
        *next += sweep->backwards ? -block.cols : block.cols;
        const struct panels_columns changed = panels_changed(r->p, step);
        const int64_t first = r->p->first[step->j], cols = r->p->first[step->j + 1] - first;
        /* Row `block.col` and below of the columns before it, or beyond it, are zeros. */
        assert_true(changed.first == (sweep->to_panel ? accel_max(0, block.col - first) : 0));
        assert_true(changed.end ==
                    (sweep->from_panel ? accel_min(cols, block.col + block.cols - first) : cols));
        assert_true(changed.first < changed.end);
        assert_true(block.row == (sweep->above ? 0 : block.col));
        assert_true(block.rows == (sweep->above ? block.col + block.cols : call->m - block.col));
        return;
    }
    assert_true(block.col == r->next[0]);
    assert_true(block.row == (call->kind == PANELS_CHOLESKY ? r->p->first[step->j] : block.col));
    assert_true(block.rows == call->m - block.row);
    assert_true(block.col >= r->p->first[step->i] &&
                block.col + block.cols <= r->p->first[step->i + 1]);
    r->next[0] += block.cols;
}

/* Returns how many columns of the matrix come up to change panel j: all columns to its left.
 * Without those of panel j - 1, if that is still on the device. */
static int64_t columns_up(const struct panels *p, int j)
{
    return accel_min(p->first[p->stays && j > 0 ? j - 1 : j], accel_min(p->call.m, p->call.n));
}

/* The panel before is where it was factored. It comes in the order of the columns; for Cholesky
 * first. */
static void changed_by_before(struct replay *r, const struct schedule_step *step)
{
    const struct panels *p = r->p;
    const struct schedule_tile block = panels_block(p, step);
    const int slot = step->i % p->buffers;
    assert_true(p->stays && step->i == step->j - 1 && step->p == 0 && !r->changed_by_before);
    assert_int_equal(r->panel[slot], step->i);
    assert_true(r->next[0] == (p->call.kind == PANELS_CHOLESKY ? 0 : columns_up(p, step->j)));
    assert_true(block.col == p->first[step->i] && block.cols == panels_factored(p, step->i));
    assert_true(block.row == (p->call.kind == PANELS_CHOLESKY ? p->first[step->j] : block.col));
    assert_true(block.rows == p->call.m - block.row);
    r->panel_used[slot] = r->done[COMPUTE];
    r->changed_by_before = true;
}

static void kernel(struct replay *r, const struct schedule_step *step)
{
    const struct panels *p = r->p;
    const int slot = step->j % p->buffers;
    assert_int_equal(r->panel[slot], step->j);
    assert_true(step->after[UP] >= r->panel_up[slot]);
    assert_false(r->factored);
    r->kernels[step->j] = r->done[COMPUTE];
    if (step->p >= 0 && step->slot < 0) {
        changed_by_before(r, step);
        return;
    }
    if (step->p >= 0) {
        const struct schedule_step *block = r->block[step->slot];
        assert_true(block && block->i == step->i && block->j == step->j && block->p == step->p);
        assert_true(step->after[UP] >= r->block_up[step->slot]);
        r->block_used[step->slot] = r->done[COMPUTE];
        block_is_next(r, step);
        return;
    }
    assert_true(panels_factored(p, step->j) > 0);
    assert_true(r->next[0] == columns_up(p, step->j));
    assert_int_equal(r->changed_by_before, p->stays && step->j > 0);
    r->factored = true;
}

static void download(struct replay *r, const struct schedule_step *step)
{
    const struct panels *p = r->p;
    assert_true(step->after[COMPUTE] >= r->kernels[step->j]);
    assert_int_equal(r->panel[step->j % p->buffers], step->j);
    assert_int_equal(r->factored, panels_factored(p, step->j) > 0);
    for (int i = 0; p->call.kind == PANELS_APPLY && i < p->call.sweeps; i++)
        assert_true(sweep_is_over(r, i, step->j));
    r->down[step->j] = r->done[DOWN];
}

static void replay(const struct panels *p)
{
    struct replay r = {.p = p, .panel = {-1, -1}};
    const struct schedule *s = &p->schedule;
    last_download_waits_for_all(s);
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        for (int e = 0; e < SCHEDULE_ENGINES; e++)
            assert_true(step->after[e] <= r.done[e]); /* only what comes before it */
        r.done[step->engine]++;
        if (step->engine == COMPUTE)
            kernel(&r, step);
        else if (step->engine == DOWN)
            download(&r, step);
        else if (step->operand == PANELS_PANEL)
            panel_up(&r, step);
        else
            block_up(&r, step);
    }
    for (int e = 0; e < SCHEDULE_ENGINES; e++)
        assert_int_equal(r.done[e], s->steps[e]);
    for (int j = 0; j < p->count; j++)
        assert_true(r.down[j] > 0);
}

/* ---- Cases ---- */

static uint64_t state = 1;

static int64_t random_below(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* The panels of a matrix with more columns than the other one may have no column in common with it:
 * then all of that changes them. */
static struct panels_sweep random_sweep(const struct panels_call *call)
{
    struct panels_sweep sweep = {.backwards = random_below(2), .reflects = random_below(2)};
    if (call->triangle || (call->n == call->order && random_below(3) == 0))
        sweep.from_panel = true;
    else
        sweep.to_panel = random_below(3) == 0;
    sweep.above = !call->triangle && random_below(2);
    return sweep;
}

static struct panels_call random_call(void)
{
    static const int64_t sizes[] = {4, 8, 16};
    struct panels_call call = {.kind = (enum panels_kind)random_below(4),
                               .m = 1 + random_below(400),
                               .n = 1 + random_below(400),
                               .size = sizes[random_below(3)],
                               .per_term = 2};
    if (call.kind == PANELS_CHOLESKY) {
        call.n = call.m;
        call.across = random_below(2);
    }
    if (call.kind == PANELS_APPLY) {
        call.order = 1 + random_below(call.m);
        call.sweeps = 1 + (int)random_below(2);
        call.across = random_below(2);
        call.other_across = random_below(2);
        call.triangle = random_below(3) == 0;
        if (call.triangle)
            call.n = call.order = call.m;
        for (int i = 0; i < call.sweeps; i++)
            call.sweep[i] = random_sweep(&call);
    }
    return call;
}

static void random_calls(void **unused)
{
    int made = 0, refused = 0, in_several = 0, beside = 0, stays = 0, triangles = 0, parts = 0;
    struct schedule_rates rates = schedule_nominal;
    (void)unused;
    /* With longer ones, so small a matrix has no two panels at once */
    rates.launch_ms = rates.call_ms;
    for (int i = 0; i < 4000; i++) {
        const struct panels_call call = random_call();
        const int64_t memory = 1000 + random_below(call.m * call.n * call.size);
        struct panels p;
        const bool fits = panels_fit(&call, memory);
        if (!panels_make(&p, &call, &rates, memory)) {
            assert_false(fits);
            assert_true(panels_ms(&call, &rates, memory) < 0);
            refused++;
            continue;
        }
        assert_true(fits);
        assert_true(panels_ms(&call, &rates, memory) == p.schedule.ms);
        assert_true(p.buffers * p.panel_bytes + 2 * p.block_bytes <= memory);
        /* No more than the whole matrix would have. */
        const struct schedule_tile all = {0, 0, call.m, call.n};
        assert_true(p.panel_bytes <= bytes_of(&call, call.across, all));
        replay(&p);
        made++;
        in_several += p.count > 2;
        beside += p.buffers > 1 && p.count > 2;
        stays += p.stays && p.count > 2;
        triangles += call.triangle && p.count > 2;
        parts += call.kind == PANELS_APPLY && call.sweep[0].to_panel && p.count > 2;
        panels_free(&p);
    }
    assert_true(made > 1000 && refused > 100 && in_several > 500 && beside > 50 && stays > 50 &&
                triangles > 50 && parts > 50);
}

/* What comes up is each element, once for each panel from its own on. */
static void traffic(void **unused)
{
    const struct panels_call lu = {
        .kind = PANELS_LU, .m = 1000, .n = 1000, .size = 8, .per_term = 2};
    struct panels p;
    double blocks = 0;
    (void)unused;
    assert_true(panels_make(&p, &lu, &schedule_nominal, 3 << 20));
    assert_true(p.count >= 3);
    for (int n = 0; n < p.schedule.count; n++) {
        const struct schedule_step *step = &p.schedule.step[n];
        if (step->engine == UP && step->operand == PANELS_BLOCK)
            blocks += (double)panels_block(&p, step).rows * (double)panels_block(&p, step).cols * 8;
    }
    assert_true(p.up_bytes == 8e6 + blocks);
    assert_true(p.down_bytes == 8e6);
    panels_free(&p);
}

/* Bytes and sizes beyond 2^31. */
static void large_matrices(void **unused)
{
    const struct panels_call calls[] = {
        {.kind = PANELS_CHOLESKY, .m = 200000, .n = 200000, .size = 16, .per_term = 8},
        {.kind = PANELS_LU, .m = 300000, .n = 150000, .size = 8, .per_term = 2},
        {.kind = PANELS_QR, .m = 100000, .n = 250000, .size = 8, .per_term = 2},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct panels p;
        assert_true(panels_make(&p, &calls[i], &schedule_nominal, (int64_t)100 << 30));
        replay(&p);
        assert_true(p.count >= 2 && p.up_bytes > 8e10);
        panels_free(&p);
    }
}

/* Blocks of a narrow and tall matrix leave room for its panels. */
static void narrow_matrices(void **unused)
{
    static const struct {
        int64_t m, n, memory;
        int most; /* panels */
    } cases[] = {
        {200000000, 64, (int64_t)40 << 30, 4},  /* 102 GB */
        {40000000, 500, (int64_t)11 << 30, 24}, /* 160 GB */
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct panels_call call = {
            .kind = PANELS_QR, .m = cases[i].m, .n = cases[i].n, .size = 8, .per_term = 2};
        struct panels p;
        assert_true(panels_make(&p, &call, &schedule_nominal, cases[i].memory));
        replay(&p);
        assert_true(p.count <= cases[i].most);
        panels_free(&p);
    }
}

static void too_little_memory(void **unused)
{
    const struct panels_call call = {
        .kind = PANELS_QR, .m = 100000, .n = 1000, .size = 8, .per_term = 2};
    struct panels p;
    (void)unused;
    assert_false(panels_make(&p, &call, &schedule_nominal, 1 << 20));
    assert_false(panels_fit(&call, 1 << 20));
    assert_false(panels_make(&p, &call, &schedule_nominal, -1));
}

/* ---- The whole matrix on the device ---- */

/* Each panel comes up once, and waits for nothing; it is changed by all before it, each of which is
 * finished, and then factored. */
static void replay_in_core(const struct panels *p)
{
    const struct schedule *s = &p->schedule;
    const int64_t factored = accel_min(p->call.m, p->call.n);
    int up[PANELS_MOST], uploads = 0, next[PANELS_MOST] = {0};
    bool done[PANELS_MOST] = {false};
    double bytes = 0;
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        const struct schedule_tile panel = panels_panel(p, step->j);
        if (step->engine == UP) {
            assert_int_equal(step->operand, PANELS_PANEL);
            assert_true(step->j == uploads && step->after[COMPUTE] == 0 && step->after[DOWN] == 0);
            bytes += (double)panel.rows * (double)panel.cols * (double)p->call.size;
            up[step->j] = ++uploads;
            continue;
        }
        assert_int_equal(step->engine, COMPUTE);
        assert_int_equal(step->after[UP], up[step->j]); /* and no later one */
        if (step->p < 0) {
            assert_true(next[step->j] == step->j || p->first[next[step->j]] >= factored);
            done[step->j] = true;
            continue;
        }
        const struct schedule_tile block = panels_block(p, step), of = panels_panel(p, step->i);
        assert_true(step->p == 0 && step->i == next[step->j]++ && done[step->i]);
        assert_int_equal(step->first, step->i == 0);
        assert_true(block.col == of.col && block.cols == panels_factored(p, step->i));
        assert_true(block.row == (p->call.kind == PANELS_CHOLESKY ? panel.row : block.col) &&
                    block.rows == p->call.m - block.row);
    }
    assert_int_equal(uploads, p->count);
    assert_true(bytes == p->up_bytes && p->down_bytes == 0);
    for (int j = 0; j < p->count; j++)
        assert_int_equal(done[j], panels_factored(p, j) > 0);
}

/* By random rates: either the schedule is faster than one copy and one kernel, or there is none;
 * and it is the same, and takes the time that the estimate has. */
static void in_core(void **unused)
{
    int made = 0, whole = 0, wide = 0;
    (void)unused;
    for (int i = 0; i < 4000; i++) {
        struct panels_call call = random_call();
        const double gbps = (double)(1 + random_below(1000)) * 1e-3;
        const struct schedule_rates rates = {.up = gbps,
                                             .down = gbps,
                                             .compute = (double)(1 + random_below(1000)),
                                             .half = (double)random_below(256),
                                             .copy_ms = 0.002,
                                             .kernel_ms = 0.005,
                                             .wait_ms = (double)random_below(2) * 0.01,
                                             .column_ms = (double)random_below(100) * 1e-4,
                                             .row_ms = (double)random_below(2) * 4e-4};
        struct panels p, again;
        if (!panels_make_in_core(&p, &call, &rates)) {
            assert_true(panels_in_core_ms(&call, &rates) < 0);
            whole++;
            continue;
        }
        assert_int_not_equal(call.kind, PANELS_APPLY);
        assert_true(p.schedule.ms < panels_whole_ms(&call, &rates));
        assert_true(panels_in_core_ms(&call, &rates) == p.schedule.ms);
        replay_in_core(&p);
        assert_true(panels_make_in_core(&again, &call, &rates));
        assert_int_equal(again.count, p.count);
        made++;
        wide += call.n > call.m && p.first[p.count - 1] >= call.m;
        panels_free(&p);
        panels_free(&again);
    }
    assert_true(made > 500 && whole > 500 && wide > 20);
}

/* What a panel adds are rows that wait for each other: Cholesky solves the rows below each panel by
 * its triangle. Where they take longer than is hidden, the matrix comes up as a whole. */
static void rows_that_wait(void **unused)
{
    const struct panels_call cholesky = {
        .kind = PANELS_CHOLESKY, .m = 8192, .n = 8192, .size = 8, .per_term = 2};
    struct schedule_rates rates = RATES_WITH(2e-4, 0, 47, 51, 37e3, 128, 0.002, 0.005, 0.01);
    (void)unused;
    const double hidden = panels_whole_ms(&cholesky, &rates) - panels_in_core_ms(&cholesky, &rates);
    assert_true(hidden > 1 && hidden < 8192 * 4e-4);
    const double whole = panels_whole_ms(&cholesky, &rates);
    rates.row_ms = 4e-4;
    assert_true(panels_in_core_ms(&cholesky, &rates) < 0);
    assert_true(panels_whole_ms(&cholesky, &rates) == whole);
}

/* Behind a fast link, or of a small matrix, there is nothing to hide; behind a slow one, what is
 * left is hardly more than the upload. */
static void pays_in_core(void **unused)
{
    const struct panels_call lu = {
        .kind = PANELS_LU, .m = 8192, .n = 8192, .size = 8, .per_term = 2};
    const struct panels_call small = {
        .kind = PANELS_LU, .m = 60, .n = 60, .size = 8, .per_term = 2};
    const struct schedule_rates fast =
                                    RATES_WITH(0.001, 0, 1e4, 1e4, 40e3, 128, 0.002, 0.005, 0.01),
                                even = RATES_WITH(0.001, 0, 55, 55, 40e3, 128, 0.002, 0.005, 0.01),
                                slow = RATES_WITH(0.001, 0, 5, 5, 40e3, 128, 0.002, 0.005, 0.01);
    const double up_ms = 8192.0 * 8192 * 8 / 5e6;
    (void)unused;
    assert_true(panels_in_core_ms(&lu, &fast) < 0);
    assert_true(panels_in_core_ms(&small, &even) < 0);
    assert_true(panels_in_core_ms(&lu, &even) < 0.8 * panels_whole_ms(&lu, &even));
    assert_in_range((int)(1000 * panels_in_core_ms(&lu, &slow) / up_ms), 1000, 1050);
}

/* ---- Virtual time ---- */

/* A matrix of twice the memory, on devices whose links and kernels differ, takes at most this times
 * the bound of one kernel. */
#define MOST 1.27
/* A panel of the identity comes up, too. */
#define MOST_INVERSE 1.3

static void near_the_bound(void **unused)
{
    static const struct {
        const char *name;
        struct schedule_rates rates;
    } devices[] = {
        {"PCIe 5, 45 Tflop/s", RATES(55, 55, 45e3, 128, 0.002, 0.005, 0.01)},
        {"C2C, 45 Tflop/s", RATES(350, 350, 45e3, 128, 0.002, 0.005, 0.01)},
        {"PCIe 4, 10 Tflop/s", RATES(25, 25, 10e3, 128, 0.002, 0.005, 0.01)},
    };
    const struct panels_call calls[] = {
        {.kind = PANELS_CHOLESKY, .m = 131072, .n = 131072, .size = 8, .per_term = 2},
        {.kind = PANELS_CHOLESKY,
         .across = true,
         .m = 131072,
         .n = 131072,
         .size = 8,
         .per_term = 2},
        {.kind = PANELS_LU, .m = 131072, .n = 131072, .size = 8, .per_term = 2},
        {.kind = PANELS_QR, .m = 131072, .n = 131072, .size = 8, .per_term = 2},
        {.kind = PANELS_APPLY, /* the inverse of a triangle */
         .triangle = true,
         .m = 131072,
         .n = 131072,
         .order = 131072,
         .sweeps = 1,
         .sweep = {{.from_panel = true}},
         .size = 8,
         .per_term = 2},
        {.kind = PANELS_APPLY, /* Q */
         .m = 131072,
         .n = 131072,
         .order = 131072,
         .sweeps = 1,
         .sweep = {{.backwards = true, .to_panel = true, .reflects = true}},
         .size = 8,
         .per_term = 2},
    };
    (void)unused;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            const struct schedule_rates *rates = &devices[d].rates;
            struct panels p;
            assert_true(panels_make(&p, &calls[i], rates, (int64_t)64 << 30));
            const double floor = panels_floor(&calls[i], rates);
            double busiest = 0;
            for (int e = 0; e < SCHEDULE_ENGINES; e++)
                busiest = p.times.busy[e] > busiest ? p.times.busy[e] : busiest;
            printf("%s, kind %d: %d panels, %d at once, %.1f s, busiest %.1f, floor %.1f\n",
                   devices[d].name, (int)calls[i].kind, p.count, p.buffers, p.times.ms / 1e3,
                   busiest / 1e3, floor / 1e3);
            assert_true(p.times.ms >= floor);
            assert_true(p.times.ms <= (calls[i].triangle ? MOST_INVERSE : MOST) * floor);
            panels_free(&p);
        }
}

/* No time is below the bound, whatever the shape is: all at once, in panels where that is
 * possible. */
static void wide_matrices(void **unused)
{
    struct schedule_rates rates = schedule_nominal;
    (void)unused;
    rates.up = rates.down = 25;
    for (int kind = 0; kind < 2; kind++)
        for (int64_t rows = 500; rows <= 32000; rows *= 2)
            for (int64_t ratio = 1; ratio <= 16; ratio *= 2)
                for (double compute = 2e3; compute <= 60e3; compute *= 3) {
                    const struct panels_call call = {.kind = kind ? PANELS_QR : PANELS_LU,
                                                     .m = rows,
                                                     .n = rows * ratio,
                                                     .size = 8,
                                                     .per_term = 2};
                    rates.compute = compute;
                    assert_true(panels_whole_ms(&call, &rates) >= panels_floor(&call, &rates));
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_calls),      cmocka_unit_test(traffic),
        cmocka_unit_test(large_matrices),    cmocka_unit_test(narrow_matrices),
        cmocka_unit_test(too_little_memory), cmocka_unit_test(near_the_bound),
        cmocka_unit_test(in_core),           cmocka_unit_test(pays_in_core),
        cmocka_unit_test(rows_that_wait),    cmocka_unit_test(wide_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
