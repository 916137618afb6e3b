#include "cut.h"

#include "op.h"
#include "shape.h"

unsigned accel_cuts_of(const struct accel_call *call)
{
    const struct accel_op *op = accel_op_of(call->routine);
    return op->cuts ? op->cuts(call) : 0;
}

struct accel_region accel_cut_whole(const struct accel_call *call)
{
    if (accel_cuts_of(call) & ACCEL_CUT_PRODUCTS)
        return (struct accel_region){0, 0, 1, call->batch};
    if (accel_cuts_of(call) & ACCEL_CUT_TRIANGLE)
        return (struct accel_region){0, 0, call->blas.size[ACCEL_n], 1};
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call->span[i].ptr && (call->span[i].access & ACCEL_WRITE))
            return (struct accel_region){0, 0, call->span[i].rows, call->span[i].cols};
    return (struct accel_region){0, 0, 0, 0};
}

/* The leading triangle up to the last of its rows, without that before the first of them. */
static struct accel_call part_of_triangle(const struct accel_call *call,
                                          const struct accel_region *region)
{
    const int64_t order = region->row + region->rows;
    struct accel_call part = shape_part(call, 0, 0, order, order);
    part.blas.skip = region->row;
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

/* Copies a part of a triangle between its place and packed memory: of a lower triangle's columns what is below the leading triangle that is
 * left out, of an upper one the columns behind that. */
static void move_part(const struct accel_call *part, char *packed, bool back)
{
    const struct accel_span *c = &part->span[ACCEL_c];
    const int64_t size = (int64_t)accel_dtype_size(c->dtype), skip = part->blas.skip;
    const bool lower = c->triangle == 'L';
    for (int64_t j = lower ? 0 : skip; j < c->cols; j++) {
        const int64_t from = lower ? accel_max(j, skip) : 0, to = lower ? c->rows : j + 1;
        char *there = (char *)c->ptr + (from + j * c->ld) * size;
        char *here = packed + (from + j * c->rows) * size;
        memcpy(back ? there : here, back ? here : there, (size_t)((to - from) * size));
    }
}

bool accel_cut_by_original(const struct accel_call *part, void *copy,
                           bool (*original)(void *context, const struct accel_call *call),
                           void *context)
{
    if (!(accel_cuts_of(part) & ACCEL_CUT_TRIANGLE) || part->blas.skip == 0)
        return original(context, part);
    struct accel_call whole = *part;
    struct accel_span *c = &whole.span[ACCEL_c];
    move_part(part, copy, false);
    c->ptr = copy;
    c->ld = c->rows;
    whole.blas.skip = 0;
    const bool done = original(context, &whole);
    move_part(part, copy, true);
    return done;
}
