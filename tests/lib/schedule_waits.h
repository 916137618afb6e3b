/* What gpu/cuda/pipeline_schedule.c relies on in any schedule, if results come down. */
#ifndef ACCEL_TEST_SCHEDULE_WAITS_H
#define ACCEL_TEST_SCHEDULE_WAITS_H

#include "gpu/plan/schedule.h"

/* The last download waits for all kernels, and with them for all uploads: when it has come, buffers
 * are free, and so is the device's memory. */
static inline void last_download_waits_for_all(const struct schedule *s)
{
    const struct schedule_step *last = NULL;
    int kernels = 0, uploads = 0;
    for (int n = 0; n < s->count; n++)
        if (s->step[n].engine == SCHEDULE_DOWN)
            last = &s->step[n];
    if (!last)
        return;
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        const bool waits = step == last || (step->engine == SCHEDULE_COMPUTE &&
                                            kernels++ < last->after[SCHEDULE_COMPUTE]);
        if (waits && step->after[SCHEDULE_UP] > uploads)
            uploads = step->after[SCHEDULE_UP];
    }
    assert_int_equal(last->after[SCHEDULE_COMPUTE], s->steps[SCHEDULE_COMPUTE]);
    assert_int_equal(uploads, s->steps[SCHEDULE_UP]);
}

#endif
