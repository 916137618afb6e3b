/*
 * Which call of several users and processes runs next on a device, in virtual time: shares by
 * weight, a process with many lanes beside one with few, who comes late, small calls beside large
 * ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tool/serve/fair_order.h"

enum { PLACES = 8, LARGE_PLACES = 6, LANES = 32, PROCESSES = 8 };

/* A process whose lanes each have one call after the other. */
struct program {
    uint64_t user;
    double weight;
    int lanes;
    bool small;
    double call_ms, pause_ms; /* each call takes so long; and its lane then has none for so long */
    double from_ms;           /* it comes */
    double set_up_ms;         /* that each lane's first call takes longer, for all */
    /* What has become of it: */
    struct fair_process *process;
    struct lane {
        struct fair_call call;
        enum { PAUSES, WAITS, RUNS } state;
        double until_ms; /* of a pause, or a run */
        int calls;
    } lane[LANES];
    double had_ms, waited_most_ms;
    int calls;
};

static struct fair_order order;
static struct program program[PROCESSES];
static int programs;
static double now_ms;

static int begin(void **state)
{
    (void)state;
    fair_order_begin(&order, 1, PLACES, LARGE_PLACES);
    programs = 0;
    now_ms = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < programs; i++)
        for (int k = 0; k < program[i].lanes; k++) {
            struct lane *const lane = &program[i].lane[k];
            if (lane->state == WAITS)
                fair_order_cancel(&lane->call);
            if (lane->state == RUNS)
                fair_order_end(&order, &lane->call, true, now_ms);
            fair_order_leave(&order, program[i].process);
        }
    for (int i = 0; i < order.devices; i++) {
        assert_int_equal(order.device[i].running, 0);
        assert_int_equal(order.device[i].large_running, 0);
        assert_int_equal(order.device[i].processes, 0);
    }
    fair_order_free(&order);
    return 0;
}

static struct program *add(struct program p)
{
    struct program *const x = &program[programs++];
    *x = p;
    x->weight = p.weight > 0 ? p.weight : 1;
    x->lanes = p.lanes > 0 ? p.lanes : 8;
    x->call_ms = p.call_ms > 0 ? p.call_ms : 10;
    for (int k = 0; k < x->lanes; k++) {
        x->process = fair_order_join(&order, x->user, x->weight, programs);
        assert_non_null(x->process);
        x->lane[k].until_ms = x->from_ms;
    }
    return x;
}

/* Has all that may run run. */
static void fill(void)
{
    struct fair_call *call;
    while ((call = fair_order_next(&order, now_ms)))
        for (int i = 0; i < programs; i++)
            for (int k = 0; k < program[i].lanes; k++)
                if (&program[i].lane[k].call == call) {
                    struct program *const x = &program[i];
                    assert_int_equal(x->lane[k].state, WAITS);
                    x->lane[k].state = RUNS;
                    x->lane[k].until_ms =
                        now_ms + x->call_ms + (x->lane[k].calls == 0 ? x->set_up_ms : 0);
                    const double waited_ms = now_ms - call->came_ms;
                    if (waited_ms > x->waited_most_ms)
                        x->waited_most_ms = waited_ms;
                }
    for (int i = 0; i < order.devices; i++) {
        const struct fair_device *const device = &order.device[i];
        assert_true(device->running <= PLACES && device->large_running <= LARGE_PLACES);
    }
}

static void step(struct program *x, struct lane *lane)
{
    if (lane->state == RUNS) {
        fair_order_end(&order, &lane->call, lane->calls > 0 || x->set_up_ms == 0, now_ms);
        x->had_ms += x->call_ms;
        lane->calls++;
        x->calls++;
        lane->state = PAUSES;
        lane->until_ms = now_ms + x->pause_ms;
    }
    if (lane->until_ms <= now_ms) {
        fair_order_wait(&order, &lane->call, x->process, !x->small, now_ms);
        lane->state = WAITS;
    }
}

