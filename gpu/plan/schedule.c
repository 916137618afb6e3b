#include "schedule_plan.h"

#include <stdlib.h>

#include "call/call.h"
#include "gpu/pack/chunks.h"
#include "simulate.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };
enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE };

/* Of the calling thread: by a trace of calls on an H100 with 16 CPUs, each chunk takes 6 us, and a
 * product's kernel 12 to 20, above all in cuBLAS. Columns of 2 KB are packed there at half the rate
 * of long ones, of 5 KB at 9 parts of 10, which come up at 48 GB/s. By a triangle, many small
 * kernels solve, which take as long for 50 columns as for 800: 0.3 ms for 640 to 800 rows on an
 * H200 (cuBLAS 13.1), of which an H100 solves 9 elements of double precision in a nanosecond where
 * there are 4096 columns and more. */
const struct schedule_rates schedule_nominal = {
    .up = 25,
    .down = 25,
    .compute = 10e3,
    .half = 128,
    .copy_ms = 0.002,
    .kernel_ms = 0.005,
    .wait_ms = 0.01,
    .row_ms = 0.0004,
    .solve = 72,
    .call_ms = 0.004,
    .chunk_share = 0.15,
    .launch_ms = 0.015,
    .short_up = {6656, 6.5e-5},
};

/* ---- Tiles ---- */

static int chunks(int64_t all, int64_t step)
{
    return (int)((all + step - 1) / step);
}

bool schedule_ascends(const struct schedule_call *call)
{
    return (call->kind == SCHEDULE_SOLVE) != call->up;
}

int schedule_head(const struct schedule *s)
{
    return s->call.head > 0 ? chunks(s->call.head, s->by.rows) : 0;
}

bool schedule_computes(const struct schedule *s, int i, int j)
{
    const int head = schedule_head(s);
    if (s->call.kind != SCHEDULE_RANK_K)
        return true;
    const unsigned block = i < head ? SCHEDULE_HEAD : j < head ? SCHEDULE_BETWEEN : SCHEDULE_TAIL;
    return j <= i && !(s->call.omits & block);
}

bool schedule_has_sides(const struct schedule *s)
{
    const struct schedule_tiles *tiles = &s->tiles[SCHEDULE_C];
    return (tiles->rows > 1 || tiles->cols > 1) && s->whole && !s->call.in_place[SCHEDULE_C] &&
           s->call.kind != SCHEDULE_BATCH;
}

bool schedule_goes_beside(const struct schedule *s, int i, int j)
{
    return schedule_has_sides(s) && (i + j) % 2 == 1;
}

/* Sets where tile number i of an extent begins, and how long it is, if tiles are `step` long, and a
 * new one begins at `edge`. */
static void span_of(int64_t all, int64_t edge, int64_t step, int i, int64_t *at, int64_t *length)
{
    const int before = edge > 0 ? chunks(edge, step) : 0;
    *at = i < before ? i * step : edge + (i - before) * step;
    *length = accel_min(step, (i < before ? edge : all) - *at);
}

struct schedule_tile schedule_tile_of(const struct schedule *s, int operand, int i, int j)
{
    const struct schedule_call *call = &s->call;
    if (call->kind == SCHEDULE_BATCH)
        return schedule_group_tile(s, operand, j);
    const bool across = operand == B && call->kind != SCHEDULE_RANK_K; /* its rows are along k */
    const int64_t all_rows = across ? call->k : call->m;
    const int64_t all_cols = operand == C || across ? call->n : call->k;
    const int64_t rows = across ? s->by.depth : s->by.rows;
    const int64_t cols = operand == C || across ? s->by.cols : s->by.depth;
    struct schedule_tile tile;
    span_of(all_rows, across ? 0 : call->head, rows, i, &tile.row, &tile.rows);
    span_of(all_cols, operand == C ? call->head : 0, cols, j, &tile.col, &tile.cols);
    return tile;
}

int schedule_sources(const struct schedule *s, int i, int j, int p,
                     struct schedule_source source[SCHEDULE_SOURCES])
{
    const enum schedule_kind kind = s->call.kind;
    int count = 0;
    if (s->call.k == 0)
        return 0;
    if (s->call.one_way) {
        source[count++] = (struct schedule_source){A, s->call.up ? j : i, p};
        source[count++] = (struct schedule_source){B, s->call.up ? i : j, p};
        return count;
    }
    source[count++] = kind == SCHEDULE_SYMMETRIC && p > i ? (struct schedule_source){A, p, i}
                                                          : (struct schedule_source){A, i, p};
    if (kind == SCHEDULE_PRODUCT || kind == SCHEDULE_SYMMETRIC)
        source[count++] = (struct schedule_source){B, p, j};
    else if (schedule_in_panels(&s->call) && p != i)
        source[count++] = (struct schedule_source){C, p, j};
    for (int factor = A; kind == SCHEDULE_RANK_K && factor <= (s->call.two ? B : A); factor++) {
        if (factor == B)
            source[count++] = (struct schedule_source){B, i, p};
        if (i != j)
            source[count++] = (struct schedule_source){factor, j, p};
    }
    return count;
}

