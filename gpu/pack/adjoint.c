#include "adjoint.h"

#include <string.h>

#include "base/thread/copy_pool.h"

struct turned {
    char *to;
    const char *from;
    int64_t from_ld, rows, cols;
    enum accel_dtype dtype;
};

/* A tile of so many rows and columns stays in the nearest cache while it is turned. */
enum { TILE = 32, HELPED_BYTES = 1 << 20 };

#define TURN(type, value)                                                                          \
    for (int64_t col = first; col < end; col++)                                                    \
        for (int64_t row = top; row < bottom; row++) {                                             \
            type x; /* in memory that may be aligned in any way */                                 \
            memcpy(&x, t->from + (row + col * t->from_ld) * (int64_t)sizeof x, sizeof x);          \
            ((type *)t->to)[col + row * t->cols] = (value);                                        \
        }                                                                                          \
    break;

struct single {
    float re, im;
};

static void turn_tile(const struct turned *t, int64_t top, int64_t first)
{
    const int64_t bottom = accel_min(t->rows, top + TILE), end = accel_min(t->cols, first + TILE);
    switch (t->dtype) {
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
    for (int64_t col = 0; col < t->cols; col += TILE)
        turn_tile(t, number * TILE, col);
}

void adjoint_of(char *to, const char *from, int64_t from_ld, int64_t rows, int64_t cols,
                enum accel_dtype dtype)
{
    struct turned turned = {to, from, from_ld, rows, cols, dtype};
    struct copy_pool_job job = {.item = turn_rows, .context = &turned};
    copy_pool_do(&job, (rows + TILE - 1) / TILE,
                 rows * cols * (int64_t)accel_dtype_size(dtype) >= HELPED_BYTES);
}
