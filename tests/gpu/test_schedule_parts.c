/*
 * The parts of which schedules are made, by their definitions: tiles, what kernels read, slots,
 * times, and bounds. Each is compared with a plain version.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/pack/chunks.h"
#include "gpu/plan/schedule_plan.h"
#include "tests/lib/draw.h"
#include "tests/lib/rates.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };
enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- Calls ---- */

static struct schedule_call any_call(int64_t most)
{
    static const unsigned omits[] = {0, SCHEDULE_HEAD, SCHEDULE_TAIL, SCHEDULE_BETWEEN,
                                     SCHEDULE_HEAD | SCHEDULE_TAIL};
    static const int64_t sizes[] = {4, 8, 16};
    struct schedule_call call = {.kind = (enum schedule_kind)below(SCHEDULE_BATCH),
                                 .up = below(2),
                                 .reads = below(2),
                                 .m = 1 + below(most),
                                 .n = 1 + below(most),
                                 .k = below(8) ? 1 + below(most) : 0,
                                 .per_term = 2};
    const bool rank_k = call.kind == SCHEDULE_RANK_K;
    if (rank_k) {
        call.n = call.m;
        call.two = below(2);
        call.one_way = call.two && below(2);
        call.up = call.one_way && below(2);
    } else if (call.kind != SCHEDULE_PRODUCT && call.k > 0) {
        call.k = call.m;
    }
    call.reads = call.reads || (schedule_in_panels(&call) && call.k > 0);
    for (int x = A; x < OPERANDS; x++) {
        call.size[x] = sizes[below(3)];
        call.across[x] = below(2);
        call.in_place[x] = below(6) == 0;
    }
    if (rank_k && !call.in_place[C] && call.m > 1 && below(2)) {
        call.head = 1 + below(call.m - 1);
        call.omits = omits[below(5)];
    }
    return call;
}

static struct schedule any_tiles(int64_t most)
{
    struct schedule s = {.call = any_call(most)};
    const bool square = s.call.kind != SCHEDULE_PRODUCT && s.call.kind != SCHEDULE_RANK_K;
    s.by.rows = 1 + most / 8 + below(most);
    s.by.cols = s.call.kind == SCHEDULE_RANK_K ? s.by.rows : 1 + most / 8 + below(most);
    s.by.depth = square ? s.by.rows : 1 + most / 8 + below(most);
    s.by.buffers = 1 + (int)below(3);
    s.by.share = (int)below(17);
    s.by.along_rows = below(2);
    s.by.factor = (int)below(schedule_in_panels(&s.call) ? 2 : 3);
    schedule_set_tiles(&s);
    return s;
}

/* ---- Tiles ---- */

/* Whether the tiles of an extent are those that begin every `step` elements, and anew at an
 * edge. */
static void follow(const struct schedule *s, int operand, bool along_rows, int64_t all,
                   int64_t edge, int64_t step)
{
    const int count = along_rows ? s->tiles[operand].rows : s->tiles[operand].cols;
    int64_t at = 0;
    for (int n = 0; n < count; n++) {
        const struct schedule_tile tile =
            schedule_tile_of(s, operand, along_rows ? n : 0, along_rows ? 0 : n);
        const int64_t end = least(at + step, at < edge ? edge : all);
        assert_int_equal(along_rows ? tile.row : tile.col, at);
        assert_int_equal(along_rows ? tile.rows : tile.cols, end - at);
        at = end;
    }
    assert_int_equal(at, all);
}

static bool has(const struct schedule *s, int operand)
{
    const struct schedule_call *call = &s->call;
    return operand == C ||
           (call->k > 0 && (operand == A || (!schedule_in_panels(call) &&
                                             (call->two || call->kind != SCHEDULE_RANK_K))));
}

static void tiles_cover_operands(void **state)
{
    (void)state;
    for (int round = 0; round < 3000; round++) {
        const struct schedule s = any_tiles(50);
        const struct schedule_call *call = &s.call;
        const bool rank_k = call->kind == SCHEDULE_RANK_K;
        for (int x = A; x < OPERANDS; x++) {
            const bool along_k = x == B && !rank_k; /* its rows are */
            if (!has(&s, x)) {
                assert_int_equal(s.tiles[x].rows * s.tiles[x].cols, 0);
                continue;
            }
            follow(&s, x, true, along_k ? call->k : call->m, along_k ? 0 : call->head,
                   along_k ? s.by.depth : s.by.rows);
            follow(&s, x, false, x == C || along_k ? call->n : call->k, x == C ? call->head : 0,
                   x == C || along_k ? s.by.cols : s.by.depth);
        }
        assert_int_equal(schedule_depths(&s), call->k > 0 ? s.tiles[A].cols : 1);
        const int head = schedule_head(&s);
        assert_true(call->head == 0 ? head == 0
                                    : schedule_tile_of(&s, C, head, head).row == call->head);
    }
}

