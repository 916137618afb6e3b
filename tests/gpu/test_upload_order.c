/*
 * A device's own tiles are brought up before those that it copies: whoever has which tiles, each
 * tile still comes up once, kernels have what they read, and no member waits for another one's tile
 * before it has begun all of its own with smaller numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "gpu/plan/upload_order.h"
#include "tests/lib/rates.h"
#include "tests/lib/schedule_waits.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE };

static const struct schedule_rates rates = RATES_WITH(0, 300, 20, 15, 5e3, 128, 0.002, 0.005, 0.01);

/* Returns a schedule of any kind in some 128 tiles, with much memory or little. */
static bool make_any(struct schedule *s)
{
    struct schedule_call call = {.kind = (enum schedule_kind)(rand() % 5),
                                 .m = 1 + rand() % 2000,
                                 .n = 1 + rand() % 2000,
                                 .k = 1 + rand() % 2000,
                                 .per_term = 2,
                                 .size = {8, 8, 8}};
    if (call.kind != SCHEDULE_PRODUCT)
        call.k = call.kind == SCHEDULE_RANK_K ? call.k : call.m;
    call.n = call.kind == SCHEDULE_RANK_K ? call.m : call.n;
    call.two = call.kind == SCHEDULE_RANK_K && rand() % 2;
    call.reads = schedule_in_panels(&call) || rand() % 2;
    if (call.kind == SCHEDULE_RANK_K && call.m > 1 && rand() % 2)
        call.head = 1 + rand() % (call.m - 1);
    const int64_t side = 100 + rand() % 300;
    const bool square = call.kind != SCHEDULE_PRODUCT && call.kind != SCHEDULE_RANK_K;
    const struct schedule_params by = {.rows = side,
                                       .cols =
                                           call.kind == SCHEDULE_RANK_K ? side : 100 + rand() % 300,
                                       .depth = square ? side : 100 + rand() % 300,
                                       .share = rand() % 9,
                                       .factor = rand() % 2,
                                       .buffers = 2};
    return schedule_make_by(s, &by, &call, &rates, rand() % 2 ? INT64_MAX : 8 << 20);
}

/* Deals out the tiles of operands that are brought up once, some of them to this device. Two
 * devices may have them in other orders. */
static struct upload_order *deal(const struct schedule *s)
{
    struct upload_order *tile = malloc((size_t)(s->steps[UP] + 1) * sizeof *tile);
    const int twist = rand() % 3 ? 0 : rand() % 20;
    int upload = 0;
    assert_non_null(tile);
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != UP)
            continue;
        const bool shared = step->operand != SCHEDULE_C && schedule_brings_once(s, step->operand);
        const int number = 2 * upload + (twist && upload % 3 == 0 ? 2 * twist + 1 : 0);
        tile[upload] = (struct upload_order){shared && rand() % 5 ? number : -1, rand() % 3 == 0};
        upload++;
    }
    return tile;
}

static bool is_same(const struct schedule_step *a, const struct schedule_step *b)
{
    return a->engine == b->engine && a->operand == b->operand && a->i == b->i && a->j == b->j &&
           a->p == b->p && a->slot == b->slot && a->first == b->first && a->last == b->last &&
           a->after[COMPUTE] == b->after[COMPUTE] &&
           a->after[SCHEDULE_DOWN] == b->after[SCHEDULE_DOWN];
}

/* Returns the number of the old upload behind each new one, from new to old. An upload may occur
 * again, in another slot or at another time. */
static int *find_old(const struct schedule *old, const struct schedule *now)
{
    int *from = malloc((size_t)(now->steps[UP] + 1) * sizeof *from);
    bool *used = calloc((size_t)old->count, sizeof *used);
    assert_true(from && used);
    for (int n = 0, upload = 0; n < now->count; n++) {
        if (now->step[n].engine != UP)
            continue;
        int k = 0, number = 0;
        for (; k < old->count; k++) {
            const bool up = old->step[k].engine == UP;
            if (up && !used[k] && is_same(&old->step[k], &now->step[n]))
                break;
            number += up;
        }
        assert_true(k < old->count);
        used[k] = true;
        from[upload++] = number;
    }
    free(used);
    return from;
}

/* No kernel starts before the uploads for which it has waited, and all other steps are as they
 * were. */
static void kernels_wait(const struct schedule *old, const struct schedule *now, const int *from)
{
    int *at = malloc((size_t)(old->steps[UP] + 1) * sizeof *at); /* of each old upload */
    int n = 0, uploads = 0;
    assert_non_null(at);
    for (int i = 0; i < now->steps[UP]; i++)
        at[from[i]] = i + 1;
    for (int k = 0; k < now->count; k++) {
        const struct schedule_step *step = &now->step[k];
        if (step->engine == UP) {
            uploads++;
            continue;
        }
        while (old->step[n].engine == UP)
            n++;
        assert_true(is_same(&old->step[n], step));
        for (int i = 0; i < old->step[n].after[UP]; i++)
            assert_true(step->after[UP] >= at[i]);
        assert_true(step->after[UP] <= uploads); /* it comes behind them */
        n++;
    }
    free(at);
}

static void own_tiles_come_first(const struct schedule *now, const int *from,
                                 const struct upload_order *tile, int ahead)
{
    int last = -1;
    for (int i = 0; i < now->steps[UP]; i++) {
        const struct upload_order *c = &tile[from[i]];
        if (c->number < 0 || !c->own) {
            assert_true(from[i] > last); /* others keep their order */
            last = from[i];
        }
        if (c->number < 0 || c->own)
            continue;
        for (int later = i + 1; later < now->steps[UP]; later++)
            assert_true(!tile[from[later]].own || tile[from[later]].number < 0 ||
                        tile[from[later]].number >= c->number + ahead);
    }
}

static void any_tiles(void **state)
{
    int made = 0, moved = 0;
    (void)state;
    srand(5);
    for (int n = 0; n < 300; n++) {
        struct schedule s, old;
        const int ahead = rand() % 2 ? rand() % 8 : rand() % 60;
        if (!make_any(&s))
            continue;
        struct upload_order *tile = deal(&s);
        old = s;
        old.step = malloc((size_t)s.count * sizeof *old.step);
        assert_non_null(old.step);
        memcpy(old.step, s.step, (size_t)s.count * sizeof *old.step);
        assert_true(upload_order_make(&s, tile, ahead));
        assert_int_equal(s.count, old.count);
        int *from = find_old(&old, &s);
        kernels_wait(&old, &s, from);
        own_tiles_come_first(&s, from, tile, ahead);
        last_download_waits_for_all(&s);
        moved += memcmp(old.step, s.step, (size_t)s.count * sizeof *old.step) != 0;
        made++;
        free(from);
        free(tile);
        schedule_free(&old);
        schedule_free(&s);
    }
    assert_true(made > 150 && moved > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
