#include "schedule_plan.h"

#include <stdlib.h>
#include <string.h>

#include "simulate.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };
enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

/* What there is while a schedule is made. */
struct planned_tile {
    double up_ms;   /* of its upload */
    int upload;     /* the number of its (last) upload, from 1 on; 0: it needs none */
    int used;       /* the number of the last kernel that uses it, from 1 on */
    int by_side[2]; /* C: of the last one of either side */
    int changed;    /* C: of the last kernel that has changed it */
    bool begun;     /* C: a kernel has changed it */
    bool sent;      /* has come up once */
    int left;       /* C: kernels that it lacks */
    int came_down;  /* the number of its download, from 1 on */
    int slot;       /* -1: none */
    /* The neighbours among the tiles of its operand that have slots, by their last use; -1:
     * none. */
    int older, newer;
};

struct planned_kernel {
    double ms;
    int i, j, p;
    int ready;                             /* the uploads that must be there */
    int next;                              /* the next one with the same `ready`; -1: none */
    int follower;                          /* the next one of its panel; -1: none */
    int waits;                             /* for its uploads, and for the one before it */
    int rank;                              /* of its tile of C */
    int tile[SCHEDULE_SOURCES + 1], tiles; /* that it uses, that of C last */
};

/* Tiles of an extent by their length: those before a group's edge, the last one before it, and the
 * last one of all. */
enum { EDGES = 3 };

struct schedule_plan {
    struct schedule *s;
    const struct schedule_rates *rates;
    int head;
    int base[OPERANDS], tiles;
    struct planned_tile *tile;
    int oldest[OPERANDS], newest[OPERANDS], taken[OPERANDS];
    struct planned_kernel *task;
    int tasks;
    int *order; /* of the tasks; and as much room for those that can run */
    struct {
        int left;   /* kernels that a panel of C lacks */
        int latest; /* of its tasks, from 1 on */
    } * panel;
    /* In the order in which tasks wish for them, from 1 on */
    struct {
        int tile;
        int task; /* the first that needs it and none behind it; -1: none */
    } * upload;
    int uploads;
    /* Milliseconds of steps, looked up where they are asked for the first time; 0: not yet. The
     * last index: on the diagonal. */
    double kernel[EDGES][EDGES][EDGES][2];
    double copy[2][OPERANDS][EDGES][EDGES][2]; /* down, up */
    struct simulator sim;
    double left[SCHEDULE_ENGINES]; /* that steps to come take at least */
    bool has_sides;
    double at_most; /* milliseconds: a schedule that takes longer is not made to the end */
};

static int index_of_tile(const struct schedule_plan *plan, int operand, int i, int j)
{
    return plan->base[operand] + i + j * plan->s->tiles[operand].rows;
}

static int result_of(const struct planned_kernel *task)
{
    return task->tile[task->tiles - 1];
}

static int operand_of(const struct schedule_plan *plan, int tile)
{
    return tile < plan->base[B] ? A : tile < plan->base[C] ? B : C;
}

static void set_tiles_of(const struct schedule_plan *plan, struct planned_kernel *task)
{
    struct schedule_source source[SCHEDULE_SOURCES];
    const int count = schedule_sources(plan->s, task->i, task->j, task->p, source);
    for (int n = 0; n < count; n++)
        task->tile[n] = index_of_tile(plan, source[n].operand, source[n].i, source[n].j);
    task->tile[count] = index_of_tile(plan, C, task->i, task->j);
    task->tiles = count + 1;
}

static bool goes_up(const struct schedule_plan *plan, int operand)
{
    const struct schedule_call *call = &plan->s->call;
    return !call->in_place[operand] && (operand != C || call->reads);
}

/* ---- The order in which tasks are wished for ---- */

static void wish(struct schedule_plan *plan, int i, int j, int p)
{
    if (!schedule_computes(plan->s, i, j))
        return;
    plan->task[plan->tasks++] = (struct planned_kernel){.i = i, .j = j, .p = p};
}