/* A tile of the result is computed if it is in the triangle, and in a block that is wanted. */
static bool is_wanted(const struct schedule *s, int i, int j)
{
    const struct schedule_tile tile = schedule_tile_of(s, C, i, j);
    const int64_t head = s->call.head;
    const unsigned block = tile.row < head   ? SCHEDULE_HEAD
                           : tile.col < head ? SCHEDULE_BETWEEN
                                             : SCHEDULE_TAIL;
    return s->call.kind != SCHEDULE_RANK_K || (j <= i && !(s->call.omits & block));
}

/* Sets what a kernel reads, by the definition of its operation. */
static int reads_of(const struct schedule *s, int i, int j, int p, struct schedule_source *read)
{
    const struct schedule_call *call = &s->call;
    struct schedule_source all[8];
    int count = 0, distinct = 0;
    if (call->k == 0)
        return 0;
    switch (call->kind) {
    case SCHEDULE_PRODUCT:
        all[count++] = (struct schedule_source){A, i, p};
        all[count++] = (struct schedule_source){B, p, j};
        break;
    case SCHEDULE_SYMMETRIC: /* the lower triangle has both halves */
        all[count++] =
            i > p ? (struct schedule_source){A, i, p} : (struct schedule_source){A, p, i};
        all[count++] = (struct schedule_source){B, p, j};
        break;
    case SCHEDULE_RANK_K:
        if (call->one_way) {
            all[count++] = (struct schedule_source){call->up ? B : A, i, p};
            all[count++] = (struct schedule_source){call->up ? A : B, j, p};
            break;
        }
        for (int x = A; x <= (call->two ? B : A); x++) {
            all[count++] = (struct schedule_source){x, i, p};
            all[count++] = (struct schedule_source){x, j, p};
        }
        break;
    default: /* in panels */
        all[count++] = (struct schedule_source){A, i, p};
        if (p != i)
            all[count++] = (struct schedule_source){C, p, j};
    }
    for (int n = 0; n < count; n++) {
        bool again = false;
        for (int k = 0; k < distinct; k++)
            again = again || memcmp(&read[k], &all[n], sizeof all[n]) == 0;
        if (!again)
            read[distinct++] = all[n];
    }
    return distinct;
}

/* Whether there is a kernel (i, j, p): of a triangle, those on its side of the diagonal. */
static bool is_kernel(const struct schedule *s, int i, int j, int p)
{
    const bool triangle = schedule_in_panels(&s->call) && s->call.k > 0;
    return is_wanted(s, i, j) && (!triangle || (s->call.up ? p >= i : p <= i));
}

struct used {
    bool *of[OPERANDS];
    int64_t count[OPERANDS];
    int kernels;
};

static void use(const struct schedule *s, struct used *used, struct schedule_source x)
{
    bool *tile = &used->of[x.operand][x.i + x.j * s->tiles[x.operand].rows];
    used->count[x.operand] += !*tile;
    *tile = true;
}

/* Counts the tiles that kernels use, and compares what each reads. */
static struct used count_used(const struct schedule *s)
{
    struct used used = {.kernels = 0};
    for (int x = A; x < OPERANDS; x++) {
        used.of[x] = calloc((size_t)(s->tiles[x].rows * s->tiles[x].cols + 1), sizeof(bool));
        assert_non_null(used.of[x]);
    }
    for (int i = 0; i < s->tiles[C].rows; i++)
        for (int j = 0; j < s->tiles[C].cols; j++) {
            assert_int_equal(schedule_computes(s, i, j), is_wanted(s, i, j));
            for (int p = 0; p < schedule_depths(s); p++) {
                struct schedule_source read[8], found[SCHEDULE_SOURCES];
                if (!is_kernel(s, i, j, p))
                    continue;
                const int count = reads_of(s, i, j, p, read);
                assert_int_equal(schedule_sources(s, i, j, p, found), count);
                for (int n = 0; n < count; n++) {
                    int at = 0;
                    while (at < count && memcmp(&found[n], &read[at], sizeof found[n]) != 0)
                        at++;
                    assert_true(at < count);
                    for (int k = 0; k < n; k++)
                        assert_true(memcmp(&found[k], &found[n], sizeof found[n]) != 0);
                    use(s, &used, found[n]);
                }
                use(s, &used, (struct schedule_source){C, i, j});
                used.kernels++;
            }
        }
    for (int x = A; x < OPERANDS; x++)
        free(used.of[x]);
    return used;
}

