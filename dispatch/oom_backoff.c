#include "oom_backoff.h"

#include <stdatomic.h>

#include "base/thread/clock.h"

enum { BACKOFF_MS = 1000 };

static int64_t bytes_moved(const struct model_work *work)
{
    return (int64_t)(work->up_bytes + work->down_bytes);
}

bool oom_backoff_for(const struct oom_backoff *backoff, struct problem *problem)
{
    int64_t until = atomic_load_explicit(&backoff->until_ms, memory_order_relaxed);
    return until > 0 && (double)until > accel_now_ms() && !problem->fault &&
           bytes_moved(problem_work(problem, true)) >= atomic_load(&backoff->least_bytes);
}

void oom_backoff_note(struct oom_backoff *backoff, const struct accel_call *call)
{
    struct model_work work;
    model_work_of(call, true, &work);
    atomic_store(&backoff->least_bytes, bytes_moved(&work));
    atomic_store(&backoff->until_ms, (int64_t)accel_now_ms() + BACKOFF_MS);
}
