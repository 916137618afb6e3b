#include "schedule.h"

#include <stdlib.h>
#include <string.h>

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };
enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- Cells ---- */

/* Multiply and solve overwrite C, whose columns come down whole. */
static bool in_panels(const struct schedule_call *call)
{
    return call->kind == SCHEDULE_MULTIPLY || call->kind == SCHEDULE_SOLVE;
}

int schedule_result_row(const struct schedule *s, const struct schedule_step *step)
{
    return in_panels(&s->call) ? 0 : step->i;
}

static int pieces(int64_t all, int64_t step)
{
    return (int)((all + step - 1) / step);
}

static void set_cells(struct schedule *s)
{
    const struct schedule_call *call = &s->call;
    const bool rank_k = call->kind == SCHEDULE_RANK_K;
    const int rows = pieces(call->m, s->by.rows), cols = pieces(call->n, s->by.cols);
    const int depths = call->k > 0 ? pieces(call->k, s->by.depth) : 0;
    s->cells[A] = (struct schedule_cells){rows, depths};
    s->cells[B] = (struct schedule_cells){0, 0};
    s->cells[C] = (struct schedule_cells){in_panels(call) ? 1 : rows, cols};
    if (rank_k && call->two)
        s->cells[B] = s->cells[A];
    else if (!rank_k && !in_panels(call))
        s->cells[B] = (struct schedule_cells){depths, cols};
}

struct schedule_cell schedule_cell_of(const struct schedule *s, int operand, int i, int j)
{
    const struct schedule_call *call = &s->call;
    const bool across = operand == B && call->kind != SCHEDULE_RANK_K; /* its rows are along k */
    const int64_t all_rows = across ? call->k : call->m;
    const int64_t all_cols = operand == C || across ? call->n : call->k;
    const int64_t rows = across                            ? s->by.depth
                         : operand == C && in_panels(call) ? call->m
                                                           : s->by.rows;
    const int64_t cols = operand == C || across ? s->by.cols : s->by.depth;
    return (struct schedule_cell){i * rows, j * cols, least(rows, all_rows - i * rows),
                                  least(cols, all_cols - j * cols)};
}

/* The bytes that a cell has on the device: its columns are whole 64-byte lines, except those that are shorter than one. */
static int64_t cell_bytes(const struct schedule *s, int operand, int i, int j)
{
    const struct schedule_cell cell = schedule_cell_of(s, operand, i, j);
    const bool across = s->call.across[operand];
    const int64_t size = s->call.size[operand], line = 64 / size;
    const int64_t rows = across ? cell.cols : cell.rows, cols = across ? cell.rows : cell.cols;
    return (rows < line ? rows : (rows + line - 1) / line * line) * cols * size;
}

int schedule_sources(const struct schedule *s, int i, int j, int p,
                     struct schedule_source source[SCHEDULE_SOURCES])
{
    const enum schedule_kind kind = s->call.kind;
    int count = 0;
    if (s->call.k == 0)
        return 0;
    source[count++] = kind == SCHEDULE_SYMMETRIC && p > i ? (struct schedule_source){A, p, i}
                                                          : (struct schedule_source){A, i, p};
    if (kind == SCHEDULE_PRODUCT || kind == SCHEDULE_SYMMETRIC)
        source[count++] = (struct schedule_source){B, p, j};
    for (int factor = A; kind == SCHEDULE_RANK_K && factor <= (s->call.two ? B : A); factor++) {
        if (factor == B)
            source[count++] = (struct schedule_source){B, i, p};
        if (i != j)
            source[count++] = (struct schedule_source){factor, j, p};
    }
    return count;
}

/* ---- Times ---- */

static double copy_ms(const struct schedule *s, const struct schedule_rates *rates, int engine,
                      int operand, int i, int j)
{
    const struct schedule_cell cell = schedule_cell_of(s, operand, i, j);
    const double bytes = (double)cell.rows * (double)cell.cols * (double)s->call.size[operand];
    return rates->copy_ms + bytes / (engine == UP ? rates->up : rates->down) * 1e-6;
}

static double product_ms(const struct schedule_rates *rates, double terms, double shortest)
{
    return terms / (rates->compute * 1e6 * shortest / (shortest + rates->half));
}

