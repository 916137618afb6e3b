#include "blocks_lent.h"

#include "peers.h"

/* ---- Getting ready ---- */

static int me(const struct blocks *b)
{
    return b->executor.work->host->member;
}

static bool has(const struct blocks *b, int operand)
{
    return b->peers && peers_have(b->peers, me(b), operand);
}

bool lent_schedule(struct blocks *b, const struct schedule_rates *rates, int64_t memory_bytes)
{
    struct schedule *s = &b->executor.schedule;
    if (!b->peers)
        return false;
    bool made = peers_schedule(b->peers, me(b), &b->executor.scheduled, rates, memory_bytes, s);
    for (int x = 0; made && x < SCHEDULE_OPERANDS; x++)
        made = !has(b, x) || schedule_brings_once(s, x);
    if (!made) {
        schedule_free(s);
        lent_leave(b, true);
    }
    return made;
}

enum gpu_status lent_take(struct executor *e, int operand, int64_t bytes, gpu_address *memory)
{
    struct blocks *b = (struct blocks *)e;
    if (!has(b, operand))
        return gpu_memory(e->work)->take(e->work, bytes, memory);
    enum gpu_status status = gpu_memory(e->work)->take_lent(e->work, bytes, memory);
    if (status == GPU_OK)
        return status;
    lent_leave(b, true);
    return status == GPU_UNSUPPORTED ? gpu_memory(e->work)->take(e->work, bytes, memory) : status;
}

/* ---- While it runs ---- */

static struct peers_cell cell_of(const struct blocks *b, const struct schedule_step *step)
{
    return peers_cell_of(&b->executor.scheduled, &b->executor.schedule, step);
}

static bool is_there(void *blocks, const struct schedule_step *step)
{
    const struct blocks *b = blocks;
    if (!has(b, step->operand))
        return true;
    const struct peers_cell cell = cell_of(b, step);
    return peers_may_have(b->peers, me(b), &cell);
}

static bool wait(void *blocks)
{
    const struct blocks *b = blocks;
    peers_wait(b->peers);
    return true;
}

static void came_up(void *blocks, const struct schedule_step *step)
{
    const struct blocks *b = blocks;
    if (!has(b, step->operand))
        return;
    const struct peers_cell cell = cell_of(b, step);
    peers_lend(b->peers, me(b), &cell, executor_place(&b->executor, step));
}

gpu_address lent_cell(const struct blocks *b, const struct schedule_step *step)
{
    if (!has(b, step->operand))
        return 0;
    const struct peers_cell cell = cell_of(b, step);
    return peers_find(b->peers, me(b), &cell);
}

/* ---- Beginning and end ---- */

void lent_begin(struct blocks *b)
{
    struct flow *flow = &b->executor.flow;
    if (!b->peers)
        return;
    if (b->executor.schedule.steps[SCHEDULE_COMPUTE] == 1 || !peers_join(b->peers, me(b))) {
        lent_leave(b, true);
        return;
    }
    flow->is_there = is_there;
    flow->wait = wait;
    flow->came_up = came_up;
}

void lent_leave(struct blocks *b, bool well)
{
    if (b->peers)
        peers_leave(b->peers, me(b), well);
    b->peers = NULL;
}