/* Tiles of C in growing squares from its first one: with each row and column of tiles that A and B
 * bring, as many as can be had. Of a triangle of which only the rectangle between two groups is
 * computed: that. */
static void wish_in_squares(struct schedule_plan *plan, int from, int to)
{
    const struct schedule_tiles *c = &plan->s->tiles[C];
    const bool between = plan->s->call.omits == (SCHEDULE_HEAD | SCHEDULE_TAIL);
    const int top = between ? schedule_head(plan->s) : 0;
    const int all_rows = c->rows - top, all_cols = between ? top : c->cols;
    const int turns = all_rows > all_cols ? all_rows : all_cols;
    int rows = 0, cols = 0;
    for (int turn = 1; turn <= turns; turn++) {
        const int new_rows = (all_rows * turn + turns - 1) / turns;
        const int new_cols = (all_cols * turn + turns - 1) / turns;
        for (int p = from; p < to; p++) {
            for (int j = 0; j < cols; j++)
                for (int i = rows; i < new_rows; i++)
                    wish(plan, top + i, j, p);
            for (int j = cols; j < new_cols; j++)
                for (int i = 0; i < new_rows; i++)
                    wish(plan, top + i, j, p);
        }
        rows = new_rows;
        cols = new_cols;
    }
}

/* A share of k for all of C first: that needs the least of A and B for each product, but finishes
 * nothing. Then the rest, which finishes tiles one after the other. */
static void wish_for_product(struct schedule_plan *plan)
{
    const int depths = schedule_depths(plan->s), first = depths * plan->s->by.share / 16;
    for (int p = 0; p < first; p++)
        wish_in_squares(plan, p, p + 1);
    wish_in_squares(plan, first, depths);
}

/* Sets the tiles of C, by columns or rows, to and fro, so that the tiles that were used last are
 * used next. Returns how many there are. */
static int number_tiles(struct schedule_plan *plan, int *tile)
{
    const struct schedule_tiles *c = &plan->s->tiles[C];
    const bool along_rows = plan->s->by.along_rows && !plan->s->call.in_place[C];
    const int outer = along_rows ? c->rows : c->cols, inner = along_rows ? c->cols : c->rows;
    int tiles = 0;
    for (int x = 0; x < outer; x++)
        for (int at = 0; at < inner; at++) {
            const int y = x % 2 ? inner - 1 - at : at, i = along_rows ? x : y;
            const int j = along_rows ? y : x;
            if (schedule_computes(plan->s, i, j))
                tile[tiles++] = i + j * c->rows;
        }
    return tiles;
}

/* Returns how many tiles of C come together: one, or if C is kept, as many as have slots, and if
 * these are not all, less those that come down meanwhile. */
static int tiles_together(const struct schedule_plan *plan, int tiles)
{
    enum { COMING_DOWN = 2 };
    const struct schedule *s = plan->s;
    if (s->by.factor != C || s->call.in_place[C])
        return 1;
    return s->slots[C] >= tiles            ? tiles
           : s->slots[C] > 2 * COMING_DOWN ? s->slots[C] - COMING_DOWN
                                           : 1;
}

/* Of tiles that come together, a share of k first, so that A and B go by; then the rest of one tile
 * after the other, to and fro. */
static void wish_in_tiles(struct schedule_plan *plan)
{
    const int rows = plan->s->tiles[C].rows, depths = schedule_depths(plan->s);
    const int *tile = plan->order;
    const int tiles = number_tiles(plan, plan->order), together = tiles_together(plan, tiles);
    const int first = together > 1 ? depths * plan->s->by.share / 16 : 0;
    for (int begin = 0; begin < tiles; begin += together) {
        const int end = begin + together < tiles ? begin + together : tiles;
        for (int p = 0; p < first; p++)
            for (int n = begin; n < end; n++) {
                const int t = p % 2 ? begin + end - 1 - n : n;
                wish(plan, tile[t] % rows, tile[t] / rows, p);
            }
        for (int n = begin; n < end; n++)
            for (int p = first; p < depths; p++)
                wish(plan, tile[n] % rows, tile[n] / rows, n % 2 ? first + depths - 1 - p : p);
    }
}