/* The diagonal of a triangle costs half; of two factors, both products count. C alone is scaled in no time. */
static double kernel_ms(const struct schedule *s, const struct schedule_rates *rates, int i, int j,
                        int p)
{
    const struct schedule_call *call = &s->call;
    if (call->k == 0)
        return rates->kernel_ms;
    const int64_t rows = least(s->by.rows, call->m - i * s->by.rows),
                  cols = least(s->by.cols, call->n - j * s->by.cols);
    const int64_t depth = least(s->by.depth, call->k - p * s->by.depth);
    const bool half = (in_panels(call) && i == p) || (call->kind == SCHEDULE_RANK_K && i == j);
    const double terms = call->per_term * (double)rows * (double)cols * (double)depth *
                         (call->kind == SCHEDULE_RANK_K && call->two ? 2 : 1) * (half ? 0.5 : 1);
    return rates->kernel_ms + product_ms(rates, terms, (double)least(least(rows, cols), depth));
}

struct schedule_times schedule_simulate(const struct schedule *s,
                                        const struct schedule_rates *rates)
{
    struct schedule_times times = {.first = -1};
    double *ends[SCHEDULE_ENGINES] = {NULL}, before = 0;
    int done[SCHEDULE_ENGINES] = {0};
    double *memory = malloc((size_t)(s->count + SCHEDULE_ENGINES) * sizeof *memory);
    if (!memory)
        return times;
    for (int e = 0, at = 0; e < SCHEDULE_ENGINES; at += s->steps[e++] + 1) {
        ends[e] = memory + at; /* [0]: before the first step */
        ends[e][0] = 0;
    }
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        const int e = step->engine;
        const double ms = e == COMPUTE ? kernel_ms(s, rates, step->i, step->j, step->p)
                                       : copy_ms(s, rates, e, step->operand, step->i, step->j);
        double start = ends[e][done[e]];
        for (int other = 0; other < SCHEDULE_ENGINES; other++) {
            const double end = ends[other][step->after[other]] + rates->wait_ms;
            if (other != e && step->after[other] > 0 && start < end)
                start = end;
        }
        if (e == COMPUTE && times.first < 0)
            times.first = start;
        if (e == COMPUTE && done[e] == s->steps[e] - 1)
            before = ends[e][done[e]];
        ends[e][++done[e]] = start + ms;
        times.busy[e] += ms;
        if (e != COMPUTE) {
            const struct schedule_cell cell = schedule_cell_of(s, step->operand, step->i, step->j);
            times.bytes[e] +=
                (double)cell.rows * (double)cell.cols * (double)s->call.size[step->operand];
        }
        times.ms = times.ms < start + ms ? start + ms : times.ms;
    }
    times.last = times.ms - before;
    free(memory);
    return times;
}

double schedule_floor(const struct schedule_call *call, const struct schedule_rates *rates)
{
    struct schedule s = {.call = *call, .by = {call->m, call->n, call->k}};
    const bool square = in_panels(call) || call->kind == SCHEDULE_SYMMETRIC;
    const bool triangle = call->kind == SCHEDULE_RANK_K;
    const double a =
        (double)call->m * (double)call->k * (square ? 0.5e-6 : 1e-6) * (double)call->size[A];
    const double b = call->kind == SCHEDULE_RANK_K ? (call->two ? a : 0)
                     : in_panels(call)
                         ? 0
                         : (double)call->k * (double)call->n * 1e-6 * (double)call->size[B];
    const double c =
        (double)call->m * (double)call->n * (triangle ? 0.5e-6 : 1e-6) * (double)call->size[C];
    const double up = ((call->in_place[A] ? 0 : a) + (call->in_place[B] ? 0 : b) +
                       (call->reads && !call->in_place[C] ? c : 0)) /
                      rates->up;
    const double down = (call->in_place[C] ? 0 : c) / rates->down;
    const double compute = kernel_ms(&s, rates, 0, 0, 0) - rates->kernel_ms;
    const double longest = up > down ? up : down;
    return longest > compute ? longest : compute;
}

/* ---- A plan: what schedule_make() has while it makes a schedule ---- */

struct cell {
    int upload;    /* the number of its (last) upload, from 1 on; 0: it needs none */
    int used;      /* the number of the last kernel that uses it, from 1 on */
    int left;      /* C: kernels that it lacks */
    int came_down; /* the number of its download, from 1 on */
    int place;     /* -1: none */
    int older,
        newer; /* the neighbours among the cells of its operand that have places, by their last use; -1: none */
};

struct task {
    int i, j, p;
    int ready; /* the uploads that must be there */
    int rank;  /* of its cell of C */
    int next;  /* the next one with the same `ready`; -1: none */
};

struct plan {
    struct schedule *s;
    const struct schedule_rates *rates;
    int base[OPERANDS], cells;
    struct cell *cell;
    int oldest[OPERANDS], newest[OPERANDS], taken[OPERANDS];
    struct task *task;
    int tasks;
    int *order;           /* of the tasks */
    int *upload, uploads; /* cells, in the order in which tasks wish for them */
    int done[SCHEDULE_ENGINES];
};

