#include "matrices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN 64 /* bytes before and behind */

double random_uniform(unsigned *seed)
{
    return 2.0 * rand_r(seed) / RAND_MAX - 1;
}

int64_t random_below(unsigned *seed, int64_t n)
{
    return n > 0 ? rand_r(seed) % n : 0;
}

/* ---- Places ---- */

/* Elements that stand side by side, and how many such lines there are. */
static int64_t line_length(const struct matrix *x)
{
    return x->row_major ? x->cols : x->rows;
}

static int64_t lines(const struct matrix *x)
{
    return x->row_major ? x->rows : x->cols;
}

size_t matrix_offset(const struct matrix *x, int64_t i)
{
    return MARGIN + (size_t)(i * x->stride) * accel_dtype_size(x->dtype);
}

static size_t place_of(const struct matrix *x, int64_t i, int64_t row, int64_t col)
{
    int64_t index = x->row_major ? row * x->ld + col : col * x->ld + row;
    return matrix_offset(x, i) + (size_t)index * accel_dtype_size(x->dtype);
}

/* Whether the routine may look at or write an element. */
static bool counts(const struct matrix *x, int64_t row, int64_t col)
{
    if (!x->uplo)
        return true;
    return row == col ? !x->unit : (x->uplo == 'U') == (row < col);
}

/* ---- Contents ---- */

static size_t part_size(enum accel_dtype dtype)
{
    return dtype == ACCEL_BFLOAT16 ? 2 : accel_is_double(dtype) ? 8 : 4;
}

static void store_real(char *at, enum accel_dtype dtype, double z)
{
    float f = (float)z;
    uint32_t bits;
    uint16_t upper;
    memcpy(&bits, &f, sizeof bits);
    upper = (uint16_t)(bits >> 16);
    if (dtype == ACCEL_BFLOAT16)
        memcpy(at, &upper, sizeof upper);
    else if (accel_is_double(dtype))
        memcpy(at, &z, sizeof z);
    else
        memcpy(at, &f, sizeof f);
}

static void store(char *at, enum accel_dtype dtype, double re, double im)
{
    store_real(at, dtype, re);
    if (accel_is_complex(dtype))
        store_real(at + part_size(dtype), dtype, im);
}

static void store_random(struct matrix *x, int64_t i, int64_t row, int64_t col, unsigned *seed)
{
    bool diagonal = row == col;
    double re = random_uniform(seed), im = random_uniform(seed);
    if (x->solvable && diagonal)
        re += copysign(1, re);
    if (x->solvable && !diagonal) {
        re /= (double)x->rows;
        im /= (double)x->rows;
    }
    if (x->real_diagonal && diagonal && !x->output)
        im = NAN; /* not read. NaN in the output stays in BLIS 0.9.0 */
    store(x->memory + place_of(x, i, row, col), x->dtype, x->nan ? NAN : re, x->nan ? NAN : im);
}

/* What does not count is NaN, which shows where it is read; or numbers, in some outputs, which show
 * better where it is written: NaN times anything may be the same NaN. */
static void fill(struct matrix *x, unsigned *seed)
{
    bool numbers_around = x->output && random_below(seed, 2);
    for (size_t at = 0; at < x->bytes; at += part_size(x->dtype))
        store_real(x->memory + at, x->dtype, numbers_around ? random_uniform(seed) : NAN);
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t col = 0; col < x->cols; col++)
            for (int64_t row = 0; row < x->rows; row++)
                if (counts(x, row, col))
                    store_random(x, i, row, col, seed);
}

void matrix_make(struct matrix *x, unsigned *seed)
{
    int64_t length = line_length(x) > 0 ? line_length(x) : 1;
    x->ld = x->inc ? llabs(x->inc) : length + (random_below(seed, 2) ? random_below(seed, 5) : 0);
    int64_t extent = lines(x) > 0 ? (lines(x) - 1) * x->ld + length : 1;
    x->stride = extent + (random_below(seed, 2) ? random_below(seed, 7) : 0);
    x->bytes = (size_t)(x->stride * (x->count > 0 ? x->count : 1)) * accel_dtype_size(x->dtype) +
               2 * MARGIN;
    x->memory = aligned_alloc(64, (x->bytes + 63) / 64 * 64);
    x->copy = malloc(x->bytes);
    if (!x->memory || !x->copy)
        abort();
    fill(x, seed);
}

void matrix_spoil(struct matrix *x, unsigned *seed)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    if (x->count == 0 || x->rows == 0 || x->cols == 0)
        return;
    int64_t i = random_below(seed, x->count);
    int64_t row = random_below(seed, x->rows), col = random_below(seed, x->cols);
    double value = values[random_below(seed, 3)];
    if (!counts(x, row, col))
        return;
    char *at = x->memory + place_of(x, i, row, col);
    bool imaginary = accel_is_complex(x->dtype) && !(x->real_diagonal && row == col);
    store_real(at + (imaginary && random_below(seed, 2) ? part_size(x->dtype) : 0), x->dtype,
               value);
}

void matrix_place(struct matrix *x)
{
    memcpy(x->copy, x->memory, x->bytes);
    x->where = x->kind ? x->kind->put(x->memory, x->bytes) : x->memory;
}

/* ---- Afterwards ---- */

bool matrix_is_untouched(struct matrix *x)
{
    size_t size = accel_dtype_size(x->dtype);
    if (x->kind)
        x->kind->get(x->memory, x->where, x->bytes);
    if (!x->output)
        return memcmp(x->memory, x->copy, x->bytes) == 0;
    char *masked = malloc(x->bytes);
    if (!masked)
        abort();
    memcpy(masked, x->memory, x->bytes);
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t col = 0; col < x->cols; col++)
            for (int64_t row = 0; row < x->rows; row++)
                if (counts(x, row, col)) {
                    size_t at = place_of(x, i, row, col);
                    memcpy(masked + at, x->copy + at, size);
                }
    bool same = memcmp(masked, x->copy, x->bytes) == 0;
    free(masked);
    return same;
}

void matrix_pack(const struct matrix *x, int64_t i, char *packed)
{
    size_t size = accel_dtype_size(x->dtype), line = (size_t)line_length(x) * size;
    for (int64_t l = 0; l < lines(x); l++)
        memcpy(packed + (size_t)l * line,
               x->copy + matrix_offset(x, i) + (size_t)(l * x->ld) * size, line);
}

void matrix_release(struct matrix *x)
{
    if (x->kind && x->where)
        x->kind->release(x->where);
    free(x->memory);
    free(x->copy);
}
