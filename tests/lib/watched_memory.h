/*
 * For a unit test that is linked with --wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free: in
 * this thread, while it is watched, memory runs out at a request, and what is not freed is counted.
 * Libraries that are loaded have their own.
 */
#ifndef ACCEL_TEST_WATCHED_MEMORY_H
#define ACCEL_TEST_WATCHED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

static _Thread_local bool watched;
static _Thread_local int fails_at, requests, live;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *memory);

static bool is_short_of_memory(void)
{
    return watched && ++requests == fails_at;
}

static void *noted(void *memory)
{
    live += watched && memory;
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return is_short_of_memory() ? NULL : noted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_short_of_memory() ? NULL : noted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (is_short_of_memory())
        return NULL;
    void *now = __real_realloc(old, bytes);
    live += watched && now && !old;
    return now;
}

void __wrap_free(void *memory)
{
    live -= watched && memory;
    __real_free(memory);
}

/* Request number `fails` fails; 0: none. */
static void watch(int fails)
{
    requests = 0;
    live = 0;
    fails_at = fails;
    watched = true;
}

static void stop_watching(void)
{
    watched = false;
}

#endif
