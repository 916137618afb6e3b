#define _GNU_SOURCE
#include "turns.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/host/cpu.h"
#include "base/thread/clock.h"

static long futex(_Atomic uint32_t *word, int what, uint32_t value, const struct timespec *most)
{
    const int before = errno;
    const long result = syscall(SYS_futex, word, what, value, most, NULL, 0);
    errno = before;
    return result;
}

enum turn turns_whose(struct turns *turns)
{
    const uint32_t now = atomic_load_explicit(&turns->whose, memory_order_acquire);
    return now == TURN_CLIENT || now == TURN_SERVER ? (enum turn)now : TURN_OVER;
}

static void change(_Atomic uint32_t *word, _Atomic uint32_t *sleepers, uint32_t to)
{
    atomic_store(word, to);
    if (atomic_exchange(sleepers, 0) != 0)
        futex(word, FUTEX_WAKE, INT_MAX, NULL);
}

void turns_pass(struct turns *turns, enum turn to)
{
    change(&turns->whose, &turns->sleepers, (uint32_t)to);
}

static void rest(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

/* Who waits looks for so long before it sleeps: for its turn longer than for a part of a copy, at
 * which other threads work. With one CPU, the other one could do nothing meanwhile. */
#define LOOK_TURN_US     200
#define LOOK_PROGRESS_US 50
/* Behind this, it leaves its CPU to others that want it meanwhile. */
#define ALONE_US 5

/* Waits until a word is not `seen` any more. */
static void await_change(_Atomic uint32_t *word, _Atomic uint32_t *sleepers, uint32_t seen,
                         double most_ms, double most_look_us)
{
    const double look_us = cpu_usable() > 1 ? most_look_us : 0;
    const double begun_ms = accel_now_ms();
    while (atomic_load_explicit(word, memory_order_acquire) == seen) {
        const double waited_ms = accel_now_ms() - begun_ms;
        if (waited_ms >= most_ms)
            return;
        if (waited_ms * 1e3 < look_us) {
            if (waited_ms * 1e3 < ALONE_US)
                rest();
            else
                sched_yield();
            continue;
        }
        const double left_ms = most_ms - waited_ms;
        const struct timespec most = {
            (time_t)(left_ms / 1e3),
            (long)((left_ms - 1e3 * (double)(time_t)(left_ms / 1e3)) * 1e6)};
        atomic_store(sleepers, 1);
        if (atomic_load(word) == seen)
            futex(word, FUTEX_WAIT, seen, &most);
    }
}

enum turn turns_await(struct turns *turns, enum turn mine, double most_ms)
{
    const double end_ms = accel_now_ms() + most_ms;
    enum turn now;
    while ((now = turns_whose(turns)) != mine && now != TURN_OVER) {
        const double left_ms = end_ms - accel_now_ms();
        if (left_ms <= 0)
            break;
        await_change(&turns->whose, &turns->sleepers, (uint32_t)now, left_ms, LOOK_TURN_US);
    }
    return now;
}

void progress_raise(struct progress *progress, uint32_t to)
{
    change(&progress->count, &progress->sleepers, to);
}

void progress_await(struct progress *progress, uint32_t seen, double most_ms)
{
    await_change(&progress->count, &progress->sleepers, seen, most_ms, LOOK_PROGRESS_US);
}
