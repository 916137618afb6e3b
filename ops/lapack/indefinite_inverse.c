/*
 * sytri, hetri: the inverse of a symmetric or Hermitian matrix from its Bunch-Kaufman factors,
 * A = U D U'; ' is ^T or, of a Hermitian matrix, ^H. NVIDIA's reference of cuSOLVER has no function
 * for it; its header declares ?sytri without a word. So it is made of steps that the reference has.
 *
 * LAPACK stores U as a product of exchanges and columns. With its columns exchanged as the later
 * steps of the elimination exchange rows, U = P V: V is a unit triangle, P all exchanges. Then
 * M = V^-1 P^T is the inverse of U, and M' D^-1 M that of A.
 */
#include "call/matrix.h"
#include "cpu_ref/checks.h"
#include "gpu/exec/lapack/solver.h"
#include "ops/rules/lapack_rules.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef double complex number;

/* A step of the elimination: a block of one or two columns of D, and the rows that it exchanges. */
struct step {
    int64_t first, size, row, other;
};

/* The factors in host memory. */
struct indefinite_factors {
    enum accel_dtype dtype;
    int64_t n, count;
    bool upper, hermitian;
    char *elements;         /* packed; becomes V */
    int64_t *pivots;        /* LAPACK's */
    struct step *steps;     /* in their order, `count` of them */
    number *diagonal, *low; /* of D^-1, and what is below its diagonal */
    int64_t *from, *at;     /* row i of P^T is row from[i] of the identity; room for as many */
    int32_t *swaps;         /* P^T as exchanges, one after the other, each with a later row */
};

static char *element(const struct indefinite_factors *f, int64_t row, int64_t col)
{
    return f->elements + (row + col * f->n) * (int64_t)accel_dtype_size(f->dtype);
}

static number transposed(const struct indefinite_factors *f, number x)
{
    return f->hermitian ? conj(x) : x;
}

/* Whether it is a finite number of the matrix's type, too. */
static bool is_finite(const struct indefinite_factors *f, number x)
{
    const double most = accel_is_double(f->dtype) ? DBL_MAX : (double)FLT_MAX;
    return fabs(creal(x)) <= most && fabs(cimag(x)) <= most;
}

/* ---- The elimination ---- */

/* Reads the steps from the pivots: of an upper triangle from the last column on. Returns false
 * where these are none that LAPACK makes. */
static bool find_steps(struct indefinite_factors *f)
{
    for (int64_t k = f->upper ? f->n - 1 : 0; k >= 0 && k < f->n;) {
        const int64_t pivot = f->pivots[k], size = pivot > 0 ? 1 : 2,
                      last = f->upper ? k - size + 1 : k + size - 1, other = llabs(pivot) - 1;
        if (last < 0 || last >= f->n || f->pivots[last] != pivot ||
            (f->upper ? other > last : other < last))
            return false;
        f->steps[f->count++] = (struct step){accel_min(k, last), size, last, other};
        k = f->upper ? last - 1 : last + 1;
    }
    return true;
}

/* ---- D ---- */

/* Inverts a block in place: its diagonal and what is below it. LAPACK reports a pivot of zero; of
 * one whose inverse is no number, a product of matrices would spread that further. */
static bool invert_block(const struct indefinite_factors *f, const struct step *step)
{
    number *a = &f->diagonal[step->first], *low = &f->low[step->first];
    if (step->size == 1) {
        *a = 1 / *a;
        return is_finite(f, *a);
    }
    /* Divided by the size of what is beside the diagonal: no products overflow. */
    const double scale = fabs(creal(*low)) + fabs(cimag(*low));
    const number beside = *low / scale, one = a[0] / scale, other = a[1] / scale,
                 divisor = scale * (one * other - beside * transposed(f, beside));
    a[0] = other / divisor;
    a[1] = one / divisor;
    *low = -beside / divisor;
    return is_finite(f, a[0]) && is_finite(f, a[1]) && is_finite(f, *low);
}