/* Goes on to a time. */
static void run_until(double end_ms)
{
    for (;;) {
        double next_ms = end_ms;
        for (int i = 0; i < programs; i++)
            for (int k = 0; k < program[i].lanes; k++)
                if (program[i].lane[k].state != WAITS && program[i].lane[k].until_ms < next_ms)
                    next_ms = program[i].lane[k].until_ms;
        if (next_ms >= end_ms)
            break;
        now_ms = next_ms;
        for (int i = 0; i < programs; i++)
            for (int k = 0; k < program[i].lanes; k++)
                if (program[i].lane[k].state != WAITS && program[i].lane[k].until_ms <= now_ms)
                    step(&program[i], &program[i].lane[k]);
        fill();
    }
    now_ms = end_ms;
}

static void assert_near(double got, double wanted)
{
    if (got < 0.97 * wanted || got > 1.03 * wanted)
        fail_msg("%g, and not %g", got, wanted);
}

#define PROGRAM(...) add((struct program){__VA_ARGS__})

static void a_user_has_as_much_as_another_one(void **state)
{
    (void)state;
    const struct program *const a = PROGRAM(.user = 1), *const b = PROGRAM(.user = 2);
    run_until(10000);
    assert_near(a->had_ms, b->had_ms);
    assert_near(a->had_ms + b->had_ms, LARGE_PLACES * 10000.0);
}

static void whoever_has_more_processes(void **state)
{
    (void)state;
    const struct program *const one = PROGRAM(.user = 1);
    for (int i = 0; i < 5; i++)
        PROGRAM(.user = 2);
    run_until(10000);
    assert_near(one->had_ms, LARGE_PLACES * 10000.0 / 2);
    for (int i = 1; i < programs; i++)
        assert_near(program[i].had_ms, LARGE_PLACES * 10000.0 / 10);
}

static void or_more_lanes(void **state)
{
    (void)state;
    const struct program *const few = PROGRAM(.user = 1, .lanes = 3), *const many =
                                                                          PROGRAM(.user = 1,
                                                                                  .lanes = 32);
    run_until(10000);
    assert_near(few->had_ms, many->had_ms);
}

static void or_longer_calls(void **state)
{
    (void)state;
    const struct program *const brief = PROGRAM(.user = 1), *const lengthy =
                                                                PROGRAM(.user = 2, .call_ms = 170);
    run_until(100000);
    assert_near(brief->had_ms, lengthy->had_ms);
    assert_true(brief->waited_most_ms < 3 * 170);
}

static void weights_are_shares(void **state)
{
    (void)state;
    const struct program *const a = PROGRAM(.user = 1, .weight = 1),
                                *const b = PROGRAM(.user = 2, .weight = 3, .lanes = 20),
                                *const c = PROGRAM(.user = 3, .weight = 2);
    run_until(30000);
    assert_near(b->had_ms, 3 * a->had_ms);
    assert_near(c->had_ms, 2 * a->had_ms);
}

/* One lane can have one place. */
static void what_one_does_not_want_others_have(void **state)
{
    (void)state;
    const struct program *const one = PROGRAM(.user = 1, .lanes = 1), *const rest =
                                                                          PROGRAM(.user = 2,
                                                                                  .lanes = 16);
    run_until(10000);
    assert_near(one->had_ms, 10000);
    assert_near(rest->had_ms, (LARGE_PLACES - 1) * 10000.0);
}

/* Alone for long, it has had much that nobody else wanted. */
static void nobody_pays_for_what_nobody_else_wanted(void **state)
{
    (void)state;
    const struct program *const early = PROGRAM(.user = 1), *const late = PROGRAM(.user = 2,
                                                                                  .from_ms = 50000);
    run_until(50000);
    const double alone_ms = early->had_ms;
    run_until(51000);
    assert_near(early->had_ms - alone_ms, LARGE_PLACES * 1000.0 / 2);
    assert_near(late->had_ms, LARGE_PLACES * 1000.0 / 2);
}

