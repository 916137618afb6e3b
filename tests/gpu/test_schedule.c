/*
 * Schedules, without a device: every one is complete and in an order that its own steps allow;
 * nothing is sent twice where memory is ample; and in virtual time it is near a bound that no
 * schedule is below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/plan/plan_cache.h"
#include "tests/lib/schedule_cases.h"
#include "tests/lib/schedule_waits.h"
#include "tests/lib/rates.h"

static const double parts[] = {0, 0.4};

/* ---- The order ---- */

/* What is where, when the steps before have been done in the order of the list. */
struct replay {
    const struct schedule *s;
    int *held[SCHEDULE_OPERANDS]; /* by slot: the tile that is there, or -1 */
    /* By slot: the number of the upload, of C of the kernel, that made it so */
    int *step_of[SCHEDULE_OPERANDS];
    int *used[SCHEDULE_OPERANDS]; /* by slot: the last kernel that used it */
    int *fetched;                 /* by slot of C: the download that brought it down */
    int *kernels, *sent[SCHEDULE_OPERANDS], *downs; /* by tile */
    /* By tile of C: the last kernel that changed it, and the last of either side that used it. */
    int *changed, *seen[2];
    int done[SCHEDULE_ENGINES];
};

static int *filled(int count, int value)
{
    int *array = malloc((size_t)(count + 1) * sizeof *array);
    assert_non_null(array);
    for (int i = 0; i < count; i++)
        array[i] = value;
    return array;
}

static int tile(const struct schedule *s, int operand, int i, int j)
{
    assert_in_range(i, 0, s->tiles[operand].rows - 1);
    assert_in_range(j, 0, s->tiles[operand].cols - 1);
    return i + j * s->tiles[operand].rows;
}

/* What a slot held must have been used and brought down, as far as the step waits. */
static void may_overwrite(const struct replay *r, const struct schedule_step *step, int operand)
{
    assert_in_range(step->slot, 0, r->s->slots[operand] - 1);
    if (step->engine != SCHEDULE_COMPUTE)
        assert_true(step->after[SCHEDULE_COMPUTE] >= r->used[operand][step->slot]);
    if (operand == SCHEDULE_C)
        assert_true(step->after[SCHEDULE_DOWN] >= r->fetched[step->slot]);
}

static void upload(struct replay *r, const struct schedule_step *step)
{
    const int x = step->operand, at = tile(r->s, x, step->i, step->j);
    assert_false(r->s->call.in_place[x]);
    may_overwrite(r, step, x);
    r->held[x][step->slot] = at;
    r->step_of[x][step->slot] = r->done[SCHEDULE_UP];
    r->sent[x][at]++;
}

/* The kernel's tile of C is where the step says. */
static void result(struct replay *r, const struct schedule_step *step, int c)
{
    const bool reads = r->s->call.reads;
    if (step->first && !reads) {
        may_overwrite(r, step, SCHEDULE_C);
        r->held[SCHEDULE_C][step->slot] = c;
    }
    assert_int_equal(r->held[SCHEDULE_C][step->slot], c);
    if (reads)
        assert_true(step->after[SCHEDULE_UP] >= r->step_of[SCHEDULE_C][step->slot]);
    r->used[SCHEDULE_C][step->slot] = r->done[SCHEDULE_COMPUTE];
}

/* Returns the kernels that a tile of C in row i needs. */
static int products_of(const struct schedule *s, int i)
{
    const int depths = s->call.k > 0 ? s->tiles[SCHEDULE_A].cols : 1;
    const bool triangle = schedule_in_panels(&s->call) && s->call.k > 0;
    return !triangle ? depths : s->call.up ? depths - i : i + 1;
}

