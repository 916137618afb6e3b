#define _GNU_SOURCE
#include "turns.h"

#include <errno.h>
#include <limits.h>
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

static enum turn whose(struct turns *turns)
{
    const uint32_t now = atomic_load_explicit(&turns->whose, memory_order_acquire);
    return now == TURN_CLIENT || now == TURN_SERVER ? (enum turn)now : TURN_OVER;
}

void turns_pass(struct turns *turns, enum turn to)
{
    atomic_store(&turns->whose, (uint32_t)to);
    if (atomic_exchange(&turns->sleepers, 0) != 0)
        futex(&turns->whose, FUTEX_WAKE, INT_MAX, NULL);
}

static void rest(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

/* Who waits looks for so long before it sleeps; with one CPU, the other one could do nothing
 * meanwhile. */
#define LOOK_US 50

enum turn turns_await(struct turns *turns, enum turn mine, double most_ms)
{
    const double look_us = cpu_usable() > 1 ? LOOK_US : 0;
    const double begun_ms = accel_now_ms();
    enum turn now;
    while ((now = whose(turns)) != mine && now != TURN_OVER) {
        const double waited_ms = accel_now_ms() - begun_ms;
        if (waited_ms >= most_ms)
            break;
        if (waited_ms * 1e3 < look_us) {
            rest();
            continue;
        }
        const double left_ms = most_ms - waited_ms;
        const struct timespec most = {
            (time_t)(left_ms / 1e3),
            (long)((left_ms - 1e3 * (double)(time_t)(left_ms / 1e3)) * 1e6)};
        atomic_store(&turns->sleepers, 1);
        const uint32_t word = atomic_load(&turns->whose);
        if (word == (uint32_t)now)
            futex(&turns->whose, FUTEX_WAIT, word, &most);
    }
    return now;
}