/* Returns the kernels of a row of blocks, of those that are finished one after the other. */
static int kernels_of_row(const struct schedule_plan *plan, int row)
{
    return plan->s->call.kind == SCHEDULE_SOLVE ? row + 1 : plan->s->tiles[A].rows - row;
}

/* Multiply computes a row of blocks before those that it needs, solve after them. */
static void wish_in_row(struct schedule_plan *plan, int row, int number, int j)
{
    const int last = plan->s->tiles[A].rows - 1;
    const int other = plan->s->call.kind == SCHEDULE_SOLVE ? number : row + number;
    const bool ascends = schedule_ascends(&plan->s->call);
    wish(plan, ascends ? row : last - row, j, ascends ? other : last - other);
}

/* A row of blocks of the first panels in growing squares, as a product's tiles: with each tile of A
 * and of C, as many kernels as can be had. */
static void wish_for_row(struct schedule_plan *plan, int row, int panels)
{
    const int kernels = kernels_of_row(plan, row), turns = kernels > panels ? kernels : panels;
    int number = 0, joined = 0;
    for (int turn = 1; turn <= turns; turn++) {
        const int numbers = (kernels * turn + turns - 1) / turns;
        const int join = (panels * turn + turns - 1) / turns;
        for (; number < numbers; number++)
            for (int j = 0; j < joined; j++)
                wish_in_row(plan, row, number, j);
        for (; joined < join; joined++)
            for (int n = 0; n < number; n++)
                wish_in_row(plan, row, n, joined);
    }
}

/* Some panels of C together, while A comes; then one panel after the other. In place, only one at a
 * time: of others that have begun, nobody would have the old values after a failure. */
static void wish_for_panels(struct schedule_plan *plan)
{
    const int blocks = plan->s->tiles[A].rows, panels = plan->s->tiles[C].cols;
    const bool one_by_one = plan->s->call.k == 0 || plan->s->call.in_place[C];
    const int together = one_by_one ? 0 : (panels * plan->s->by.share + 15) / 16;
    for (int row = 0; row < blocks && together > 0; row++)
        wish_for_row(plan, row, together);
    for (int j = together; j < panels; j++)
        for (int row = 0; row < blocks; row++)
            if (plan->s->call.k == 0)
                wish(plan, row, j, 0);
            else
                for (int n = 0; n < kernels_of_row(plan, row); n++)
                    wish_in_row(plan, row, n, j);
}

/* ---- What steps take ---- */

static int edge_of(const struct schedule_plan *plan, int i, int count)
{
    return i == count - 1 ? 2 : i == plan->head - 1 ? 1 : 0;
}

static double copy_ms(struct schedule_plan *plan, int engine, int tile)
{
    const int operand = operand_of(plan, tile), at = tile - plan->base[operand];
    const struct schedule_tiles *tiles = &plan->s->tiles[operand];
    const int i = at % tiles->rows, j = at / tiles->rows;
    double *ms = &plan->copy[engine == UP][operand][edge_of(plan, i, tiles->rows)]
                            [edge_of(plan, j, tiles->cols)][i == j];
    if (*ms == 0)
        *ms = schedule_copy_ms(plan->s, plan->rates, engine, operand, i, j);
    return *ms;
}

static double kernel_ms(struct schedule_plan *plan, int i, int j, int p)
{
    const struct schedule *s = plan->s;
    const bool diagonal = s->call.kind == SCHEDULE_RANK_K ? i == j : i == p;
    double *ms =
        &plan->kernel[edge_of(plan, i, s->tiles[C].rows)][edge_of(plan, j, s->tiles[C].cols)]
                     [edge_of(plan, p, s->tiles[A].cols)][diagonal];
    if (*ms == 0)
        *ms = schedule_kernel_ms(s, plan->rates, i, j, p);
    return *ms;
}

