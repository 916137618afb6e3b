#include "blocks_lent.h"

#include "peers.h"

/* ---- Getting ready ---- */

static bool has(const struct blocks *b, int operand)
{
    return b->peers && peers_have(b->peers, b->work->host->member, operand);
}

bool lent_schedule(struct blocks *b, const struct schedule_rates *rates, int64_t memory_bytes)
{
    struct schedule *s = &b->schedule;
    if (!b->peers)
        return false;
    bool made =
        peers_schedule(b->peers, b->work->host->member, &b->scheduled, rates, memory_bytes, s);
    for (int x = 0; made && x < SCHEDULE_OPERANDS; x++)
        made = !has(b, x) || schedule_brings_once(s, x);
    if (!made) {
        schedule_free(s);
        lent_leave(b, true);
    }
    return made;
}

enum gpu_status lent_take(struct blocks *b, int operand, int64_t bytes, gpu_address *memory)
{
    if (!has(b, operand))
        return gpu_memory(b->work)->take(b->work, bytes, memory);
    enum gpu_status status = gpu_memory(b->work)->take_lent(b->work, bytes, memory);
    if (status == GPU_OK)
        return status;
    lent_leave(b, true);
    return status == GPU_UNSUPPORTED ? gpu_memory(b->work)->take(b->work, bytes, memory) : status;
}

/* ---- While it runs ---- */

static struct peers_cell cell_of(const struct blocks *b, const struct schedule_step *step)
{
    return peers_cell_of(&b->scheduled, &b->schedule, step);
}

static bool is_there(void *blocks, const struct schedule_step *step)
{
    const struct blocks *b = blocks;
    if (!has(b, step->operand))
        return true;
    const struct peers_cell cell = cell_of(b, step);
    return peers_may_have(b->peers, b->work->host->member, &cell);
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
    peers_lend(b->peers, b->work->host->member, &cell,
               b->memory[step->operand] +
                   (gpu_address)(step->place * b->schedule.place_bytes[step->operand]));
}

gpu_address lent_cell(const struct blocks *b, const struct schedule_step *step)
{
    if (!has(b, step->operand))
        return 0;
    const struct peers_cell cell = cell_of(b, step);
    return peers_find(b->peers, b->work->host->member, &cell);
}

/* ---- Beginning and end ---- */

void lent_begin(struct blocks *b, struct flow *flow)
{
    if (!b->peers)
        return;
    if (b->schedule.steps[SCHEDULE_COMPUTE] == 1 || !peers_join(b->peers, b->work->host->member)) {
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
        peers_leave(b->peers, b->work->host->member, well);
    b->peers = NULL;
}
