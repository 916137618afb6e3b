#include "cut.h"

#include "op.h"
#include "call/shape.h"

unsigned accel_cuts_of(const struct accel_call *call)
{
    const struct accel_gpu *gpu = accel_gpu_of(call->op);
    return gpu->cuts ? gpu->cuts(call) : 0;
}

struct accel_region accel_cut_whole(const struct accel_call *call)
{
    if (accel_cuts_of(call) & ACCEL_CUT_PRODUCTS)
        return (struct accel_region){0, 0, 1, call->batch, 0};
    if (accel_cuts_of(call) & ACCEL_CUT_TRIANGLE)
        return (struct accel_region){0, 0, call->blas.size[ACCEL_n], 0, SCHEDULE_TAIL};
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call->span[i].ptr && (call->span[i].access & ACCEL_WRITE))
            return (struct accel_region){0, 0, call->span[i].rows, call->span[i].cols, 0};
    return (struct accel_region){0, 0, 0, 0, 0};
}

/* The triangle from the first of its lines to the last. */
static struct accel_call part_of_triangle(const struct accel_call *call,
                                          const struct accel_region *region)
{
    const int64_t first = region->cols > 0 ? region->col : region->row,
                  order = region->row + region->rows - first;
    struct accel_call part = shape_part(call, first, first, order, order);
    if (region->cols > 0) {
        part.blas.head = region->cols;
        part.blas.gap = region->row - region->col - region->cols;
        part.blas.omits = SCHEDULE_BLOCKS & ~(unsigned)region->blocks;
    }
    return part;
}

struct accel_call accel_cut_part(const struct accel_call *call, const struct accel_region *region)
{
    const unsigned cuts = accel_cuts_of(call);
    if (cuts & ACCEL_CUT_PRODUCTS)
        return accel_products_of(call, region->col, region->cols);
    if (cuts & ACCEL_CUT_TRIANGLE)
        return part_of_triangle(call, region);
    return shape_part(call, region->row, region->col, region->rows, region->cols);
}

int64_t accel_cut_copy_bytes(const struct accel_call *call)
{
    return accel_cuts_of(call) & ACCEL_CUT_TRIANGLE ? accel_bytes(&call->span[ACCEL_c]) : 0;
}

/* Copies rows of a column of a triangle between its place and packed memory. */
static void move_rows(const struct accel_span *c, int64_t j, int64_t from, int64_t to, char *packed,
                      bool back)
{
    const int64_t size = (int64_t)accel_dtype_size(c->dtype);
    char *there = (char *)c->ptr + (from + j * c->ld) * size;
    char *here = packed + (from + j * c->rows) * size;
    if (from < to)
        memcpy(back ? there : here, back ? here : there, (size_t)((to - from) * size));
}

/* The same with the blocks of a part. */
static void move_part(const struct accel_call *part, char *packed, bool back)
{
    const struct accel_span *c = &part->span[ACCEL_c];
    const int64_t head = part->blas.head, tail = head + part->blas.gap;
    const bool lower = c->triangle == 'L', has_head = !(part->blas.omits & SCHEDULE_HEAD),
               has_between = !(part->blas.omits & SCHEDULE_BETWEEN),
               has_tail = !(part->blas.omits & SCHEDULE_TAIL);
    for (int64_t j = 0; j < head; j++) {
        if (has_head)
            move_rows(c, j, lower ? j : 0, lower ? head : j + 1, packed, back);
        if (has_between && lower)
            move_rows(c, j, tail, c->rows, packed, back);
    }
    for (int64_t j = tail; j < c->cols; j++) {
        if (has_between && !lower)
            move_rows(c, j, 0, head, packed, back);
        if (has_tail)
            move_rows(c, j, lower ? j : tail, lower ? c->rows : j + 1, packed, back);
    }
}

bool accel_cut_by_original(const struct accel_call *part, void *copy,
                           bool (*original)(void *context, const struct accel_call *call),
                           void *context)
{
    if (!(accel_cuts_of(part) & ACCEL_CUT_TRIANGLE) || part->blas.head == 0)
        return original(context, part);
    struct accel_call whole = *part;
    struct accel_span *c = &whole.span[ACCEL_c];
    move_part(part, copy, false);
    c->ptr = copy;
    c->ld = c->rows;
    whole.blas.head = whole.blas.gap = whole.blas.omits = 0;
    const bool done = original(context, &whole);
    move_part(part, copy, true);
    return done;
}
