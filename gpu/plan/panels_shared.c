#include "panels_shared.h"

#include <stdlib.h>

#include "call/call.h"
#include "gpu/pack/pack.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

/* As panels.c has them: one block goes up while the other is used. */
enum { BLOCKS = 2, BLOCK_COLUMNS = 1024 };

/* ---- Shapes ---- */

static int64_t bytes_of(const struct panels_call *call, int64_t rows, int64_t cols)
{
    return (call->across ? pack_ld(cols, call->size) * rows : pack_ld(rows, call->size) * cols) *
           call->size;
}

/* The division as one device sees it, without steps. */
static struct panels view_of(const struct panels_shared *shared, int device)
{
    struct panels view = {.call = shared->call,
                          .buffers = shared->buffers,
                          .count = shared->count,
                          .block_bytes = shared->block_bytes[device]};
    for (int j = 0; j <= shared->count; j++)
        view.first[j] = shared->first[j];
    for (int j = 0; j < shared->count; j++) {
        const struct schedule_cell cell = panels_panel(&view, j);
        const int64_t bytes = bytes_of(&view.call, cell.rows, cell.cols);
        if (shared->owner[j] == device)
            view.panel_bytes = accel_max(view.panel_bytes, (bytes + 63) / 64 * 64);
    }
    return view;
}

int panels_shared_ordinal(const struct panels_shared *shared, int j)
{
    int before = 0;
    for (int i = 0; i < j; i++)
        before += shared->owner[i] == shared->owner[j];
    return before;
}

/* Returns how many blocks panel i comes up in for panel j. */
static int blocks_of(const struct panels *view, int i, int j)
{
    const struct schedule_step first = {.i = i, .j = j};
    const int64_t all = panels_factored(view, i),
                  each = all > 0 ? panels_block(view, &first).cols : 1;
    return (int)((all + each - 1) / each);
}

/* ---- Which device owns a panel, by simulation ---- */

/* What a device has done so far: until when its engines work, and its places are used. */
struct state {
    double end[SCHEDULE_ENGINES], panel_free[2], block_free[BLOCKS];
    int owned, block;
};

struct trial {
    struct panels_shared *shared;
    const struct panels_device *device;
    struct panels view[PANELS_DEVICES];
    struct state state[PANELS_DEVICES];
    double there[PANELS_MOST]; /* when each panel is in host memory */
};

static double later(double a, double b)
{
    return a > b ? a : b;
}

static double copy_ms(const struct panels_call *call, const struct schedule_rates *rates,
                      struct schedule_cell cell, double gbps)
{
    return rates->copy_ms +
           (double)cell.rows * (double)cell.cols * (double)call->size / gbps * 1e-6;
}

/* Has a device do panel j, behind what it has done. Returns when the panel is in host memory. */
static double do_panel(const struct trial *t, int device, int j, struct state *state)
{
    const struct panels *view = &t->view[device];
    const struct schedule_rates *rates = &t->device[device].rates;
    const struct schedule_cell panel = panels_panel(view, j);
    const int place = state->owned++ % t->shared->buffers;
    double *end = state->end;
    end[UP] =
        later(end[UP], state->panel_free[place]) + copy_ms(&view->call, rates, panel, rates->up);
    double wait_for = end[UP];
    for (int i = 0; i < j; i++) {
        const int blocks = blocks_of(view, i, j);
        for (int p = 0; p < blocks; p++) {
            const struct schedule_step step = {.i = i, .j = j, .p = p};
            double *const free_at = &state->block_free[state->block++ % BLOCKS];
            end[UP] = later(later(end[UP], *free_at), t->there[i] + rates->wait_ms) +
                      copy_ms(&view->call, rates, panels_block(view, &step), rates->up);
            end[COMPUTE] = later(end[COMPUTE], end[UP] + rates->wait_ms) +
                           panels_kernel_ms(view, rates, &step);
            *free_at = end[COMPUTE];
            wait_for = 0;
        }
    }
    const struct schedule_step factor = {.j = j, .p = -1};
    end[COMPUTE] = later(end[COMPUTE], wait_for + rates->wait_ms) +
                   (panels_factored(view, j) > 0 ? panels_kernel_ms(view, rates, &factor) : 0);
    end[DOWN] = later(end[DOWN], end[COMPUTE] + rates->wait_ms) +
                copy_ms(&view->call, rates, panel, rates->down);
    state->panel_free[place] = end[DOWN];
    return end[DOWN];
}