/* A tile of a panel is multiplied before the tiles that it needs change, and solved after them. */
static void other_tile(const struct replay *r, const struct schedule_step *step)
{
    const struct schedule *s = r->s;
    const int p = tile(s, SCHEDULE_C, step->p, step->j), i = tile(s, SCHEDULE_C, step->i, step->j);
    if (step->p != step->i)
        assert_int_equal(r->kernels[p],
                         s->call.kind == SCHEDULE_SOLVE ? products_of(s, step->p) : 0);
    else
        assert_int_equal(r->kernels[i],
                         s->call.kind == SCHEDULE_SOLVE ? products_of(s, step->i) - 1 : 0);
}

/* Of a panel that is overwritten in place, nobody has the old values: the one before it is
 * finished. */
static void one_panel_in_place(const struct replay *r, const struct schedule_step *step)
{
    for (int i = 0; step->j > 0 && i < r->s->tiles[SCHEDULE_C].rows; i++)
        assert_int_equal(r->kernels[tile(r->s, SCHEDULE_C, i, step->j - 1)], products_of(r->s, i));
}

static void kernel(struct replay *r, const struct schedule_step *step)
{
    const struct schedule *s = r->s;
    struct schedule_source source[SCHEDULE_SOURCES];
    const int count = schedule_sources(s, step->i, step->j, step->p, source);
    const int c = tile(s, SCHEDULE_C, step->i, step->j);
    const bool beside = schedule_goes_beside(s, step->i, step->j);
    assert_false(beside && s->call.kind == SCHEDULE_RANK_K && step->i == step->j);
    assert_true(step->after[SCHEDULE_COMPUTE] >= r->seen[!beside][c]);
    assert_true(step->after[SCHEDULE_COMPUTE] < r->done[SCHEDULE_COMPUTE]);
    for (int n = 0; n < count; n++) {
        const int x = source[n].operand, at = tile(s, x, source[n].i, source[n].j);
        int slot = 0;
        if (x == SCHEDULE_C && schedule_goes_beside(s, source[n].i, source[n].j) != beside)
            assert_true(step->after[SCHEDULE_COMPUTE] >= r->changed[at]);
        if (x == SCHEDULE_C)
            r->seen[beside][at] = r->done[SCHEDULE_COMPUTE];
        if (s->call.in_place[x])
            continue;
        while (slot < s->slots[x] && r->held[x][slot] != at)
            slot++;
        assert_true(slot < s->slots[x]);
        assert_true(step->after[SCHEDULE_UP] >= r->step_of[x][slot]);
        r->used[x][slot] = r->done[SCHEDULE_COMPUTE];
    }
    assert_int_equal(step->first, r->kernels[c] == 0);
    if (schedule_in_panels(&s->call) && s->call.k > 0)
        other_tile(r, step);
    if (schedule_in_panels(&s->call) && s->call.in_place[SCHEDULE_C])
        one_panel_in_place(r, step);
    if (!s->call.in_place[SCHEDULE_C])
        result(r, step, c);
    r->changed[c] = r->seen[beside][c] = r->done[SCHEDULE_COMPUTE];
    r->kernels[c]++;
}

static void download(struct replay *r, const struct schedule_step *step, int products)
{
    const int c = tile(r->s, SCHEDULE_C, step->i, step->j);
    assert_false(r->s->call.in_place[SCHEDULE_C]);
    assert_int_equal(r->held[SCHEDULE_C][step->slot], c);
    assert_true(step->after[SCHEDULE_COMPUTE] >= r->used[SCHEDULE_C][step->slot]);
    assert_int_equal(r->kernels[c], products);
    assert_int_equal(r->downs[c]++, 0);
    r->fetched[step->slot] = r->done[SCHEDULE_DOWN];
}

/* ---- Batches ---- */

/* What is where of an operand, by the matrices that fit its memory. */
struct held {
    int64_t *matrix; /* its number, or -1; of C the product's */
    /* The number of the upload that brought it; of the last kernel and download that used it */
    int *step, *used, *fetched;
};

