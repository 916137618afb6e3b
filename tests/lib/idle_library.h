/*
 * A CPU library that runs nothing, with so many threads, and a program that loads nothing.
 */
#ifndef ACCEL_TEST_IDLE_LIBRARY_H
#define ACCEL_TEST_IDLE_LIBRARY_H

#include "dispatch/dispatch.h"

static int library_threads = 1;

static int threads_of(const struct dispatch_library *library)
{
    (void)library;
    return library_threads;
}

static bool run_nothing(const struct dispatch_library *library, const struct accel_call *call)
{
    (void)library;
    (void)call;
    return false;
}

static const struct dispatch_library *library_of(void *context)
{
    static const struct dispatch_library library = {
        .name = "library", .threads = threads_of, .run = run_nothing};
    (void)context;
    return &library;
}

static unsigned long long no_loads(void)
{
    return 0;
}

#endif
