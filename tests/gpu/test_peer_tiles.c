/*
 * Tiles that several devices of a call lend each other: each has one owner, they are dealt out
 * evenly, and members that go through their schedules at any pace, leave early or fail neither wait
 * for each other for ever nor read memory that its owner no longer has.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "gpu/exec/blas/peer_tiles.h"
#include "ops/cut.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"
#include "tests/lib/rates.h"
#include "tests/lib/watched_memory.h"

enum { MEMBERS = 4, ROUNDS = 100 };

static const struct schedule_rates rates = RATES_WITH(0, 300, 20, 15, 5e3, 128, 0.002, 0.005, 0.01);

/* The parts of a product: each has some of its columns, and all need A. */
struct parts {
    struct accel_call call[MEMBERS];
    struct scheduled scheduled[MEMBERS];
    struct schedule schedule[MEMBERS];
    int count;
};

static void make_parts(struct parts *parts, int count, const double up_gbps[],
                       struct peer_tiles *table)
{
    struct accel_call call;
    const int64_t size[ACCEL_DIMENSIONS] = {1024, 1024, 1024, 0};
    const struct schedule_params by = {.rows = 128, .cols = 128, .depth = 128, .buffers = 2};
    shape_typical(&call, routine("dgemm"), size);
    for (int i = 0; i < ACCEL_SPANS; i++) /* nobody looks there */
        call.span[i].ptr = (void *)((uintptr_t)(i + 1) << 32);
    parts->count = count;
    for (int i = 0; i < count; i++) {
        const struct accel_region columns = {0, i * 1024 / count, 1024, 1024 / count, 0};
        parts->call[i] = accel_cut_part(&call, &columns);
        assert_true(scheduled_describe(&parts->call[i], &parts->scheduled[i]));
        parts->scheduled[i].call.lent[SCHEDULE_A] = 1 - 1.0 / count;
        assert_true(schedule_make_by(&parts->schedule[i], &by, &parts->scheduled[i].call, &rates,
                                     INT64_MAX));
        assert_true(
            peer_tiles_add(table, i, &parts->scheduled[i], &parts->schedule[i], up_gbps[i]));
    }
}

static void free_parts(struct parts *parts)
{
    for (int i = 0; i < parts->count; i++)
        schedule_free(&parts->schedule[i]);
}

/* ---- Dealing ---- */

/* Of whom each of A's tiles is, by the order in which the first member brings them up, as all do
 * here. Fails if somebody brings up what is another one's, or they are numbered in another
 * order. */
static int owners_of(const struct parts *parts, struct peer_tiles *table, int *owner)
{
    int tiles = 0;
    for (int n = 0; n < parts->schedule[0].count; n++) {
        const struct schedule_step *step = &parts->schedule[0].step[n];
        if (step->engine != SCHEDULE_UP || step->operand != SCHEDULE_A)
            continue;
        const struct matrix tile = peer_tiles_key(&parts->scheduled[0], &parts->schedule[0], step);
        int told;
        owner[tiles] = -1;
        for (int m = 0; m < parts->count; m++) {
            assert_true(peer_tiles_may_have(table, m, &tile)); /* none has begun: nobody waits */
            assert_true(peer_tiles_find(table, m, &tile) == 0);
        }
        for (int m = 0; m < parts->count; m++)
            peer_tiles_lend(table, m, &tile, (gpu_address)m + 1); /* the owner's counts */
        assert_int_equal(peer_tiles_number(table, &tile, &told), tiles);
        for (int m = 0; m < parts->count; m++) {
            const gpu_address lent = peer_tiles_find(table, m, &tile);
            assert_true(lent == 0 || owner[tiles] < 0 || owner[tiles] == (int)lent - 1);
            owner[tiles] = lent ? (int)lent - 1 : owner[tiles];
        }
        assert_int_equal(told, owner[tiles]);
        tiles++;
    }
    return tiles;
}