static void nobody_pays_for_what_it_has_set_up(void **state)
{
    (void)state;
    const struct program *const first = PROGRAM(.user = 1, .lanes = 6, .set_up_ms = 9000),
                                *const process = PROGRAM(.user = 1, .from_ms = 5000),
                                *const user = PROGRAM(.user = 2, .from_ms = 5000);
    run_until(9100);
    const double before_ms[] = {first->had_ms, process->had_ms, user->had_ms};
    run_until(13100);
    assert_near(first->had_ms - before_ms[0], LARGE_PLACES * 4000.0 / 4);
    assert_near(process->had_ms - before_ms[1], LARGE_PLACES * 4000.0 / 4);
    assert_near(user->had_ms - before_ms[2], LARGE_PLACES * 4000.0 / 2);
}

static void nobody_is_owed_for_a_pause(void **state)
{
    (void)state;
    const struct program *const busy = PROGRAM(.user = 1), *const sleeper =
                                                               PROGRAM(.user = 2,
                                                                       .pause_ms = 20000);
    run_until(20005);
    const double before_ms = busy->had_ms;
    for (int k = 0; k < sleeper->lanes; k++)
        program[1].pause_ms = 0; /* from here on it has always a call */
    run_until(22005);
    assert_near(busy->had_ms - before_ms, LARGE_PLACES * 2000.0 / 2);
}

/* Who has nothing under way gets the next place. */
static void who_comes_waits_for_one_that_runs(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        PROGRAM(.user = 1 + (uint64_t)i % 2, .lanes = 32, .call_ms = 100);
    const struct program *const now_and_then =
        PROGRAM(.user = 3, .lanes = 1, .call_ms = 5, .pause_ms = 333);
    run_until(60000);
    assert_true(now_and_then->calls > 100);
    assert_true(now_and_then->waited_most_ms <= 100);
}

static void small_calls_wait_for_small_ones_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        PROGRAM(.user = 1 + (uint64_t)i, .lanes = 32, .call_ms = 1000);
    const struct program *const small =
        PROGRAM(.user = 9, .small = true, .lanes = 2, .call_ms = 1, .pause_ms = 3);
    const struct program *const same_user =
        PROGRAM(.user = 1, .small = true, .lanes = 4, .call_ms = 1, .pause_ms = 16);
    run_until(60000);
    assert_true(small->waited_most_ms <= 3);
    assert_true(same_user->waited_most_ms <= 3);
}

/* Nor do large ones starve behind small ones that never end. */
static void large_ones_have_their_share(void **state)
{
    (void)state;
    const struct program *const small =
        PROGRAM(.user = 1, .small = true, .lanes = 32, .call_ms = 1);
    const struct program *const large = PROGRAM(.user = 2);
    run_until(10000);
    assert_near(small->had_ms, PLACES * 10000.0 / 2);
    assert_near(large->had_ms, PLACES * 10000.0 / 2);
}

static void calls_of_a_process_run_in_their_order(void **state)
{
    struct fair_call call[20];
    (void)state;
    struct fair_process *const process = fair_order_join(&order, 1, 1, 7);
    assert_non_null(process);
    for (int i = 0; i < 20; i++)
        fair_order_wait(&order, &call[i], process, true, i);
    fair_order_cancel(&call[3]);
    fair_order_cancel(&call[19]);
    for (int i = 0, ended = 0; i < 19; i++) {
        if (i == 3)
            continue;
        struct fair_call *next = fair_order_next(&order, 100 + i);
        if (!next) {
            fair_order_end(&order, &call[ended++], true, 100 + i);
            ended += ended == 3;
            next = fair_order_next(&order, 100 + i);
        }
        assert_ptr_equal(next, &call[i]);
    }
    assert_null(fair_order_next(&order, 200));
    for (int i = 13; i < 19; i++)
        fair_order_end(&order, &call[i], true, 200);
    fair_order_leave(&order, process);
}