static int index_of(const struct plan *plan, int operand, int i, int j)
{
    return plan->base[operand] + i + j * plan->s->cells[operand].rows;
}

static int result_of(const struct plan *plan, const struct task *task)
{
    return index_of(plan, C, in_panels(&plan->s->call) ? 0 : task->i, task->j);
}

static int operand_of(const struct plan *plan, int cell)
{
    return cell < plan->base[B] ? A : cell < plan->base[C] ? B : C;
}

/* Sets the cells that a task uses, that of C last, and returns their number. */
static int cells_of_task(const struct plan *plan, const struct task *task,
                         int cell[SCHEDULE_SOURCES + 1])
{
    struct schedule_source source[SCHEDULE_SOURCES];
    const int count = schedule_sources(plan->s, task->i, task->j, task->p, source);
    for (int n = 0; n < count; n++)
        cell[n] = index_of(plan, source[n].operand, source[n].i, source[n].j);
    cell[count] = result_of(plan, task);
    return count + 1;
}

static bool goes_up(const struct plan *plan, int operand)
{
    const struct schedule_call *call = &plan->s->call;
    return !call->in_place[operand] && (operand != C || call->reads);
}

/* ---- The order in which tasks are wished for ---- */

static int depths_of(const struct schedule *s)
{
    return s->call.k > 0 ? s->cells[A].cols : 1;
}

static void wish(struct plan *plan, int i, int j, int p)
{
    if (plan->s->call.kind == SCHEDULE_RANK_K && j > i)
        return;
    plan->task[plan->tasks++] = (struct task){.i = i, .j = j, .p = p, .next = -1};
}

/* Tiles of C in growing squares from its first one: with each row and column of tiles that A and B bring, as many as can be had. */
static void wish_in_squares(struct plan *plan, int from, int to)
{
    const struct schedule_cells *c = &plan->s->cells[C];
    const int turns = c->rows > c->cols ? c->rows : c->cols;
    int rows = 0, cols = 0;
    for (int turn = 1; turn <= turns; turn++) {
        const int new_rows = (c->rows * turn + turns - 1) / turns;
        const int new_cols = (c->cols * turn + turns - 1) / turns;
        for (int p = from; p < to; p++) {
            for (int j = 0; j < cols; j++)
                for (int i = rows; i < new_rows; i++)
                    wish(plan, i, j, p);
            for (int j = cols; j < new_cols; j++)
                for (int i = 0; i < new_rows; i++)
                    wish(plan, i, j, p);
        }
        rows = new_rows;
        cols = new_cols;
    }
}

/* A share of k for all of C first: that needs the least of A and B for each product, but finishes nothing. Then the rest, which
 * finishes tiles one after the other. */
static void wish_for_product(struct plan *plan)
{
    const int depths = depths_of(plan->s), first = depths * plan->s->by.share / 16;
    for (int p = 0; p < first; p++)
        wish_in_squares(plan, p, p + 1);
    wish_in_squares(plan, first, depths);
}

/* One tile of C after the other, to and fro, so that the cells that were used last are used next. */
static void wish_in_tiles(struct plan *plan)
{
    const struct schedule_cells *c = &plan->s->cells[C];
    const bool along_rows = plan->s->by.along_rows && !plan->s->call.in_place[C];
    const int outer = along_rows ? c->rows : c->cols, inner = along_rows ? c->cols : c->rows;
    const int depths = depths_of(plan->s);
    int turn = 0;
    for (int x = 0; x < outer; x++)
        for (int at = 0; at < inner; at++) {
            const int y = x % 2 ? inner - 1 - at : at, i = along_rows ? x : y;
            const int j = along_rows ? y : x;
            if (plan->s->call.kind == SCHEDULE_RANK_K && j > i)
                continue;
            for (int p = 0; p < depths; p++)
                wish(plan, i, j, turn % 2 ? depths - 1 - p : p);
            turn++;
        }
}

/* Multiply computes a row of blocks before those that it needs, solve after them. */
static void wish_for_row(struct plan *plan, int number, int j)
{
    const int blocks = plan->s->cells[A].rows;
    const bool solve = plan->s->call.kind == SCHEDULE_SOLVE, ascends = solve != plan->s->call.up;
    const int i = ascends ? number : blocks - 1 - number;
    if (!solve)
        wish(plan, i, j, i);
    for (int n = solve ? 0 : number + 1; n < (solve ? number : blocks); n++)
        wish(plan, i, j, ascends ? n : blocks - 1 - n);
    if (solve)
        wish(plan, i, j, i);
}

