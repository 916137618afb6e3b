#include "fill.h"

#include "ops/op.h"
#include "call/matrix.h"
#include "call/shape.h"
#include "ops/typical.h"

/* Returns a number in [-0.5, 0.5): the upper half of Knuth's linear congruential generator
 * (MMIX). */
static double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(*state >> 32) * 0x1p-32;
}

static void fill_random(void *to, enum accel_dtype dtype, int64_t elements, double scale,
                        uint64_t seed)
{
    int64_t numbers = elements * (accel_is_complex(dtype) ? 2 : 1);
    for (int64_t i = 0; i < numbers; i++) {
        union {
            float f;
            uint32_t bits;
        } z;
        if (accel_is_double(dtype)) {
            ((double *)to)[i] = scale * next_random(&seed);
            continue;
        }
        z.f = (float)(scale * next_random(&seed));
        if (dtype == ACCEL_BFLOAT16)
            ((uint16_t *)to)[i] = (uint16_t)(z.bits >> 16);
        else
            ((float *)to)[i] = z.f;
    }
}

static void put_real(const struct accel_span *x, int64_t i, double value)
{
    store_element(x->ptr, x->dtype, i, value);
}

/* Returns the elements from the first to the last, with those in gaps between columns. */
static int64_t elements_of(const struct accel_span *x)
{
    return accel_extent(x, 1) / (int64_t)accel_dtype_size(x->dtype);
}

/* Fills with the identity and 1 / order of random numbers: definite, well-conditioned, and so are
 * its triangles. */
static void fill_definite(const struct accel_call *call, const struct accel_span *x, uint64_t seed)
{
    const int64_t order = shape_diagonal(call, x);
    fill_random(x->ptr, x->dtype, elements_of(x), 1 / (double)order, seed);
    for (int64_t i = 0; i < order; i++)
        put_real(x, shape_diagonal_place(call, x, x->ld, i), 1);
}

/* Pivots 1, 2, 3 ... exchange nothing. */
static void fill_pivots(const struct accel_span *x)
{
    for (int64_t i = 0; i < x->rows * x->cols; i++)
        if (x->dtype == ACCEL_INT64)
            ((int64_t *)x->ptr)[i] = i + 1;
        else
            ((int32_t *)x->ptr)[i] = (int32_t)(i + 1);
}

/* Fills with scalars of reflectors that are so small that products of the reflectors stay
 * bounded. */
static void fill_scalars(const struct accel_span *x, int64_t rows)
{
    for (int64_t i = 0; i < x->rows * x->cols; i++)
        put_real(x, i, 1 / (double)rows);
}

void fill_operand(const struct accel_call *call, enum accel_matrix which)
{
    const struct accel_span *x = &call->span[which];
    const struct accel_op *op = accel_op_of(call->routine);
    const uint64_t seed = (uint64_t)which + 1;
    if (!accel_is_read(call, x))
        return;
    if (x->dtype == ACCEL_INT32 || x->dtype == ACCEL_INT64)
        fill_pivots(x);
    else if (which == ACCEL_x && op->traits.reflectors)
        fill_scalars(x, call->span[ACCEL_a].rows);
    else if (op->traits.definite >> which & 1)
        fill_definite(call, x, seed);
    else
        fill_random(x->ptr, x->dtype, elements_of(x), 1, seed);
}
