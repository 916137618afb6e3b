#include "factorisation.h"

#include <float.h>

#include "gpu/exec/lapack/solver_panels.h"
#include "ops/op.h"

bool factorisation_is_shared(const struct accel_call *call)
{
    const struct lapack_panels *in_panels = accel_gpu_of(call->op)->in_panels;
    struct panels_call panels[2];
    return in_panels && in_panels->calls(call, panels) > 0 &&
           (panels[0].kind == PANELS_CHOLESKY || panels[0].kind == PANELS_LU);
}

/* Returns the time of a job in panels on one device; DBL_MAX: it has too little memory. */
static double alone_ms(const struct panels_call *call, const struct split_device *device)
{
    struct panels panels;
    if (!panels_make(&panels, call, &device->rates,
                     device->memory_bytes - solver_panels_reserve(call)))
        return DBL_MAX;
    panels_free(&panels);
    return panels.schedule.ms;
}

/* Returns the numbers of the devices, the one first that would have the factorisation done first.
 * *best_ms: what that takes. */
static void sort(const struct panels_call *call, const struct split_device *device, int count,
                 int order[SPLIT_MOST], double *best_ms)
{
    double ms[SPLIT_MOST];
    for (int i = 0; i < count; i++) {
        const double own = alone_ms(call, &device[i]);
        int at = i;
        for (; at > 0 && ms[at - 1] > own; at--) {
            ms[at] = ms[at - 1];
            order[at] = order[at - 1];
        }
        ms[at] = own;
        order[at] = i;
    }
    *best_ms = ms[0];
}

/* Leaves free what cuSOLVER's workspaces may take, as far as that is known. */
static struct panels_device member_of(const struct panels_call *call,
                                      const struct split_device *device)
{
    return (struct panels_device){device->rates,
                                  device->memory_bytes / 16 * 15 - solver_panels_reserve(call)};
}

/* Shares it among the first devices. All of them copy meanwhile. */
static bool share(struct panels_shared *shared, struct panels_device member[SPLIT_MOST],
                  const struct panels_call *call, const struct split_device *device,
                  const int order[SPLIT_MOST], int count, double host_gbps)
{
    struct schedule_rates rates[SPLIT_MOST];
    split_links(rates, device, order, count, host_gbps);
    for (int i = 0; i < count; i++) {
        member[i] = member_of(call, &device[order[i]]);
        member[i].rates = rates[i];
    }
    return panels_share(shared, call, member, count);
}

static bool owns_any(const struct panels_shared *shared, int device)
{
    for (int j = 0; j < shared->count; j++)
        if (shared->owner[j] == device)
            return true;
    return false;
}

/* Leaves out the devices that own nothing. Returns how many are left. */
static int close_ranks(struct panels_shared *shared, struct split *split)
{
    int count = 0;
    for (int d = 0; d < shared->devices; d++) {
        if (!owns_any(shared, d))
            continue;
        for (int j = 0; j < shared->count; j++)
            if (shared->owner[j] == d)
                shared->owner[j] = (uint8_t)count;
        shared->block_bytes[count] = shared->block_bytes[d];
        split->part[count++] = split->part[d];
    }
    shared->devices = count;
    return count;
}

void factorisation_make(struct split *split, struct panels_shared *shared,
                        const struct accel_call *call, const struct split_device *device, int count,
                        double host_gbps)
{
    struct panels_call panels[2];
    int order[SPLIT_MOST];
    struct panels_device member[SPLIT_MOST];
    double best_ms;
    const int jobs = call->op->gpu->in_panels->calls(call, panels);
    *split = (struct split){.count = 1};
    if (count < 2)
        return;
    sort(&panels[0], device, count, order, &best_ms);
    split->ms = DBL_MAX;
    for (int some = 2; some <= count; some++) {
        struct panels_shared one;
        if (!share(&one, member, &panels[0], device, order, some, host_gbps) || one.ms >= split->ms)
            continue;
        *shared = one;
        split->ms = one.ms;
        for (int i = 0; i < some; i++)
            split->part[i] =
                (struct split_part){.device = order[i], .rates = member[i].rates, .ms = one.ms};
    }
    if (split->ms >= SPLIT_GAIN * best_ms)
        return;
    split->count = close_ranks(shared, split);
    /* The leader alone does the rest. */
    const double rest_ms = jobs > 1 ? alone_ms(&panels[1], &device[split->part[0].device]) : 0;
    split->whole_ms = (best_ms < DBL_MAX ? best_ms : split->ms) + rest_ms;
    split->ms += rest_ms;
}