/* Takes D from the factors, leaves zeros beside V's diagonal in its place, and inverts it. */
static bool invert_blocks(struct indefinite_factors *f)
{
    for (int64_t i = 0; i < f->count; i++) {
        const struct step *step = &f->steps[i];
        const int64_t k = step->first;
        for (int64_t j = k; j < k + step->size; j++) {
            const number x = load_element(element(f, j, j), f->dtype, 0);
            f->diagonal[j] = f->hermitian ? creal(x) : x;
        }
        if (step->size == 2) {
            char *at = f->upper ? element(f, k, k + 1) : element(f, k + 1, k);
            const number x = load_element(at, f->dtype, 0);
            f->low[k] = f->upper ? transposed(f, x) : x;
            store_element(at, f->dtype, 0, 0);
        }
        if (!invert_block(f, step))
            return false;
    }
    return true;
}

/* ---- V and P ---- */

static void exchange(char *column, const struct step *step, size_t size)
{
    char kept[16];
    char *one = column + (size_t)step->row * size, *other = column + (size_t)step->other * size;
    memcpy(kept, one, size);
    memcpy(one, other, size);
    memcpy(other, kept, size);
}

/* Exchanges the elements of a step's columns as all later steps exchange rows. */
static void make_triangle(const struct indefinite_factors *f)
{
    const size_t size = accel_dtype_size(f->dtype);
    for (int64_t i = 0; i < f->count; i++)
        for (int64_t j = 0; j < f->steps[i].size; j++) {
            char *column = element(f, 0, f->steps[i].first + j);
            for (int64_t later = i + 1; later < f->count; later++)
                if (f->steps[later].row != f->steps[later].other)
                    exchange(column, &f->steps[later], size);
        }
}

/* Makes the same order of rows by exchanges with later rows, from the first row on: ?laswp's. */
static void make_swaps(const struct indefinite_factors *f)
{
    for (int64_t i = 0; i < f->n; i++)
        f->from[i] = i;
    for (int64_t i = 0; i < f->count; i++) {
        const int64_t kept = f->from[f->steps[i].row];
        f->from[f->steps[i].row] = f->from[f->steps[i].other];
        f->from[f->steps[i].other] = kept;
    }
    /* at: where each of the identity's rows is; now: which one each place has. */
    int64_t *at = f->at, *now = f->at + f->n;
    for (int64_t i = 0; i < f->n; i++)
        at[i] = now[i] = i;
    for (int64_t i = 0; i < f->n; i++) {
        const int64_t place = at[f->from[i]], moved = now[i];
        f->swaps[i] = (int32_t)(place + 1);
        now[place] = moved;
        at[moved] = place;
    }
}

/* ---- The device ---- */

/* The rows of M that are multiplied with their part of D^-1 at a time. */
#define ROWS_MOST 128

/* Returns how many rows from row i on, with whole blocks of D. */
static int64_t rows_from(const struct indefinite_factors *f, int64_t i)
{
    const int64_t rows = accel_min(ROWS_MOST, f->n - i);
    return i + rows < f->n && f->low[i + rows - 1] != 0 ? rows - 1 : rows;
}

/* w := D^-1 m */
static void multiply_by_blocks(struct solver *s, const struct indefinite_factors *f, struct array m,
                               struct array w)
{
    const int64_t most = accel_min(ROWS_MOST, f->n), size = (int64_t)accel_dtype_size(f->dtype);
    const struct array block = solver_array(s, most, most);
    char *host = malloc((size_t)(most * most * size));
    if (!host)
        solver_note(s, GPU_NO_MEMORY);
    for (int64_t i = 0, rows; solver_is_well(s) && i < f->n; i += rows) {
        rows = rows_from(f, i);
        memset(host, 0, (size_t)(rows * rows * size));
        for (int64_t j = 0; j < rows; j++) {
            store_element(host + j * (rows + 1) * size, f->dtype, 0, f->diagonal[i + j]);
            if (j + 1 == rows)
                break;
            store_element(host + (j * (rows + 1) + 1) * size, f->dtype, 0, f->low[i + j]);
            store_element(host + (j * (rows + 1) + rows) * size, f->dtype, 0,
                          transposed(f, f->low[i + j]));
        }
        const struct array part = solver_part(block, 0, 0, rows, rows);
        solver_put(s, part, host);
        solver_gemm(s, 'N', 'N', part, solver_part(m, i, 0, rows, f->n),
                    solver_part(w, i, 0, rows, f->n));
    }
    free(host);
}

