#include "left_alone.h"

#include <stdatomic.h>

#include "base/say.h"
#include "start.h"
#include "ops/op.h"

/* By routine, a bit each. */
enum { WORDS = 16 };
static _Atomic uint64_t left[LEFT_REASONS][WORDS];

static uint32_t index_of(const struct accel_routine *routine)
{
    return (uint32_t)(routine - accel_routines);
}

bool left_alone_add(const struct accel_routine *routine, enum left_alone reason)
{
    uint32_t i = index_of(routine);
    uint64_t bit = (uint64_t)1 << i % 64;
    return i < WORDS * 64 && !(atomic_fetch_or(&left[reason][i / 64], bit) & bit);
}

bool left_alone_has(const struct accel_routine *routine, enum left_alone reason)
{
    uint32_t i = index_of(routine);
    return i < WORDS * 64 &&
           (atomic_load_explicit(&left[reason][i / 64], memory_order_relaxed) >> i % 64 & 1);
}

static void leave_routine(const struct accel_routine *routine, const char *failure)
{
    if (left_alone_add(routine, LEFT_FAILED))
        accel_say("%s is left to the CPU from here on, %s goes on with other routines: %s",
                  routine->name, start_gpu_name(), failure);
}

static void leave_lapack(const char *failure)
{
    bool news = false;
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_is_lapack(&accel_routines[i]) && left_alone_add(&accel_routines[i], LEFT_FAILED))
            news = true;
    if (news)
        accel_say("LAPACK is left to the CPU from here on, %s goes on with BLAS: %s",
                  start_gpu_name(), failure);
}

void left_alone_after(const struct accel_routine *routine, const struct gpu_host *host)
{
    switch (host->blame) {
    case GPU_BLAME_DEVICE:
        start_give_up();
        break;
    case GPU_BLAME_LAPACK:
        leave_lapack(host->failure);
        break;
    case GPU_BLAME_ROUTINE:
        leave_routine(routine, host->failure);
        break;
    }
}