static int64_t room_at(const struct schedule *s, int x, int group, int64_t product)
{
    const int64_t bytes = schedule_matrix_bytes(&s->call, x);
    const int64_t at = schedule_matrix_at(s, x, group, product);
    assert_int_equal(at % bytes, 0);
    assert_in_range(at, 0, s->slots[x] * s->slot_bytes[x] - bytes);
    return at / bytes;
}

/* Puts a matrix in its room. What the room held must have been used and brought down, as far as the
 * step waits. */
static void put_matrix(struct held *held, int64_t room, int64_t matrix,
                       const struct schedule_step *step, int number)
{
    if (step->engine != SCHEDULE_COMPUTE)
        assert_true(step->after[SCHEDULE_COMPUTE] >= held->used[room]);
    assert_true(step->after[SCHEDULE_DOWN] >= held->fetched[room]);
    held->matrix[room] = matrix;
    held->step[room] = number;
}

static void replay_group(const struct schedule *s, const struct schedule_step *step,
                         struct held held[SCHEDULE_OPERANDS], const int done[SCHEDULE_ENGINES])
{
    for (int64_t i = schedule_group_start(s, step->j); i < schedule_group_start(s, step->j + 1);
         i++)
        for (int x = 0; x < SCHEDULE_OPERANDS; x++) {
            const struct schedule_sharing *sharing = &s->call.sharing[x];
            const bool is_new = x == SCHEDULE_C && !s->call.reads;
            if (s->call.in_place[x] || (x != SCHEDULE_C && s->call.k == 0))
                continue;
            const int64_t room = room_at(s, x, step->j, i);
            if (is_new)
                put_matrix(&held[x], room, i, step, 0);
            assert_int_equal(held[x].matrix[room], i / sharing->repeat % sharing->distinct);
            assert_true(is_new || step->after[SCHEDULE_UP] >= held[x].step[room]);
            held[x].used[room] = done[SCHEDULE_COMPUTE];
        }
}

static void replay_upload(const struct schedule *s, const struct schedule_step *step,
                          struct held *held, int *sent, int number)
{
    const struct schedule_sharing *sharing = &s->call.sharing[step->operand];
    const struct schedule_tile tile = schedule_tile_of(s, step->operand, 0, step->j);
    assert_false(s->call.in_place[step->operand]);
    assert_true(tile.cols > 0);
    const int64_t first = room_at(s, step->operand, step->j, tile.col * sharing->repeat);
    for (int64_t i = 0; i < tile.cols; i++) {
        const int64_t product = (tile.col + i) * sharing->repeat;
        assert_in_range(product, 0, s->call.products - 1);
        put_matrix(held, first + i, product / sharing->repeat % sharing->distinct, step, number);
        sent[product / sharing->repeat % sharing->distinct]++;
    }
}

static void replay_download(const struct schedule *s, const struct schedule_step *step,
                            struct held *c, int64_t *down, int number)
{
    assert_int_equal(schedule_group_start(s, step->j), *down);
    for (; *down < schedule_group_start(s, step->j + 1); ++*down) {
        const int64_t room = room_at(s, SCHEDULE_C, step->j, *down);
        assert_int_equal(c->matrix[room], *down);
        assert_true(step->after[SCHEDULE_COMPUTE] >= c->used[room]);
        c->fetched[room] = number;
    }
}