void schedule_set_tiles(struct schedule *s)
{
    const struct schedule_call *call = &s->call;
    const bool rank_k = call->kind == SCHEDULE_RANK_K;
    const int rows = schedule_head(s) + chunks(call->m - call->head, s->by.rows);
    const int cols = rank_k ? rows : chunks(call->n, s->by.cols);
    const int depths = call->k > 0 ? chunks(call->k, s->by.depth) : 0;
    s->tiles[A] = (struct schedule_tiles){rows, depths};
    s->tiles[B] = (struct schedule_tiles){0, 0};
    s->tiles[C] = (struct schedule_tiles){rows, cols};
    if (rank_k && call->two)
        s->tiles[B] = s->tiles[A];
    else if (!rank_k && !schedule_in_panels(call))
        s->tiles[B] = (struct schedule_tiles){depths, cols};
}

int schedule_depths(const struct schedule *s)
{
    return s->call.k > 0 ? s->tiles[A].cols : 1;
}

/* ---- Times ---- */

/* Returns a tile's bytes as they come from another device. */
static double whole_bytes(const struct schedule *s, int operand, const struct schedule_tile *tile)
{
    return (double)tile->rows * (double)tile->cols * (double)s->call.size[operand];
}

static bool is_triangle(const struct schedule *s, int operand, int i, int j)
{
    const enum schedule_kind kind = s->call.kind;
    const int triangle = kind == SCHEDULE_RANK_K                                      ? C
                         : kind == SCHEDULE_SYMMETRIC || schedule_in_panels(&s->call) ? A
                                                                                      : OPERANDS;
    return operand == triangle && i == j;
}

/* Returns the bytes of tile (i, j) that cross the link. */
static double sent_bytes(const struct schedule *s, int operand, int i, int j,
                         const struct schedule_tile *tile)
{
    return is_triangle(s, operand, i, j) && tile->rows == tile->cols
               ? (double)chunks_triangle_sent(tile->rows, s->call.size[operand])
               : whole_bytes(s, operand, tile);
}

double schedule_tile_bytes(const struct schedule *s, int operand, int i, int j)
{
    const struct schedule_tile tile = schedule_tile_of(s, operand, i, j);
    return sent_bytes(s, operand, i, j, &tile);
}

/* Returns what the columns in which a tile is packed, or unpacked, take besides. One with all rows
 * of its matrix is mostly one run of memory. */
static double columns_ms(const struct schedule *s, const struct short_columns *x, int operand,
                         const struct schedule_tile *tile)
{
    const struct schedule_call *call = &s->call;
    const bool across = operand == B && call->kind != SCHEDULE_RANK_K; /* its rows are along k */
    const int64_t rows = across ? call->k : call->m,
                  cols = operand == C || across ? call->n : call->k;
    if (call->kind == SCHEDULE_BATCH)
        return 0;
    const bool is_across = call->across[operand];
    if (is_across ? tile->cols >= cols : tile->rows >= rows)
        return 0;
    const double bytes = (double)((is_across ? tile->cols : tile->rows) * call->size[operand]);
    return (double)(is_across ? tile->rows : tile->cols) * short_columns_ms(x, bytes);
}

/* Returns the milliseconds of a tile's bytes and columns. */
static double way_ms(const struct schedule *s, double gbps, const struct short_columns *x,
                     int operand, int i, int j)
{
    const struct schedule_tile tile = schedule_tile_of(s, operand, i, j);
    return sent_bytes(s, operand, i, j, &tile) / gbps * 1e-6 + columns_ms(s, x, operand, &tile);
}

double schedule_upload_ms(const struct schedule *s, const struct schedule_rates *rates, int operand,
                          int i, int j)
{
    return way_ms(s, rates->up, &rates->short_up, operand, i, j) + rates->copy_ms;
}