/* ---- Slots ---- */

/* Returns the bytes of an operand's largest tile on the device. */
static int64_t largest_tile(const struct schedule *s, int x)
{
    int64_t rows = 0, cols = 0;
    for (int i = 0; i < s->tiles[x].rows; i++)
        for (int j = 0; j < s->tiles[x].cols; j++) {
            const struct schedule_tile tile = schedule_tile_of(s, x, i, j);
            rows = rows > tile.rows ? rows : tile.rows;
            cols = cols > tile.cols ? cols : tile.cols;
        }
    return (s->call.across[x] ? pack_ld(cols, s->call.size[x]) * rows
                              : pack_ld(rows, s->call.size[x]) * cols) *
           s->call.size[x];
}

/* Memory is taken to the last byte, and never more: all tiles that are used if they fit, else at
 * least what kernels need. */
static void slots_fit(void **state)
{
    int whole = 0, part = 0;
    (void)state;
    for (int round = 0; round < 4000; round++) {
        struct schedule s = any_tiles(60);
        const struct used used = count_used(&s);
        int64_t bytes[OPERANDS], all = 0, fewest = 0, few[OPERANDS];
        for (int x = A; x < OPERANDS; x++) {
            const int each = s.call.kind == SCHEDULE_RANK_K && x != C ? 2
                             : schedule_in_panels(&s.call) && x == C  ? s.tiles[C].rows
                                                                      : 1;
            bytes[x] = s.call.in_place[x] || used.count[x] == 0 ? 0 : largest_tile(&s, x);
            few[x] = bytes[x] > 0 ? least(used.count[x], (int64_t)s.by.buffers * each) : 0;
            all += used.count[x] * bytes[x];
            fewest += few[x] * bytes[x];
        }
        const int64_t memory = below(4) == 0   ? all
                               : below(4) == 0 ? all - 1
                               : below(4) == 0 ? fewest
                               : below(4) == 0 ? fewest - 1
                                               : below(all + 10);
        const bool fits = schedule_choose_slots(&s, memory);
        assert_int_equal(fits, memory >= fewest);
        assert_int_equal(s.whole, memory >= all);
        assert_true(schedule_in_panels(&s.call) || schedule_tasks(&s) == used.kernels);
        if (!fits)
            continue;
        int64_t taken = 0;
        for (int x = A; x < OPERANDS; x++) {
            assert_int_equal(s.slot_bytes[x], bytes[x]);
            assert_true(s.slots[x] >= few[x] && s.slots[x] <= used.count[x]);
            assert_true(!s.whole || bytes[x] == 0 || s.slots[x] == used.count[x]);
            assert_int_equal(schedule_brings_once(&s, x), s.slots[x] >= used.count[x]);
            taken += s.slots[x] * bytes[x];
        }
        assert_int_equal(s.bytes, taken);
        assert_true(taken <= memory);
        whole += s.whole;
        part += !s.whole;
        /* Nothing is left that a factor could use; the one that gets most gets what it can. */
        for (int x = A; x < C; x++)
            assert_true(bytes[x] == 0 || s.slots[x] == used.count[x] || memory - taken < bytes[x]);
        const int f = s.by.factor;
        if (!s.whole && f == A && bytes[f] > 0)
            assert_int_equal(s.slots[f],
                             least(used.count[f], few[f] + (memory - fewest) / bytes[f]));
        if (!s.whole && f == B && bytes[f] > 0 && 2 * s.tiles[B].rows > few[B])
            assert_true(s.slots[f] >= least(least(used.count[f], 2 * s.tiles[B].rows),
                                            few[f] + (memory - fewest) / bytes[f]));
    }
    assert_true(whole > 500 && part > 500);
}

