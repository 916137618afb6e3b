#include "level3_recovery.h"

#include <string.h>

#include "call/matrix.h"
#include "call/shape.h"

enum { A = SCHEDULE_A, C = SCHEDULE_C };

/* The panels' side is along C's columns if A is at the left, else along its rows. */
static bool is_left(const struct executor *e)
{
    return !e->scheduled.operand[C].across;
}

static bool is_solved(const struct executor *e)
{
    return e->scheduled.call.kind == SCHEDULE_SOLVE;
}

/* Returns whether panels may be finished in part when the device fails. */
static bool in_tiles(const struct executor *e)
{
    return schedule_in_panels(&e->schedule.call) && e->schedule.call.k > 0 &&
           !e->schedule.call.in_place[C] && e->schedule.tiles[C].rows > 1;
}

/* ---- The memory ---- */

/* Columns [at, at + count) of the schedule's C, of a panel, of which so many tiles are finished. */
struct strip {
    int64_t at, count;
    int64_t finished;
};

/* One more than there are panels. */
static int64_t strips_bytes(const struct executor *e)
{
    return (e->schedule.tiles[C].cols + 1) * (int64_t)sizeof(struct strip);
}

static char *recovery_of(const struct executor *e)
{
    return ((const struct level3 *)e)->recovery;
}

static struct strip *strips_at(const struct executor *e)
{
    return (struct strip *)(void *)recovery_of(e);
}

/* Behind the strips: a copy of A, and the finished tiles of a strip. */
static char *triangle_at(const struct executor *e)
{
    return recovery_of(e) + strips_bytes(e);
}

static char *finished_at(const struct executor *e)
{
    const struct schedule_call *call = &e->schedule.call;
    return triangle_at(e) + call->m * call->m * call->size[A];
}

int64_t level3_recovery_bytes(const struct executor *e)
{
    const struct schedule_call *call = &e->schedule.call;
    if (!schedule_in_panels(call) || call->k == 0)
        return 0;
    const bool copies = in_tiles(e) && is_solved(e);
    return strips_bytes(e) + (copies ? call->m * (call->m + call->n) * call->size[A] : 0);
}

/* ---- What is finished ---- */

/* Sets the strips and returns their number. */
static int set_strips(const struct executor *e)
{
    struct strip *strip = strips_at(e);
    const struct schedule *s = &e->schedule;
    const struct pipeline_job *pipeline = &e->pipeline;
    const int panels = s->tiles[C].cols;
    int begun = -1;
    for (int j = 0; j < panels; j++) {
        const struct schedule_tile tile = schedule_tile_of(s, C, 0, j);
        strip[j] = (struct strip){tile.col, tile.cols, 0};
    }
    for (int n = 0, number = 0; n < s->count && number <= pipeline->written; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != SCHEDULE_COMPUTE || !step->last)
            continue;
        if (number++ < pipeline->written)
            strip[step->j].finished++;
        else
            begun = step->j;
    }
    if (begun < 0 || pipeline->done_cols == 0)
        return panels;
    strip[panels] = strip[begun];
    strip[panels].count = pipeline->done_cols;
    strip[panels].finished++;
    strip[begun].at += pipeline->done_cols;
    strip[begun].count -= pipeline->done_cols;
    return panels + 1;
}

/* Returns the first of C's rows that are not finished, and sets their number. */
static int64_t rows_left(const struct executor *e, int64_t finished, int64_t *count)
{
    const struct schedule *s = &e->schedule;
    const int tiles = s->tiles[C].rows;
    const bool ascends = schedule_ascends(&s->call);
    const int next = (int)(ascends ? finished : tiles - 1 - finished);
    int64_t edge = ascends ? s->call.m : 0;
    if (finished < tiles) {
        const struct schedule_tile tile = schedule_tile_of(s, C, next, 0);
        edge = ascends ? tile.row : tile.row + tile.rows;
    }
    *count = ascends ? s->call.m - edge : edge;
    return ascends ? edge : 0;
}

/* ---- By the original ---- */

/* Returns the call that computes a strip. */
static struct accel_call call_of_strip(const struct executor *e, const struct strip *strip)
{
    const int64_t order = e->schedule.call.m;
    return is_left(e) ? shape_part(e->work->call, 0, strip->at, order, strip->count)
                      : shape_part(e->work->call, strip->at, 0, strip->count, order);
}

/* A row of a product needs no row that is finished before it: the rest is a product of the rest of
 * A. */
static bool multiply_rest(const struct executor *e, const struct strip *strip, int64_t row,
                          int64_t rows)
{
    struct accel_call part = call_of_strip(e, strip);
    struct accel_span *a = &part.span[e->scheduled.operand[A].x - e->work->call->span];
    struct accel_span *c = &part.span[e->scheduled.operand[C].x - e->work->call->span];
    part.blas.size[is_left(e) ? ACCEL_m : ACCEL_n] = rows;
    shape_operands(&part);
    a->ptr = gpu_element(a, row, row);
    c->ptr = gpu_element(c, is_left(e) ? row : 0, is_left(e) ? 0 : row);
    return gpu_work_by_original(e->work, &part);
}

/* Multiplies elements by alpha, as a solution does first. */
static void scale_column(void *column, int64_t count, enum accel_dtype dtype,
                         struct accel_complex alpha)
{
    const int64_t parts = parts_of(dtype);
    for (int64_t i = 0; i < count * parts; i += parts) {
        const double re = load_real(column, dtype, i),
                     im = parts == 2 ? load_real(column, dtype, i + 1) : 0;
        store_real(column, dtype, i, alpha.re * re - alpha.im * im);
        if (parts == 2)
            store_real(column, dtype, i + 1, alpha.re * im + alpha.im * re);
    }
}

