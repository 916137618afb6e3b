/*
 * The search for a schedule, without a device, against a much longer one: from what it has chosen,
 * a hill climb by a fixed sequence of random changes. It may find little.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/schedule_cases.h"

static uint64_t sequence;

/* Returns a number below `below`. */
static int64_t random_below(int64_t below)
{
    sequence = sequence * 6364136223846793005 + 1442695040888963407;
    return (int64_t)((sequence >> 33) % (uint64_t)below);
}

/* Half to twice the size, long ones of whole lines. */
static int64_t changed_size(int64_t size, int64_t all)
{
    const int64_t to = size * (64 + random_below(192)) / 128;
    const int64_t whole = to > 64 ? (to + 63) / 64 * 64 : to < 1 ? 1 : to;
    return whole < all ? whole : all;
}

static void change(struct schedule_params *by, const struct schedule_call *call)
{
    switch (random_below(6)) {
    case 0:
        by->rows = changed_size(by->rows, call->m);
        break;
    case 1:
        by->cols = changed_size(by->cols, call->n);
        break;
    case 2:
        by->depth = changed_size(by->depth, call->k);
        break;
    case 3:
        by->share = (int)random_below(17);
        by->along_rows = random_below(2);
        break;
    case 4:
        by->factor = (int)random_below(SCHEDULE_OPERANDS);
        break;
    default:
        by->buffers = 1 + (int)random_below(3);
    }
    if (call->kind == SCHEDULE_RANK_K)
        by->cols = by->rows;
    else if (call->kind != SCHEDULE_PRODUCT)
        by->depth = by->rows;
    if (schedule_in_panels(call) && by->factor == SCHEDULE_C)
        by->factor = SCHEDULE_A;
}

static bool is_small(const struct schedule_params *by, const struct schedule_call *call)
{
    enum { MOST_KERNELS = 3000 };
    return (call->m / by->rows + 1) * (call->n / by->cols + 1) * (call->k / by->depth + 1) <
           MOST_KERNELS;
}

/* Returns the milliseconds of the best schedule that so many tries find. */
static double climb(struct schedule_params by, double ms, const struct schedule_call *call,
                    const struct schedule_rates *rates, int64_t memory_bytes, int tries)
{
    sequence = 1;
    for (int t = 0; t < tries; t++) {
        struct schedule_params next = by;
        struct schedule s;
        for (int64_t changes = random_below(3); changes >= 0; changes--)
            change(&next, call);
        if (!is_small(&next, call) || !schedule_make_by(&s, &next, call, rates, memory_bytes))
            continue;
        if (s.ms < ms) {
            ms = s.ms;
            by = next;
        }
        schedule_free(&s);
    }
    return ms;
}

/* Schedules that a climb makes shorter. */
struct shorter {
    int by_2, by_5, all; /* by more than 2 and 5 %; those that were tried */
    double sum;          /* of all shares */
};

/* Calls of less than half a millisecond leave the search little time. */
static void count_case(struct shorter *shorter, const struct schedule_case *c,
                       const struct schedule_link *link, double part)
{
    enum { TRIES = 300 };
    struct schedule_judged judged;
    assert_true(schedule_judge(c, link, part, &judged));
    const double ms = judged.schedule.ms;
    const struct schedule_params by = judged.schedule.by;
    schedule_free(&judged.schedule);
    if (c->call.kind == SCHEDULE_BATCH || schedule_floor(&c->call, &judged.rates) < 0.5)
        return;
    const double over = ms / climb(by, ms, &c->call, &judged.rates, judged.memory_bytes, TRIES) - 1;
    shorter->all++;
    shorter->by_2 += over > 0.02;
    shorter->by_5 += over > 0.05;
    shorter->sum += over;
}

static struct shorter count(double part)
{
    struct shorter shorter = {0, 0, 0, 0};
    for (int l = 0; l < schedule_link_count; l++)
        for (int c = 0; c < schedule_case_count; c++)
            count_case(&shorter, &schedule_cases[c], &schedule_links[l], part);
    print_message("%d, %d of %d, %.4f\n", shorter.by_2, shorter.by_5, shorter.all,
                  shorter.sum / shorter.all);
    assert_int_equal(shorter.by_5, 0);
    assert_true(shorter.all > 95 && shorter.sum < 0.005 * shorter.all);
    return shorter;
}

/* As many as there are: if there is one more, the search has got worse. */
static void ample_memory(void **state)
{
    (void)state;
    assert_in_range(count(0).by_2, 0, 4);
}

static void short_of_memory(void **state)
{
    (void)state;
    assert_in_range(count(0.4).by_2, 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ample_memory),
                                       cmocka_unit_test(short_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