static void replay_batch(const struct schedule *s)
{
    struct held held[SCHEDULE_OPERANDS];
    int *sent[SCHEDULE_OPERANDS], done[SCHEDULE_ENGINES] = {0};
    int64_t next = 0, down = 0;
    for (int x = 0; x < SCHEDULE_OPERANDS; x++) {
        const int64_t bytes = schedule_matrix_bytes(&s->call, x);
        const int64_t rooms = bytes > 0 ? s->slots[x] * (s->slot_bytes[x] / bytes) : 0;
        held[x] =
            (struct held){malloc((size_t)(rooms + 1) * sizeof(int64_t)), filled((int)rooms, 0),
                          filled((int)rooms, 0), filled((int)rooms, 0)};
        sent[x] = filled((int)s->call.sharing[x].distinct, 0);
        for (int64_t i = 0; i < rooms; i++)
            held[x].matrix[i] = -1;
    }
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        for (int e = 0; e < SCHEDULE_ENGINES; e++)
            assert_true(step->after[e] <= done[e]); /* only what comes before it */
        const int number = ++done[step->engine];
        if (step->engine == SCHEDULE_UP) {
            replay_upload(s, step, &held[step->operand], sent[step->operand], number);
        } else if (step->engine == SCHEDULE_DOWN) {
            replay_download(s, step, &held[SCHEDULE_C], &down, number);
        } else {
            assert_int_equal(schedule_group_start(s, step->j), next);
            next = schedule_group_start(s, step->j + 1);
            assert_true(next > schedule_group_start(s, step->j));
            assert_true(s->call.widest == 0 ||
                        next - schedule_group_start(s, step->j) <= s->call.widest);
            replay_group(s, step, held, done);
        }
    }
    assert_memory_equal(done, s->steps, sizeof done);
    assert_int_equal(next, s->call.products);
    assert_int_equal(down, s->call.in_place[SCHEDULE_C] ? 0 : next);
    for (int x = 0; x < SCHEDULE_OPERANDS; x++) {
        for (int64_t i = 0; s->whole && i < s->call.sharing[x].distinct; i++)
            assert_true(sent[x][i] <= 1);
        free(held[x].matrix);
        free(held[x].step);
        free(held[x].used);
        free(held[x].fetched);
        free(sent[x]);
    }
}

/* Whether a triangle's tile is to be computed, by the place of its first element. */
static bool is_of_triangle(const struct schedule *s, int i, int j)
{
    const int64_t row = schedule_tile_of(s, SCHEDULE_C, i, 0).row, head = s->call.head;
    const int64_t col = schedule_tile_of(s, SCHEDULE_C, 0, j).col;
    return col <= row && !(s->call.omits & SCHEDULE_HEAD && row < head) &&
           !(s->call.omits & SCHEDULE_BETWEEN && row >= head && col < head) &&
           !(s->call.omits & SCHEDULE_TAIL && col >= head);
}

static void replay(const struct schedule *s)
{
    struct replay r = {.s = s};
    last_download_waits_for_all(s);
    if (s->call.kind == SCHEDULE_BATCH) {
        replay_batch(s);
        return;
    }
    int tiles[SCHEDULE_OPERANDS];
    for (int x = 0; x < SCHEDULE_OPERANDS; x++) {
        tiles[x] = s->tiles[x].rows * s->tiles[x].cols;
        r.held[x] = filled(s->slots[x], -1);
        r.step_of[x] = filled(s->slots[x], 0);
        r.used[x] = filled(s->slots[x], 0);
        r.sent[x] = filled(tiles[x], 0);
    }
    r.fetched = filled(s->slots[SCHEDULE_C], 0);
    r.kernels = filled(tiles[SCHEDULE_C], 0);
    r.downs = filled(tiles[SCHEDULE_C], 0);
    r.changed = filled(tiles[SCHEDULE_C], 0);
    for (int side = 0; side < 2; side++)
        r.seen[side] = filled(tiles[SCHEDULE_C], 0);
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        for (int e = 0; e < SCHEDULE_ENGINES; e++)
            assert_true(step->after[e] <= r.done[e]); /* only what comes before it */
        r.done[step->engine]++;
        if (step->engine == SCHEDULE_UP)
            upload(&r, step);
        else if (step->engine == SCHEDULE_COMPUTE)
            kernel(&r, step);
        else
            download(&r, step, products_of(s, step->i));
    }
    assert_memory_equal(r.done, s->steps, sizeof r.done);
    for (int c = 0; c < tiles[SCHEDULE_C]; c++) {
        const int row = c % s->tiles[SCHEDULE_C].rows, col = c / s->tiles[SCHEDULE_C].rows;
        const bool beyond = s->call.kind == SCHEDULE_RANK_K && !is_of_triangle(s, row, col);
        assert_int_equal(r.downs[c], !beyond && !s->call.in_place[SCHEDULE_C]);
        assert_int_equal(r.kernels[c], beyond ? 0 : products_of(s, row));
    }
    for (int x = 0; x < SCHEDULE_OPERANDS; x++)
        for (int at = 0; s->whole && at < tiles[x]; at++)
            assert_true(r.sent[x][at] <= 1);
    for (int x = 0; x < SCHEDULE_OPERANDS; x++) {
        free(r.held[x]);
        free(r.step_of[x]);
        free(r.used[x]);
        free(r.sent[x]);
    }
    free(r.fetched);
    free(r.kernels);
    free(r.downs);
    free(r.changed);
    free(r.seen[0]);
    free(r.seen[1]);
}