/* ---- Times ---- */

static const struct schedule_rates plain = RATES(3, 2, 5, 7, 0.002, 0.005, 0.01);

/* A copy takes what its bytes take, a kernel its operations: half of them on a diagonal, twice
 * as many with two factors. */
static void times_of_steps(void **state)
{
    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct schedule s = any_tiles(900);
        struct schedule_rates rates = plain;
        const struct schedule_call *call = &s.call;
        const bool rank_k = call->kind == SCHEDULE_RANK_K;
        const int i = (int)below(s.tiles[C].rows),
                  j = rank_k ? (int)below(i + 1) : (int)below(s.tiles[C].cols);
        const int p = (int)below(schedule_depths(&s));
        const struct schedule_tile c = schedule_tile_of(&s, C, i, j);
        rates.peer = 11;
        if (call->k > 0) {
            const double depth = (double)least(s.by.depth, call->k - p * s.by.depth);
            const double shortest = fmin(fmin((double)c.rows, (double)c.cols), depth);
            const bool half = rank_k ? i == j : schedule_in_panels(call) && i == p;
            const double operations = 2.0 * (double)c.rows * (double)c.cols * depth *
                                      (rank_k && call->two ? 2 : 1) * (half ? 0.5 : 1);
            assert_true(is_about(schedule_kernel_ms(&s, &rates, i, j, p),
                                 0.005 + operations / (5e6 * shortest / (shortest + 7))));
        } else {
            assert_true(schedule_kernel_ms(&s, &rates, i, j, 0) == 0.005);
        }
        for (int x = A; x < OPERANDS; x++) {
            if (s.tiles[x].rows * s.tiles[x].cols == 0)
                continue;
            const int row = (int)below(s.tiles[x].rows), col = (int)below(s.tiles[x].cols);
            const struct schedule_tile tile = schedule_tile_of(&s, x, row, col);
            const int of = rank_k ? C : call->kind == SCHEDULE_PRODUCT ? -1 : A;
            const bool triangle = x == of && row == col && tile.rows == tile.cols;
            const double all = (double)(tile.rows * tile.cols * call->size[x]);
            const double sent =
                triangle ? (double)chunks_triangle_sent(tile.rows, call->size[x]) : all;
            assert_true(schedule_tile_bytes(&s, x, row, col) == sent);
            s.call.lent[x] = 0;
            const double up = sent / 3e6 + 0.002;
            assert_true(
                is_about(schedule_copy_ms(&s, &rates, DOWN, x, row, col), sent / 2e6 + 0.002));
            assert_true(is_about(schedule_copy_ms(&s, &rates, UP, x, row, col), up));
            s.call.lent[x] = 0.25;
            assert_true(is_about(schedule_upload_ms(&s, &rates, x, row, col), up));
            assert_true(is_about(schedule_copy_ms(&s, &rates, UP, x, row, col),
                                 0.75 * up + 0.25 * (0.002 + all / 11e6)));
            assert_true(
                is_about(schedule_copy_ms(&s, &rates, DOWN, x, row, col), sent / 2e6 + 0.002));
        }
    }
}

/* Replays a schedule's steps: each begins behind those of its engine, those that it waits for,
 * and the calling thread's work. */
