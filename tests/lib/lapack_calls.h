/*
 * Calls of LAPACK for unit tests of gpu/, of matrices that are made of factors: few and small
 * elements beside a large diagonal, so that everything that is computed on the way is exact, and
 * what comes out is known.
 */
#ifndef ACCEL_TEST_LAPACK_CALLS_H
#define ACCEL_TEST_LAPACK_CALLS_H

#include "tests/lib/level3.h"

/* ---- Matrices by columns, without gaps; the caller frees them ---- */

struct numbers {
    int64_t rows, cols;
    number *at;
};

static inline number *number_at(const struct numbers *x, int64_t i, int64_t j)
{
    return &x->at[i + j * x->rows];
}

static inline struct numbers numbers_new(int64_t rows, int64_t cols)
{
    struct numbers x = {rows, cols, calloc((size_t)(rows * cols + 1), sizeof(number))};
    assert_non_null(x.at);
    return x;
}

static inline number random_unit(bool is_complex)
{
    const number units[] = {1, -1, CMPLX(0, 1), CMPLX(0, -1)};
    return units[rand() % (is_complex ? 4 : 2)];
}

/* A lower triangle or trapezoid: at most three elements of `beside` in a row beside the diagonal,
 * which is 4 or 8, or 1. */
static inline struct numbers random_lower(int64_t rows, int64_t cols, bool is_complex, bool unit)
{
    struct numbers l = numbers_new(rows, cols);
    for (int64_t i = 0; i < rows; i++) {
        for (int n = 0; n < 3 && i > 0; n++)
            *number_at(&l, i, rand() % accel_min(i, cols)) =
                random_unit(is_complex) * (unit ? 0.25 : 1);
        if (i < cols)
            *number_at(&l, i, i) = unit ? 1 : 4 << rand() % 2;
    }
    return l;
}

static inline struct numbers transposed(const struct numbers *x, bool conjugates)
{
    struct numbers y = numbers_new(x->cols, x->rows);
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->rows; i++)
            *number_at(&y, j, i) = conjugates ? conj(*number_at(x, i, j)) : *number_at(x, i, j);
    return y;
}

static inline struct numbers product_of(const struct numbers *x, const struct numbers *y)
{
    struct numbers z = numbers_new(x->rows, y->cols);
    for (int64_t j = 0; j < z.cols; j++)
        for (int64_t p = 0; p < x->cols; p++)
            for (int64_t i = 0; i < z.rows && *number_at(y, p, j) != 0; i++)
                *number_at(&z, i, j) += *number_at(x, i, p) * *number_at(y, p, j);
    return z;
}

/* Of many columns, each hundredth, and zeros between them. */
static inline struct numbers random_numbers(int64_t rows, int64_t cols, bool is_complex)
{
    struct numbers x = numbers_new(rows, cols);
    for (int64_t i = 0; i < rows * cols; i++)
        if (cols <= 400 || i / rows % 100 == 0)
            x.at[i] = rand() % 7 - 3 + (is_complex ? CMPLX(0, rand() % 7 - 3) : 0);
    return x;
}

static inline void swap_rows_of(struct numbers *x, int64_t one, int64_t other)
{
    for (int64_t j = 0; j < x->cols; j++) {
        const number kept = *number_at(x, one, j);
        *number_at(x, one, j) = *number_at(x, other, j);
        *number_at(x, other, j) = kept;
    }
}

/* ---- A call ---- */

struct lapack {
    struct accel_call call; /* with memory of its own, all of which is compared */
    struct gpu_host host;
    struct accel_span first[ACCEL_SPANS], expected[ACCEL_SPANS];
    /* Of the last run: bytes by kind of event; how often a part of A went up */
    int64_t bytes[GPU_EVENT_ALLOCATE + 1];
    int parts_up;
};

static inline void lapack_event(void *context, const struct gpu_event *event)
{
    struct lapack *l = context;
    l->bytes[event->kind] += event->bytes;
    if (event->kind == GPU_EVENT_H2D && event->operand && strcmp(event->operand, "a") == 0)
        l->parts_up++;
}

/* Begins a call; its flags and rates may be set then, before lapack_take(). */
static inline void lapack_make(struct lapack *l, const char *name, int64_t m, int64_t n, int64_t k,
                               int64_t nrhs)
{
    memset(l, 0, sizeof *l);
    shape_typical(&l->call, accel_name_routine((uint32_t)accel_name_find(name)),
                  (int64_t[ACCEL_DIMENSIONS]){m, n, k, nrhs});
    l->host = (struct gpu_host){.event = lapack_event, .context = l};
}

static inline bool lapack_is_complex(const struct lapack *l)
{
    return accel_is_complex(l->call.routine->dtype);
}

static inline bool is_integers(const struct accel_span *x)
{
    return x->dtype == ACCEL_INT32 || x->dtype == ACCEL_INT64;
}

static inline size_t lapack_bytes(const struct accel_span *x)
{
    return (size_t)(x->ld * x->cols * gpu_size_of(x));
}

