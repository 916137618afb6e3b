/*
 * gels, gelss, gelsd. All begin with the QR factorisation of A, or of its adjoint if A is wide: the
 * tall one is p x q. gelss and gelsd go on with the singular values of R. gelsy has no steps:
 * cuSOLVER has no QR with column pivoting.
 */
#include "cpu_ref/checks.h"
#include "gpu/exec/lapack/solver_in_core.h"
#include "in_panels.h"
#include "ops/rules/lapack_rules.h"
#include "svd_algorithm.h"

#include <float.h>
#include <stdlib.h>

struct qr_factors {
    struct array qr, tau;
    bool wide; /* of the adjoint */
};

static struct qr_factors factor_qr(struct solver *s, const struct accel_span *a)
{
    struct qr_factors f = {.wide = a->rows < a->cols};
    f.tau = solver_vector(s, accel_min(a->rows, a->cols), s->dtype);
    if (f.wide) {
        const struct array wide = solver_upload(s, a, 0);
        f.qr = solver_array(s, a->cols, a->rows);
        solver_refuse_extremes(s);
        solver_transpose(s, f.qr, wide);
        solver_library(s)->geqrf(s, f.qr, f.tau);
    } else {
        const struct panels_call call = lapack_factoring(s->call, PANELS_QR);
        f.qr = solver_factor(s, &call, a, f.tau);
        solver_refuse_extremes(s);
    }
    return f;
}

/* Uploads the right-hand sides: reads `rows` rows, leaves room for p. Their size does not count in
 * s->largest. */
static struct array upload_right_sides(struct solver *s, const struct accel_span *b, int64_t p,
                                       int64_t rows)
{
    struct array x = solver_zeros(s, p, b->cols);
    double largest_of_a = s->largest;
    s->largest = 0;
    solver_upload_to(s, x, b, rows, b->cols, 0);
    if (s->largest > 0)
        solver_refuse_extremes(s);
    s->largest = largest_of_a;
    return x;
}

/* ---- gels ---- */

/* Refuses an R with a zero on its diagonal: LAPACK says where, and computes no solution. */
static void refuse_singular(struct solver *s, struct array r)
{
    void *diagonal = malloc((size_t)r.cols * accel_dtype_size(s->dtype) + 1);
    if (!diagonal)
        solver_note(s, GPU_NO_MEMORY);
    else
        solver_get_diagonal(s, diagonal, r);
    if (solver_is_well(s) && solver_has_zero(s, diagonal, r.cols))
        solver_note(s, GPU_UNSUPPORTED);
    free(diagonal);
}

static void run_gels(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a], *b = &s->call->span[ACCEL_b];
    const struct qr_factors f = factor_qr(s, a);
    char adjoint = solver_adjoint(s);
    int64_t p = f.qr.rows, q = f.qr.cols;
    struct array r = solver_part(f.qr, 0, 0, q, q);
    refuse_singular(s, r);
    /* Else the system has the tall matrix's adjoint, and wants the shortest solution. */
    bool least_squares = (s->call->blas.flag[ACCEL_trans] == 'N') == !f.wide;
    struct array x = upload_right_sides(s, b, p, least_squares ? p : q);
    if (least_squares)
        solver_library(s)->ormqr(s, 'L', adjoint, f.qr, f.tau, x);
    solver_trsm(s, 'U', least_squares ? 'N' : adjoint, 'N', r, solver_part(x, 0, 0, q, x.cols));
    if (!least_squares)
        solver_library(s)->ormqr(s, 'L', 'N', f.qr, f.tau, x);
    solver_return(s, b, x, 0);
    if (f.wide) { /* the LQ factorisation of A */
        struct array lq = solver_array(s, q, p);
        solver_transpose(s, lq, f.qr);
        solver_return(s, a, lq, 0);
    } else {
        solver_return(s, a, f.qr, 0);
    }
}

/* ---- gelss, gelsd ---- */

/* Returns the least singular value that counts. ?gelss and ?lalsd read rcond differently, and
 * differ in their eps. */
