/*
 * What the environment asks for. A value that cannot be read ends the program: a test that runs
 * with other settings than it believes proves nothing.
 *
 *   TESTGPU_MEMORY      bytes of each device, with K, M or G; default 1G
 *   TESTGPU_DEVICES     how many, default 1; CUDA_VISIBLE_DEVICES chooses among them by number
 *   TESTGPU_DELAY_US    each copy and kernel starts up to so much later, default 200; 0: at once
 *   TESTGPU_SEED        of the delays; the report says which was used
 *   TESTGPU_FAIL        FUNCTION:N[+][=CODE],...: the N-th call (+: and all after it) fails; *:N
 *                       counts all calls, async:N copies and kernels as they run
 *   TESTGPU_WRONG       N[+]: the N-th kernel that runs, of whatever kind, has 1 added to one
 *                       element of its result
 *   TESTGPU_REPORT      a path, %p is the process id: the report at exit is appended
 *   TESTGPU_TRACE       a path: a line for every call, and for every operation that runs
 *   TESTGPU_EXIT_EARLY  1: the driver is gone when exit() begins, not with its own destructor
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver.h"

struct settings settings;

static unsigned long long number(const char *name, unsigned long long otherwise, bool suffix)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0')
        return otherwise;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    int shift = 0;
    if (suffix && *end != '\0') {
        const char *units = "KMG";
        const char *unit = strchr(units, *end);
        if (unit != NULL) {
            shift = 10 * (int)(unit - units + 1);
            end++;
        }
    }
    if (end == text || *end != '\0' || errno != 0 || *text == '-') {
        fprintf(stderr, "testgpu: cannot read %s=%s\n", name, text);
        abort();
    }
    return value << shift;
}

static const char *path_setting(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strdup(text) : NULL;
}

void settings_read(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    settings.memory = number("TESTGPU_MEMORY", 1ull << 30, true);
    settings.devices = (int)number("TESTGPU_DEVICES", 1, false);
    if (settings.devices > DEVICES_MAX)
        settings.devices = DEVICES_MAX;
    settings.delay_us = (unsigned)number("TESTGPU_DELAY_US", 200, false);
    settings.seed =
        number("TESTGPU_SEED", (unsigned long long)now.tv_nsec ^ (unsigned)getpid(), false);
    settings.early_end = number("TESTGPU_EXIT_EARLY", 0, false) != 0;
    settings.report = path_setting("TESTGPU_REPORT");
    settings.trace = path_setting("TESTGPU_TRACE");
}

void settings_path(const char *pattern, char *path, size_t size)
{
    const char *mark = strstr(pattern, "%p");
    if (mark == NULL)
        snprintf(path, size, "%s", pattern);
    else
        snprintf(path, size, "%.*s%d%s", (int)(mark - pattern), pattern, (int)getpid(), mark + 2);
}

/* xorshift64* */
uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1dull;
}

void random_pause(uint64_t *state)
{
    if (settings.delay_us == 0)
        return;
    long ns = (long)((random_next(state) >> 16) % ((uint64_t)settings.delay_us * 1000 + 1));
    struct timespec pause = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&pause, NULL);
}

void testgpu_linger(void)
{
    static _Thread_local uint64_t state;
    if (state == 0)
        state = settings.seed * 2 + (uintptr_t)&state + 1;
    if (settings.delay_us != 0 && random_next(&state) % 4 == 0) {
        struct timespec pause = {.tv_nsec = 1000};
        nanosleep(&pause, NULL);
    }
}
