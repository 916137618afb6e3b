#include "set_back.h"

#include <time.h>

atomic_bool clock_is_set_back;

/* The linker sends the calls of all layers here. */
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    const int result = __real_clock_gettime(clock, now);
    if (result == 0 && clock == CLOCK_REALTIME && atomic_load(&clock_is_set_back))
        now->tv_sec += 3600;
    return result;
}
