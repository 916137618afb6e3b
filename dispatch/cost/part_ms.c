#include "part_ms.h"

#include <float.h>
#include <string.h>

#include "gpu/plan/plan_cache.h"
#include "gpu/plan/schedule_plan.h"
#include "gpu/plan/scheduled.h"

double part_floor_ms(const struct accel_call *call, const struct schedule_rates *rates,
                     const double lent[SCHEDULE_OPERANDS])
{
    struct scheduled scheduled;
    if (!scheduled_describe(call, &scheduled))
        return 0;
    if (lent)
        memcpy(scheduled.call.lent, lent, sizeof scheduled.call.lent);
    return schedule_floor(&scheduled.call, rates);
}

/* Returns the tile's size nearest to `step` that divides a size evenly, long ones as all tiles.
 * shape: of its rows; NULL: of others. */
static int64_t fitted(int64_t all, int64_t step, const struct schedule_call *shape)
{
    const int64_t tiles = accel_max(1, (all + step / 2) / step);
    const int64_t each = accel_max(1, (all + tiles - 1) / tiles);
    if (each < 64 || tiles == 1)
        return each;
    return shape ? schedule_tile_rows(shape, each) : schedule_tile_cols(each);
}

struct schedule_params part_fit(struct schedule_params params, const struct schedule_call *shape)
{
    const bool triangle = shape->kind == SCHEDULE_RANK_K;
    params.rows = fitted(shape->m, params.rows, shape);
    params.cols = triangle ? params.rows : fitted(shape->n, params.cols, NULL);
    if (shape->widest > 0)
        params.cols = accel_min(params.cols, shape->widest);
    params.depth = triangle || shape->kind == SCHEDULE_PRODUCT
                       ? fitted(shape->k, params.depth, NULL)
                       : params.rows;
    return params;
}

double part_ms(const struct accel_call *call, const struct split_device *device,
               const struct schedule_rates *rates, struct schedule_params *params)
{
    struct scheduled scheduled;
    struct schedule s = {.ms = 0};
    if (!scheduled_describe(call, &scheduled))
        return DBL_MAX;
    if (call->batch > 1) {
        const double ms = scheduled_ms(&scheduled, rates, device->memory_bytes, 0);
        return ms > 0 ? ms : DBL_MAX;
    }
    const struct schedule_call shape = scheduled.call;
    const bool chosen = params->rows > 0;
    const struct schedule_params by = chosen ? part_fit(*params, &shape) : *params;
    bool made = chosen && schedule_make_by(&s, &by, &shape, rates, device->memory_bytes);
    if (!made)
        made = plan_cache_make(&s, &shape, rates, device->memory_bytes);
    if (!made)
        return DBL_MAX;
    const double ms = s.ms;
    *params = s.by;
    schedule_free(&s);
    return ms;
}