static void replay(const struct schedule *s, const struct schedule_rates *rates)
{
    double *end[SCHEDULE_ENGINES], busy[SCHEDULE_ENGINES] = {0}, bytes[SCHEDULE_ENGINES] = {0};
    double caller = 0, first = -1, last = 0, before = 0, ms = 0, lent = 0, lag = 0;
    int done[SCHEDULE_ENGINES] = {0};
    for (int e = 0; e < SCHEDULE_ENGINES; e++) {
        end[e] = calloc((size_t)s->count + 1, sizeof(double));
        assert_non_null(end[e]);
    }
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        const int e = step->engine, x = step->operand;
        const bool kernel = e == COMPUTE;
        const double takes = kernel ? schedule_kernel_ms(s, rates, step->i, step->j, step->p)
                                    : schedule_copy_ms(s, rates, e, x, step->i, step->j);
        caller += kernel ? rates->launch_ms + schedule_chain_ms(s, rates, step->i, step->j, step->p)
                         : rates->call_ms + rates->chunk_share * takes;
        double begin = larger(end[e][done[e]], caller);
        for (int other = 0; other < SCHEDULE_ENGINES; other++)
            if (other != e && step->after[other] > 0)
                begin = larger(begin, end[other][step->after[other]] + rates->wait_ms);
        end[e][++done[e]] = begin + takes;
        ms = larger(ms, begin + takes);
        busy[e] += takes;
        if (kernel && first < 0)
            first = begin;
        if (kernel) {
            before = last;
            last = begin + takes;
            continue;
        }
        const struct schedule_tile tile = schedule_tile_of(s, x, step->i, step->j);
        const double share = e == UP ? s->call.lent[x] : 0;
        bytes[e] += (1 - share) * schedule_tile_bytes(s, x, step->i, step->j);
        lent += share * (double)(tile.rows * tile.cols * s->call.size[x]);
    }
    for (int x = A; x < OPERANDS; x++)
        if (s->call.lent[x] > 0)
            lag += schedule_tile_bytes(s, x, 0, 0) / rates->up * 1e-6;
    const struct schedule_times times = schedule_simulate(s, rates);
    assert_true(is_about(times.ms, ms + lag) && is_about(s->ms, ms + lag));
    assert_true(is_about(times.first, first + lag));
    assert_true(is_about(times.last, ms - before));
    assert_true(is_about(times.lent_bytes, lent));
    for (int e = 0; e < SCHEDULE_ENGINES; e++) {
        assert_true(is_about(times.busy[e], busy[e]));
        assert_true(is_about(times.bytes[e], bytes[e]));
        free(end[e]);
    }
}

static void times_of_schedules(void **state)
{
    int made = 0;
    (void)state;
    for (int round = 0; round < 1500; round++) {
        struct schedule_rates rates = plain;
        const struct schedule_params by = any_tiles(900).by;
        struct schedule s = any_tiles(900);
        struct schedule_call call = s.call;
        const struct schedule_params params = below(2) ? s.by : by;
        rates.call_ms = below(2) * 0.004;
        rates.chunk_share = below(2) * 0.2;
        rates.launch_ms = below(2) * 0.015;
        rates.row_ms = below(2) * 0.0004;
        rates.peer = 11;
        for (int x = A; x < C; x++)
            call.lent[x] = below(3) || !has(&s, x) ? 0 : 0.25;
        if (params.rows != s.by.rows ||
            !schedule_make_by(&s, &params, &call, &rates,
                              below(3) ? INT64_MAX : 1000 + below(6000000)))
            continue;
        replay(&s, &rates);
        schedule_free(&s);
        made++;
    }
    assert_true(made > 400);
}

/* ---- Bounds ---- */

/* Returns the least time if one engine alone takes time. */
static double floor_by(const struct schedule_call *call, int engine)
{
    const struct schedule_rates rates = {.up = engine == UP ? 1 : 1e30,
                                         .down = engine == DOWN ? 1 : 1e30,
                                         .compute = engine == COMPUTE ? 1 : 1e30,
                                         .half = 7,
                                         .peer = engine == UP ? 4 : 1e30};
    return schedule_floor(call, &rates);
}

/* Returns which share of a triangle's blocks is computed. */
static double share_of(const struct schedule_call *call)
{
    const double h = (double)call->head / (double)call->m, t = 1 - h;
    return (call->omits & SCHEDULE_HEAD ? 0 : h * h) +
           (call->omits & SCHEDULE_BETWEEN ? 0 : 2 * h * t) +
           (call->omits & SCHEDULE_TAIL ? 0 : t * t);
}

/* Returns how many of a rank-k factor's lines some block reads. */
static double lines_of(const struct schedule_call *call, int factor)
{
    const bool head = ~call->omits & SCHEDULE_HEAD, between = ~call->omits & SCHEDULE_BETWEEN,
               tail = ~call->omits & SCHEDULE_TAIL;
    const bool at_rows = !call->one_way || (factor == A) != call->up;
    const bool at_cols = !call->one_way || !at_rows;
    const bool reads_head = head || (between && at_cols);
    const bool reads_tail = tail || (between && at_rows);
    const bool all = !call->one_way;
    return (reads_head || all ? (double)call->head : 0) +
           (reads_tail || all ? (double)(call->m - call->head) : 0);
}

