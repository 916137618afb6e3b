#include "simulated_start.h"

#include <math.h>

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double load_ms(const struct simulated_start *s, const struct simulated_kernels *kernels,
                      const struct simulated_start_rules *rules)
{
    return rules->kernels_ms + (kernels->solver && !s->solver_is_open ? rules->solver_ms : 0);
}

/* Returns when CUDA would be up for a call at now_ms. */
static double ready_at(struct simulated_start *s, const struct simulated_start_rules *rules,
                       double now_ms, double gain_ms)
{
    s->gain_ms += gain_ms > 0 && !s->began ? gain_ms : 0;
    if (!s->began && s->gain_ms >= rules->begins_ms) {
        s->began = true;
        s->ready_ms = now_ms + rules->cuda_ms;
    }
    return s->began ? s->ready_ms : INFINITY;
}

/* Returns the milliseconds that the call itself takes to load kernels; negative: it runs on the CPU
 * while the thread loads them. */
static double loads(struct simulated_start *s, struct simulated_kernels *kernels,
                    const struct simulated_start_rules *rules, double now_ms, double gain_ms)
{
    if (kernels->with_start || (kernels->asked && now_ms >= kernels->ready_ms))
        return 0;
    if (kernels->asked && gain_ms <= kernels->ready_ms - now_ms)
        return -1;
    const double ms = kernels->asked ? kernels->ready_ms - now_ms : load_ms(s, kernels, rules);
    const bool at_once = gain_ms > ms;
    if (!kernels->asked) {
        s->loaded_ms = at_once ? s->loaded_ms : larger(s->loaded_ms, now_ms) + ms;
        kernels->ready_ms = at_once ? now_ms + ms : s->loaded_ms;
    }
    kernels->asked = true;
    s->solver_is_open = s->solver_is_open || kernels->solver;
    return at_once ? ms : -1;
}

double simulated_start_call(struct simulated_start *s, struct simulated_kernels *kernels,
                            const struct simulated_start_rules *rules, double start_ms,
                            double cpu_ms, double gpu_ms)
{
    const double now_ms = start_ms - s->saved_ms, gain_ms = cpu_ms - gpu_ms;
    if (s->never)
        return 0;
    const double wait_ms = larger(ready_at(s, rules, now_ms, gain_ms) - now_ms, 0);
    if (wait_ms > 0 && !(gain_ms >= rules->waits_from_ms && isfinite(wait_ms)))
        return 0;
    const double loading_ms = loads(s, kernels, rules, now_ms + wait_ms, gain_ms);
    if (loading_ms < 0)
        return 0;
    const double saved_ms = gain_ms - wait_ms - loading_ms;
    s->saved_ms += saved_ms;
    return saved_ms;
}