/* Some panels of C together, while A comes; then one panel after the other. In place, only one at a time: of others that have begun, nobody
 * would have the old values after a failure. */
static void wish_for_panels(struct plan *plan)
{
    const int blocks = plan->s->cells[A].rows, panels = plan->s->cells[C].cols;
    const bool one_by_one = plan->s->call.k == 0 || plan->s->call.in_place[C];
    const int together = one_by_one ? 0 : (panels * plan->s->by.share + 15) / 16;
    for (int number = 0; number < blocks && together > 0; number++)
        for (int j = 0; j < together; j++)
            wish_for_row(plan, number, j);
    for (int j = together; j < panels; j++)
        if (plan->s->call.k == 0)
            wish(plan, 0, j, 0);
        else
            for (int number = 0; number < blocks; number++)
                wish_for_row(plan, number, j);
}

/* Numbers the uploads as the tasks wish for them, and the tiles of C by when they can be finished. */
static void number_uploads(struct plan *plan)
{
    int cell[SCHEDULE_SOURCES + 1];
    for (int t = 0; t < plan->tasks; t++) {
        struct task *task = &plan->task[t];
        const int count = cells_of_task(plan, task, cell);
        for (int n = 0; n < count; n++) {
            struct cell *x = &plan->cell[cell[n]];
            if (x->upload == 0 && goes_up(plan, operand_of(plan, cell[n]))) {
                plan->upload[plan->uploads] = cell[n];
                x->upload = ++plan->uploads;
            }
            task->ready = task->ready > x->upload ? task->ready : x->upload;
        }
        struct cell *c = &plan->cell[cell[count - 1]];
        c->left++;
        c->used = task->ready > c->used ? task->ready : c->used; /* for number_tiles() */
    }
    for (int t = 0; t < plan->tasks; t++)
        plan->task[t].rank = plan->cell[result_of(plan, &plan->task[t])].used;
    for (int n = 0; n < plan->cells; n++)
        plan->cell[n].used = 0;
}

/* ---- The order in which they run ---- */

/* Tasks that can run: a heap, by the rank of their tiles, then as they are wished for. */
struct heap {
    const struct task *task;
    int *at, count;
};

static bool comes_before(const struct heap *heap, int a, int b)
{
    const int one = heap->task[a].rank, other = heap->task[b].rank;
    return one != other ? one < other : a < b;
}

static void push(struct heap *heap, int task)
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
static int task_before(const struct plan *plan, int t, int *latest)
{
    const int panel = plan->task[t].j, before = latest[panel];
    latest[panel] = t;
    return before;
}

/* Runs, of the tasks whose cells have arrived, the one whose tile can be finished first. */
static bool order_by_arrival(struct plan *plan)
{
    const struct schedule *s = plan->s;
    const bool chained = in_panels(&s->call);
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
                    push(&heap, t);
            if (arrived < plan->uploads) {
                const int cell = plan->upload[arrived], operand = operand_of(plan, cell);
                const int at = cell - plan->base[operand], rows = s->cells[operand].rows;
                arrival += copy_ms(s, plan->rates, UP, operand, at % rows, at / rows);
            }
        }
        const int t = pop(&heap);
        const struct task *task = &plan->task[t];
        now += kernel_ms(s, plan->rates, task->i, task->j, task->p);
        plan->order[issued++] = t;
        if (follower[t] >= 0 && --waits[follower[t]] == 0)
            push(&heap, follower[t]);
    }
    free(list);
    return true;
}

/* ---- Places and steps ---- */

static void unlink_cell(struct plan *plan, int operand, int cell)
{
    const struct cell *x = &plan->cell[cell];
    *(x->older >= 0 ? &plan->cell[x->older].newer : &plan->oldest[operand]) = x->newer;
    *(x->newer >= 0 ? &plan->cell[x->newer].older : &plan->newest[operand]) = x->older;
}

static void link_newest(struct plan *plan, int operand, int cell)
{
    struct cell *x = &plan->cell[cell];
    x->older = plan->newest[operand];
    x->newer = -1;
    *(x->older >= 0 ? &plan->cell[x->older].newer : &plan->oldest[operand]) = cell;
    plan->newest[operand] = cell;
}

static struct schedule_step *add_step(struct plan *plan, int engine)
{
    struct schedule *s = plan->s;
    struct schedule_step *step = &s->step[s->count++];
    *step = (struct schedule_step){.engine = (uint8_t)engine};
    plan->done[engine]++;
    return step;
}