static void every_order_is_allowed_and_complete(void **state)
{
    (void)state;
    for (int l = 0; l < schedule_link_count; l++)
        for (int c = 0; c < schedule_case_count; c++)
            for (int p = 0; p < 2; p++) {
                struct schedule_judged judged;
                assert_true(
                    schedule_judge(&schedule_cases[c], &schedule_links[l], parts[p], &judged));
                replay(&judged.schedule);
                assert_true(judged.times.ms == judged.schedule.ms);
                schedule_free(&judged.schedule);
            }
}

/* Returns a number that tells the kernels and their order. */
static uint64_t kernels_of(const struct schedule *s)
{
    uint64_t hash = 0;
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *k = &s->step[n];
        if (k->engine == SCHEDULE_COMPUTE)
            hash = hash * 1000003 + (uint64_t)((k->i * 1009 + k->j) * 1013 + k->p) * 4 +
                   k->first * 2U + k->last;
    }
    return hash;
}

/* Without its uploads the order is allowed still, and the kernels are the same. */
static void leave_out(struct schedule *s, int operand)
{
    const int uploads = s->steps[SCHEDULE_UP];
    const bool went_up =
        !s->call.in_place[operand] && s->tiles[operand].rows * s->tiles[operand].cols > 0;
    const uint64_t kernels = kernels_of(s);
    assert_true(schedule_leave_out(s, operand));
    assert_true(kernels_of(s) == kernels);
    assert_int_equal(s->steps[SCHEDULE_UP] < uploads, went_up);
    replay(s);
}

/* The tiles of A are C's rows, one behind the other, and a new one begins with the second group of
 * rows. */
static void rows_are_covered(const struct schedule *s)
{
    int64_t next = 0;
    for (int i = 0; s->call.k > 0 && i < s->tiles[SCHEDULE_A].rows; i++) {
        const struct schedule_tile a = schedule_tile_of(s, SCHEDULE_A, i, 0);
        assert_true(a.row == next && a.rows > 0);
        assert_true(i != schedule_head(s) || s->call.head == 0 || a.row == s->call.head);
        next += a.rows;
    }
    assert_true(s->call.k == 0 || next == s->call.m);
}

/* Products of small matrices, which share them in any way, in groups of any size. */
static void make_batch(struct schedule_call *call)
{
    static const int64_t counts[] = {2, 3, 64, 100, 777, 5000};
    call->m = 1 + call->m % 67;
    call->n = 1 + call->n % 67;
    call->k = call->k > 0 ? 1 + call->k % 67 : 0;
    call->products = counts[rand() % 6];
    for (int x = 0; x < SCHEDULE_OPERANDS; x++) {
        struct schedule_sharing *sharing = &call->sharing[x];
        const int64_t repeat = x == SCHEDULE_C || rand() % 2 ? 1 : 1 + rand() % call->products;
        const int64_t runs = (call->products + repeat - 1) / repeat;
        *sharing = (struct schedule_sharing){
            repeat, x == SCHEDULE_C || rand() % 2 ? runs : 1 + rand() % runs};
    }
}