static double threshold(const struct accel_call *call, bool gelss, double largest)
{
    bool is_double = accel_is_double(call->routine->dtype);
    double rcond = call->blas.scalar[ACCEL_rcond].re, eps = is_double ? DBL_EPSILON : FLT_EPSILON;
    double least = is_double ? DBL_MIN : FLT_MIN;
    if (gelss && rcond < 0)
        rcond = eps;
    if (!gelss && (rcond <= 0 || rcond >= 1))
        rcond = eps / 2;
    return rcond * largest > least ? rcond * largest : least;
}

static double real_at(const void *values, int64_t i, enum accel_dtype real)
{
    return real == ACCEL_FLOAT64 ? ((const double *)values)[i] : ((const float *)values)[i];
}

/* Returns the pseudo-inverse of the singular values as a diagonal matrix. *rank: how many count. */
static struct array invert(struct solver *s, bool gelss, struct array values, int64_t *rank)
{
    int64_t n = values.rows;
    struct array diagonal = solver_zeros(s, n, n);
    void *host = malloc((size_t)n * sizeof(double) + 1);
    double *inverse = calloc((size_t)n + 1, sizeof *inverse);
    *rank = 0;
    if (host && inverse) {
        solver_get(s, host, values);
        double least = solver_is_well(s) ? threshold(s->call, gelss, real_at(host, 0, s->real)) : 0;
        for (int64_t i = 0; solver_is_well(s) && i < n; i++)
            if (real_at(host, i, s->real) > least) {
                inverse[i] = 1 / real_at(host, i, s->real);
                ++*rank;
            }
        solver_set_diagonal(s, diagonal, inverse);
    } else {
        solver_note(s, GPU_NO_MEMORY);
    }
    free(host);
    free(inverse);
    return diagonal;
}

/* With R = U S V^H, returns R^+ b, or (R^H)^+ b. */
static struct array apply_pseudoinverse(struct solver *s, bool adjoint, struct array u,
                                        struct array inverse, struct array vt, struct array b)
{
    char h = solver_adjoint(s);
    struct array c = solver_array(s, b.rows, b.cols), scaled = solver_array(s, b.rows, b.cols),
                 x = solver_array(s, b.rows, b.cols);
    solver_gemm(s, adjoint ? 'N' : h, 'N', adjoint ? vt : u, b, c);
    solver_gemm(s, 'N', 'N', inverse, c, scaled);
    solver_gemm(s, adjoint ? 'N' : h, 'N', adjoint ? u : vt, scaled, x);
    return x;
}

/* gelss leaves the right singular vectors in the first rows of A. */
static void return_vectors(struct solver *s, const struct accel_span *a, struct qr_factors f,
                           struct array u, struct array vt)
{
    if (!f.wide) {
        solver_return(s, a, vt, 0);
        return;
    }
    struct array left = solver_zeros(s, f.qr.rows, f.qr.cols),
                 rows = solver_array(s, f.qr.cols, f.qr.rows);
    solver_copy(s, solver_part(left, 0, 0, u.rows, u.cols), u);
    solver_library(s)->ormqr(s, 'L', 'N', f.qr, f.tau, left);
    solver_transpose(s, rows, left);
    solver_return(s, a, rows, 0);
}

static void run_by_values(struct solver *s, bool gelss)
{
    const struct accel_span *a = &s->call->span[ACCEL_a], *b = &s->call->span[ACCEL_b];
    int64_t rank;
    const struct qr_factors f = factor_qr(s, a);
    int64_t p = f.qr.rows, q = f.qr.cols;
    struct array r = solver_upper(s, f.qr), values = solver_reals(s, q), u = solver_array(s, q, q),
                 vt = solver_array(s, q, q);
    svd_of(s, 'A', 'A', r, values, u, vt);
    struct array inverse = invert(s, gelss, values, &rank);
    struct array x = upload_right_sides(s, b, p, a->rows);
    if (!f.wide)
        solver_library(s)->ormqr(s, 'L', solver_adjoint(s), f.qr, f.tau, x);
    struct array first = solver_part(x, 0, 0, q, x.cols);
    solver_copy(s, first, apply_pseudoinverse(s, f.wide, u, inverse, vt, first));
    if (f.wide)
        solver_library(s)->ormqr(s, 'L', 'N', f.qr, f.tau, x);
    solver_return(s, &s->call->span[ACCEL_x], values, 0);
    solver_return_integers(s, &s->call->span[ACCEL_found], 1, rank, rank);
    solver_return(s, b, x, 0);
    if (gelss)
        return_vectors(s, a, f, u, vt);
}