/* Gives a cell a place: a free one, or that of the cell that was used longest ago, of C a finished one. Says in `after` what must be
 * done before it is overwritten. Returns false if there is none. */
static bool take_place(struct plan *plan, int operand, int cell, int32_t after[SCHEDULE_ENGINES])
{
    struct cell *x = &plan->cell[cell];
    if (plan->taken[operand] < plan->s->places[operand]) {
        x->place = plan->taken[operand]++;
        return true;
    }
    const int victim = plan->oldest[operand];
    struct cell *old = victim >= 0 ? &plan->cell[victim] : NULL;
    if (!old || old->left > 0 || old->used > plan->done[COMPUTE])
        return false;
    unlink_cell(plan, operand, victim);
    x->place = old->place;
    old->place = -1;
    after[COMPUTE] = old->used;
    after[DOWN] = operand == C ? old->came_down : 0;
    return true;
}

/* Makes sure that a cell is on the device for the next kernel, which waits for it. */
static bool bring_cell(struct plan *plan, int cell, struct schedule_step *kernel)
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
            x->upload = plan->done[UP];
        } else {
            kernel->after[DOWN] = after[DOWN];
        }
    } else {
        unlink_cell(plan, operand, cell);
    }
    link_newest(plan, operand, cell);
    x->used = plan->done[COMPUTE] + 1; /* keeps its place until then */
    if (kernel->after[UP] < x->upload)
        kernel->after[UP] = x->upload;
    return true;
}

static bool add_task(struct plan *plan, const struct task *task)
{
    struct schedule_step kernel = {.engine = COMPUTE, .i = task->i, .j = task->j, .p = task->p};
    int cell[SCHEDULE_SOURCES + 1];
    const int count = cells_of_task(plan, task, cell);
    struct cell *c = &plan->cell[cell[count - 1]];
    kernel.first = c->used == 0;
    for (int n = 0; n < count; n++)
        if (!bring_cell(plan, cell[n], &kernel))
            return false;
    kernel.last = --c->left == 0;
    kernel.place = c->place;
    c->used = plan->done[COMPUTE] + 1;
    *add_step(plan, COMPUTE) = kernel;
    if (!kernel.last || plan->s->call.in_place[C])
        return true;
    struct schedule_step *down = add_step(plan, DOWN);
    down->operand = C;
    down->i = in_panels(&plan->s->call) ? 0 : task->i;
    down->j = task->j;
    down->place = c->place;
    down->after[COMPUTE] = plan->done[COMPUTE];
    c->came_down = plan->done[DOWN];
    return true;
}

/* Makes the steps of the tasks in their order. */
static bool make_steps(struct plan *plan)
{
    struct schedule *s = plan->s;
    const int per_task = SCHEDULE_SOURCES + 3; /* uploads, the kernel, a download */
    const size_t room =
        s->whole ? (size_t)(plan->tasks + plan->uploads + s->cells[C].rows * s->cells[C].cols)
                 : (size_t)(plan->tasks * per_task);
    s->step = malloc(room * sizeof *s->step);
    for (int n = 0; n < plan->cells; n++) {
        plan->cell[n].place = -1;
        plan->cell[n].upload = 0;
    }
    for (int x = A; x < OPERANDS; x++)
        plan->oldest[x] = plan->newest[x] = -1;
    for (int n = 0; s->step && n < plan->tasks; n++)
        if (!add_task(plan, &plan->task[plan->order[n]]))
            return false;
    memcpy(s->steps, plan->done, sizeof s->steps);
    return s->step != NULL;
}

/* Returns the kernels: at most so many, of a triangle about half. */
static double tasks_of(const struct schedule *s)
{
    const double most = (double)s->cells[A].rows * s->cells[C].cols * depths_of(s);
    const bool half = s->call.kind == SCHEDULE_RANK_K || in_panels(&s->call);
    const double diagonal =
        s->call.k > 0 ? s->cells[C].cols * (double)s->cells[A].cols : (double)s->cells[A].rows;
    return half ? (most + diagonal) / 2 : most;
}