static void simulate(struct schedule_plan *plan, const struct schedule_step *step, double ms)
{
    const double chain_ms = step->engine == COMPUTE
                                ? schedule_chain_ms(plan->s, plan->rates, step->i, step->j, step->p)
                                : 0;
    simulate_step(&plan->sim, step, &(struct simulate_work){.ms = ms, .chain_ms = chain_ms});
}

/* Returns a time that the whole schedule is not below. */
static double least_ms(const struct schedule_plan *plan)
{
    double least = plan->sim.ms;
    for (int e = 0; e < SCHEDULE_ENGINES; e++) {
        const double end = plan->sim.free_at[e] + plan->left[e];
        least = least < end ? end : least;
    }
    return least;
}

/* Notes that a task comes behind those with the same uploads, and behind those of its panel if they
 * depend on each other. */
static void line_up(struct schedule_plan *plan, int t)
{
    struct planned_kernel *task = &plan->task[t];
    int *latest = &plan->panel[task->j].latest;
    task->next = plan->upload[task->ready].task;
    plan->upload[task->ready].task = t;
    task->follower = -1;
    task->waits = 1;
    if (!schedule_in_panels(&plan->s->call))
        return;
    if (*latest > 0) {
        plan->task[*latest - 1].follower = t;
        task->waits++;
    }
    *latest = t + 1;
}

/* Numbers the uploads as the tasks wish for them, and the tiles of C by when they can be
 * finished. */
static void number_uploads(struct schedule_plan *plan)
{
    plan->upload[0].task = -1;
    for (int t = 0; t < plan->tasks; t++) {
        struct planned_kernel *task = &plan->task[t];
        set_tiles_of(plan, task);
        for (int n = 0; n < task->tiles; n++) {
            const int tile = task->tile[n];
            struct planned_tile *x = &plan->tile[tile];
            if (x->upload == 0 && goes_up(plan, operand_of(plan, tile))) {
                x->upload = ++plan->uploads;
                x->up_ms = copy_ms(plan, UP, tile);
                plan->upload[x->upload].tile = tile;
                plan->upload[x->upload].task = -1;
                plan->left[UP] += x->up_ms;
            }
            task->ready = task->ready > x->upload ? task->ready : x->upload;
        }
        struct planned_tile *c = &plan->tile[result_of(task)];
        c->left++;
        plan->panel[task->j].left++;
        c->used = task->ready > c->used ? task->ready : c->used; /* for its rank */
        task->ms = kernel_ms(plan, task->i, task->j, task->p);
        plan->left[COMPUTE] += task->ms;
        line_up(plan, t);
    }
    for (int t = 0; t < plan->tasks; t++)
        plan->task[t].rank = plan->tile[result_of(&plan->task[t])].used;
    for (int n = 0; n < plan->tiles; n++)
        plan->tile[n].used = 0;
}

/* ---- The order in which they run ---- */

/* Tasks that can run: a heap, by the rank of their tiles, then as they are wished for. */
struct heap {
    const struct planned_kernel *task;
    int *at, count;
};

static bool comes_before(const struct heap *heap, int a, int b)
{
    const int one = heap->task[a].rank, other = heap->task[b].rank;
    return one != other ? one < other : a < b;
}

static void push_task(struct heap *heap, int task)
{
    int at = heap->count++;
    for (; at > 0 && comes_before(heap, task, heap->at[(at - 1) / 2]); at = (at - 1) / 2)
        heap->at[at] = heap->at[(at - 1) / 2];
    heap->at[at] = task;
}

static int pop(struct heap *heap)
{
    const int top = heap->at[0], last = heap->at[--heap->count];
    int at = 0;
    for (;;) {
        int child = 2 * at + 1;
        if (child + 1 < heap->count && comes_before(heap, heap->at[child + 1], heap->at[child]))
            child++;
        if (child >= heap->count || !comes_before(heap, heap->at[child], last))
            break;
        heap->at[at] = heap->at[child];
        at = child;
    }
    heap->at[at] = last;
    return top;
}