/* M = V^-1 P^T */
static struct array inverse_of_factor(struct solver *s, const struct indefinite_factors *f,
                                      struct array v)
{
    const struct array m = solver_zeros(s, f->n, f->n), swaps = solver_vector(s, f->n, ACCEL_INT32);
    solver_set_diagonal(s, m, NULL);
    solver_put(s, swaps, f->swaps);
    solver_library(s)->laswp(s, m, swaps, 1, f->n);
    solver_trsm(s, f->upper ? 'U' : 'L', 'N', 'U', v, m);
    return m;
}

/* As every Hermitian matrix has, and LAPACK's result. */
static void make_diagonal_real(struct solver *s, char uplo, struct array x)
{
    static const struct accel_complex one = {1, 0};
    gpu_address zeros = 0;
    GPU_DO(s, kernels_zeros(s->work, x.rows, &zeros));
    GPU_DO(s, kernels_scale_triangle(s->work, true, uplo, x.rows, one, zeros, x.at));
}

static void compute_inverse(struct solver *s, const struct indefinite_factors *f)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    const char uplo = s->call->blas.flag[ACCEL_uplo];
    const struct array x = solver_upload_packed(s, a, f->elements, uplo);
    const struct array m = inverse_of_factor(s, f, x), w = solver_array(s, f->n, f->n);
    multiply_by_blocks(s, f, m, w);
    solver_gemm(s, f->hermitian ? 'C' : 'T', 'N', m, w, x); /* V is no longer needed */
    if (f->hermitian)
        make_diagonal_real(s, uplo, x);
    solver_return(s, a, x, uplo);
}

static void run_sytri(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    const size_t n = (size_t)a->rows;
    struct indefinite_factors f = {
        .dtype = s->dtype,
        .n = a->rows,
        .upper = s->call->blas.flag[ACCEL_uplo] == 'U',
        .hermitian = accel_is_hermitian(s->call->routine),
        .elements = solver_read(s, a, s->call->blas.flag[ACCEL_uplo]),
        .pivots = solver_read_pivots(s, &s->call->span[ACCEL_x], a->rows, true),
        .steps = malloc(n * sizeof *f.steps),
        .diagonal = malloc(n * sizeof *f.diagonal),
        .low = calloc(n, sizeof *f.low),
        .from = malloc(n * sizeof *f.from),
        .at = malloc(2 * n * sizeof *f.at),
        .swaps = malloc(n * sizeof *f.swaps),
    };
    if (!f.steps || !f.diagonal || !f.low || !f.from || !f.at || !f.swaps)
        solver_note(s, GPU_NO_MEMORY);
    if (f.n > INT32_MAX || (solver_is_well(s) && !(find_steps(&f) && invert_blocks(&f))))
        solver_note(s, GPU_UNSUPPORTED);
    if (solver_is_well(s)) {
        make_triangle(&f);
        make_swaps(&f);
        compute_inverse(s, &f);
    }
    free(f.swaps);
    free(f.at);
    free(f.from);
    free(f.low);
    free(f.diagonal);
    free(f.steps);
    free(f.pivots);
    free(f.elements);
}

/* LAPACK computes a column of the inverse at a time, by products of a matrix with a vector. */
#define INVERTS(...)                                                                               \
    {                                                                                              \
        LAPACK_TRAITS(.triangles = 1 << ACCEL_a, .definite = 1 << ACCEL_a, __VA_ARGS__),           \
            OP_COST(.nominal = {.cpu_share = 0.15, .gpu_share = 0.2, .gpu_step_ms = 0.01}),        \
            OP_RULES(.check = check_sytri),                                                        \
            OP_GPU(.steps = run_sytri, .whole = LAPACK_PIVOTS_BOTH_SIDES)                          \
    }

const struct accel_op op_sytri = INVERTS();
const struct accel_op op_hetri = INVERTS(.hermitian = true);