/* Makes the schedule of these cells and places. */
static bool make_one(struct schedule *s, const struct schedule_rates *rates)
{
    struct plan plan = {.s = s, .rates = rates};
    const size_t tasks = (size_t)s->cells[A].rows * (size_t)s->cells[C].cols * (size_t)depths_of(s);
    for (int x = A; x < OPERANDS; x++) {
        plan.base[x] = plan.cells;
        plan.cells += s->cells[x].rows * s->cells[x].cols;
    }
    plan.cell = calloc((size_t)plan.cells, sizeof *plan.cell);
    plan.task = malloc(tasks * sizeof *plan.task);
    plan.order = malloc(tasks * sizeof *plan.order);
    plan.upload = malloc((size_t)plan.cells * sizeof *plan.upload);
    bool made = plan.cell && plan.task && plan.order && plan.upload;
    if (made) {
        if (in_panels(&s->call))
            wish_for_panels(&plan);
        else if (s->whole && !s->call.in_place[C])
            wish_for_product(&plan);
        else
            wish_in_tiles(&plan);
        number_uploads(&plan);
        for (int t = 0; t < plan.tasks; t++)
            plan.order[t] = t;
        made = (!s->whole || s->call.in_place[C] || order_by_arrival(&plan)) && make_steps(&plan);
    }
    free(plan.cell);
    free(plan.task);
    free(plan.order);
    free(plan.upload);
    if (made)
        s->ms = schedule_simulate(s, rates).ms;
    else
        schedule_free(s);
    return made;
}

void schedule_free(struct schedule *s)
{
    free(s->step);
    s->step = NULL;
}

bool schedule_leave_out(struct schedule *s, int operand)
{
    int32_t *left = malloc((size_t)(s->steps[UP] + 1) * sizeof *left); /* of the first uploads */
    int uploads = 0, count = 0;
    if (!left)
        return false;
    left[0] = 0;
    for (int n = 0; n < s->count; n++) {
        struct schedule_step step = s->step[n];
        const bool goes = step.engine == UP && step.operand == operand;
        step.after[UP] = left[step.after[UP]];
        if (step.engine == UP) {
            left[uploads + 1] = left[uploads] + !goes;
            uploads++;
        }
        if (!goes)
            s->step[count++] = step;
    }
    s->count = count;
    s->steps[UP] = left[uploads];
    s->bytes -= s->places[operand] * s->place_bytes[operand];
    s->places[operand] = 0;
    s->call.in_place[operand] = true;
    free(left);
    return true;
}

/* ---- Sizes ---- */

/* Each operand has at least `buffers` times what one kernel uses: two cells of a factor of rank-k, else one. */
static int fewest_places(const struct schedule *s, int operand, int buffers)
{
    const int cells = s->cells[operand].rows * s->cells[operand].cols;
    const int wanted = buffers * (s->call.kind == SCHEDULE_RANK_K && operand != C ? 2 : 1);
    return cells < wanted ? cells : wanted;
}

/* Gives an operand as many places as it can use of what is left, at most so many. */
static void add_places(struct schedule *s, int operand, int64_t *left, int64_t at_most)
{
    const int64_t cells = s->cells[operand].rows * (int64_t)s->cells[operand].cols;
    if (s->place_bytes[operand] == 0)
        return;
    const int64_t wanted =
        least(least(cells, at_most) - s->places[operand], *left / s->place_bytes[operand]);
    if (wanted <= 0)
        return;
    s->places[operand] += (int)wanted;
    *left -= wanted * s->place_bytes[operand];
}

/* Chooses places for the cells. Returns false if the least do not fit. */
static bool choose_places(struct schedule *s, int64_t memory_bytes)
{
    const int factor = s->by.factor;
    int64_t left = memory_bytes, all = 0;
    for (int x = A; x < OPERANDS; x++) {
        const int64_t cells = s->cells[x].rows * (int64_t)s->cells[x].cols;
        s->place_bytes[x] = s->call.in_place[x] || cells == 0 ? 0 : cell_bytes(s, x, 0, 0);
        s->places[x] = s->place_bytes[x] > 0 ? fewest_places(s, x, s->by.buffers) : 0;
        left -= s->places[x] * s->place_bytes[x];
        all += cells * s->place_bytes[x];
    }
    s->whole = all <= memory_bytes;
    if (left < 0)
        return false;
    if (s->whole) {
        for (int x = A; x < OPERANDS; x++)
            add_places(s, x, &left, INT32_MAX);
    } else {
        add_places(s, factor, &left, factor == B ? 2 * (int64_t)s->cells[B].rows : INT32_MAX);
        add_places(s, A, &left, INT32_MAX);
        add_places(s, B, &left, INT32_MAX);
        add_places(s, C, &left, 4);
    }
    s->bytes = 0;
    for (int x = A; x < OPERANDS; x++)
        s->bytes += s->places[x] * s->place_bytes[x];
    return true;
}

/* Divides a size into equal steps of about `step`, long ones of whole lines; none is longer than `longest`, itself
 * below 64 or of whole lines. */