double schedule_copy_ms(const struct schedule *s, const struct schedule_rates *rates, int engine,
                        int operand, int i, int j)
{
    if (engine != UP)
        return way_ms(s, rates->down, &rates->short_down, operand, i, j) + rates->copy_ms;
    const double lent = s->call.lent[operand], own = schedule_upload_ms(s, rates, operand, i, j);
    if (!(lent > 0))
        return own;
    const struct schedule_tile tile = schedule_tile_of(s, operand, i, j);
    const double from_other = rates->copy_ms + whole_bytes(s, operand, &tile) / rates->peer * 1e-6;
    return own * (1 - lent) + from_other * lent;
}

double schedule_product_ms(const struct schedule_rates *rates, double terms, double shortest)
{
    return terms / (rates->compute * 1e6 * shortest / (shortest + rates->half));
}

/* Returns whether a kernel has to do with a block on a diagonal, of which it computes, or reads, a
 * triangle. */
static bool is_on_diagonal(const struct schedule_call *call, int i, int j, int p)
{
    return (schedule_in_panels(call) && i == p) || (call->kind == SCHEDULE_RANK_K && i == j);
}

/* Returns the milliseconds of a kernel as if all numbers of rows had one pace. */
static double even_kernel_ms(const struct schedule *s, const struct schedule_rates *rates, int i,
                             int j, int p)
{
    const struct schedule_call *call = &s->call;
    if (call->k == 0)
        return rates->kernel_ms;
    if (call->kind == SCHEDULE_BATCH) {
        const int64_t products = schedule_group_start(s, j + 1) - schedule_group_start(s, j);
        const double all =
            call->per_term * (double)call->m * (double)call->n * (double)call->k * (double)products;
        return rates->kernel_ms +
               schedule_product_ms(rates, all,
                                   (double)accel_min(accel_min(call->m, call->n), call->k));
    }
    const struct schedule_tile of_a = schedule_tile_of(s, A, i, p);
    const int64_t rows = of_a.rows, cols = schedule_tile_of(s, C, 0, j).cols;
    const int64_t depth = accel_min(s->by.depth, call->k - p * s->by.depth);
    const double terms = call->per_term * (double)rows * (double)cols * (double)depth *
                         (call->kind == SCHEDULE_RANK_K && call->two ? 2 : 1) *
                         (is_on_diagonal(call, i, j, p) ? 0.5 : 1);
    return rates->kernel_ms + schedule_solve_ms(s, rates, i, j, p) +
           schedule_product_ms(rates, terms, (double)accel_min(accel_min(rows, cols), depth));
}

/* Returns the pace of a kernel that is one product; 1 of others. The device sees the columns of a
 * transposed tile as rows. */
static double pace_of(const struct schedule *s, const struct schedule_rates *rates, int i, int j,
                      int p)
{
    const struct schedule_call *call = &s->call;
    if (call->k == 0 || call->kind == SCHEDULE_BATCH || is_on_diagonal(call, i, j, p))
        return 1;
    return block_pace(&rates->paces, call->across[C] ? schedule_tile_of(s, C, 0, j).cols
                                                     : schedule_tile_of(s, A, i, p).rows);
}

double schedule_kernel_ms(const struct schedule *s, const struct schedule_rates *rates, int i,
                          int j, int p)
{
    const double ms = even_kernel_ms(s, rates, i, j, p) - rates->kernel_ms;
    return rates->kernel_ms + ms / pace_of(s, rates, i, j, p);
}

void schedule_set_solving(struct schedule_rates *rates, const struct schedule_solving by[2],
                          int64_t own_nrhs)
{
    if (by[0].gbps > 0)
        rates->solve = by[0].gbps;
    if (by[0].row_ms > 0)
        rates->row_ms = by[0].row_ms;
    rates->own_solve = by[1].gbps;
    rates->own_row_ms = by[1].row_ms;
    rates->own_nrhs = own_nrhs;
}

static bool is_by_own(const struct schedule_call *call, const struct schedule_rates *rates,
                      int64_t rows, int64_t nrhs)
{
    return rates->own_nrhs > 0 && nrhs >= rates->own_nrhs && rows >= SCHEDULE_OWN_LEAST &&
           !call->in_place[C];
}

static struct schedule_solving solving_of(const struct schedule_rates *rates, bool own)
{
    return own ? (struct schedule_solving){rates->own_solve, rates->own_row_ms}
               : (struct schedule_solving){rates->solve, rates->row_ms};
}

static double solving_ms(struct schedule_solving solving, double rows, double bytes)
{
    const double chain = rows * solving.row_ms,
                 through = solving.gbps > 0 ? bytes / solving.gbps * 1e-6 : 0;
    return chain > through ? chain : through;
}

