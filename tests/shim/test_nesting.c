/* Calls inside calls (shim/nesting.h), on the thread's stack and on others. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/nesting.h"

/* A stack of frames: the last one is the deepest. */
enum { FRAMES = 12 };
static struct accel_frame frame[FRAMES];

static struct accel_frame *depth_frame(int depth)
{
    return &frame[FRAMES - 1 - depth];
}

static int set_up(void **state)
{
    (void)state;
    nesting_close(0);
    for (int i = 0; i < FRAMES; i++)
        frame[i].ret = (uintptr_t)(1000 + i);
    return 0;
}

static void deeper_frames_lie_below(void **state)
{
    (void)state;
    assert_true(nesting_is_below(&frame[0], &frame[1]));
    assert_false(nesting_is_below(&frame[1], &frame[0]));
    assert_false(nesting_is_below(&frame[1], &frame[1]));
}

/* More than eight levels count as the eighth. */
static void calls_inside_calls(void **state)
{
    (void)state;
    for (int depth = 0; depth < FRAMES; depth++) {
        const int counted = depth < 8 ? depth : 8;
        assert_int_equal(nesting_depth(depth_frame(depth)), counted);
        nesting_open(depth_frame(depth), counted);
    }
    for (int depth = 7; depth >= 0; depth--) {
        nesting_close(depth);
        assert_int_equal(nesting_depth(depth_frame(depth)), depth);
    }
}

/* By longjmp(3): the next call comes from above the one that has been left, or from the same
 * place. */
static void calls_that_the_program_has_left(void **state)
{
    (void)state;
    for (int depth = 0; depth < 5; depth++)
        nesting_open(depth_frame(depth), depth);
    assert_int_equal(nesting_depth(depth_frame(5)), 5);
    assert_int_equal(nesting_depth(depth_frame(2)), 2);
    assert_int_equal(nesting_depth(depth_frame(5)), 2); /* they stay forgotten */
    nesting_open(depth_frame(2), 2);
    assert_int_equal(nesting_depth(depth_frame(5)), 3);
    assert_int_equal(nesting_depth(depth_frame(0)), 0);
}

/* Their stack has been used by other functions. */
static void frames_that_are_overwritten(void **state)
{
    (void)state;
    for (int depth = 0; depth < 4; depth++)
        nesting_open(depth_frame(depth), depth);
    depth_frame(3)->ret = 5;
    depth_frame(2)->ret = 5;
    assert_int_equal(nesting_depth(depth_frame(4)), 2);
}

/* The stack that the program has left is gone: its memory is, too. */
static void stacks_that_are_gone(void **state)
{
    const size_t bytes = 1 << 16;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(memory != MAP_FAILED);
    struct accel_frame *const there = (struct accel_frame *)(void *)(memory + bytes / 2);
    const struct accel_frame *const below = (struct accel_frame *)(void *)memory;
    there->ret = 77;
    nesting_open(there, 0);
    assert_int_equal(nesting_depth(below), 1);
    assert_int_equal(munmap(memory, bytes), 0);
    assert_int_equal(nesting_depth(below), 0);
}

/* ---- Signal handlers ---- */

static struct accel_frame *outer, *inner, *inner_below;
static int below_outer, outer_below, below_inner, inner_first, depth_inside;

static void look(int number)
{
    (void)number;
    below_outer = nesting_is_below(inner, outer);
    outer_below = nesting_is_below(outer, inner);
    below_inner = nesting_is_below(inner_below, inner);
    inner_first = nesting_is_below(inner, inner_below);
    depth_inside = nesting_depth(inner);
}

static void raise_with(int flags)
{
    struct sigaction action = {.sa_handler = look, .sa_flags = flags}, before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

/* Who waits may be anywhere: below the handler's stack, or above it. */
static void handlers_on_other_stacks(void **state)
{
    enum { BYTES = 1 << 16 };
    char *memory =
        mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const stack_t stack = {.ss_sp = memory + BYTES, .ss_size = BYTES};
    stack_t none = {.ss_flags = SS_DISABLE};
    (void)state;
    assert_true(memory != MAP_FAILED);
    assert_int_equal(sigaltstack(&stack, NULL), 0);
    inner = (struct accel_frame *)(void *)(memory + BYTES + BYTES / 2);
    inner_below = (struct accel_frame *)(void *)(memory + BYTES);
    inner->ret = 3;
    char *const places[] = {memory, memory + BYTES - sizeof *outer, memory + 2 * BYTES,
                            memory + 2 * BYTES + BYTES / 2};
    for (int i = 0; i < 4; i++) {
        outer = (struct accel_frame *)(void *)places[i];
        outer->ret = 9;
        nesting_close(0);
        nesting_open(outer, 0);
        raise_with(SA_ONSTACK);
        assert_true(below_outer);
        assert_int_equal(depth_inside, 1); /* the call that waits is under way */
        assert_true(below_inner);
        assert_false(inner_first);
        assert_int_equal(outer_below, i < 2); /* of another stack, by its address */
        /* A handler on the same stack: by their addresses. */
        raise_with(0);
        assert_int_equal(below_outer, i >= 2);
        assert_int_equal(outer_below, i < 2);
    }
    assert_int_equal(sigaltstack(&none, NULL), 0);
    munmap(memory, 3 * BYTES);
}

/* ---- Threads ---- */

static void *depth_of_thread(void *data)
{
    *(int *)data = nesting_depth(depth_frame(5));
    nesting_open(depth_frame(5), 0);
    nesting_open(depth_frame(6), 1);
    return NULL;
}

static void each_thread_has_its_own(void **state)
{
    pthread_t thread;
    int depth = -1;
    (void)state;
    nesting_open(depth_frame(0), 0);
    assert_int_equal(pthread_create(&thread, NULL, depth_of_thread, &depth), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(depth, 0);
    assert_int_equal(nesting_depth(depth_frame(7)), 1);
}

#define OF_FRAMES(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {OF_FRAMES(deeper_frames_lie_below),
                                       OF_FRAMES(calls_inside_calls),
                                       OF_FRAMES(calls_that_the_program_has_left),
                                       OF_FRAMES(frames_that_are_overwritten),
                                       OF_FRAMES(stacks_that_are_gone),
                                       OF_FRAMES(handlers_on_other_stacks),
                                       OF_FRAMES(each_thread_has_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