static int64_t even(int64_t all, int64_t step, int64_t longest)
{
    step = least(step, longest);
    const int64_t line = step < 64 ? 1 : 64;
    if (all <= step || all <= 1)
        return most(all, 1);
    const int64_t parts =
        most((all + step / 2) / most(step, 1), (all + longest - 1) / most(longest, 1));
    const int64_t each = (all + parts - 1) / parts;
    return (each + line - 1) / line * line;
}

/* Sets the cells' sizes: tiles of about side x side / aspect, longer where C is narrow. */
static void set_sizes(struct schedule *s, int64_t side, int64_t aspect, int64_t depth)
{
    const struct schedule_call *call = &s->call;
    const int64_t rows = most(side, side * side / most(call->n, 1));
    const int64_t cols = most(most(side, side * side / most(call->m, 1)) / aspect, 1);
    /* The device's BLAS may have 32-bit sizes. */
    const int64_t longest = call->most > 0 ? least(call->most, 1 << 30) : 1 << 30;
    s->by.rows = even(call->m, call->kind == SCHEDULE_PRODUCT ? rows : side, longest);
    if (call->kind == SCHEDULE_RANK_K && call->in_place[C])
        s->by.rows = most(call->m, 1); /* one block: a part of it could not be computed anew */
    s->by.cols = call->kind == SCHEDULE_RANK_K
                     ? s->by.rows
                     : even(call->n, cols, call->widest > 0 ? call->widest : longest);
    s->by.depth =
        call->kind == SCHEDULE_PRODUCT || call->kind == SCHEDULE_RANK_K
            ? even(call->k, most(depth, depth * depth / most(least(s->by.rows, s->by.cols), 1)),
                   longest)
            : s->by.rows;
    set_cells(s);
}

static void keep_better(struct schedule *best, struct schedule *s)
{
    if (best->step && best->ms <= s->ms) {
        schedule_free(s);
        return;
    }
    schedule_free(best);
    *best = *s;
}

enum { SMALL_CELL = 64 };

/* Returns a time that no schedule with these cells is below: the kernels one after the other, or a copy of all cells. */
static double bound_of(const struct schedule *s, const struct schedule_rates *rates)
{
    const double tasks = tasks_of(s) * (s->call.kind == SCHEDULE_PRODUCT ? 1 : 0.9);
    const double copies = (double)s->cells[A].rows * s->cells[A].cols * 0.5 * rates->copy_ms;
    const double floor = schedule_floor(&s->call, rates);
    const struct schedule full = {.call = s->call, .by = {s->call.m, s->call.n, s->call.k}};
    const int64_t depth = s->call.k > 0 ? s->by.depth : 1;
    const double shortest = (double)least(least(s->by.rows, s->by.cols), depth);
    const double whole =
        (double)least(least(full.by.rows, full.by.cols), full.by.depth > 0 ? full.by.depth : 1);
    const double slower = shortest / (shortest + rates->half) * (whole + rates->half) / whole;
    const double kernels =
        (kernel_ms(&full, rates, 0, 0, 0) - rates->kernel_ms) / slower + tasks * rates->kernel_ms;
    return kernels > floor + copies ? kernels : floor + copies;
}

/* Trying one schedule takes about as long as so many of its tasks. */
enum { TRY_TASKS = 8 };

/* Tries schedules of these cells: where memory is short, with either factor kept, by columns and by rows of tiles. Only small cells that
 * would not fit else have one place: then nothing is filled while it is used. left: so many tasks may be tried; less those that were. */
static void try_sizes(struct schedule *best, const struct schedule *cells,
                      const struct schedule_rates *rates, int64_t memory_bytes, double *left)
{
    static const int shares[] = {0, 8, 5, 3};
    const bool small = cells->by.rows <= SMALL_CELL && cells->by.cols <= SMALL_CELL;
    const bool is_one = tasks_of(cells) == 1;
    if (best->step && bound_of(cells, rates) >= best->ms)
        return;
    for (int factor = A; factor <= B; factor++)
        for (int way = 0; way < 4; way++) {
            struct schedule s = *cells;
            s.by.factor = factor;
            s.by.buffers = 2;
            s.by.share = shares[way];
            s.by.along_rows = way;
            bool fits = choose_places(&s, memory_bytes);
            if (!fits && small) {
                s.by.buffers = 1;
                fits = choose_places(&s, memory_bytes);
            }
            if (!fits)
                return;
            if ((s.whole && factor == B) || (!s.whole && way > 1) || (way > 0 && is_one))
                break;
            *left -= tasks_of(&s) + TRY_TASKS;
            if (make_one(&s, rates))
                keep_better(best, &s);
        }
}