/* Of users that have had as much, the first who has come; what runs counts. */
static void what_runs_has_been_had(void **state)
{
    struct fair_call call[5];
    struct fair_process *process[5];
    (void)state;
    fair_order_begin(&order, 1, 2, 2);
    for (int i = 3; i >= 0; i--)
        process[i] = fair_order_join(&order, 10 - (uint64_t)i, 1, i);
    for (int i = 0; i < 4; i++)
        fair_order_wait(&order, &call[i], process[i], true, 0);
    assert_ptr_equal(fair_order_next(&order, 0), &call[0]);
    assert_ptr_equal(fair_order_next(&order, 0), &call[1]);
    assert_null(fair_order_next(&order, 0));
    fair_order_end(&order, &call[1], true, 10);
    assert_ptr_equal(fair_order_next(&order, 10), &call[2]);
    fair_order_end(&order, &call[2], true, 40);
    assert_ptr_equal(fair_order_next(&order, 40), &call[3]);
    /* User 0 has a call that has run for 50; user 2 has had 30, so it is the next. */
    process[4] = fair_order_join(&order, 10, 1, 0);
    fair_order_wait(&order, &call[4], process[4], true, 45);
    fair_order_wait(&order, &call[2], process[2], true, 46);
    fair_order_end(&order, &call[3], true, 50);
    assert_ptr_equal(fair_order_next(&order, 50), &call[2]);
    fair_order_end(&order, &call[2], true, 60);
    fair_order_end(&order, &call[0], true, 60);
    assert_ptr_equal(fair_order_next(&order, 60), &call[4]);
    fair_order_end(&order, &call[4], true, 61);
    for (int i = 0; i < 5; i++)
        fair_order_leave(&order, process[i]);
}

/* ---- Several devices ---- */

static void open_devices(int devices)
{
    fair_order_begin(&order, devices, PLACES, LARGE_PLACES);
}

static int running_on(int device)
{
    return order.device[device].running;
}

/* Each has a device as long as there are enough; nobody waits for the one while the other is
 * free. */
static void processes_spread(void **state)
{
    (void)state;
    open_devices(2);
    for (int i = 0; i < 4; i++)
        PROGRAM(.user = 1, .lanes = 1);
    run_until(1000);
    for (int i = 0; i < 4; i++) {
        assert_near(program[i].had_ms, 1000);
        assert_int_equal(program[i].process->device, i % 2);
    }
}

static void one_with_many_lanes_has_them_all(void **state)
{
    (void)state;
    open_devices(3);
    const struct program *const alone = PROGRAM(.user = 1, .lanes = 32);
    run_until(10000);
    assert_near(alone->had_ms, 3 * LARGE_PLACES * 10000.0);
}

/* A user's time counts wherever it was: with the first device to itself at first, it has no more of
 * both afterwards than another one that has come later; nor has one for having more processes. */
static void users_are_equal_over_all_devices(void **state)
{
    (void)state;
    open_devices(2);
    const struct program *const one = PROGRAM(.user = 1, .lanes = 20);
    for (int i = 0; i < 4; i++)
        PROGRAM(.user = 2, .lanes = 20);
    run_until(10000);
    assert_near(one->had_ms, 2 * LARGE_PLACES * 10000.0 / 2);
    for (int i = 1; i < programs; i++)
        assert_near(program[i].had_ms, 2 * LARGE_PLACES * 10000.0 / 8);
}

