/* A library with a handler of its own end, as a library of C++ has for each of its objects. */
#include <stdlib.h>

int __cxa_atexit(void (*function)(void *), void *argument, void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

static int alive;

static void end(void *argument)
{
    if (!*(int *)argument)
        abort();
    alive = 0;
}

__attribute__((constructor)) static void begin(void)
{
    alive = 1;
    if (__cxa_atexit(end, &alive, &__dso_handle) != 0)
        abort();
}