/* A call that moves fewer bytes is one kernel: packing and copying it takes about as long as to start them. */
#define DIVIDED_BYTES 4e6

static double bytes_of(const struct schedule_call *call)
{
    const bool one_factor = call->kind == SCHEDULE_RANK_K && !call->two;
    const double a = (double)call->m * (double)call->k, b = (double)call->k * (double)call->n;
    const double c = (double)call->m * (double)call->n;
    return (call->in_place[A] ? 0 : a * (double)call->size[A]) +
           (call->in_place[B] || one_factor ? 0 : b * (double)call->size[B]) +
           (call->in_place[C] ? 0 : c * (double)call->size[C]);
}

/* A schedule has at most so many kernels for each millisecond of the floor, within limits, and where there are few, more: it must be made
 * in a small part of the call's time. If memory is so short that none has so few, the one with the largest cells is taken. */
enum {
    TRIED_EACH_MS =
        1000, /* tasks, of all schedules that are tried: they take about a twentieth of the floor */
    TASKS_EACH_MS = 16,
    FEWEST_TASKS = 16,
    FEW_TASKS = 64,
    MANY_TASKS = 640,
    MOST_TASKS = 1 << 16
};

/* Returns whether a call is one kernel, if that fits: copies and kernels of a small one take about as long as to start them. After a failure,
 * a result in place that is computed in parts would be lost. */
static bool stays_whole(const struct schedule_call *call)
{
    return bytes_of(call) < DIVIDED_BYTES || call->in_place[C];
}

enum { ASPECTS = 4, DEPTHS = 2, RECENT = ASPECTS * DEPTHS };

/* The cells' sizes that came last: large ones are often the same. */
struct recent {
    int64_t size[RECENT][3];
    int count;
};

static bool is_new(struct recent *recent, const struct schedule *s)
{
    const int64_t size[] = {s->by.rows, s->by.cols, s->by.depth};
    for (int n = 0; n < RECENT; n++)
        if (memcmp(recent->size[n], size, sizeof size) == 0)
            return false;
    memcpy(recent->size[recent->count++ % RECENT], size, sizeof size);
    return true;
}

static double most_tasks(const struct schedule_call *call, const struct schedule_rates *rates)
{
    const double ms = schedule_floor(call, rates);
    if (ms * FEW_TASKS < FEWEST_TASKS)
        return FEWEST_TASKS;
    if (ms < 1)
        return ms * FEW_TASKS;
    return ms * TASKS_EACH_MS < FEW_TASKS    ? FEW_TASKS
           : ms * TASKS_EACH_MS > MANY_TASKS ? MANY_TASKS
                                             : ms * TASKS_EACH_MS;
}

bool schedule_make(struct schedule *best, const struct schedule_call *call,
                   const struct schedule_rates *rates, int64_t memory_bytes)
{
    static const int64_t sides[] = {INT32_MAX / 2, 8192, 6144, 4096, 3072, 2048, 1536, 1024,
                                    768,           512,  384,  256,  128,  64,   32,   16};
    const bool shaped = call->kind == SCHEDULE_PRODUCT || call->kind == SCHEDULE_RANK_K;
    const double limit = most_tasks(call, rates);
    double left = schedule_floor(call, rates) * TRIED_EACH_MS;
    struct recent recent = {.count = 0};
    *best = (struct schedule){.call = *call};
    for (int n = 0; n < (int)(sizeof sides / sizeof *sides); n++)
        for (int aspect = 0; aspect < (call->kind == SCHEDULE_RANK_K ? 1 : ASPECTS); aspect++)
            for (int deeper = 1; deeper <= (shaped ? DEPTHS : 1); deeper++) {
                struct schedule s = {.call = *call};
                if (best->step && (stays_whole(call) || left <= 0))
                    return true;
                set_sizes(&s, sides[n], 1 << aspect, most(sides[n] / deeper, 1));
                if (!is_new(&recent, &s))
                    continue;
                if (tasks_of(&s) <= (best->step ? limit : MOST_TASKS))
                    try_sizes(best, &s, rates, memory_bytes, &left);
            }
    return best->step != NULL;
}

bool schedule_make_by(struct schedule *s, const struct schedule_choice *choice,
                      const struct schedule_call *call, const struct schedule_rates *rates,
                      int64_t memory_bytes)
{
    *s = (struct schedule){.call = *call, .by = *choice};
    set_cells(s);
    return choose_places(s, memory_bytes) && make_one(s, rates);
}