/* Returns the rows by which a kernel solves; 0: it does not. */
static int64_t solved_rows(const struct schedule *s, int i, int p)
{
    return s->call.kind == SCHEDULE_SOLVE && i == p ? schedule_tile_of(s, A, i, p).rows : 0;
}

/* Of our own, the calling thread puts a kernel and a product for each triangle on the stream. */
double schedule_chain_ms(const struct schedule *s, const struct schedule_rates *rates, int i, int j,
                         int p)
{
    const int64_t rows = solved_rows(s, i, p);
    if (rows == 0)
        return 0;
    return is_by_own(&s->call, rates, rows, schedule_tile_of(s, C, 0, j).cols)
               ? 2 * rates->launch_ms * chunks(rows, SCHEDULE_OWN_ROWS)
               : rates->row_ms * (double)rows;
}

double schedule_solve_ms(const struct schedule *s, const struct schedule_rates *rates, int i, int j,
                         int p)
{
    const int64_t rows = solved_rows(s, i, p);
    if (rows == 0)
        return 0;
    const int64_t nrhs = schedule_tile_of(s, C, 0, j).cols;
    return solving_ms(solving_of(rates, is_by_own(&s->call, rates, rows, nrhs)), (double)rows,
                      (double)(rows * nrhs) * (double)s->call.size[C]);
}

double schedule_least_solve_ms(const struct schedule_call *call, const struct schedule_rates *rates)
{
    const double rows = (double)call->m, bytes = rows * (double)call->n * (double)call->size[C];
    const double blas = solving_ms(solving_of(rates, false), rows, bytes),
                 own = is_by_own(call, rates, call->m, call->n)
                           ? solving_ms(solving_of(rates, true), rows, bytes)
                           : blas;
    return call->kind != SCHEDULE_SOLVE ? 0 : blas < own ? blas : own;
}

static double step_ms(const void *schedule, const struct schedule_rates *rates,
                      const struct schedule_step *step, double *bytes, double *chain_ms)
{
    const struct schedule *s = schedule;
    if (step->engine == COMPUTE) {
        *chain_ms = schedule_chain_ms(s, rates, step->i, step->j, step->p);
        return schedule_kernel_ms(s, rates, step->i, step->j, step->p);
    }
    *bytes = schedule_tile_bytes(s, step->operand, step->i, step->j);
    if (step->engine == UP)
        *bytes *= 1 - s->call.lent[step->operand];
    return schedule_copy_ms(s, rates, step->engine, step->operand, step->i, step->j);
}

double schedule_lag_ms(const struct schedule *s, const struct schedule_rates *rates)
{
    double bytes = 0;
    for (int x = A; x < OPERANDS; x++)
        bytes += s->call.lent[x] > 0 ? schedule_tile_bytes(s, x, 0, 0) : 0;
    return bytes / rates->up * 1e-6;
}

struct schedule_times schedule_simulate(const struct schedule *s,
                                        const struct schedule_rates *rates)
{
    struct schedule_times times = simulate_steps(s, rates, step_ms, s);
    if (times.first < 0)
        return times;
    const double lag = schedule_lag_ms(s, rates);
    times.first += lag;
    times.ms += lag;
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        const double lent = step->engine == UP ? s->call.lent[step->operand] : 0;
        if (!(lent > 0))
            continue;
        const struct schedule_tile tile = schedule_tile_of(s, step->operand, step->i, step->j);
        times.lent_bytes += lent * whole_bytes(s, step->operand, &tile);
    }
    return times;
}

/* Returns how much of a triangle is computed. */
static double computed_share(const struct schedule_call *call)
{
    const double head = call->m > 0 ? (double)call->head / (double)call->m : 0, tail = 1 - head;
    return 1 - (call->omits & SCHEDULE_HEAD ? head * head : 0) -
           (call->omits & SCHEDULE_BETWEEN ? 2 * head * tail : 0) -
           (call->omits & SCHEDULE_TAIL ? tail * tail : 0);
}

/* Returns a call as one block. */
static struct schedule as_whole(const struct schedule_call *call)
{
    const bool batch = call->kind == SCHEDULE_BATCH;
    struct schedule s = {
        .call = *call,
        .by = {.rows = call->m, .cols = batch ? call->products : call->n, .depth = call->k}};
    s.call.head = 0;
    return s;
}

double schedule_whole_ms(const struct schedule_call *call, const struct schedule_rates *rates)
{
    const struct schedule s = as_whole(call);
    return rates->kernel_ms +
           computed_share(call) * (even_kernel_ms(&s, rates, 0, 0, 0) - rates->kernel_ms);
}

