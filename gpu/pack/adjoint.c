#include "adjoint.h"

#include <string.h>

#include "base/thread/copy_pool.h"

struct turned {
    char *to;
    struct matrix from;
};

/* A tile of so many rows and columns stays in the nearest cache while it is turned. */
enum { TILE = 32, HELPED_BYTES = 1 << 20 };

#define TURN(type, value)                                                                          \
    for (int64_t col = first; col < end; col++)                                                    \
        for (int64_t row = top; row < bottom; row++) {                                             \
            type x; /* in memory that may be aligned in any way */                                 \
            memcpy(&x, t->from.ptr + (row + col * t->from.ld) * (int64_t)sizeof x, sizeof x);      \
            ((type *)t->to)[col + row * t->from.cols] = (value);                                   \
        }                                                                                          \
    break;

struct single {
    float re, im;
};

static void turn_tile(const struct turned *t, int64_t top, int64_t first)
{
    const int64_t bottom = accel_min(t->from.rows, top + TILE),
                  end = accel_min(t->from.cols, first + TILE);
    switch (t->from.dtype) {
    case ACCEL_FLOAT32:
        TURN(float, x)
    case ACCEL_FLOAT64:
        TURN(double, x)
    case ACCEL_COMPLEX64:
        TURN(struct single, ((struct single){x.re, -x.im}))
    default:
        TURN(struct accel_complex, ((struct accel_complex){x.re, -x.im}))
    }
}

/* The tiles of some rows. */
static void turn_rows(void *context, int64_t number)
{
    const struct turned *t = context;
    for (int64_t col = 0; col < t->from.cols; col += TILE)
        turn_tile(t, number * TILE, col);
}

void adjoint_of(char *to, struct matrix from)
{
    struct turned turned = {to, from};
    struct copy_pool_job job = {.task = turn_rows, .context = &turned};
    copy_pool_do(&job, (from.rows + TILE - 1) / TILE,
                 from.rows * from.cols * (int64_t)accel_dtype_size(from.dtype) >= HELPED_BYTES);
}
