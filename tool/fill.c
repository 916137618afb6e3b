#include "fill.h"

#include "ops/op.h"
#include "ops/shape.h"

enum content {
    CONTENT_NONE,   /* it is not read */
    CONTENT_RANDOM, /* in [-0.5, 0.5) */
    CONTENT_STRONG, /* the identity and 1 / n of that: definite, well-conditioned, and so are its triangles */
    CONTENT_SCALARS, /* of reflectors: so small that products of them stay bounded */
    CONTENT_PIVOTS   /* 1, 2, 3 ...: nothing is exchanged */
};

static enum content content_of(const struct accel_call *call, enum accel_matrix which)
{
    const struct accel_span *x = &call->span[which];
    const struct accel_op *op = accel_op_of(call->routine);
    if (!accel_is_read(call, x))
        return CONTENT_NONE;
    if (x->dtype == ACCEL_INT32 || x->dtype == ACCEL_INT64)
        return CONTENT_PIVOTS;
    if (which == ACCEL_x)
        return op->reflectors ? CONTENT_SCALARS : CONTENT_RANDOM;
    return op->definite >> which & 1 ? CONTENT_STRONG : CONTENT_RANDOM;
}

/* Knuth's linear congruential generator (MMIX); its upper half. In [-0.5, 0.5). */
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
    int64_t at = accel_is_complex(x->dtype) ? 2 * i : i;
    for (int64_t j = at; j < at + (accel_is_complex(x->dtype) ? 2 : 1); j++) {
        double part = j == at ? value : 0;
        if (accel_is_double(x->dtype))
            ((double *)x->ptr)[j] = part;
        else
            ((float *)x->ptr)[j] = (float)part;
    }
}

void fill_operand(const struct accel_call *call, enum accel_matrix which)
{
    const struct accel_span *x = &call->span[which];
    const int64_t elements = x->rows * x->cols, order = accel_min(x->rows, x->cols);
    const uint64_t seed = (uint64_t)which + 1;
    switch (content_of(call, which)) {
    case CONTENT_NONE:
        break;
    case CONTENT_RANDOM:
        fill_random(x->ptr, x->dtype, elements, 1, seed);
        break;
    case CONTENT_STRONG:
        fill_random(x->ptr, x->dtype, elements, 1 / (double)order, seed);
        for (int64_t i = 0; i < order; i++)
            put_real(x, i * x->ld + i, 1);
        break;
    case CONTENT_SCALARS:
        for (int64_t i = 0; i < elements; i++)
            put_real(x, i, 1 / (double)call->span[ACCEL_a].rows);
        break;
    case CONTENT_PIVOTS:
        for (int64_t i = 0; i < elements; i++)
            if (x->dtype == ACCEL_INT64)
                ((int64_t *)x->ptr)[i] = i + 1;
            else
                ((int32_t *)x->ptr)[i] = (int32_t)(i + 1);
        break;
    }
}
