#include "helper_limit.h"

#include <stdlib.h>

/* Between these, the number stays. Two threads on a CPU have a half each. */
#define HINDERED 0.85
#define FREE     0.93

void helper_limit_start(struct helper_limit *g, int most)
{
    *g = (struct helper_limit){.most = most, .allowed = most, .pause_ms = HELPER_LIMIT_PAUSE_MS};
}

bool helper_limit_queued(const char *text, double *ms)
{
    char *behind, *end;
    const unsigned long long ran_ns = strtoull(text, &behind, 10);
    const unsigned long long queued_ns = strtoull(behind, &end, 10);
    *ms = (double)queued_ns * 1e-6;
    return ran_ns > 0 && end > behind;
}

static void try_more(struct helper_limit *g, int more)
{
    g->allowed = g->allowed + more < g->most ? g->allowed + more : g->most;
    g->tried = true;
    g->wall_ms = g->cpu_ms = 0;
}

/* If six helpers get half of their CPUs, three would have had a CPU each. */
static void adjust_limit(struct helper_limit *g, double share, double now_ms)
{
    if (share < HINDERED) {
        g->allowed = (int)(g->allowed * share + 0.01);
        g->until_ms = now_ms + g->pause_ms;
        g->pause_ms =
            2 * g->pause_ms < HELPER_LIMIT_LONGEST_MS ? 2 * g->pause_ms : HELPER_LIMIT_LONGEST_MS;
    } else if (share > FREE && g->tried) {
        g->pause_ms = HELPER_LIMIT_PAUSE_MS; /* there was room for them */
    }
    g->tried = false;
    g->wall_ms = g->cpu_ms = 0;
    if (share > FREE && now_ms >= g->until_ms && g->allowed < g->most)
        try_more(g, g->allowed > 1 ? g->allowed / 2 : 1);
}

/* Returns how much of a CPU a helper wanted, and did not get because of other threads. */
static double lost_of(const struct helper_limit_sample *sample)
{
    const double missed = sample->wall_ms - sample->cpu_ms;
    if (sample->preempted == 0 || missed <= 0)
        return 0;
    return sample->queued_ms >= 0 && sample->queued_ms < missed ? sample->queued_ms : missed;
}

void helper_limit_add(struct helper_limit *g, const struct helper_limit_sample *sample,
                      double now_ms)
{
    if (g->allowed == 0)
        return; /* of one that had begun before */
    g->wall_ms += sample->cpu_ms + lost_of(sample);
    g->cpu_ms += sample->cpu_ms;
    if (g->wall_ms >= HELPER_LIMIT_SAMPLE_MS * g->allowed)
        adjust_limit(g, g->cpu_ms / g->wall_ms, now_ms);
}

int helper_limit_allowed(struct helper_limit *g, double now_ms)
{
    if (g->allowed == 0 && now_ms >= g->until_ms)
        try_more(g, 1);
    return g->allowed;
}