/* Gives the operands memory: numbers that no result has. */
static inline void lapack_take(struct lapack *l)
{
    static const char *const names[ACCEL_SPANS] = {"a", "b", "c", "x", "y", "found"};
    shape_operands(&l->call);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        struct accel_span *x = &l->call.span[i];
        if (x->rows * x->cols == 0)
            continue;
        x->name = names[i];
        x->ld = x->inc ? 1 : x->rows + LEVEL3_GAP;
        x->ptr = malloc(lapack_bytes(x));
        assert_non_null(x->ptr);
        memset(x->ptr, 0x55, lapack_bytes(x));
        for (int64_t j = 0; !is_integers(x) && j < x->cols; j++)
            for (int64_t r = 0; r < x->ld; r++)
                set(x, r, j, 77);
    }
}

static inline struct accel_span copy_of_span(const struct accel_span *x)
{
    struct accel_span copy = *x;
    copy.ptr = malloc(lapack_bytes(x) + 1);
    assert_non_null(copy.ptr);
    memcpy(copy.ptr, x->ptr, lapack_bytes(x));
    return copy;
}

/* Ends what is filled in before the call: what comes out of it may be set in l->expected then. */
static inline void lapack_filled(struct lapack *l)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (l->call.span[i].ptr) {
            l->first[i] = copy_of_span(&l->call.span[i]);
            l->expected[i] = copy_of_span(&l->call.span[i]);
        }
}

static inline void lapack_end(struct lapack *l)
{
    for (int i = 0; i < ACCEL_SPANS; i++) {
        free(l->call.span[i].ptr);
        free(l->first[i].ptr);
        free(l->expected[i].ptr);
    }
}

/* part: U, L, u, l: the triangle that is put, the two latter without its diagonal; 0: all. */
static inline bool is_in_part(char part, int64_t i, int64_t j)
{
    return part == 'U'   ? i <= j
           : part == 'u' ? i < j
           : part == 'L' ? i >= j
           : part == 'l' ? i > j
                         : true;
}

static inline void put_numbers(const struct accel_span *to, const struct numbers *x, char part)
{
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->rows; i++)
            if (is_in_part(part, i, j))
                set(to, i, j, *number_at(x, i, j));
}

static inline int64_t integer_at(const struct accel_span *x, int64_t i)
{
    return accel_integer(x, i);
}

static inline void put_integer(const struct accel_span *x, int64_t i, int64_t value)
{
    if (x->dtype == ACCEL_INT64)
        ((int64_t *)x->ptr)[i] = value;
    else
        ((int32_t *)x->ptr)[i] = (int32_t)value;
}

static inline void put_integers(const struct accel_span *x, const int64_t *values)
{
    for (int64_t i = 0; i < x->cols; i++)
        put_integer(x, i, values[i]);
}

/* ---- Runs ---- */

/* Puts back what the call has written, and what it has counted. */
static inline void lapack_again(struct lapack *l)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (l->call.span[i].ptr)
            memcpy(l->call.span[i].ptr, l->first[i].ptr, lapack_bytes(&l->first[i]));
    l->host.up_bytes = l->host.down_bytes = l->host.cached_bytes = 0;
    memset(l->bytes, 0, sizeof l->bytes);
    l->parts_up = 0;
}

static inline bool is_near(number got, number expected, enum accel_dtype dtype)
{
    const double most = (accel_is_double(dtype) ? 1e-11 : 2e-3) * (1 + cabs(expected));
    return is_same_number(got, expected) || cabs(got - expected) <= most;
}

static inline void assert_spans(const struct accel_call *call, const struct accel_span *expected)
{
    for (int s = 0; s < ACCEL_SPANS; s++) {
        const struct accel_span *x = &call->span[s], *other = &expected[s];
        for (int64_t j = 0; x->ptr && j < x->cols; j++) {
            if (is_integers(x)) {
                assert_int_equal(integer_at(x, j), integer_at(other, j));
                continue;
            }
            for (int64_t i = 0; i < x->ld; i++)
                if (!is_near(get(x, i, j), get(other, i, j), x->dtype))
                    fail_msg("%s %.*s: element (%d, %d) of %s is %g, not %g", call->routine->name,
                             ACCEL_FLAGS, call->blas.flag, (int)i, (int)j, x->name,
                             creal(get(x, i, j)), creal(get(other, i, j)));
        }
    }
}

/* Nothing has been written. */
static inline void lapack_is_untouched(const struct lapack *l)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (l->call.span[i].ptr)
            assert_memory_equal(l->call.span[i].ptr, l->first[i].ptr, lapack_bytes(&l->first[i]));
}

/* Runs the call once more, from the start. If it does not succeed, nothing has been written; if it
 * does, the result is as expected. The events tell what the counts of bytes do. */
static inline enum gpu_status lapack_run_on(struct lapack *l, struct gpu_device *on)
{
    lapack_again(l);
    const enum gpu_status status = gpu_run(on, &l->call, &l->host);
    if (status == GPU_OK)
        assert_spans(&l->call, l->expected);
    else
        lapack_is_untouched(l);
    assert_int_equal(l->bytes[GPU_EVENT_H2D], l->host.up_bytes);
    assert_int_equal(l->bytes[GPU_EVENT_D2H], l->host.down_bytes);
    assert_int_equal(l->bytes[GPU_EVENT_CACHED], l->host.cached_bytes);
    return status;
}