/* Gives each panel to the device that would have it done first. */
static void give_out(struct trial *t)
{
    struct panels_shared *shared = t->shared;
    shared->ms = 0;
    for (int j = 0; j < shared->count; j++) {
        struct state best = {.owned = 0};
        for (int d = 0; d < shared->devices; d++) {
            struct state after = t->state[d];
            const double there = do_panel(t, d, j, &after);
            if (d > 0 && there >= t->there[j])
                continue;
            t->there[j] = there;
            shared->owner[j] = (uint8_t)d;
            best = after;
        }
        t->state[shared->owner[j]] = best;
        shared->ms = later(shared->ms, t->there[j]);
    }
}

/* ---- The division ---- */

/* Returns the bytes of a block if each of two gets half of what the panels leave; 0: that is too
 * little. */
static int64_t block_bytes(const struct panels_call *call, int64_t memory_bytes,
                           int64_t panels_bytes)
{
    const int64_t columns = accel_min(BLOCK_COLUMNS, accel_min(call->m, call->n)),
                  left = (memory_bytes - panels_bytes) / BLOCKS / 64 * 64;
    return left < bytes_of(call, call->m, accel_min(columns, PANELS_LEAST_COLUMNS))
               ? 0
               : accel_min(left, bytes_of(call, call->m, columns));
}

/* Divides the columns evenly, long ones into whole lines, so that all devices have room: for two
 * panels each if that is asked for. */
static bool divide_columns(struct panels_shared *shared, const struct panels_device *device,
                           int count, int buffers)
{
    const struct panels_call *call = &shared->call;
    int64_t cols = (call->n + count - 1) / count;
    cols = cols >= 64 ? (cols + 63) / 64 * 64 : accel_max(cols, 1);
    if (cols < accel_min(PANELS_LEAST_COLUMNS, call->n) ||
        (call->n + cols - 1) / cols > PANELS_MOST)
        return false;
    shared->buffers = buffers;
    for (int d = 0; d < shared->devices; d++) {
        shared->block_bytes[d] =
            block_bytes(call, device[d].memory_bytes, buffers * bytes_of(call, call->m, cols));
        if (shared->block_bytes[d] == 0)
            return false;
    }
    shared->count = 0;
    for (int64_t col = 0; col < call->n; col += cols)
        shared->first[shared->count++] = col;
    shared->first[shared->count] = call->n;
    return true;
}

/* Panels for each device: more of them are busy at the same time for longer, and bring up more
 * bytes. */
static const int panels_each[] = {2, 3, 4, 6, 8, 12, 16};
enum { COUNTS = sizeof panels_each / sizeof *panels_each };

bool panels_share(struct panels_shared *shared, const struct panels_call *call,
                  const struct panels_device *device, int count)
{
    bool made = false;
    struct trial *t = malloc(sizeof *t);
    for (int i = 0; t && i < 2 * COUNTS; i++) {
        struct panels_shared one = {.call = *call, .devices = count};
        if (!divide_columns(&one, device, panels_each[i / 2] * count, 1 + i % 2))
            continue;
        *t = (struct trial){.shared = &one, .device = device};
        for (int d = 0; d < count; d++)
            t->view[d] = view_of(&one, d);
        give_out(t);
        if (!made || one.ms < shared->ms)
            *shared = one;
        made = true;
    }
    free(t);
    return made;
}

/* ---- The steps ---- */

struct shared_panel_plan {
    struct panels *part;
    const struct panels_shared *shared;
    int device, room;
    int unpacked[PANELS_MOST]; /* by own panel: the downloads up to its last one */
    int own[PANELS_MOST];      /* by ordinal: the panel */
    bool has_list[PANELS_MOST];
    int used[BLOCKS], block; /* the kernels up to the last that read a block; all blocks so far */
};

/* Steps of copies wait for so many kernels and downloads, kernels for all uploads before. Returns
 * NULL without memory. */