static void release(struct schedule_plan *plan, struct heap *heap, int t)
{
    if (--plan->task[t].waits == 0)
        push_task(heap, t);
}

/* Runs, of the tasks whose tiles have arrived, the one whose tile of C can be finished first.
 * Uploads and kernels alone take time here. */
static void order_by_arrival(struct schedule_plan *plan)
{
    static const struct schedule_rates none = {.up = 0};
    struct simulator sim = {.rates = &none};
    struct heap heap = {plan->task, plan->order + plan->tasks, 0};
    double now = 0;
    for (int issued = 0, arrived = -1; issued < plan->tasks; issued++) {
        while (arrived < plan->uploads && (heap.count == 0 || sim.free_at[UP] <= now)) {
            now = now < sim.free_at[UP] ? sim.free_at[UP] : now;
            for (int t = plan->upload[++arrived].task; t >= 0; t = plan->task[t].next)
                release(plan, &heap, t);
            if (arrived < plan->uploads)
                simulate_on(&sim, UP,
                            &(struct simulate_work){
                                .ms = plan->tile[plan->upload[arrived + 1].tile].up_ms});
        }
        const int t = pop(&heap);
        const struct planned_kernel *task = &plan->task[t];
        const struct simulate_work work = {.ms = task->ms, .not_before = now};
        now = simulate_on(&sim, COMPUTE, &work).end;
        plan->order[issued] = t;
        if (task->follower >= 0)
            release(plan, &heap, task->follower);
    }
}

/* ---- Slots and steps ---- */

static void unlink_tile(struct schedule_plan *plan, int operand, int tile)
{
    const struct planned_tile *x = &plan->tile[tile];
    *(x->older >= 0 ? &plan->tile[x->older].newer : &plan->oldest[operand]) = x->newer;
    *(x->newer >= 0 ? &plan->tile[x->newer].older : &plan->newest[operand]) = x->older;
}

static void link_newest(struct schedule_plan *plan, int operand, int tile)
{
    struct planned_tile *x = &plan->tile[tile];
    x->older = plan->newest[operand];
    x->newer = -1;
    *(x->older >= 0 ? &plan->tile[x->older].newer : &plan->oldest[operand]) = tile;
    plan->newest[operand] = tile;
}

/* Returns whether a tile of C, or of a panel that is overwritten any of its tiles, is not
 * finished. */
static bool is_needed(const struct schedule_plan *plan, int operand, int tile)
{
    if (operand != C)
        return false;
    return schedule_in_panels(&plan->s->call)
               ? plan->panel[(tile - plan->base[C]) / plan->s->tiles[C].rows].left > 0
               : plan->tile[tile].left > 0;
}

/* Gives a tile a slot: a free one, or that of the tile that was used longest ago, of C a finished
 * one. Says in `after` what must be done before it is overwritten. Returns false if there is
 * none. */
static bool take_slot(struct schedule_plan *plan, int operand, int tile,
                      int32_t after[SCHEDULE_ENGINES])
{
    struct planned_tile *x = &plan->tile[tile];
    if (plan->taken[operand] < plan->s->slots[operand]) {
        x->slot = plan->taken[operand]++;
        return true;
    }
    const int victim = plan->oldest[operand];
    struct planned_tile *old = victim >= 0 ? &plan->tile[victim] : NULL;
    if (!old || is_needed(plan, operand, victim) || old->used > plan->s->steps[COMPUTE])
        return false;
    unlink_tile(plan, operand, victim);
    x->slot = old->slot;
    old->slot = -1;
    after[COMPUTE] = old->used;
    after[DOWN] = operand == C ? old->came_down : 0;
    return true;
}

