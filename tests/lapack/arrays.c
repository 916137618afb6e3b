#include "arrays.h"

#include <stdlib.h>

#define MARGIN 64 /* bytes before and behind */

/* splitmix64 */
static uint64_t random_next(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t random_below(struct random *random, int64_t n)
{
    uint64_t z = random_next(random);
    return n > 0 ? (int64_t)(z % (uint64_t)n) : 0;
}

long double random_uniform(struct random *random)
{
    return (long double)(random_next(random) >> 11) * 0x1p-52L - 1;
}

/* ---- Making ---- */

static struct array make(struct array x, struct random *random)
{
    static const unsigned char patterns[] = {0xff, 0x3f}; /* NaN; 0.75 or 0.0005 */
    int64_t cols = x.cols > 0 ? x.cols : 1;
    x.bytes = (size_t)(x.ld * cols) * x.size + 2 * MARGIN;
    x.memory = aligned_alloc(MARGIN, (x.bytes + MARGIN - 1) / MARGIN * MARGIN);
    x.copy = malloc(x.bytes);
    if (!x.memory || !x.copy)
        abort();
    memset(x.memory, patterns[random_below(random, 2)], x.bytes);
    array_keep(&x);
    return x;
}

struct array array_new(enum accel_dtype dtype, int64_t rows, int64_t cols, struct random *random)
{
    int64_t room = random_below(random, 2) ? random_below(random, 5) : 0;
    return make((struct array){.rows = rows,
                               .cols = cols,
                               .ld = (rows > 0 ? rows : 1) + room,
                               .dtype = dtype,
                               .size = accel_dtype_size(dtype)},
                random);
}

struct array array_vector(enum accel_dtype dtype, int64_t length, struct random *random)
{
    return make((struct array){.rows = length,
                               .cols = 1,
                               .ld = length,
                               .dtype = dtype,
                               .size = accel_dtype_size(dtype)},
                random);
}

struct array array_integers(int64_t length, struct random *random)
{
    return make(
        (struct array){
            .rows = length, .cols = 1, .ld = length, .integers = true, .size = sizeof(lapack_int)},
        random);
}

struct array array_clone(const struct array *x)
{
    struct array y = *x;
    y.memory = aligned_alloc(MARGIN, (x->bytes + MARGIN - 1) / MARGIN * MARGIN);
    y.copy = malloc(x->bytes);
    if (!y.memory || !y.copy)
        abort();
    memcpy(y.memory, x->memory, x->bytes);
    array_keep(&y);
    return y;
}

void array_free(struct array *x)
{
    free(x->memory);
    free(x->copy);
    *x = (struct array){0};
}

/* ---- Elements ---- */

static size_t place(const struct array *x, int64_t row, int64_t col)
{
    return MARGIN + (size_t)(col * x->ld + row) * x->size;
}

char *array_at(const struct array *x, int64_t row, int64_t col)
{
    return x->memory + place(x, row, col);
}

void array_put(struct array *x, int64_t row, int64_t col, value z)
{
    const float f[] = {(float)creall(z), (float)cimagl(z)};
    const double d[] = {(double)creall(z), (double)cimagl(z)};
    memcpy(array_at(x, row, col), accel_is_double(x->dtype) ? (const void *)d : f, x->size);
}

value array_get(const struct array *x, int64_t row, int64_t col)
{
    return load(array_data(x), col * x->ld + row, x->dtype);
}

lapack_int *array_integer(const struct array *x, int64_t i)
{
    return (lapack_int *)array_at(x, i, 0);
}

/* ---- Before and after ---- */

void array_keep(struct array *x)
{
    memcpy(x->copy, x->memory, x->bytes);
}

static bool may_change(enum region region, int64_t row, int64_t col)
{
    switch (region) {
    case WHOLE:
        return true;
    case UPPER:
        return row <= col;
    case LOWER:
        return row >= col;
    case STRICTLY_UPPER:
        return row < col;
    case STRICTLY_LOWER:
        return row > col;
    default:
        return false;
    }
}

bool array_is_kept(const struct array *x, enum region region)
{
    size_t from = 0;
    bool same = true;
    /* What may change is stepped over. */
    for (int64_t col = 0; col < x->cols; col++)
        for (int64_t row = 0; row < x->rows; row++)
            if (may_change(region, row, col)) {
                size_t here = place(x, row, col);
                same = same && memcmp(x->memory + from, x->copy + from, here - from) == 0;
                from = here + x->size;
            }
    return same && memcmp(x->memory + from, x->copy + from, x->bytes - from) == 0;
}

static struct view view(const struct array *x, const void *data, int64_t rows, int64_t cols)
{
    return (struct view){data, rows, cols, x->ld, x->dtype, GENERAL, 0};
}

struct view array_view(const struct array *x, int64_t rows, int64_t cols)
{
    return view(x, array_data(x), rows, cols);
}

struct view array_view_before(const struct array *x, int64_t rows, int64_t cols)
{
    return view(x, array_data_before(x), rows, cols);
}

const void *array_data(const struct array *x)
{
    return x->memory + MARGIN;
}

const void *array_data_before(const struct array *x)
{
    return x->copy + MARGIN;
}

uint64_t array_digest(const struct array *x, uint64_t hash)
{
    for (size_t i = 0; i < x->bytes; i++)
        hash = (hash ^ (unsigned char)x->memory[i]) * 0x100000001b3u;
    return hash;
}