/* Of small calls, all kinds, odd sizes, two factors, upper triangles, with and without C, operands
 * on the device, in much memory and very little. */
static void odd_shapes(void **state)
{
    static const int64_t sizes[] = {1, 7, 64, 65, 300, 1111};
    static const unsigned omits[] = {0, SCHEDULE_HEAD, SCHEDULE_TAIL, SCHEDULE_BETWEEN,
                                     SCHEDULE_HEAD | SCHEDULE_TAIL};
    (void)state;
    srand(5);
    for (int n = 0; n < 3000; n++) {
        struct schedule_call call = {.kind = (enum schedule_kind)(rand() % 6),
                                     .two = rand() % 2,
                                     .up = rand() % 2,
                                     .reads = rand() % 2,
                                     .m = sizes[rand() % 6],
                                     .n = sizes[rand() % 6],
                                     .k = sizes[rand() % 6],
                                     .per_term = 2,
                                     .size = {8, 8, 8},
                                     .across = {rand() % 2, rand() % 2, rand() % 2},
                                     .most = rand() % 4 ? 0 : 64,
                                     .widest = rand() % 4 ? 0 : sizes[rand() % 3]};
        struct schedule s;
        if (call.kind == SCHEDULE_RANK_K)
            call.n = call.m;
        else if (call.kind != SCHEDULE_PRODUCT && call.kind != SCHEDULE_BATCH)
            call.k = call.m;
        if (rand() % 8 == 0)
            call.k = 0;
        call.reads =
            call.reads ||
            (call.k > 0 && (call.kind == SCHEDULE_SOLVE || call.kind == SCHEDULE_MULTIPLY));
        for (int x = 0; x < SCHEDULE_OPERANDS; x++)
            call.in_place[x] = rand() % 4 == 0;
        if (call.kind == SCHEDULE_RANK_K && !call.in_place[SCHEDULE_C] && rand() % 2)
            call.head = rand() % call.m;
        call.one_way = call.kind == SCHEDULE_RANK_K && call.two && rand() % 2;
        if (call.head > 0)
            call.omits = omits[rand() % 5];
        if (call.kind == SCHEDULE_BATCH)
            make_batch(&call);
        const int64_t memory = rand() % 3 ? INT64_MAX : (int64_t)(rand() % 2000 + 100) << 10;
        if (!schedule_make(&s, &call, &schedule_links[n % schedule_link_count].rates, memory))
            continue;
        assert_true(s.bytes <= memory);
        replay(&s);
        assert_true(schedule_simulate(&s, &schedule_links[n % schedule_link_count].rates).ms ==
                    s.ms);
        if (call.kind != SCHEDULE_BATCH)
            rows_are_covered(&s);
        if (call.kind == SCHEDULE_PRODUCT && call.most > 0)
            assert_true(s.by.rows <= call.most && s.by.cols <= call.most &&
                        s.by.depth <= call.most);
        if (schedule_in_panels(&s.call) && call.widest > 0)
            assert_true(s.by.cols <= call.widest);
        leave_out(&s, n % SCHEDULE_C);
        schedule_free(&s);
    }
}

static bool is_same_step(const struct schedule_step *x, const struct schedule_step *y)
{
    return x->engine == y->engine && x->operand == y->operand && x->i == y->i && x->j == y->j &&
           x->p == y->p && x->slot == y->slot && x->first == y->first && x->last == y->last &&
           memcmp(x->after, y->after, sizeof x->after) == 0;
}