/* ---- Factorisations ---- */

/* A := L U with its rows exchanged, as ?getrf finds them: the multipliers are at most a quarter, so
 * each pivot is the only largest one. B, if there is one: A times numbers that come out. */
static inline void lapack_fill_lu(struct lapack *l)
{
    const struct accel_span *a = &l->call.span[ACCEL_a], *b = &l->call.span[ACCEL_b];
    const int64_t inner = accel_min(a->rows, a->cols);
    const bool is_complex = lapack_is_complex(l);
    struct numbers lower = random_lower(a->rows, inner, is_complex, true),
                   across = random_lower(a->cols, inner, is_complex, false),
                   upper = transposed(&across, false), x = {0}, product = {0};
    for (int64_t i = 0; i < inner; i++) {
        const number unit = random_unit(is_complex);
        for (int64_t j = 0; j < upper.cols; j++)
            *number_at(&upper, i, j) *= unit;
    }
    struct numbers matrix = product_of(&lower, &upper);
    int64_t *pivots = malloc((size_t)inner * sizeof *pivots);
    assert_non_null(pivots);
    for (int64_t k = inner - 1; k >= 0; k--) {
        pivots[k] = k + 1 + (rand() % 2 ? rand() % (a->rows - k) : 0);
        swap_rows_of(&matrix, k, pivots[k] - 1);
    }
    put_numbers(a, &matrix, 0);
    if (b->ptr) {
        x = random_numbers(b->rows, b->cols, is_complex);
        product = product_of(&matrix, &x);
        put_numbers(b, &product, 0);
    }
    lapack_filled(l);
    put_numbers(&l->expected[ACCEL_a], &lower, 'l');
    put_numbers(&l->expected[ACCEL_a], &upper, 'U');
    put_integers(&l->expected[ACCEL_x], pivots);
    if (b->ptr)
        put_numbers(&l->expected[ACCEL_b], &x, 0);
    free(pivots);
    free(lower.at);
    free(across.at);
    free(upper.at);
    free(matrix.at);
    free(x.at);
    free(product.at);
}

/* A := L L^H, of which one triangle is there, with no numbers beside it; the diagonal of a
 * Hermitian matrix has imaginary parts that nobody reads. */
static inline void lapack_fill_cholesky(struct lapack *l)
{
    const struct accel_span *a = &l->call.span[ACCEL_a], *b = &l->call.span[ACCEL_b];
    const char uplo = l->call.blas.flag[ACCEL_uplo];
    struct numbers lower = random_lower(a->rows, a->cols, lapack_is_complex(l), false),
                   upper = transposed(&lower, true), matrix = product_of(&lower, &upper), x = {0},
                   product = {0};
    if (b->ptr) {
        x = random_numbers(b->rows, b->cols, lapack_is_complex(l));
        product = product_of(&matrix, &x);
        put_numbers(b, &product, 0);
    }
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++)
            set(a, i, j, is_in_part(uplo, i, j) ? *number_at(&matrix, i, j) : (number)NAN);
    for (int64_t i = 0; lapack_is_complex(l) && i < a->rows; i++)
        set(a, i, i, *number_at(&matrix, i, i) + CMPLX(0, 5));
    lapack_filled(l);
    put_numbers(&l->expected[ACCEL_a], uplo == 'L' ? &lower : &upper, uplo);
    if (b->ptr)
        put_numbers(&l->expected[ACCEL_b], &x, 0);
    free(lower.at);
    free(upper.at);
    free(matrix.at);
    free(x.at);
    free(product.at);
}

/* ---- Factors that the call reads, and right-hand sides ---- */

/* A triangle of A: numbers beside it, and on a diagonal of ones, are not read. */
static inline struct numbers lapack_fill_triangle(struct lapack *l, char uplo, char diag)
{
    const struct accel_span *a = &l->call.span[ACCEL_a];
    struct numbers lower = random_lower(a->rows, a->cols, lapack_is_complex(l), diag == 'U'),
                   upper = transposed(&lower, false);
    struct numbers triangle = uplo == 'U' ? upper : lower;
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++)
            set(a, i, j, NAN);
    put_numbers(a, &triangle, diag == 'U' ? (uplo == 'U' ? 'u' : 'l') : uplo);
    free(uplo == 'U' ? lower.at : upper.at);
    return triangle;
}

/* B := matrix X, or by its transpose or adjoint; X comes out. Frees the matrix. */
static inline void lapack_fill_right_sides(struct lapack *l, struct numbers matrix, char trans)
{
    const struct accel_span *b = &l->call.span[ACCEL_b];
    struct numbers turned = transposed(&matrix, trans == 'C'),
                   x = random_numbers(b->rows, b->cols, lapack_is_complex(l)),
                   product = product_of(trans == 'N' ? &matrix : &turned, &x);
    put_numbers(b, &product, 0);
    lapack_filled(l);
    put_numbers(&l->expected[ACCEL_b], &x, 0);
    free(matrix.at);
    free(turned.at);
    free(x.at);
    free(product.at);
}

#endif
