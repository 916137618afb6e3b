#include "schedule_plan.h"

#include <stdlib.h>
#include <string.h>

#include "schedule_clock.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };
enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

/* What there is while a schedule is made. */
struct cell {
    int upload;     /* the number of its (last) upload, from 1 on; 0: it needs none */
    int used;       /* the number of the last kernel that uses it, from 1 on */
    int by_side[2]; /* C: of the last one of either side */
    int changed;    /* C: of the last kernel that has changed it */
    bool begun;     /* C: a kernel has changed it */
    bool sent;      /* has come up once */
    int left;       /* C: kernels that it lacks */
    int came_down;  /* the number of its download, from 1 on */
    int place;      /* -1: none */
    /* The neighbours among the cells of its operand that have places, by their last use; -1:
     * none. */
    int older, newer;
};

struct planned_kernel {
    int i, j, p;
    int ready;                             /* the uploads that must be there */
    int rank;                              /* of its cell of C */
    int next;                              /* the next one with the same `ready`; -1: none */
    int cell[SCHEDULE_SOURCES + 1], cells; /* that it uses, that of C last */
};

struct schedule_plan {
    struct schedule *s;
    int base[OPERANDS], cells;
    struct cell *cell;
    int oldest[OPERANDS], newest[OPERANDS], taken[OPERANDS];
    struct planned_kernel *task;
    int tasks;
    int *order;           /* of the tasks */
    int *panel;           /* of each panel of C, the kernels that it lacks */
    int *upload, uploads; /* cells, in the order in which tasks wish for them */
    struct schedule_clock clock;
    bool has_sides;
    double at_most; /* milliseconds: a schedule that takes longer is not made to the end */
};

static int index_of_cell(const struct schedule_plan *plan, int operand, int i, int j)
{
    return plan->base[operand] + i + j * plan->s->cells[operand].rows;
}

static int result_of(const struct planned_kernel *task)
{
    return task->cell[task->cells - 1];
}

static int operand_of(const struct schedule_plan *plan, int cell)
{
    return cell < plan->base[B] ? A : cell < plan->base[C] ? B : C;
}

static void set_cells_of(const struct schedule_plan *plan, struct planned_kernel *task)
{
    struct schedule_source source[SCHEDULE_SOURCES];
    const int count = schedule_sources(plan->s, task->i, task->j, task->p, source);
    for (int n = 0; n < count; n++)
        task->cell[n] = index_of_cell(plan, source[n].operand, source[n].i, source[n].j);
    task->cell[count] = index_of_cell(plan, C, task->i, task->j);
    task->cells = count + 1;
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
    plan->task[plan->tasks++] = (struct planned_kernel){.i = i, .j = j, .p = p, .next = -1};
}

/* Tiles of C in growing squares from its first one: with each row and column of tiles that A and B
 * bring, as many as can be had. Of a triangle of which only the rectangle between two groups is
 * computed: that. */