static struct schedule_step *add_shared_step(struct shared_panel_plan *plan, int engine, int i,
                                             int j, int number)
{
    struct schedule_step *step = schedule_add(&plan->part->schedule, &plan->room, engine);
    if (step) {
        step->i = i;
        step->j = j;
        step->p = number;
    }
    return step;
}

static bool add_upload(struct shared_panel_plan *plan, int operand, int i, int j, int number,
                       int place, int kernels, int downloads)
{
    struct schedule_step *step = add_shared_step(plan, UP, i, j, number);
    if (!step)
        return false;
    step->operand = (uint8_t)operand;
    step->place = place;
    step->after[COMPUTE] = kernels;
    step->after[DOWN] = downloads;
    return true;
}

static bool add_kernel(struct shared_panel_plan *plan, int i, int j, int number, int place)
{
    struct schedule_step *step = add_shared_step(plan, COMPUTE, i, j, number);
    if (!step)
        return false;
    step->place = place;
    step->after[UP] = plan->part->schedule.steps[UP];
    return true;
}

static bool add_down(struct shared_panel_plan *plan, int operand, int j, int place)
{
    struct schedule_step *step = add_shared_step(plan, DOWN, 0, j, 0);
    if (!step)
        return false;
    step->operand = (uint8_t)operand;
    step->place = place;
    step->after[COMPUTE] = plan->part->schedule.steps[COMPUTE];
    step->after[UP] = plan->part->schedule.steps[UP];
    return true;
}

static bool add_blocks(struct shared_panel_plan *plan, int i, int j)
{
    const bool own = plan->shared->owner[i] == plan->device;
    const int blocks = blocks_of(plan->part, i, j);
    if (plan->shared->call.kind == PANELS_LU && !own && !plan->has_list[i] && blocks > 0) {
        plan->has_list[i] = true;
        if (!add_upload(plan, PANELS_LIST, i, j, 0, 0, 0, 0))
            return false;
    }
    for (int p = 0; p < blocks; p++) {
        const int place = plan->block++ % BLOCKS;
        if (!add_upload(plan, PANELS_BLOCK, i, j, p, place, plan->used[place],
                        own ? plan->unpacked[i] : 0) ||
            !add_kernel(plan, i, j, p, place))
            return false;
        plan->used[place] = plan->part->schedule.steps[COMPUTE];
    }
    return true;
}

static bool add_panel(struct shared_panel_plan *plan, int j, int ordinal)
{
    const struct panels *part = plan->part;
    const int place = ordinal % part->buffers, before = ordinal - part->buffers;
    const bool factors = panels_factored(part, j) > 0;
    plan->own[ordinal] = j;
    if (!add_upload(plan, PANELS_PANEL, 0, j, 0, place, 0,
                    before >= 0 ? plan->unpacked[plan->own[before]] : 0))
        return false;
    for (int i = 0; i < j; i++)
        if (!add_blocks(plan, i, j))
            return false;
    if ((factors && !add_kernel(plan, 0, j, -1, 0)) || !add_down(plan, PANELS_PANEL, j, place) ||
        (factors && plan->shared->call.kind == PANELS_LU && !add_down(plan, PANELS_LIST, j, 0)) ||
        !add_down(plan, PANELS_INFO, j, 0))
        return false;
    plan->unpacked[j] = part->schedule.steps[DOWN];
    return true;
}

/* Two panels, or one if there is no room for two. */
static bool take_room(struct panels *part, int64_t memory_bytes)
{
    for (; part->buffers > 0; part->buffers--) {
        part->block_bytes =
            block_bytes(&part->call, memory_bytes, part->buffers * part->panel_bytes);
        if (part->block_bytes > 0)
            return true;
    }
    return false;
}

bool panels_shared_part(struct panels *part, const struct panels_shared *shared, int device,
                        int64_t memory_bytes)
{
    *part = view_of(shared, device);
    if (!take_room(part, memory_bytes))
        return false;
    struct shared_panel_plan *plan = calloc(1, sizeof *plan);
    bool made = plan != NULL;
    if (plan) {
        plan->part = part;
        plan->shared = shared;
        plan->device = device;
    }
    for (int j = 0, ordinal = 0; made && j < shared->count; j++)
        if (shared->owner[j] == device)
            made = add_panel(plan, j, ordinal++);
    if (!made)
        panels_free(part);
    free(plan);
    return made;
}
