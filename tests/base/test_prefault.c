/*
 * Pages of fresh memory: they are there before anybody has written to them, their contents stay,
 * signals wait meanwhile, and what cannot be had is no failure.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/memory/host_memory.h"
#include "base/memory/prefault.h"

enum { BYTES = 48 << 20, COLUMN = 96 << 10, USED = 40 << 10 };

static char *fresh(void)
{
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    madvise(memory, BYTES, MADV_NOHUGEPAGE);
    return memory;
}

/* Returns how many of some pages are there, `step` bytes apart. */
static int pages_there(const char *memory, int64_t step)
{
    int there = 0;
    for (int64_t at = 0; at < BYTES; at += step)
        there += host_memory_is_there(memory + at);
    return there;
}

/* Waits for the pages: at most ten seconds. */
static bool come(const char *memory, int64_t step, int64_t pages)
{
    for (const double until = accel_now_ms() + 1e4; accel_now_ms() < until; usleep(1000))
        if (pages_there(memory, step) == pages)
            return true;
    return false;
}

static bool kernel_can(void)
{
    char *memory = fresh();
    const int populate_write = 23;
    const bool can = madvise(memory, 4096, populate_write) == 0;
    munmap(memory, BYTES);
    return can;
}

static void pages_are_there(void **state)
{
    char *memory = fresh();
    struct prefault pages;
    (void)state;
    if (!kernel_can())
        skip(); /* Linux before 5.14 */
    memory[5] = 'x';
    assert_true(host_memory_is_there(memory + 7));
    assert_false(host_memory_is_there(memory + BYTES / 2));
    const struct prefault_runs runs[] = {{memory + 100, BYTES / 2 - 100, BYTES / 2, 1},
                                         {memory, 0, 0, 1},
                                         {memory + BYTES / 2, BYTES / 2, BYTES / 2, 1}};
    prefault_begin(&pages, runs, 3, 3);
    assert_true(come(memory, 4096, BYTES / 4096));
    prefault_end(&pages);
    assert_int_equal(memory[5], 'x');
    munmap(memory, BYTES);
}

static void no_others_are(void **state)
{
    char *memory = fresh();
    struct prefault pages;
    (void)state;
    if (!kernel_can())
        skip();
    const struct prefault_runs columns = {memory, USED, COLUMN, BYTES / COLUMN};
    prefault_begin(&pages, &columns, 1, 2);
    assert_true(come(memory, COLUMN, BYTES / COLUMN));
    prefault_end(&pages);
    assert_int_equal(pages_there(memory, 4096), BYTES / COLUMN * (USED / 4096));
    munmap(memory, BYTES);
}

static volatile sig_atomic_t handled;

static void handle(int number)
{
    (void)number;
    handled++;
}

static void signals_wait(void **state)
{
    char *memory = fresh();
    struct prefault pages;
    (void)state;
    signal(SIGUSR1, handle);
    const struct prefault_runs all = {memory, BYTES, BYTES, 1};
    prefault_begin(&pages, &all, 1, 1);
    raise(SIGUSR1);
    assert_int_equal(handled, 0);
    prefault_end(&pages);
    assert_int_equal(handled, 1);
    signal(SIGUSR1, SIG_DFL);
    munmap(memory, BYTES);
}

/* No thread, no such memory, or an end before anything was done. */
static void failures_are_none(void **state)
{
    char *memory = fresh();
    struct prefault pages;
    struct rlimit before, none;
    (void)state;
    const struct prefault_runs all = {memory, BYTES, BYTES, 1};
    prefault_begin(&pages, &all, 1, 0);
    prefault_end(&pages);
    assert_int_equal(pages_there(memory, 4096), 0);
    assert_int_equal(getrlimit(RLIMIT_NPROC, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NPROC, &none), 0); /* root starts one nevertheless */
    prefault_begin(&pages, &all, 1, PREFAULT_MOST);
    prefault_end(&pages);
    assert_int_equal(setrlimit(RLIMIT_NPROC, &before), 0);
    munmap(memory, BYTES);
    prefault_begin(&pages, &all, 1, 2);
    usleep(1000);
    prefault_end(&pages);
    for (int i = 0; i < 200; i++) {
        memory = fresh();
        const struct prefault_runs some = {memory, USED, COLUMN, BYTES / COLUMN};
        prefault_begin(&pages, &some, 1, 4);
        prefault_end(&pages);
        munmap(memory, BYTES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_there),
        cmocka_unit_test(no_others_are),
        cmocka_unit_test(signals_wait),
        cmocka_unit_test(failures_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