static void a_process_stays_where_its_last_call_ran(void **state)
{
    struct fair_call call[LARGE_PLACES + 1];
    int device;
    (void)state;
    open_devices(2);
    struct fair_process *const a = fair_order_join(&order, 1, 1, 1), *const b = fair_order_join(
                                                                         &order, 1, 1, 2);
    for (int i = 0; i <= LARGE_PLACES; i++) {
        fair_order_wait(&order, &call[i], a, true, 0);
        assert_ptr_equal(fair_order_next(&order, 0), &call[i]);
        assert_int_equal(call[i].device, i == LARGE_PLACES);
    }
    assert_int_equal(a->device, 1);
    assert_true(fair_order_has_place(&order, a, true, &device));
    assert_int_equal(device, 1);
    for (int i = 0; i <= LARGE_PLACES; i++)
        fair_order_end(&order, &call[i], true, 10);
    fair_order_wait(&order, &call[0], a, true, 10);
    assert_ptr_equal(fair_order_next(&order, 10), &call[0]);
    assert_int_equal(call[0].device, 1);
    fair_order_end(&order, &call[0], true, 20);
    fair_order_leave(&order, a);
    fair_order_leave(&order, b);
}

/* Where processes have ended on one device, and two are left on the other, one of them goes. */
static void none_is_idle_while_two_share_another(void **state)
{
    struct fair_process *process[4];
    struct fair_call call[2];
    (void)state;
    open_devices(2);
    for (int i = 0; i < 4; i++)
        process[i] = fair_order_join(&order, 1, 1, i);
    fair_order_leave(&order, process[1]);
    fair_order_leave(&order, process[3]);
    assert_int_equal(order.device[0].processes, 2);
    for (int i = 0; i < 2; i++) {
        fair_order_wait(&order, &call[i], process[2 * i], true, 0);
        assert_ptr_equal(fair_order_next(&order, 0), &call[i]);
        assert_int_equal(call[i].device, i);
    }
    for (int i = 0; i < 2; i++) {
        fair_order_end(&order, &call[i], true, 10);
        fair_order_leave(&order, process[2 * i]);
    }
}

/* Its processes go on elsewhere, and new ones do not come to it. */
static void a_device_that_is_left_out(void **state)
{
    (void)state;
    open_devices(2);
    for (int i = 0; i < 4; i++)
        PROGRAM(.user = 1, .lanes = 2);
    run_until(1000);
    assert_int_equal(running_on(1), 4);
    assert_true(fair_order_leave_out(&order, 1));
    assert_false(fair_order_leave_out(&order, 1));
    PROGRAM(.user = 1, .lanes = 2, .from_ms = 1000);
    run_until(1100);
    const double had_ms = program[0].had_ms;
    assert_int_equal(running_on(1), 0);
    assert_int_equal(order.device[0].processes, 5);
    run_until(6100);
    assert_near(program[0].had_ms - had_ms, LARGE_PLACES * 5000.0 / 5);
    fair_order_leave_out(&order, 0);
    run_until(6200);
    assert_int_equal(running_on(0), 0);
    assert_null(fair_order_next(&order, now_ms));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {TEST(a_user_has_as_much_as_another_one),
                                       TEST(whoever_has_more_processes),
                                       TEST(or_more_lanes),
                                       TEST(or_longer_calls),
                                       TEST(weights_are_shares),
                                       TEST(what_one_does_not_want_others_have),
                                       TEST(nobody_pays_for_what_nobody_else_wanted),
                                       TEST(nobody_pays_for_what_it_has_set_up),
                                       TEST(nobody_is_owed_for_a_pause),
                                       TEST(who_comes_waits_for_one_that_runs),
                                       TEST(small_calls_wait_for_small_ones_alone),
                                       TEST(large_ones_have_their_share),
                                       TEST(calls_of_a_process_run_in_their_order),
                                       TEST(what_runs_has_been_had),
                                       TEST(processes_spread),
                                       TEST(one_with_many_lanes_has_them_all),
                                       TEST(users_are_equal_over_all_devices),
                                       TEST(a_process_stays_where_its_last_call_ran),
                                       TEST(none_is_idle_while_two_share_another),
                                       TEST(a_device_that_is_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