static void run_gelss(struct solver *s)
{
    run_by_values(s, true);
}

static void run_gelsd(struct solver *s)
{
    run_by_values(s, false);
}

/* ---- Rules ---- */

static struct accel_lengths gels_workspace(const struct lapack_sizes *x)
{
    return (struct accel_lengths){x->mn + accel_max(x->mn, x->nrhs), 0, 0};
}

/* Returns the rows of the bidiagonal reduction: fewer after a QR factorisation. */
static int64_t reduced(const struct lapack_sizes *x)
{
    return x->call->blas.size[ACCEL_m] >= x->call->blas.size[ACCEL_n] &&
                   lapack_is_tall(x->mx, x->mn)
               ? x->mn
               : x->mx;
}

static struct accel_lengths gelss_workspace(const struct lapack_sizes *x)
{
    int64_t work = x->is_complex ? 2 * x->mn + accel_max(x->mx, x->nrhs)
                                 : accel_max(3 * x->mn + accel_max(reduced(x), x->nrhs), 5 * x->mn);
    return (struct accel_lengths){work, 0, 0};
}

/* smallest: the smallest subproblem in the divide and conquer of ?lalsd (ilaenv, ISPEC = 9). */
static struct accel_lengths gelsd_workspace(const struct lapack_sizes *x)
{
    const int64_t smallest = 25, mn = x->mn;
    int64_t nrhs = accel_min(x->nrhs, LAPACK_SIDE_MOST / accel_max(1, mn));
    int64_t rows = reduced(x);
    /* INT(LOG2(mn / (smallest + 1))) + 1, and INT cuts off towards 0 */
    int64_t levels = 2 * mn > smallest + 1;
    for (int64_t part = mn / (smallest + 1); part > 1; part /= 2)
        levels++;
    if (x->is_complex)
        return (struct accel_lengths){2 * mn + accel_max(rows, mn * nrhs), 0, 0};
    int64_t solve =
        9 * mn + 2 * mn * smallest + 8 * mn * levels + mn * nrhs + (smallest + 1) * (smallest + 1);
    if (x->call->blas.size[ACCEL_m] < x->call->blas.size[ACCEL_n])
        rows = mn;
    return (struct accel_lengths){3 * mn + accel_max(rows, accel_max(nrhs, solve)), 0, 0};
}

static bool has_right_sides(const struct accel_call *call)
{
    return call->blas.size[ACCEL_nrhs] > 0;
}

#define BY_VALUES(name)                                                                            \
    {                                                                                              \
        LAPACK_ITERATES(),                                                                         \
            OP_RULES(.is_empty = lapack_has_no_matrix, .workspace = name##_workspace,              \
                     .check = check_gelss),                                                        \
            OP_GPU(.is_supported = has_right_sides, .steps = run_##name,                           \
                   .whole = LAPACK_CONDENSES)                                                      \
    }

const struct accel_op op_gels = {LAPACK_REFLECTS(),
                                 OP_RULES(.workspace = gels_workspace, .check = check_gels),
                                 OP_GPU(.steps = run_gels, .in_panels = &lapack_gels_in_panels)};
const struct accel_op op_gelss = BY_VALUES(gelss);
const struct accel_op op_gelsd = BY_VALUES(gelsd);
const struct accel_op op_gelsy = {LAPACK_BLOCKS(), OP_RULES(.check = check_gels)};