static void are_same(const struct schedule *s, const struct schedule *other)
{
    assert_int_equal(s->count, other->count);
    assert_int_equal(s->bytes, other->bytes);
    assert_memory_equal(s->slots, other->slots, sizeof s->slots);
    assert_true(s->whole == other->whole && s->ms == other->ms);
    for (int n = 0; n < s->count; n++)
        assert_true(is_same_step(&s->step[n], &other->step[n]));
}

static void check_choices(const struct schedule_call *call, const struct schedule_rates *rates,
                          int64_t memory)
{
    struct schedule once, again;
    if (!schedule_make(&once, call, rates, memory))
        return;
    for (int times = 0; times < 2; times++) {
        assert_true(plan_cache_make(&again, call, rates, memory));
        are_same(&once, &again);
        schedule_free(&again);
    }
    assert_true(schedule_make_by(&again, &once.by, call, rates, memory));
    are_same(&once, &again);
    assert_true(schedule_simulate(&once, rates).ms == once.ms);
    schedule_free(&again);
    schedule_free(&once);
}

/* A call has the same schedule again, and one that differs from it in one thing has its own. More
 * calls than are remembered. */
static void a_choice_makes_the_same_schedule(void **state)
{
    const struct schedule_rates slower = RATES(25, 12, 900, 128, 0.002, 0.005, 0.01);
    (void)state;
    for (int64_t n = 720; n < 1100; n += 5) {
        const struct schedule_call call = {
            .kind = SCHEDULE_PRODUCT, .m = n, .n = n, .k = n, .per_term = 2, .size = {8, 8, 8}};
        struct schedule_call other[] = {call, call, call, call, call, call, call, call, call};
        other[1].reads = true;
        other[2].kind = SCHEDULE_RANK_K;
        other[3].in_place[SCHEDULE_A] = true;
        other[4].across[SCHEDULE_B] = true;
        other[5].per_term = 8;
        other[6].size[SCHEDULE_C] = 16;
        other[7].most = 128;
        other[8].kind = SCHEDULE_BATCH;
        other[8].m = other[8].n = other[8].k = 64;
        other[8].products = n;
        for (int x = 0; x < SCHEDULE_OPERANDS; x++)
            other[8].sharing[x] = (struct schedule_sharing){1, x == SCHEDULE_B ? 1 : n};
        for (int i = 0; i < 9; i++) {
            check_choices(&other[i], &schedule_links[n % schedule_link_count].rates, INT64_MAX);
            check_choices(&other[i], &slower, n * n * 10);
        }
    }
}

/* A small call, and one whose result is on the device, is one kernel, if memory allows. */
static void one_kernel(void **state)
{
    struct schedule_call call = {.kind = SCHEDULE_PRODUCT,
                                 .reads = true,
                                 .m = 300,
                                 .n = 300,
                                 .k = 300,
                                 .per_term = 2,
                                 .size = {8, 8, 8}};
    struct schedule s;
    (void)state;
    assert_true(schedule_make(&s, &call, &schedule_links[0].rates, INT64_MAX));
    assert_int_equal(s.count, 5); /* three uploads, the kernel, a download */
    schedule_free(&s);
    call.m = call.n = 8192;
    call.k = 0; /* C is scaled: it goes up and down at the same time */
    struct schedule_rates rates = schedule_links[0].rates;
    rates.compute = 0;
    assert_true(schedule_make(&s, &call, &rates, INT64_MAX));
    assert_true(s.ms < 1.1 * schedule_floor(&call, &rates));
    schedule_free(&s);
    call.m = call.n = call.k = 4096;
    call.in_place[SCHEDULE_C] = true;
    assert_true(schedule_make(&s, &call, &schedule_links[0].rates, INT64_MAX));
    assert_int_equal(s.count, 3); /* two uploads, the kernel */
    schedule_free(&s);
}

/* Of a matrix that stays on the device, each kernel of a few columns begins when the one before has
 * ended: there are few. Where all goes up, they are still hidden. */
