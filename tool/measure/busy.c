#define _GNU_SOURCE
#include "busy.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/thread/clock.h"

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

/* Reads a line of /proc/stat, "cpu3 user nice system idle iowait irq softirq steal ...". *ticks:
 * all except idle and iowait; guests are in user. False if the line is another one. */
static bool read_processor(const char *line, int *number, double *ticks)
{
    unsigned long long user, nice, system, idle, waiting, irq, softirq, steal;
    if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", number, &user, &nice, &system,
               &idle, &waiting, &irq, &softirq, &steal) != 9)
        return false;
    *ticks = (double)(user + nice + system + irq + softirq + steal);
    return true;
}

/* Returns the seconds for which the allowed processors were used; negative if unknown. */
static double read_used(const cpu_set_t *allowed)
{
    char line[512];
    double ticks, sum = -1;
    int number;
    FILE *file = fopen("/proc/stat", "re");
    while (file && fgets(line, sizeof line, file))
        if (read_processor(line, &number, &ticks) && number >= 0 && number < CPU_SETSIZE &&
            CPU_ISSET(number, allowed))
            sum = (sum < 0 ? 0 : sum) + ticks;
    if (file)
        fclose(file);
    return sum < 0 ? sum : sum / (double)sysconf(_SC_CLK_TCK);
}

void busy_read(struct busy *busy)
{
    struct rusage usage;
    cpu_set_t allowed;
    memset(busy, 0, sizeof *busy);
    CPU_ZERO(&allowed);
    busy->used_s = -1;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        busy->used_s = read_used(&allowed);
    busy->processors = CPU_COUNT(&allowed);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        busy->own_s = seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
    busy->wall_s = 1e-3 * accel_now_ms();
}

double busy_others(const struct busy *before, const struct busy *after)
{
    double wall = after->wall_s - before->wall_s;
    double others = (after->used_s - before->used_s) - (after->own_s - before->own_s);
    if (before->used_s < 0 || after->used_s < 0 || wall <= 0 || others < 0)
        return 0;
    return others / wall;
}

bool busy_is_much(double others, int processors)
{
    return others > 0.25 && others > 0.05 * processors;
}