static void least_times(void **state)
{
    (void)state;
    for (int round = 0; round < 4000; round++) {
        struct schedule_call call = any_call(300);
        const double m = (double)call.m, n = (double)call.n, k = (double)call.k;
        const bool rank_k = call.kind == SCHEDULE_RANK_K, panels = schedule_in_panels(&call);
        const bool half_a = panels || call.kind == SCHEDULE_SYMMETRIC;
        for (int x = A; x < C; x++)
            call.lent[x] = below(3) ? 0 : 0.5;
        /* Elements that go up, and that come down. */
        const double c = m * n * (rank_k ? 0.5 * share_of(&call) : 1);
        const double amount[] = {rank_k ? lines_of(&call, A) * k : m * k * (half_a ? 0.5 : 1),
                                 panels   ? 0
                                 : rank_k ? (call.two ? lines_of(&call, B) * k : 0)
                                          : k * n,
                                 call.reads ? c : 0};
        double up = 0;
        for (int x = A; x < OPERANDS; x++) {
            /* Factors of rank-k have elements of one size. */
            const double size = (double)call.size[rank_k && x == B ? A : x];
            if (!call.in_place[x])
                up += amount[x] * size * (1 - call.lent[x] + call.lent[x] / 4);
        }
        const double shortest = fmin(fmin(m, n), k > 0 ? k : 1);
        const double operations = 2 * m * n * k * (rank_k ? 0.5 * share_of(&call) : 1) *
                                  (panels ? 0.5 : 1) * (rank_k && call.two ? 2 : 1);
        assert_true(is_about(floor_by(&call, UP), up * 1e-6));
        assert_true(is_about(floor_by(&call, DOWN),
                             call.in_place[C] ? 0 : c * (double)call.size[C] * 1e-6));
        assert_true(
            is_about(floor_by(&call, COMPUTE), operations * (shortest + 7) / shortest * 1e-6));
        const struct schedule_rates rates = {
            .up = 1, .down = 1, .compute = 1, .half = 7, .peer = 4, .kernel_ms = 3};
        assert_true(is_about(
            schedule_floor(&call, &rates),
            larger(floor_by(&call, UP), larger(floor_by(&call, DOWN), floor_by(&call, COMPUTE)))));
        assert_true(is_about(schedule_whole_ms(&call, &rates), 3 + floor_by(&call, COMPUTE)));
    }
}

/* ---- The order ---- */

/* Returns the sum of times over their bounds, of 60 schedules of one kind in tiles of any size,
 * which have slots for all tiles or few. */
static double over_bound(enum schedule_kind kind, bool ample)
{
    static const struct schedule_rates rates = RATES(5, 4, 900, 64, 0.002, 0.005, 0.01);
    double sum = 0;
    int made = 0;
    random_state = 1;
    while (made < 60) {
        struct schedule s = any_tiles(2000);
        const struct schedule_params by = s.by;
        const struct schedule_call call = s.call;
        const double floor = schedule_floor(&call, &rates);
        if (call.kind != kind || call.k == 0 || call.in_place[C] || floor == 0)
            continue;
        const int64_t memory = (call.m * call.k + call.k * call.n + call.m * call.n) * 6;
        if (!schedule_make_by(&s, &by, &call, &rates, ample ? INT64_MAX : memory) ||
            s.whole != ample) {
            schedule_free(&s);
            continue;
        }
        sum += s.ms / floor;
        made++;
        schedule_free(&s);
    }
    return sum;
}

/* As fast as they are: if one is slower, the order of its steps has got worse. */
static void orders_are_no_worse(void **state)
{
    static const double most[][2] = {{104.243399, 97.079426},
                                     {117.922270, 108.338202},
                                     {101.002807, 108.609831},
                                     {109.017438, 133.697548},
                                     {107.957488, 110.657216}};
    (void)state;
    for (int kind = 0; kind < SCHEDULE_BATCH; kind++)
        for (int ample = 0; ample < 2; ample++) {
            const double over = over_bound((enum schedule_kind)kind, ample);
            if (over > most[kind][ample])
                fail_msg("kind %d, %d: %.6f", kind, ample, over);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_cover_operands), cmocka_unit_test(slots_fit),
        cmocka_unit_test(times_of_steps),       cmocka_unit_test(times_of_schedules),
        cmocka_unit_test(least_times),          cmocka_unit_test(orders_are_no_worse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
