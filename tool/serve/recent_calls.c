#include "recent_calls.h"

#include <math.h>

/* Of a mean, the last call has this part. */
#define LAST_PART 0.125

static double mean(double before, double last)
{
    return before > 0 ? before + LAST_PART * (last - before) : last;
}

void recent_calls_note(struct recent_calls *recent, bool large, double ms, double alone_ms,
                       int most)
{
    recent->run_ms[large] = mean(recent->run_ms[large], ms);
    if (!(alone_ms > 0) || !isfinite(alone_ms))
        return;
    const double needs_ms = alone_ms > ms ? ms : alone_ms < ms / most ? ms / most : alone_ms;
    recent->had_ms += LAST_PART * (ms - recent->had_ms);
    recent->needs_ms += LAST_PART * (needs_ms - recent->needs_ms);
}

double recent_calls_wait_ms(const struct recent_calls *recent, bool large, const int running[2],
                            int ahead)
{
    double ends_per_ms = 0;
    for (int i = large; i < 2; i++) /* a small one's place is of no use to a large one */
        if (recent->run_ms[i] > 0)
            ends_per_ms += running[i] / recent->run_ms[i];
    return ends_per_ms > 0 ? (ahead + 1) / ends_per_ms : 0;
}

double recent_calls_slower(const struct recent_calls *recent)
{
    return recent->needs_ms > 0 ? recent->had_ms / recent->needs_ms : 1;
}