static void tiles_are_dealt_out(void **state)
{
    const double even[] = {20, 20, 20, 20}, uneven[] = {30, 10};
    int owner[64], of[MEMBERS] = {0};
    struct parts parts;
    (void)state;
    struct peer_tiles *table = peer_tiles_new(4);
    make_parts(&parts, 4, even, table);
    assert_int_equal(peer_tiles_deal(table), 64);
    assert_int_equal(owners_of(&parts, table, owner), 64);
    for (int n = 0; n < 64; n++) { /* soon each of them has some */
        assert_in_range(owner[n], 0, 3);
        of[owner[n]]++;
        for (int m = 0; m < 4; m++)
            assert_in_range(of[m], n / 4, n / 4 + 1);
    }
    free_parts(&parts);
    peer_tiles_free(table);
    table = peer_tiles_new(2);
    make_parts(&parts, 2, uneven, table);
    assert_int_equal(peer_tiles_deal(table), 64);
    assert_int_equal(owners_of(&parts, table, owner), 64);
    of[0] = 0;
    for (int n = 0; n < 64; n++)
        of[0] += owner[n] == 0;
    assert_int_equal(of[0], 48); /* by their rates */
    free_parts(&parts);
    peer_tiles_free(table);
}

static void what_one_member_needs_is_nobodys(void **state)
{
    const double up_gbps[] = {20, 20};
    struct parts parts;
    (void)state;
    struct peer_tiles *table = peer_tiles_new(2);
    make_parts(&parts, 2, up_gbps, table);
    assert_int_equal(peer_tiles_deal(table), 64);
    for (int n = 0; n < parts.schedule[1].count; n++) {
        const struct schedule_step *step = &parts.schedule[1].step[n];
        if (step->engine != SCHEDULE_UP || step->operand == SCHEDULE_A)
            continue;
        const struct matrix tile = peer_tiles_key(&parts.scheduled[1], &parts.schedule[1], step);
        assert_true(peer_tiles_may_have(table, 1, &tile));
        assert_true(peer_tiles_find(table, 1, &tile) == 0);
    }
    free_parts(&parts);
    peer_tiles_free(table);
    table = peer_tiles_new(2); /* no tiles at all */
    assert_int_equal(peer_tiles_deal(table), 0);
    peer_tiles_free(table);
}

/* The memory of a member that has left, whether well or not, is nobody's any more. */
static void what_a_member_has_lent_goes_with_it(void **state)
{
    const double up_gbps[] = {20, 20};
    (void)state;
    for (int well = 0; well < 2; well++) {
        struct parts parts;
        int borrowed[2] = {0, 0};
        struct peer_tiles *table = peer_tiles_new(2);
        make_parts(&parts, 2, up_gbps, table);
        assert_int_equal(peer_tiles_deal(table), 64);
        for (int pass = 0; pass < 2; pass++) {
            for (int n = 0; n < parts.schedule[0].count; n++) {
                const struct schedule_step *step = &parts.schedule[0].step[n];
                if (step->engine != SCHEDULE_UP || step->operand != SCHEDULE_A)
                    continue;
                const struct matrix tile =
                    peer_tiles_key(&parts.scheduled[0], &parts.schedule[0], step);
                if (pass == 0)
                    peer_tiles_lend(table, 1, &tile, 1);
                borrowed[pass] += peer_tiles_find(table, 0, &tile) != 0;
            }
            if (pass == 0)
                peer_tiles_leave(table, 1, well);
        }
        assert_true(borrowed[0] > 0);
        assert_int_equal(borrowed[1], 0);
        free_parts(&parts);
        peer_tiles_free(table);
    }
}

/* The schedule that a member runs by has the order that the plan simulates: before another one's
 * tile it has begun its own ones with numbers that are less than `ahead` larger. */