static void few_kernels_of_few_columns(void **state)
{
    struct schedule_rates rates = schedule_links[0].rates;
    struct schedule_call call = {.kind = SCHEDULE_PRODUCT,
                                 .m = 16384,
                                 .n = 16,
                                 .k = 16384,
                                 .per_term = 2,
                                 .size = {8, 8, 8}};
    struct schedule s;
    (void)state;
    rates.up = rates.down = 50;
    rates.compute = 60000;
    for (int way = 0; way < 4; way++) {
        call.n = way == 3 ? 64 : 16;
        call.across[SCHEDULE_A] = way == 1;
        call.size[SCHEDULE_A] = call.size[SCHEDULE_B] = call.size[SCHEDULE_C] = way == 2 ? 4 : 8;
        assert_true(schedule_make(&s, &call, &rates, INT64_MAX));
        assert_in_range(s.steps[SCHEDULE_COMPUTE], 2, 4);
        assert_true(s.ms < (way == 3 ? 1.06 : 1.03) * schedule_floor(&call, &rates));
        schedule_free(&s);
    }
}

/* ---- The time ---- */

struct farther {
    int from_bound; /* than 1.05 times a bound that no schedule is below, and the first and the last
                       tile */
    int in_panels;  /* of these, the calls that are overwritten in panels */
    int from_longest; /* than 1.20 times the longest engine, of order 2048 and more */
    double over;      /* the mean of times over the bound of one that sends nothing twice */
};

/* Counts the schedules that are so far from what they are compared with. */
static struct farther count_far(double part)
{
    struct farther far = {0, 0, 0, 0};
    for (int l = 0; l < schedule_link_count; l++)
        for (int c = 0; c < schedule_case_count; c++) {
            struct schedule_judged judged;
            assert_true(schedule_judge(&schedule_cases[c], &schedule_links[l], part, &judged));
            const struct schedule_times *times = &judged.times;
            assert_true(times->ms >= judged.bound);
            const bool from_bound = times->ms > 1.05 * judged.bound + times->first + times->last;
            far.from_bound += from_bound;
            far.in_panels += from_bound && schedule_in_panels(&schedule_cases[c].call);
            far.from_longest +=
                schedule_cases[c].call.m >= 2048 && times->ms > 1.20 * judged.longest;
            far.over += times->ms / judged.once / (schedule_link_count * schedule_case_count);
            schedule_free(&judged.schedule);
        }
    print_message("%d, %d, %d, %.4f\n", far.from_bound, far.in_panels, far.from_longest, far.over);
    return far;
}

/* Of 124, as many as there are: if there is one more, a schedule has got worse. Those of the bound
 * are at most 1.07 times as far, in panels 1.17 times: there the bound knows nothing of the kernels
 * that wait for each other. Of the longest engine's, uploads and kernels take about equally long,
 * or a result of order 2048 comes in few and small kernels. */
static void ample_memory(void **state)
{
    const struct farther far = count_far(0);
    (void)state;
    assert_in_range(far.from_bound - far.in_panels, 0, 10);
    assert_in_range(far.in_panels, 0, 6);
    assert_in_range(far.from_longest, 0, 19);
    assert_true(far.over < 1.114);
}

/* Here the first two are by what a schedule sends: one that sends less is faster, and may be
 * farther from that. The last one tells how fast they are. */
static void short_of_memory(void **state)
{
    const struct farther far = count_far(0.4);
    (void)state;
    assert_in_range(far.from_bound, 0, 27);
    assert_in_range(far.from_longest, 0, 20);
    assert_true(far.over < 1.184);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_is_allowed_and_complete),
        cmocka_unit_test(odd_shapes),
        cmocka_unit_test(a_choice_makes_the_same_schedule),
        cmocka_unit_test(one_kernel),
        cmocka_unit_test(few_kernels_of_few_columns),
        cmocka_unit_test(ample_memory),
        cmocka_unit_test(short_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
