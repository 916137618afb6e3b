#include "level3_peer_tiles.h"

#include "peer_tiles.h"

/* ---- Getting ready ---- */

static int me(const struct level3 *b)
{
    return b->executor.work->host->member;
}

static bool has(const struct level3 *b, int operand)
{
    return b->peer_tiles && peer_tiles_have(b->peer_tiles, me(b), operand);
}

bool level3_peer_tiles_schedule(struct level3 *b, const struct schedule_rates *rates,
                                int64_t memory_bytes)
{
    struct schedule *s = &b->executor.schedule;
    if (!b->peer_tiles)
        return false;
    bool made =
        peer_tiles_schedule(b->peer_tiles, me(b), &b->executor.scheduled, rates, memory_bytes, s);
    for (int x = 0; made && x < SCHEDULE_OPERANDS; x++)
        made = !has(b, x) || schedule_brings_once(s, x);
    if (!made) {
        schedule_free(s);
        level3_peer_tiles_leave(b, true);
    }
    return made;
}

enum gpu_status level3_peer_tiles_take(struct executor *e, int operand, int64_t bytes,
                                       gpu_address *memory)
{
    struct level3 *b = (struct level3 *)e;
    if (!has(b, operand))
        return gpu_memory(e->work)->take(e->work, bytes, memory);
    enum gpu_status status = gpu_memory(e->work)->take_lent(e->work, bytes, memory);
    if (status == GPU_OK)
        return status;
    level3_peer_tiles_leave(b, true);
    return status == GPU_UNSUPPORTED ? gpu_memory(e->work)->take(e->work, bytes, memory) : status;
}

/* ---- While it runs ---- */

static struct matrix tile_of(const struct level3 *b, const struct schedule_step *step)
{
    return peer_tiles_key(&b->executor.scheduled, &b->executor.schedule, step);
}

static bool is_there(void *level3, const struct schedule_step *step)
{
    const struct level3 *b = level3;
    if (!has(b, step->operand))
        return true;
    const struct matrix tile = tile_of(b, step);
    return peer_tiles_may_have(b->peer_tiles, me(b), &tile);
}

static bool wait(void *level3)
{
    const struct level3 *b = level3;
    peer_tiles_wait(b->peer_tiles);
    return true;
}

static void came_up(void *level3, const struct schedule_step *step)
{
    const struct level3 *b = level3;
    if (!has(b, step->operand))
        return;
    const struct matrix tile = tile_of(b, step);
    peer_tiles_lend(b->peer_tiles, me(b), &tile, executor_slot(&b->executor, step));
}

gpu_address level3_peer_tile(const struct level3 *b, const struct schedule_step *step)
{
    if (!has(b, step->operand))
        return 0;
    const struct matrix tile = tile_of(b, step);
    return peer_tiles_find(b->peer_tiles, me(b), &tile);
}

/* ---- Beginning and end ---- */

void level3_peer_tiles_begin(struct level3 *b)
{
    struct pipeline_job *pipeline = &b->executor.pipeline;
    if (!b->peer_tiles)
        return;
    if (b->executor.schedule.steps[SCHEDULE_COMPUTE] == 1 ||
        !peer_tiles_join(b->peer_tiles, me(b))) {
        level3_peer_tiles_leave(b, true);
        return;
    }
    pipeline->is_there = is_there;
    pipeline->wait = wait;
    pipeline->came_up = came_up;
}

void level3_peer_tiles_leave(struct level3 *b, bool well)
{
    if (b->peer_tiles)
        peer_tiles_leave(b->peer_tiles, me(b), well);
    b->peer_tiles = NULL;
}