/* Makes sure that a tile is on the device for the next kernel, which waits for it. */
static bool bring_tile(struct schedule_plan *plan, int tile, struct schedule_step *kernel)
{
    const int operand = operand_of(plan, tile);
    struct planned_tile *x = &plan->tile[tile];
    if (plan->s->call.in_place[operand])
        return true;
    if (x->slot < 0) {
        int32_t after[SCHEDULE_ENGINES] = {0};
        if (!take_slot(plan, operand, tile, after))
            return false;
        if (goes_up(plan, operand)) {
            const int at = tile - plan->base[operand], rows = plan->s->tiles[operand].rows;
            struct schedule_step *step = schedule_put(plan->s, UP);
            step->operand = (uint8_t)operand;
            step->i = at % rows;
            step->j = at / rows;
            step->slot = x->slot;
            memcpy(step->after, after, sizeof after);
            simulate(plan, step, x->up_ms);
            plan->left[UP] -= x->sent ? 0 : x->up_ms;
            x->sent = true;
            x->upload = plan->s->steps[UP];
        } else {
            kernel->after[DOWN] = after[DOWN];
        }
    } else {
        unlink_tile(plan, operand, tile);
    }
    link_newest(plan, operand, tile);
    x->used = plan->s->steps[COMPUTE] + 1; /* keeps its slot until then */
    if (kernel->after[UP] < x->upload)
        kernel->after[UP] = x->upload;
    return true;
}

/* Says in a kernel which of the other side it waits for: those that have changed what it reads, or
 * used what it changes. */
static void await_side(const struct schedule_plan *plan, const struct planned_kernel *task,
                       struct schedule_step *kernel)
{
    const bool side = schedule_goes_beside(plan->s, task->i, task->j);
    for (int n = 0; n < task->tiles; n++) {
        const int tile = task->tile[n], at = tile - plan->base[C];
        const struct planned_tile *x = &plan->tile[tile];
        const int rows = plan->s->tiles[C].rows;
        if (operand_of(plan, tile) != C)
            continue;
        const bool own = schedule_goes_beside(plan->s, at % rows, at / rows) == side;
        const int last = n == task->tiles - 1 ? x->by_side[!side] : own ? 0 : x->changed;
        if (kernel->after[COMPUTE] < last)
            kernel->after[COMPUTE] = last;
    }
}

/* Notes what a kernel that has been added uses. */
static void note_use(struct schedule_plan *plan, const struct planned_kernel *task)
{
    const bool side = schedule_goes_beside(plan->s, task->i, task->j);
    for (int n = 0; n < task->tiles; n++)
        plan->tile[task->tile[n]].by_side[side] = plan->s->steps[COMPUTE];
    plan->tile[result_of(task)].changed = plan->s->steps[COMPUTE];
}

/* Returns false if there are too few slots, or the schedule takes too long. */
static bool add_task(struct schedule_plan *plan, const struct planned_kernel *task)
{
    struct schedule_step kernel = {.engine = COMPUTE, .i = task->i, .j = task->j, .p = task->p};
    struct planned_tile *c = &plan->tile[result_of(task)];
    kernel.first = !c->begun;
    c->begun = true;
    for (int n = 0; n < task->tiles; n++)
        if (!bring_tile(plan, task->tile[n], &kernel))
            return false;
    kernel.last = --c->left == 0;
    plan->panel[task->j].left--;
    kernel.slot = c->slot;
    if (plan->has_sides)
        await_side(plan, task, &kernel);
    *schedule_put(plan->s, COMPUTE) = kernel;
    simulate(plan, &kernel, task->ms);
    plan->left[COMPUTE] -= task->ms;
    c->used = plan->s->steps[COMPUTE];
    if (plan->has_sides)
        note_use(plan, task);
    if (kernel.last && !plan->s->call.in_place[C]) {
        struct schedule_step *down = schedule_put(plan->s, DOWN);
        down->operand = C;
        down->i = task->i;
        down->j = task->j;
        down->slot = c->slot;
        down->after[COMPUTE] = plan->s->steps[COMPUTE];
        simulate(plan, down, copy_ms(plan, DOWN, result_of(task)));
        c->came_down = plan->s->steps[DOWN];
    }
    return least_ms(plan) <= plan->at_most;
}

