#define _GNU_SOURCE
#include "fatal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "dispatch/settings/complaints.h"
#include "base/thread/forks.h"
#include "base/output/message.h"
#include "dispatch/cost/cost.h"

_Noreturn void fatal_wrong_result(const struct dispatch_device *device,
                                  const struct dispatch_caller *caller)
{
    const bool started = device_gpu(device), failed = !started || device_has_failure(device);
    accel_message(
        "%s: %s%s%s with a matrix of the program on the GPU; the result cannot be made right, so "
        "the program is stopped",
        caller->symbol,
        !started ? "CUDA could not be started ("
        : failed ? "the GPU failed ("
                 : "no memory is left",
        failed ? device_failure(device) : "", failed ? ")" : "");
    abort();
}

_Noreturn void fatal_cpu(const struct dispatch_device *device, const struct dispatch_caller *caller,
                         enum accel_why why)
{
    const char *reason = why == ACCEL_NO_GPU || why == ACCEL_ERROR ? device_failure(device)
                         : why == ACCEL_UNSUPPORTED                ? caller->arithmetic
                                                                   : NULL;
    accel_message(
        "%s would run on the CPU (why=%s%s%s), and ACCEL_REQUIRE=gpu is set: the program is "
        "ended",
        caller->symbol, accel_why_name(why), reason ? ": " : "", reason ? reason : "");
    _exit(1);
}

void fatal_settings(const struct accel_settings *settings)
{
    static atomic_bool done;
    static pthread_mutex_t ends = PTHREAD_MUTEX_INITIALIZER;
    FORKS_LOCK(ends);
    if (settings->broken_promise) {
        pthread_mutex_lock(&ends); /* other threads end only after the message */
        complaints_say();
        _exit(1);
    }
    if (atomic_load_explicit(&done, memory_order_relaxed) || atomic_exchange(&done, true))
        return;
    complaints_say();
    cost_complain();
}