static void wish_in_squares(struct schedule_plan *plan, int from, int to)
{
    const struct schedule_cells *c = &plan->s->cells[C];
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

/* Sets the tiles of C, by columns or rows, to and fro, so that the cells that were used last are
 * used next. Returns how many there are. */
static int number_tiles(struct schedule_plan *plan, int *tile)
{
    const struct schedule_cells *c = &plan->s->cells[C];
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

/* Returns how many tiles of C come together: one, or if C is kept, as many as have places, and if
 * these are not all, less those that come down meanwhile. */
static int tiles_together(const struct schedule_plan *plan, int tiles)
{
    enum { COMING_DOWN = 2 };
    const struct schedule *s = plan->s;
    if (s->by.factor != C || s->call.in_place[C])
        return 1;
    return s->places[C] >= tiles            ? tiles
           : s->places[C] > 2 * COMING_DOWN ? s->places[C] - COMING_DOWN
                                            : 1;
}

/* Of tiles that come together, a share of k first, so that A and B go by; then the rest of one tile
 * after the other, to and fro. */
static void wish_in_tiles(struct schedule_plan *plan)
{
    const int rows = plan->s->cells[C].rows, depths = schedule_depths(plan->s);
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
    return plan->s->call.kind == SCHEDULE_SOLVE ? row + 1 : plan->s->cells[A].rows - row;
}

/* Multiply computes a row of blocks before those that it needs, solve after them. */
static void wish_in_row(struct schedule_plan *plan, int row, int number, int j)
{
    const int last = plan->s->cells[A].rows - 1;
    const int other = plan->s->call.kind == SCHEDULE_SOLVE ? number : row + number;
    const bool ascends = schedule_ascends(&plan->s->call);
    wish(plan, ascends ? row : last - row, j, ascends ? other : last - other);
}

/* A row of blocks of the first panels in growing squares, as a product's tiles: with each cell of A
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
    const int blocks = plan->s->cells[A].rows, panels = plan->s->cells[C].cols;
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

static double up_ms(struct schedule_plan *plan, int cell)
{
    const int operand = operand_of(plan, cell), at = cell - plan->base[operand];
    const int rows = plan->s->cells[operand].rows;
    return clock_copy_ms(&plan->clock, UP, operand, at % rows, at / rows);
}

/* Numbers the uploads as the tasks wish for them, and the tiles of C by when they can be
 * finished. */
static void number_uploads(struct schedule_plan *plan)
{
    for (int t = 0; t < plan->tasks; t++) {
        struct planned_kernel *task = &plan->task[t];
        set_cells_of(plan, task);
        for (int n = 0; n < task->cells; n++) {
            struct cell *x = &plan->cell[task->cell[n]];
            if (x->upload == 0 && goes_up(plan, operand_of(plan, task->cell[n]))) {
                plan->upload[plan->uploads] = task->cell[n];
                x->upload = ++plan->uploads;
                plan->clock.left[UP] += up_ms(plan, task->cell[n]);
            }
            task->ready = task->ready > x->upload ? task->ready : x->upload;
        }
        struct cell *c = &plan->cell[result_of(task)];
        c->left++;
        plan->panel[task->j]++;
        c->used = task->ready > c->used ? task->ready : c->used; /* for its rank */
        plan->clock.left[COMPUTE] += clock_kernel_ms(&plan->clock, task->i, task->j, task->p);
    }
    for (int t = 0; t < plan->tasks; t++)
        plan->task[t].rank = plan->cell[result_of(&plan->task[t])].used;
    for (int n = 0; n < plan->cells; n++)
        plan->cell[n].used = 0;
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

/* A panel's tasks depend on each other: each waits for the one before it. */
static int task_before(const struct schedule_plan *plan, int t, int *latest)
{
    const int panel = plan->task[t].j, before = latest[panel];
    latest[panel] = t;
    return before;
}

/* Runs, of the tasks whose cells have arrived, the one whose tile can be finished first. */
static bool order_by_arrival(struct schedule_plan *plan)
{
    const struct schedule *s = plan->s;
    const bool chained = schedule_in_panels(&s->call);
    int *list =
        malloc((size_t)(plan->uploads + 1 + 3 * plan->tasks + s->cells[C].cols) * sizeof *list);
    if (!list)
        return false;
    int *follower = list + plan->uploads + 1, *waits = follower + plan->tasks;
    struct heap heap = {plan->task, waits + plan->tasks, 0};
    int *latest = heap.at + plan->tasks;
    for (int n = 0; n <= plan->uploads; n++)
        list[n] = -1;
    for (int j = 0; j < s->cells[C].cols; j++)
        latest[j] = -1;
    for (int t = 0; t < plan->tasks; t++) {
        const int before = chained ? task_before(plan, t, latest) : -1;
        follower[t] = -1;
        waits[t] = 1 + (before >= 0);
        if (before >= 0)
            follower[before] = t;
        plan->task[t].next = list[plan->task[t].ready];
        list[plan->task[t].ready] = t;
    }
    double now = 0, arrival = 0;
    for (int issued = 0, arrived = -1; issued < plan->tasks;) {
        while (arrived < plan->uploads && (heap.count == 0 || arrived < 0 || arrival <= now)) {
            if (++arrived > 0)
                now = heap.count == 0 && now < arrival ? arrival : now;
            for (int t = list[arrived]; t >= 0; t = plan->task[t].next)
                if (--waits[t] == 0)
                    push_task(&heap, t);
            if (arrived < plan->uploads)
                arrival += up_ms(plan, plan->upload[arrived]);
        }
        const int t = pop(&heap);
        const struct planned_kernel *task = &plan->task[t];
        now += clock_kernel_ms(&plan->clock, task->i, task->j, task->p);
        plan->order[issued++] = t;
        if (follower[t] >= 0 && --waits[follower[t]] == 0)
            push_task(&heap, follower[t]);
    }
    free(list);
    return true;
}

/* ---- Places and steps ---- */

static void unlink_cell(struct schedule_plan *plan, int operand, int cell)
{
    const struct cell *x = &plan->cell[cell];
    *(x->older >= 0 ? &plan->cell[x->older].newer : &plan->oldest[operand]) = x->newer;
    *(x->newer >= 0 ? &plan->cell[x->newer].older : &plan->newest[operand]) = x->older;
}

static void link_newest(struct schedule_plan *plan, int operand, int cell)
{
    struct cell *x = &plan->cell[cell];
    x->older = plan->newest[operand];
    x->newer = -1;
    *(x->older >= 0 ? &plan->cell[x->older].newer : &plan->oldest[operand]) = cell;
    plan->newest[operand] = cell;
}

static struct schedule_step *add_step(const struct schedule_plan *plan, int engine)
{
    struct schedule *s = plan->s;
    struct schedule_step *step = &s->step[s->count++];
    *step = (struct schedule_step){.engine = (uint8_t)engine};
    return step;
}

/* Returns whether a cell of C, or of a panel that is overwritten any of its cells, is not
 * finished. */
static bool is_needed(const struct schedule_plan *plan, int operand, int cell)
{
    if (operand != C)
        return false;
    return schedule_in_panels(&plan->s->call)
               ? plan->panel[(cell - plan->base[C]) / plan->s->cells[C].rows] > 0
               : plan->cell[cell].left > 0;
}

/* Gives a cell a place: a free one, or that of the cell that was used longest ago, of C a finished
 * one. Says in `after` what must be done before it is overwritten. Returns false if there is
 * none. */
static bool take_place(struct schedule_plan *plan, int operand, int cell,
                       int32_t after[SCHEDULE_ENGINES])
{
    struct cell *x = &plan->cell[cell];
    if (plan->taken[operand] < plan->s->places[operand]) {
        x->place = plan->taken[operand]++;
        return true;
    }
    const int victim = plan->oldest[operand];
    struct cell *old = victim >= 0 ? &plan->cell[victim] : NULL;
    if (!old || is_needed(plan, operand, victim) || old->used > plan->clock.sim.done[COMPUTE])
        return false;
    unlink_cell(plan, operand, victim);
    x->place = old->place;
    old->place = -1;
    after[COMPUTE] = old->used;
    after[DOWN] = operand == C ? old->came_down : 0;
    return true;
}

/* Makes sure that a cell is on the device for the next kernel, which waits for it. */
static bool bring_cell(struct schedule_plan *plan, int cell, struct schedule_step *kernel)
{
    const int operand = operand_of(plan, cell);
    struct cell *x = &plan->cell[cell];
    if (plan->s->call.in_place[operand])
        return true;
    if (x->place < 0) {
        int32_t after[SCHEDULE_ENGINES] = {0};
        if (!take_place(plan, operand, cell, after))
            return false;
        if (goes_up(plan, operand)) {
            const int at = cell - plan->base[operand], rows = plan->s->cells[operand].rows;
            struct schedule_step *step = add_step(plan, UP);
            step->operand = (uint8_t)operand;
            step->i = at % rows;
            step->j = at / rows;
            step->place = x->place;
            memcpy(step->after, after, sizeof after);
            const double ms = up_ms(plan, cell);
            clock_do(&plan->clock, step, ms);
            plan->clock.left[UP] -= x->sent ? 0 : ms;
            x->sent = true;
            x->upload = plan->clock.sim.done[UP];
        } else {
            kernel->after[DOWN] = after[DOWN];
        }
    } else {
        unlink_cell(plan, operand, cell);
    }
    link_newest(plan, operand, cell);
    x->used = plan->clock.sim.done[COMPUTE] + 1; /* keeps its place until then */
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
    for (int n = 0; n < task->cells; n++) {
        const int cell = task->cell[n], at = cell - plan->base[C];
        const struct cell *x = &plan->cell[cell];
        const int rows = plan->s->cells[C].rows;
        if (operand_of(plan, cell) != C)
            continue;
        const bool own = schedule_goes_beside(plan->s, at % rows, at / rows) == side;
        const int last = n == task->cells - 1 ? x->by_side[!side] : own ? 0 : x->changed;
        if (kernel->after[COMPUTE] < last)
            kernel->after[COMPUTE] = last;
    }
}

/* Notes what a kernel that has been added uses. */
static void note_use(struct schedule_plan *plan, const struct planned_kernel *task)
{
    const bool side = schedule_goes_beside(plan->s, task->i, task->j);
    for (int n = 0; n < task->cells; n++)
        plan->cell[task->cell[n]].by_side[side] = plan->clock.sim.done[COMPUTE];
    plan->cell[result_of(task)].changed = plan->clock.sim.done[COMPUTE];
}

/* Returns false if there are too few places, or the schedule takes too long. */
static bool add_task(struct schedule_plan *plan, const struct planned_kernel *task)
{
    struct schedule_step kernel = {.engine = COMPUTE, .i = task->i, .j = task->j, .p = task->p};
    struct cell *c = &plan->cell[result_of(task)];
    kernel.first = !c->begun;
    c->begun = true;
    for (int n = 0; n < task->cells; n++)
        if (!bring_cell(plan, task->cell[n], &kernel))
            return false;
    kernel.last = --c->left == 0;
    plan->panel[task->j]--;
    kernel.place = c->place;
    if (plan->has_sides)
        await_side(plan, task, &kernel);
    const double ms = clock_kernel_ms(&plan->clock, task->i, task->j, task->p);
    *add_step(plan, COMPUTE) = kernel;
    clock_do(&plan->clock, &kernel, ms);
    plan->clock.left[COMPUTE] -= ms;
    c->used = plan->clock.sim.done[COMPUTE];
    if (plan->has_sides)
        note_use(plan, task);
    if (kernel.last && !plan->s->call.in_place[C]) {
        struct schedule_step *down = add_step(plan, DOWN);
        down->operand = C;
        down->i = task->i;
        down->j = task->j;
        down->place = c->place;
        down->after[COMPUTE] = plan->clock.sim.done[COMPUTE];
        clock_do(&plan->clock, down, clock_copy_ms(&plan->clock, DOWN, C, down->i, down->j));
        c->came_down = plan->clock.sim.done[DOWN];
    }
    return clock_least(&plan->clock) <= plan->at_most;
}

/* Makes the steps of the tasks in their order. */
static bool make_steps(struct schedule_plan *plan)
{
    struct schedule *s = plan->s;
    const int per_task = SCHEDULE_SOURCES + 3; /* uploads, the kernel, a download */
    const size_t room =
        s->whole ? (size_t)(plan->tasks + plan->uploads + s->cells[C].rows * s->cells[C].cols)
                 : (size_t)(plan->tasks * per_task);
    struct simulate_span *spans = malloc((room + 1) * SCHEDULE_ENGINES * sizeof *spans);
    s->step = malloc(room * sizeof *s->step);
    bool made = s->step && spans;
    for (int n = 0; n < plan->cells; n++) {
        plan->cell[n].place = -1;
        plan->cell[n].upload = 0;
    }
    for (int x = A; x < OPERANDS; x++)
        plan->oldest[x] = plan->newest[x] = -1;
    if (made)
        simulate_start(&plan->clock.sim, plan->clock.rates, spans,
                       (const int[]){(int)room, (int)room, (int)room});
    for (int n = 0; made && n < plan->tasks; n++)
        made = add_task(plan, &plan->task[plan->order[n]]);
    memcpy(s->steps, plan->clock.sim.done, sizeof s->steps);
    free(spans);
    return made;
}

/* Adds what comes behind the last kernel to what is left, and returns whether a schedule with these
 * cells may be fast enough. */
static bool may_be_fast(struct schedule_plan *plan)
{
    const struct schedule *s = plan->s;
    const int row = s->cells[C].rows - 1, col = s->cells[C].cols - 1, p = schedule_depths(s) - 1;
    double first = 0;
    for (int n = 0; plan->tasks > 0 && n < plan->task[0].ready; n++)
        first += up_ms(plan, plan->upload[n]);
    const double last = s->call.in_place[C] ? 0 : clock_copy_ms(&plan->clock, DOWN, C, row, col);
    plan->clock.left[COMPUTE] += last;
    plan->clock.left[UP] += last + clock_kernel_ms(&plan->clock, row, col, p);
    return first + plan->clock.left[COMPUTE] <= plan->at_most &&
           plan->clock.left[UP] <= plan->at_most;
}

bool schedule_make_one(struct schedule *s, const struct schedule_rates *rates, double at_most)
{
    const double lag = schedule_lag_ms(s, rates);
    struct schedule_plan plan = {
        .s = s, .has_sides = schedule_has_sides(s), .at_most = at_most - lag};
    const size_t tasks =
        (size_t)s->cells[A].rows * (size_t)s->cells[C].cols * (size_t)schedule_depths(s);
    for (int x = A; x < OPERANDS; x++) {
        plan.base[x] = plan.cells;
        plan.cells += s->cells[x].rows * s->cells[x].cols;
    }
    clock_set(&plan.clock, s, rates);
    plan.cell = calloc((size_t)plan.cells, sizeof *plan.cell);
    plan.task = malloc(tasks * sizeof *plan.task);
    plan.order = malloc(tasks * sizeof *plan.order);
    plan.panel = calloc((size_t)s->cells[C].cols, sizeof *plan.panel);
    plan.upload = malloc((size_t)plan.cells * sizeof *plan.upload);
    bool made = plan.cell && plan.task && plan.order && plan.panel && plan.upload;
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
        made = may_be_fast(&plan) &&
               (!s->whole || s->call.in_place[C] || order_by_arrival(&plan)) && make_steps(&plan);
    }
    free(plan.cell);
    free(plan.task);
    free(plan.order);
    free(plan.panel);
    free(plan.upload);
    if (made)
        s->ms = plan.clock.sim.ms + lag;
    else
        schedule_free(s);
    return made;
}