/* Makes the steps of the tasks in their order. */
static bool make_steps(struct schedule_plan *plan)
{
    struct schedule *s = plan->s;
    const int per_task = SCHEDULE_SOURCES + 3; /* uploads, the kernel, a download */
    const size_t room =
        s->whole ? (size_t)(plan->tasks + plan->uploads + s->tiles[C].rows * s->tiles[C].cols)
                 : (size_t)(plan->tasks * per_task);
    double *ends = malloc((room + 1) * SCHEDULE_ENGINES * sizeof *ends);
    s->step = malloc(room * sizeof *s->step);
    bool made = s->step && ends;
    for (int n = 0; n < plan->tiles; n++) {
        plan->tile[n].slot = -1;
        plan->tile[n].upload = 0;
    }
    for (int x = A; x < OPERANDS; x++)
        plan->oldest[x] = plan->newest[x] = -1;
    if (made)
        simulate_start(&plan->sim, plan->rates, ends,
                       (const int[]){(int)room, (int)room, (int)room});
    for (int n = 0; made && n < plan->tasks; n++)
        made = add_task(plan, &plan->task[plan->order[n]]);
    free(ends);
    return made;
}

/* Adds what comes behind the last kernel to what is left, and returns whether a schedule with these
 * tiles may be fast enough. */
static bool may_be_fast(struct schedule_plan *plan)
{
    const struct schedule *s = plan->s;
    const int row = s->tiles[C].rows - 1, col = s->tiles[C].cols - 1, p = schedule_depths(s) - 1;
    double first = 0;
    for (int n = 1; plan->tasks > 0 && n <= plan->task[0].ready; n++)
        first += plan->tile[plan->upload[n].tile].up_ms;
    const double last = s->call.in_place[C] ? 0 : copy_ms(plan, DOWN, plan->tiles - 1);
    plan->left[COMPUTE] += last;
    plan->left[UP] += last + kernel_ms(plan, row, col, p);
    return first + plan->left[COMPUTE] <= plan->at_most && plan->left[UP] <= plan->at_most;
}

bool schedule_make_one(struct schedule *s, const struct schedule_rates *rates, double at_most)
{
    const double lag = schedule_lag_ms(s, rates);
    struct schedule_plan plan = {.s = s,
                                 .rates = rates,
                                 .head = schedule_head(s),
                                 .has_sides = schedule_has_sides(s),
                                 .at_most = at_most - lag};
    const size_t tasks =
        (size_t)s->tiles[A].rows * (size_t)s->tiles[C].cols * (size_t)schedule_depths(s);
    for (int x = A; x < OPERANDS; x++) {
        plan.base[x] = plan.tiles;
        plan.tiles += s->tiles[x].rows * s->tiles[x].cols;
    }
    plan.tile = calloc((size_t)plan.tiles, sizeof *plan.tile);
    plan.task = malloc(tasks * sizeof *plan.task);
    plan.order = malloc(2 * tasks * sizeof *plan.order);
    plan.panel = calloc((size_t)s->tiles[C].cols, sizeof *plan.panel);
    plan.upload = malloc(((size_t)plan.tiles + 1) * sizeof *plan.upload);
    bool made = plan.tile && plan.task && plan.order && plan.panel && plan.upload;
    if (made) {
        if (schedule_in_panels(&s->call))
            wish_for_panels(&plan);
        else if (s->whole && !s->call.in_place[C])
            wish_for_product(&plan);
        else
            wish_in_tiles(&plan);
        number_uploads(&plan);
        for (int t = 0; t < plan.tasks; t++)
            plan.order[t] = t;
        made = may_be_fast(&plan);
        if (made && s->whole && !s->call.in_place[C])
            order_by_arrival(&plan);
        made = made && make_steps(&plan);
    }
    free(plan.tile);
    free(plan.task);
    free(plan.order);
    free(plan.panel);
    free(plan.upload);
    if (made)
        s->ms = plan.sim.ms + lag;
    else
        schedule_free(s);
    return made;
}
