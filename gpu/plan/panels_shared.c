#include "panels_shared.h"

#include <stdlib.h>

#include "call/call.h"
#include "panels_plan.h"
#include "simulate.h"

/* ---- Shapes ---- */

static int64_t bytes_of(const struct panels_call *call, int64_t rows, int64_t cols)
{
    return pack_copy_bytes(rows, cols, call->size, call->across);
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
        const struct schedule_tile tile = panels_panel(&view, j);
        const int64_t bytes = bytes_of(&view.call, tile.rows, tile.cols);
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

/* ---- Which device owns a panel, by simulation ---- */

/* What a device has done so far, and until when its slots are used. */
struct state {
    struct simulator sim;
    double panel_free[2], block_free[PANELS_BLOCKS];
    int owned, block;
};

struct trial {
    struct panels_shared *shared;
    struct schedule_rates rates[PANELS_DEVICES]; /* the calling thread's work takes no time */
    struct panels view[PANELS_DEVICES];
    struct state state[PANELS_DEVICES];
    double there[PANELS_MOST]; /* when each panel is in host memory */
};

/* Copies a tile. Returns when that is done. */
static double simulate_copy(struct state *state, int engine, struct schedule_tile tile,
                            int64_t size, double not_before)
{
    const struct schedule_rates *rates = state->sim.rates;
    const double gbps = engine == SCHEDULE_UP ? rates->up : rates->down;
    const struct simulate_work work = {
        .ms = rates->copy_ms + (double)tile.rows * (double)tile.cols * (double)size / gbps * 1e-6,
        .not_before = not_before};
    return simulate_on(&state->sim, engine, &work).end;
}

/* Runs a kernel behind all uploads. Returns when that is done. */
static double compute(struct state *state, double ms)
{
    const struct simulate_work work = {
        .ms = ms, .not_before = state->sim.free_at[SCHEDULE_UP] + state->sim.rates->wait_ms};
    return simulate_on(&state->sim, SCHEDULE_COMPUTE, &work).end;
}

/* Has a device do panel j, behind what it has done. Returns when the panel is in host memory. */
static double do_panel(const struct trial *t, int device, int j, struct state *state)
{
    const struct panels *view = &t->view[device];
    const struct schedule_rates *rates = &t->rates[device];
    const struct schedule_tile panel = panels_panel(view, j);
    const struct schedule_step factor = {.j = j, .p = -1};
    const int64_t size = view->call.size;
    double *slot = &state->panel_free[state->owned++ % t->shared->buffers];
    simulate_copy(state, SCHEDULE_UP, panel, size, *slot);
    for (int i = 0; i < j; i++) {
        const int blocks = panels_blocks(view, i, j);
        for (int p = 0; p < blocks; p++) {
            const struct schedule_step step = {.i = i, .j = j, .p = p};
            double *block = &state->block_free[state->block++ % PANELS_BLOCKS];
            simulate_copy(state, SCHEDULE_UP, panels_block(view, &step), size,
                          simulate_later(*block, t->there[i] + rates->wait_ms));
            *block = compute(state, panels_kernel_ms(view, rates, &step));
        }
    }
    const double factored =
        compute(state, panels_factored(view, j) > 0 ? panels_kernel_ms(view, rates, &factor) : 0);
    return *slot = simulate_copy(state, SCHEDULE_DOWN, panel, size, factored + rates->wait_ms);
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
        shared->ms = simulate_later(shared->ms, t->there[j]);
    }
}

static void begin(struct trial *t, struct panels_shared *shared, const struct panels_device *device)
{
    *t = (struct trial){.shared = shared};
    for (int d = 0; d < shared->devices; d++) {
        t->rates[d] = device[d].rates;
        t->rates[d].call_ms = t->rates[d].chunk_share = t->rates[d].launch_ms = 0;
        t->state[d].sim.rates = &t->rates[d];
        t->view[d] = view_of(shared, d);
    }
}

/* ---- The division ---- */

/* Returns the bytes of a block if each of two gets half of what the panels leave; 0: that is too
 * little. */
static int64_t block_bytes(const struct panels_call *call, int64_t memory_bytes,
                           int64_t panels_bytes)
{
    const int64_t columns = accel_min(PANELS_BLOCK_COLUMNS, accel_min(call->m, call->n)),
                  left = (memory_bytes - panels_bytes) / PANELS_BLOCKS / 64 * 64;
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
        begin(t, &one, device);
        give_out(t);
        if (!made || one.ms < shared->ms)
            *shared = one;
        made = true;
    }
    free(t);
    return made;
}

/* ---- The steps ---- */

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
    struct panels_builder x = {.p = part, .owner = shared->owner, .device = device};
    for (int j = 0; j < shared->count; j++)
        if (shared->owner[j] == device && !panels_add(&x, j)) {
            panels_free(part);
            return false;
        }
    return true;
}