static void members_run_in_the_planned_order(void **state)
{
    enum { AHEAD = 8 };
    const double even[] = {20, 20, 20, 20};
    struct parts parts;
    int early = 0;
    (void)state;
    struct peer_tiles *table = peer_tiles_new(4);
    make_parts(&parts, 4, even, table);
    assert_int_equal(peer_tiles_deal(table), 64);
    peer_tiles_set_ahead(table, AHEAD);
    for (int m = 0; m < 4; m++) {
        struct schedule s = {.count = 0};
        int begun[64] = {0}, owned = 0;
        assert_true(peer_tiles_schedule(table, m, &parts.scheduled[m], &rates, INT64_MAX, &s));
        for (int pass = 0; pass < 2; pass++) /* first, which are its own */
            for (int n = 0; n < s.count; n++) {
                int owner = -1;
                if (s.step[n].engine != SCHEDULE_UP || s.step[n].operand != SCHEDULE_A)
                    continue;
                const struct matrix tile = peer_tiles_key(&parts.scheduled[m], &s, &s.step[n]);
                const int number = peer_tiles_number(table, &tile, &owner);
                assert_in_range(number, 0, 63);
                if (owner == m) {
                    owned += pass == 0;
                    begun[number] = pass + 1;
                    continue;
                }
                for (int i = 0; pass == 1 && i < number + AHEAD && i < 64; i++) {
                    assert_int_not_equal(begun[i], 1); /* its own, and not begun */
                    early += begun[i] == 2 && i > number;
                }
            }
        assert_int_equal(owned, 16);
        schedule_free(&s);
    }
    assert_true(early > 0);
    free_parts(&parts);
    peer_tiles_free(table);
}

/* ---- Memory that is short ---- */

/* Request number `fails` fails. Returns whether there is a schedule; what has been taken for it is
 * given back with it, or at once. */
static bool make_order(const struct parts *parts, struct peer_tiles *table, int fails)
{
    struct schedule s = {.count = 0};
    watch(fails);
    const bool made = peer_tiles_schedule(table, 1, &parts->scheduled[1], &rates, INT64_MAX, &s);
    stop_watching();
    assert_true(made ? live > 0 : live == 0);
    if (made)
        schedule_free(&s);
    return made;
}

static void a_member_without_memory_has_no_schedule(void **state)
{
    const double up_gbps[] = {20, 20};
    struct parts parts;
    int fails = 1;
    (void)state;
    struct peer_tiles *table = peer_tiles_new(2);
    make_parts(&parts, 2, up_gbps, table);
    assert_int_equal(peer_tiles_deal(table), 64);
    while (!make_order(&parts, table, fails))
        fails++;
    assert_true(fails > 2);
    free_parts(&parts);
    peer_tiles_free(table);
}

/* Whichever request fails, no tile is lent; and all is given back. */
static void a_table_without_memory_lends_nothing(void **state)
{
    const double up_gbps[] = {20, 20};
    struct parts parts;
    int dealt = 0, fails = 1;
    (void)state;
    struct peer_tiles *first = peer_tiles_new(2);
    make_parts(&parts, 2, up_gbps, first);
    peer_tiles_free(first);
    for (; dealt == 0; fails++) {
        watch(fails);
        struct peer_tiles *table = peer_tiles_new(2);
        bool added = table;
        for (int m = 0; added && m < 2; m++)
            added = peer_tiles_add(table, m, &parts.scheduled[m], &parts.schedule[m], up_gbps[m]);
        dealt = added ? peer_tiles_deal(table) : 0;
        if (table)
            peer_tiles_free(table);
        stop_watching();
        assert_int_equal(dealt, requests < fails ? 64 : 0);
        assert_int_equal(live, 0);
    }
    assert_true(fails > 4);
    free_parts(&parts);
}

/* ---- Members that run ---- */

enum { LATE = 4 }; /* so many tiles are on their way up, at most */

static const char right = 1, gone = 2;

struct runner {
    struct peer_tiles *peer_tiles;
    const struct parts *parts;
    int member;
    unsigned random;
    int leaves_at; /* it fails after so many uploads; -1: never begins; INT32_MAX: ends well */
    char *memory;
    atomic_int *wrong;
    int brought, borrowed;
};

static unsigned next_random(struct runner *r, unsigned below)
{
    r->random = r->random * 1664525 + 1013904223;
    return (r->random >> 8) % below;
}

/* The tiles that are on their way up arrive in their order. */
struct arrivals {
    const struct schedule_step *step[LATE];
    int count;
};

