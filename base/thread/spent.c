#define _GNU_SOURCE
#include "spent.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "clock.h"

static long preempted(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

static double cpu_ms(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return accel_now_ms();
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* A busy machine takes the CPU mostly as a system call returns. The clock is read nearest to
 * what is timed: a thread that loses its CPU between these calls must not have that in its time
 * alone. */
struct spent spent_begin(void)
{
    const int saved = errno;
    struct spent begin;
    begin.preempted = preempted();
    begin.cpu_ms = cpu_ms();
    begin.wall_ms = accel_now_ms();
    errno = saved;
    return begin;
}

struct spent spent_end(void)
{
    const int saved = errno;
    struct spent end;
    end.wall_ms = accel_now_ms();
    end.cpu_ms = cpu_ms();
    end.preempted = preempted();
    errno = saved;
    return end;
}

double spent_surely(const struct spent *begin, const struct spent *end)
{
    const double wall = end->wall_ms - begin->wall_ms, cpu = end->cpu_ms - begin->cpu_ms;
    const bool alone = end->preempted == begin->preempted;
    return alone || !(cpu < wall) ? wall : cpu;
}
