/*
 * For unit tests of memory that is watched for writes (base/memory/write_watch.h).
 */
#ifndef ACCEL_TEST_WATCHES_H
#define ACCEL_TEST_WATCHES_H

#include "base/memory/write_watch.h"

/* Returns what a test's setup returns where such memory gave this watch, which it ends: 0, or -1
 * for a failure. Skips the test where the kernel cannot watch memory at all. */
static inline int need_watch(uint64_t watch)
{
    write_watch_leave(watch);
    if (!watch && write_watch_why_not())
        skip();
    return watch ? 0 : -1;
}

#endif