static void arrive(struct runner *r, struct arrivals *a)
{
    const struct schedule_step *step = a->step[0];
    const struct matrix tile =
        peer_tiles_key(&r->parts->scheduled[r->member], &r->parts->schedule[r->member], step);
    r->memory[step->slot] = right;
    peer_tiles_lend(r->peer_tiles, r->member, &tile,
                    (gpu_address)(uintptr_t)&r->memory[step->slot]);
    memmove(&a->step[0], &a->step[1], (size_t)--a->count * sizeof a->step[0]);
}

static void bring(struct runner *r, struct arrivals *a, const struct schedule_step *step)
{
    if (a->count == LATE)
        arrive(r, a);
    a->step[a->count++] = step;
    r->brought++;
}

static void get_tile(struct runner *r, struct arrivals *a, const struct schedule_step *step)
{
    const struct matrix tile =
        peer_tiles_key(&r->parts->scheduled[r->member], &r->parts->schedule[r->member], step);
    while (!peer_tiles_may_have(r->peer_tiles, r->member, &tile)) {
        while (a->count > 0)
            arrive(r, a);
        peer_tiles_wait(r->peer_tiles);
    }
    const gpu_address lent = peer_tiles_find(r->peer_tiles, r->member, &tile);
    if (!lent) {
        bring(r, a, step);
        return;
    }
    if (next_random(r, 8) == 0)
        usleep(next_random(r, 60));
    atomic_fetch_add(r->wrong, *(const volatile char *)(uintptr_t)lent != right);
    r->borrowed++;
}

static void *run_member(void *runner)
{
    struct runner *r = runner;
    struct arrivals arrivals = {.count = 0};
    const struct schedule *s = &r->parts->schedule[r->member];
    usleep(next_random(r, 200));
    if (r->leaves_at >= 0 && peer_tiles_join(r->peer_tiles, r->member)) {
        for (int n = 0, ups = 0; n < s->count && ups < r->leaves_at; n++) {
            if (s->step[n].engine != SCHEDULE_UP || s->step[n].operand != SCHEDULE_A)
                continue;
            get_tile(r, &arrivals, &s->step[n]);
            ups++;
        }
        while (r->leaves_at == INT32_MAX && arrivals.count > 0)
            arrive(r, &arrivals);
    }
    peer_tiles_leave(r->peer_tiles, r->member, r->leaves_at == INT32_MAX);
    memset(r->memory, gone, (size_t)s->slots[SCHEDULE_A]);
    return NULL;
}

/* Runs all members to their ends. Returns the tiles that were brought up by any, or -1 if one read
 * what was not lent any more. */
static int run_all(unsigned random, int count, const int leaves_at[MEMBERS], int borrowed[MEMBERS])
{
    const double up_gbps[] = {20, 10, 20, 15};
    pthread_t thread[MEMBERS];
    struct runner runner[MEMBERS];
    atomic_int wrong = 0;
    struct parts parts;
    int brought = 0;
    struct peer_tiles *table = peer_tiles_new(count);
    make_parts(&parts, count, up_gbps, table);
    assert_int_equal(peer_tiles_deal(table), 64);
    for (int m = 0; m < count; m++) {
        runner[m] = (struct runner){table,
                                    &parts,
                                    m,
                                    random + 77u * (unsigned)m,
                                    leaves_at[m],
                                    calloc(1, (size_t)parts.schedule[m].slots[SCHEDULE_A]),
                                    &wrong,
                                    0,
                                    0};
        assert_int_equal(pthread_create(&thread[m], NULL, run_member, &runner[m]), 0);
    }
    for (int m = 0; m < count; m++) {
        pthread_join(thread[m], NULL);
        brought += runner[m].brought;
        borrowed[m] = runner[m].borrowed;
    }
    for (int m = 0; m < count; m++)
        free(runner[m].memory);
    free_parts(&parts);
    peer_tiles_free(table);
    return atomic_load(&wrong) ? -1 : brought;
}

static void each_tile_comes_up_once(void **state)
{
    const int all_well[] = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    int borrowed[MEMBERS];
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++)
        for (int count = 2; count <= MEMBERS; count++) {
            assert_int_equal(run_all(round * 1000 + 3, count, all_well, borrowed), 64);
            for (int m = 0; m < count; m++)
                assert_in_range(borrowed[m], 1, 63);
        }
}

