#include "level3_cache.h"

enum { C = SCHEDULE_C };

/* Returns whether C's tiles are where they would be in one matrix, when all are finished. */
static bool is_one_matrix(const struct executor *e)
{
    const struct schedule *s = &e->schedule;
    const struct accel_span *c = e->scheduled.operand[C].x;
    const int64_t ld = gpu_device_ld(c->rows, c->dtype), size = gpu_size_of(c);
    bool is = true;
    for (int n = 0; is && n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != SCHEDULE_DOWN)
            continue;
        const struct schedule_tile tile = scheduled_stored(&e->scheduled, s, C, step->i, step->j);
        is = gpu_device_ld(tile.rows, c->dtype) == ld &&
             step->slot * s->slot_bytes[C] == (tile.row + tile.col * ld) * size;
    }
    return is;
}

enum gpu_status level3_cache_begin(struct level3 *b)
{
    const struct executor *e = &b->executor;
    const struct schedule *s = &e->schedule;
    const bool in_one = s->steps[SCHEDULE_COMPUTE] == 1;
    const struct schedule_tile first = scheduled_stored(&e->scheduled, s, C, 0, 0);
    const struct gpu_tiles tiles = {in_one ? 0 : first.rows, in_one ? 0 : first.cols};
    if (s->steps[SCHEDULE_DOWN] == 0 || e->work->call->batch > 1 || s->call.head > 0)
        return GPU_OK;
    return result_capture_begin(&b->result, e->work, e->scheduled.operand[C].x, level3_triangle(e),
                                tiles, is_one_matrix(e) ? e->memory[C] : 0);
}