/* Copies a rectangle of C to packed memory, or back. */
static void move_rows(const struct executor *e, const struct strip *strip, int64_t row,
                      int64_t rows, char *packed, bool back)
{
    const struct accel_span *c = e->scheduled.operand[C].x;
    const bool left = is_left(e);
    const struct host_rectangle r =
        host_whole(gpu_element(c, left ? row : strip->at, left ? strip->at : row),
                   left ? rows : strip->count, left ? strip->count : rows, c->ld, gpu_size_of(c));
    const struct pack_chunk all = {0, r.cols, 0, r.rows};
    if (r.rows == 0 || r.cols == 0)
        return;
    if (back)
        pack_to_host(&r, &all, packed, r.rows);
    else
        pack_from_host(packed, &r, &all, r.rows);
}

static void scale_rows(const struct executor *e, const struct strip *strip, int64_t row,
                       int64_t rows)
{
    const struct accel_span *c = e->scheduled.operand[C].x;
    const struct accel_complex alpha = e->work->call->blas.scalar[ACCEL_alpha];
    const bool left = is_left(e);
    for (int64_t j = 0; j < (left ? strip->count : rows); j++)
        scale_column(gpu_element(c, left ? row : strip->at, (left ? strip->at : row) + j),
                     left ? rows : strip->count, c->dtype, alpha);
}

/* The rest of a solution depends on its finished part. With a triangle whose finished rows are
 * those of the identity, its original leaves these values, and subtracts their products from the
 * rest. It may leave NaN beside an infinity: so the finished part is put back. */
static bool solve_rest(const struct executor *e, const struct strip *strip, int64_t row,
                       int64_t rows)
{
    struct accel_call part = call_of_strip(e, strip);
    struct accel_span *a = &part.span[e->scheduled.operand[A].x - e->work->call->span];
    const int64_t order = e->schedule.call.m;
    char *finished = finished_at(e);
    const int64_t from = row == 0 ? rows : 0;
    a->ptr = triangle_at(e);
    a->ld = order;
    a->place = ACCEL_HOST;
    part.blas.scalar[ACCEL_alpha] = (struct accel_complex){1, 0};
    if (!accel_is_one(e->work->call->blas.scalar[ACCEL_alpha]))
        scale_rows(e, strip, row, rows);
    move_rows(e, strip, from, order - rows, finished, false);
    const bool done = gpu_work_by_original(e->work, &part);
    move_rows(e, strip, from, order - rows, finished, true);
    return done;
}

/* Copies A, from the device if the host cannot read it there. */
static bool copy_triangle(const struct executor *e)
{
    const struct accel_span *a = e->scheduled.operand[A].x;
    const int64_t order = e->schedule.call.m, size = e->schedule.call.size[A];
    const struct pack_chunk all = {0, order, 0, order};
    if (a->place == ACCEL_DEVICE) {
        const struct host_rectangle to = host_whole(triangle_at(e), order, order, order, size);
        return gpu_copies(e->work)->download_whole(e->work->ctx, &to, dmat_in_place(a)) == GPU_OK;
    }
    const struct host_rectangle from = host_whole(a->ptr, order, order, a->ld, size);
    pack_from_host(triangle_at(e), &from, &all, order);
    return true;
}

/* Makes the rows of the finished tile those of the identity, in the copy of A. As A stands in the
 * equation of the call, they are columns if it is transposed, or at the right. */
static void make_identity(const struct executor *e, int finished)
{
    const int64_t order = e->schedule.call.m, size = e->schedule.call.size[A];
    const bool across = e->scheduled.operand[A].across;
    const enum accel_dtype dtype = e->scheduled.operand[A].x->dtype;
    char *a = triangle_at(e);
    int64_t before, after;
    const int64_t first = rows_left(e, finished - 1, &before),
                  next = rows_left(e, finished, &after);
    const int64_t from = next > first ? first : after, to = from + before - after;
    for (int64_t i = from; i < to; i++) {
        for (int64_t j = 0; j < order; j++)
            memset(a + (across ? j + i * order : i + j * order) * size, 0, (size_t)size);
        store_element(a, dtype, i + i * order, 1);
    }
}

/* Computes the strips of which so many tiles are finished. */
static bool rest_of_strips(const struct executor *e, int strips, int finished)
{
    const struct strip *strip = strips_at(e);
    int64_t rows;
    const int64_t row = rows_left(e, finished, &rows);
    for (int n = 0; n < strips; n++) {
        if (strip[n].finished != finished || strip[n].count == 0 || rows == 0)
            continue;
        const struct accel_call part = call_of_strip(e, &strip[n]);
        if (!(finished == 0   ? gpu_work_by_original(e->work, &part)
              : !is_solved(e) ? multiply_rest(e, &strip[n], row, rows)
                              : solve_rest(e, &strip[n], row, rows)))
            return false;
    }
    return true;
}

bool level3_recover_panels(const struct level3 *b)
{
    const struct executor *e = &b->executor;
    const int tiles = e->schedule.tiles[C].rows;
    const int strips = set_strips(e);
    const bool copies = in_tiles(e) && is_solved(e);
    bool done = !copies || copy_triangle(e);
    for (int finished = 0; done && finished < tiles; finished++) {
        if (finished > 0 && copies)
            make_identity(e, finished);
        done = rest_of_strips(e, strips, finished);
    }
    return done;
}