static void nobody_waits_for_those_who_have_left(void **state)
{
    int borrowed[MEMBERS], some_borrowed = 0;
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct runner random = {.random = round};
        int leaves_at[MEMBERS];
        for (int m = 0; m < MEMBERS; m++) {
            const unsigned fate = next_random(&random, 3);
            leaves_at[m] = fate == 0   ? INT32_MAX
                           : fate == 1 ? (int)next_random(&random, 65)
                                       : -(int)next_random(&random, 2);
        }
        assert_true(run_all(round, MEMBERS, leaves_at, borrowed) >= 0);
        for (int m = 0; m < MEMBERS; m++)
            some_borrowed += borrowed[m];
    }
    assert_true(some_borrowed > ROUNDS);
}

/* One of them has no thread: those that have come already go their own way. */
static void *join_and_leave(void *table)
{
    const bool together = peer_tiles_join(table, 0);
    peer_tiles_leave(table, 0, true);
    return together ? table : NULL;
}

static void all_may_go_their_own_way(void **state)
{
    struct parts parts;
    const double up_gbps[] = {20, 20};
    pthread_t thread;
    void *together = NULL;
    (void)state;
    struct peer_tiles *table = peer_tiles_new(2);
    make_parts(&parts, 2, up_gbps, table);
    assert_int_equal(peer_tiles_deal(table), 64);
    assert_int_equal(pthread_create(&thread, NULL, join_and_leave, table), 0);
    usleep(1000);
    peer_tiles_stop(table);
    pthread_join(thread, &together);
    assert_null(together);
    assert_false(peer_tiles_join(table, 1));
    peer_tiles_leave(table, 1, true);
    peer_tiles_leave(table, 1, true); /* the second time does nothing */
    assert_false(peer_tiles_join(table, 1));
    free_parts(&parts);
    peer_tiles_free(table);
}

struct leaving {
    struct peer_tiles *peer_tiles;
    atomic_bool other_began, left;
};

static void *join_and_end(void *context)
{
    struct leaving *l = context;
    peer_tiles_join(l->peer_tiles, 0);
    while (!atomic_load(&l->other_began))
        usleep(100);
    peer_tiles_leave(l->peer_tiles, 0, true);
    atomic_store(&l->left, true);
    return NULL;
}

/* A member that has nothing to lend finds no thread, when the others have begun. */
static void those_that_have_begun_stay(void **state)
{
    struct parts parts;
    const double up_gbps[] = {20, 20, 20};
    pthread_t thread;
    (void)state;
    struct leaving leaving = {.peer_tiles = peer_tiles_new(3)};
    make_parts(&parts, 3, up_gbps, leaving.peer_tiles);
    assert_int_equal(peer_tiles_deal(leaving.peer_tiles), 64);
    peer_tiles_leave(leaving.peer_tiles, 2, true);
    assert_int_equal(pthread_create(&thread, NULL, join_and_end, &leaving), 0);
    assert_true(peer_tiles_join(leaving.peer_tiles, 1));
    peer_tiles_stop(leaving.peer_tiles);
    atomic_store(&leaving.other_began, true);
    usleep(20000);
    assert_false(atomic_load(&leaving.left)); /* member 1 may read its memory */
    peer_tiles_leave(leaving.peer_tiles, 1, true);
    pthread_join(thread, NULL);
    free_parts(&parts);
    peer_tiles_free(leaving.peer_tiles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_are_dealt_out),
                                       cmocka_unit_test(what_one_member_needs_is_nobodys),
                                       cmocka_unit_test(what_a_member_has_lent_goes_with_it),
                                       cmocka_unit_test(members_run_in_the_planned_order),
                                       cmocka_unit_test(a_member_without_memory_has_no_schedule),
                                       cmocka_unit_test(a_table_without_memory_lends_nothing),
                                       cmocka_unit_test(each_tile_comes_up_once),
                                       cmocka_unit_test(nobody_waits_for_those_who_have_left),
                                       cmocka_unit_test(all_may_go_their_own_way),
                                       cmocka_unit_test(those_that_have_begun_stay)};
    return cmocka_run_group_tests_name("peer_tiles", tests, NULL, NULL);
}
