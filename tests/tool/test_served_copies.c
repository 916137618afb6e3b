/*
 * The server's part of copies (tool/serve/served_copies.h), with a client of the test's own: one
 * that answers is waited for; one that lies about how far it is, or answers slowly in all, is not.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ops/names.h"
#include "ops/op.h"
#include "tool/serve/served_copies.h"

enum { ORDER = 64, USER = 7 };

/* ---- A clock of the test's own ---- */

static int64_t now_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    now_ns += 200000;
    *now = (struct timespec){now_ns / 1000000000, now_ns % 1000000000};
    return 0;
}

/* ---- A lane, and a call on it ---- */

static struct wire_lane *lane;
static struct served_copies copies;
static struct accel_call call;
static int ends[2];

static int begin(void **state)
{
    (void)state;
    lane = calloc(1, WIRE_AREA);
    if (!lane || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return -1;
    call = accel_call_of(accel_name_routine((uint32_t)accel_name_find("dgemm_")));
    struct accel_span *x = &call.span[ACCEL_a];
    x->rows = x->cols = x->ld = ORDER;
    x->dtype = ACCEL_FLOAT64;
    x->ptr = served_copies_address(ACCEL_a, USER);
    served_copies_init(&copies, lane, ends[0]);
    served_copies_begin(&copies, &call, USER);
    return x->ptr ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    free(lane);
    return 0;
}

/* Asks for a part of A, from element (row, col) on. */
static void ask(int64_t row, int64_t col)
{
    const struct accel_span *x = &call.span[ACCEL_a];
    const struct host_rectangle r =
        host_whole((char *)x->ptr + (row + col * ORDER) * 8, ORDER - row, 1, ORDER, 8);
    struct staged_chunk chunk = staged_chunk_at(&r, ORDER, PINNED_BUFFER_BYTES, 0);
    chunk.packed = copies.packer.memory + 4096;
    chunk.ld = ORDER;
    copies.packer.post(&copies.packer, &chunk, PACK_TO_BUFFER, 0);
}

static void answer(uint32_t done)
{
    progress_raise(&lane->copies.done, done);
}

/* ---- Tests ---- */

static void a_task_names_the_part(void **state)
{
    (void)state;
    ask(3, 5);
    const struct wire_task *task = &lane->copies.task[0];
    assert_int_equal(atomic_load(&lane->copies.posted), 1);
    assert_int_equal(task->operand, ACCEL_a);
    assert_int_equal(task->row, 3);
    assert_int_equal(task->col, 5);
    assert_int_equal(task->rows, ORDER - 3);
    assert_int_equal(task->at, 4096);
    assert_int_equal(task->ld_more, 0);
}

static void one_that_answers_is_waited_for(void **state)
{
    (void)state;
    ask(0, 0);
    ask(0, 1);
    assert_false(packer_has_done(&copies.packer, 0));
    answer(1);
    assert_true(packer_has_done(&copies.packer, 0));
    assert_false(packer_has_done(&copies.packer, 1));
    answer(2);
    packer_finish(&copies.packer);
    assert_false(copies.packer.gone);
}

static void more_than_it_was_asked_for(void **state)
{
    (void)state;
    ask(0, 0);
    answer(2);
    packer_finish(&copies.packer);
    assert_true(copies.packer.gone);
}

static void less_than_before(void **state)
{
    (void)state;
    ask(0, 0);
    ask(0, 1);
    answer(1);
    assert_true(packer_has_done(&copies.packer, 0));
    answer(0);
    packer_finish(&copies.packer);
    assert_true(copies.packer.gone);
}

static void one_that_has_gone(void **state)
{
    (void)state;
    ask(0, 0);
    close(ends[1]);
    packer_finish(&copies.packer);
    assert_true(copies.packer.gone);
    assert_true(now_ns < INT64_C(1000000000));
    ends[1] = dup(ends[0]);
}

static void silence(void **state)
{
    (void)state;
    ask(0, 0);
    packer_finish(&copies.packer);
    assert_true(copies.packer.gone);
}

/* It answers again and again, each time within the bound of a silence, and copies a matrix of 32 KB
 * in minutes. */
static void slow_answers(void **state)
{
    uint32_t answers = 0;
    (void)state;
    while (!copies.packer.gone && answers < 100) {
        ask(0, answers % ORDER);
        for (int64_t until = now_ns + INT64_C(3000000000); now_ns < until && !copies.packer.gone;)
            packer_await(&copies.packer, answers);
        answer(++answers);
    }
    assert_true(copies.packer.gone);
    assert_in_range(answers, 2, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, restart, end)

static int restart(void **state)
{
    now_ns = 0;
    return begin(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_task_names_the_part),
        TEST(one_that_answers_is_waited_for),
        TEST(more_than_it_was_asked_for),
        TEST(less_than_before),
        TEST(one_that_has_gone),
        TEST(silence),
        TEST(slow_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