double schedule_compute(const struct schedule_call *call, const struct schedule_rates *rates,
                        double ms)
{
    const struct schedule_rates one = {.compute = 1, .half = rates->half};
    const struct schedule s = as_whole(call);
    return schedule_whole_ms(call, &one) / pace_of(&s, rates, 0, 0, 0) / ms;
}

/* Returns how many matrices of an operand there are. */
static double matrices_of(const struct schedule_call *call, int operand)
{
    return call->kind == SCHEDULE_BATCH ? (double)call->sharing[operand].distinct : 1;
}

double schedule_bytes(const struct schedule_call *call, int operand)
{
    const double rows = (double)(operand == B ? call->k : call->m);
    const double cols = (double)(operand == A ? call->k : call->n);
    return rows * cols * matrices_of(call, operand) * (double)call->size[operand];
}

int64_t schedule_needed(const struct schedule_call *call, int operand, int64_t head, int64_t tail)
{
    const bool at_rows = (operand == A) != call->up; /* else at C's columns */
    const unsigned of_head = SCHEDULE_HEAD | (at_rows ? 0 : SCHEDULE_BETWEEN);
    const unsigned of_tail = SCHEDULE_TAIL | (at_rows ? SCHEDULE_BETWEEN : 0);
    if (!call->one_way)
        return head + tail;
    return (~call->omits & of_head ? head : 0) + (~call->omits & of_tail ? tail : 0);
}

/* Returns which share of a factor of rank-k is needed. */
static double needed_share(const struct schedule_call *call, int operand)
{
    const int64_t needed = schedule_needed(call, operand, call->head, call->m - call->head);
    return call->m > 0 ? (double)needed / (double)call->m : 1;
}

/* Returns the time of what goes up of all operands. */
static double up_of_all(const struct schedule_call *call, const struct schedule_rates *rates,
                        const double amount[OPERANDS])
{
    double own = 0, lent = 0;
    for (int x = A; x < OPERANDS; x++) {
        own += amount[x] * (1 - call->lent[x]);
        lent += amount[x] * call->lent[x];
    }
    return own / rates->up + (lent > 0 ? lent / rates->peer : 0);
}

double schedule_floor(const struct schedule_call *call, const struct schedule_rates *rates)
{
    const bool square = schedule_in_panels(call) || call->kind == SCHEDULE_SYMMETRIC;
    const bool triangle = call->kind == SCHEDULE_RANK_K;
    const double a =
        schedule_bytes(call, A) * (square ? 0.5e-6 : 1e-6) * (triangle ? needed_share(call, A) : 1);
    const double b = triangle && call->two ? schedule_bytes(call, A) * 1e-6 * needed_share(call, B)
                     : triangle            ? 0
                     : schedule_in_panels(call) ? 0
                                                : schedule_bytes(call, B) * 1e-6;
    const double c = schedule_bytes(call, C) * (triangle ? 0.5e-6 : 1e-6) * computed_share(call);
    const double bytes[] = {call->in_place[A] ? 0 : a, call->in_place[B] ? 0 : b,
                            call->reads && !call->in_place[C] ? c : 0};
    const double up = up_of_all(call, rates, bytes);
    const double down = (call->in_place[C] ? 0 : c) / rates->down;
    const double highest = call->kind == SCHEDULE_BATCH ? 1 : block_pace_highest(&rates->paces);
    const double compute = (schedule_whole_ms(call, rates) - rates->kernel_ms) / highest;
    const double longest = up > down ? up : down;
    return longest > compute ? longest : compute;
}

/* ---- Changes ---- */

void schedule_free(struct schedule *s)
{
    free(s->step);
    s->step = NULL;
}

bool schedule_keep_faster(struct schedule *best, struct schedule *s)
{
    const bool faster = !best->step || s->ms < best->ms;
    schedule_free(faster ? best : s);
    if (faster)
        *best = *s;
    return faster;
}

struct schedule_step *schedule_add(struct schedule *s, int *room, int engine)
{
    if (s->count == *room) {
        const int more = *room ? 2 * *room : 64;
        struct schedule_step *grown = realloc(s->step, (size_t)more * sizeof *grown);
        if (!grown)
            return NULL;
        s->step = grown;
        *room = more;
    }
    return schedule_put(s, engine);
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
    s->bytes -= s->slots[operand] * s->slot_bytes[operand];
    s->slots[operand] = 0;
    s->call.in_place[operand] = true;
    free(left);
    return true;
}
