/*
 * syev, syevd, syevr, syevx (and he): all eigenvalues, or a range of them. sygv, sygvd, sygvx (and
 * he) of two matrices.
 */
#include "cpu_ref/checks.h"
#include "diagonal.h"
#include "gpu/exec/lapack/solver.h"
#include "ops/rules/lapack_rules.h"
#include "spectral.h"

#include <float.h>
#include <math.h>

static void return_all(struct solver *s, struct array w, struct array vectors)
{
    solver_return(s, &s->call->span[ACCEL_x], w, 0);
    if (s->call->blas.flag[ACCEL_jobz] == 'V')
        solver_return(s, &s->call->span[ACCEL_a], vectors, 0);
}

/* The drivers with a range return the first `found` eigenvalues and vectors. */
static void return_found(struct solver *s, struct array w, struct array vectors, int64_t found)
{
    solver_return_integers(s, &s->call->span[ACCEL_found], 1, found, found);
    solver_return(s, &s->call->span[ACCEL_x], solver_part(w, 0, 0, found, 1), 0);
    if (s->call->blas.flag[ACCEL_jobz] == 'V')
        solver_return(s, &s->call->span[ACCEL_c], solver_part(vectors, 0, 0, vectors.rows, found),
                      0);
}

/* Returns 1 and n for each vector: it may have elements everywhere. Not for a part of the spectrum:
 * LAPACK does not return these then, and programs have no room for them (SciPy). */
static void return_supports(struct solver *s, int64_t found)
{
    if (s->call->blas.flag[ACCEL_jobz] == 'V' && s->call->blas.flag[ACCEL_range] != 'V' &&
        found == s->call->blas.size[ACCEL_n])
        solver_return_integers(s, &s->call->span[ACCEL_y], 2 * found, 1, found);
}

/* No vector has failed to converge. */
static void return_failures(struct solver *s, int64_t found)
{
    if (s->call->blas.flag[ACCEL_jobz] == 'V')
        solver_return_integers(s, &s->call->span[ACCEL_y], found, 0, 0);
}

/* ---- One matrix ---- */

static void solve_all(struct solver *s, struct array a, struct array w)
{
    solver_library(s)->syevd(s, s->call->blas.flag[ACCEL_jobz], s->call->blas.flag[ACCEL_uplo], a,
                             w);
}

static struct spectrum spectrum_of(const struct accel_call *call)
{
    const bool has_bounds = call->blas.flag[ACCEL_range] == 'V'; /* or they are anything */
    return (struct spectrum){call->blas.flag[ACCEL_range],
                             has_bounds ? call->blas.scalar[ACCEL_vl].re : 0,
                             has_bounds ? call->blas.scalar[ACCEL_vu].re : 0,
                             call->blas.size[ACCEL_il], call->blas.size[ACCEL_iu]};
}

static int64_t solve_range(struct solver *s, struct array a, struct array w)
{
    /* No eigenvalue is larger (Gershgorin); programs pass infinity for no bound. */
    double bound = 2 * (double)a.rows * s->largest;
    struct spectrum part = spectrum_of(s->call);
    part.vl = part.vl < -bound ? -bound : part.vl;
    part.vu = part.vu > bound ? bound : part.vu;
    if (part.range == 'V' && !(part.vl < part.vu)) { /* the range has no eigenvalue */
        solver_note(s, GPU_UNSUPPORTED);
        return 0;
    }
    return solver_library(s)->syevdx(s, s->call->blas.flag[ACCEL_jobz], part,
                                     s->call->blas.flag[ACCEL_uplo], a, w);
}

static void run_syev(struct solver *s)
{
    struct array vectors =
        solver_upload_hermitian(s, &s->call->span[ACCEL_a], s->call->blas.flag[ACCEL_uplo]);
    struct array w = solver_reals(s, vectors.rows);
    solver_refuse_extremes(s);
    solve_all(s, vectors, w);
    return_all(s, w, vectors);
}

/* Returns the number of eigenvalues found. */
static int64_t solve_and_return_found(struct solver *s)
{
    char range = s->call->blas.flag[ACCEL_range];
    struct array vectors =
        solver_upload_hermitian(s, &s->call->span[ACCEL_a], s->call->blas.flag[ACCEL_uplo]);
    struct array w = solver_reals(s, vectors.rows);
    int64_t found = vectors.rows;
    solver_refuse_extremes(s);
    if (range == 'I' || range == 'V')
        found = solve_range(s, vectors, w);
    else
        solve_all(s, vectors, w);
    return_found(s, w, vectors, found);
    return found;
}

static void run_syevr(struct solver *s)
{
    return_supports(s, solve_and_return_found(s));
}

static void run_syevx(struct solver *s)
{
    return_failures(s, solve_and_return_found(s));
}

/* ---- Two matrices ---- */

/* Both matrices on the device, and room for the eigenvalues. */
struct device_pencil {
    struct array a, b, w;
};

static struct device_pencil upload_pencil(struct solver *s)
{
    char uplo = s->call->blas.flag[ACCEL_uplo];
    struct device_pencil p = {.a = solver_upload_hermitian(s, &s->call->span[ACCEL_a], uplo)};
    solver_refuse_extremes(s);
    p.b = solver_upload_hermitian(s, &s->call->span[ACCEL_b], uplo);
    p.w = solver_reals(s, p.a.rows);
    return p;
}

static void run_sygv(struct solver *s)
{
    char uplo = s->call->blas.flag[ACCEL_uplo];
    const struct device_pencil p = upload_pencil(s);
    solver_library(s)->sygvd(s, s->call->blas.size[ACCEL_itype], s->call->blas.flag[ACCEL_jobz],
                             uplo, p.a, p.b, p.w);
    return_all(s, p.w, p.a);
    solver_return(s, &s->call->span[ACCEL_b], p.b, uplo);
}

static void run_sygvx(struct solver *s)
{
    const struct spectrum part = spectrum_of(s->call);
    char uplo = s->call->blas.flag[ACCEL_uplo];
    if (part.range == 'V' && !(fabs(part.vl) <= DBL_MAX && fabs(part.vu) <= DBL_MAX))
        solver_note(s, GPU_UNSUPPORTED);
    const struct device_pencil p = upload_pencil(s);
    int64_t found =
        solver_library(s)->sygvdx(s, s->call->blas.size[ACCEL_itype],
                                  s->call->blas.flag[ACCEL_jobz], part, uplo, p.a, p.b, p.w);
    return_found(s, p.w, p.a, found);
    return_failures(s, found);
    solver_return(s, &s->call->span[ACCEL_b], p.b, uplo);
}

/* The other matrix must be definite. */
static bool has_no_factor(const struct accel_call *call)
{
    return lapack_is_indefinite(&call->span[ACCEL_b], call->blas.flag[ACCEL_uplo]);
}

/* ---- Rules ---- */

static const char *itype_fault(const struct accel_call *call)
{
    return call->blas.size[ACCEL_itype] < 1 || call->blas.size[ACCEL_itype] > 3 ? "itype" : NULL;
}

static struct accel_lengths syev_workspace(const struct lapack_sizes *x)
{
    return (struct accel_lengths){x->is_complex ? 2 * x->n - 1 : 3 * x->n - 1, 0, 0};
}

/* Of the divide and conquer. */
static struct accel_lengths syevd_workspace(const struct lapack_sizes *x)
{
    int64_t n = accel_min(x->n, LAPACK_SQUARE_MOST);
    if (n <= 1)
        return (struct accel_lengths){1, 1, 1};
    if (x->is_complex)
        return x->vectors ? (struct accel_lengths){2 * n + n * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n}
                          : (struct accel_lengths){n + 1, n, 1};
    return x->vectors ? (struct accel_lengths){1 + 6 * n + 2 * n * n, 0, 3 + 5 * n}
                      : (struct accel_lengths){2 * n + 1, 0, 1};
}

/* LAPACK 3.12 takes less for a matrix of order 1: a call with less stays with LAPACK. */
static struct accel_lengths syevr_workspace(const struct lapack_sizes *x)
{
    return x->is_complex ? (struct accel_lengths){2 * x->n, 24 * x->n, 10 * x->n}
                         : (struct accel_lengths){26 * x->n, 0, 10 * x->n};
}

static struct accel_lengths sygvx_workspace(const struct lapack_sizes *x)
{
    return (struct accel_lengths){x->is_complex ? 2 * x->n : 8 * x->n, 0, 0};
}

static struct accel_lengths syevx_workspace(const struct lapack_sizes *x)
{
    return x->n <= 1 ? (struct accel_lengths){1, 0, 0} : sygvx_workspace(x);
}

/* ---- The lengths that LAPACK leaves ---- */

/* By the code of LAPACK 3.11 and 3.12: a matrix of order 1 has answers of its own. */
static void syev_left(const struct lapack_sizes *x, struct accel_lengths *lengths)
{
    if (x->n == 1)
        lengths->work = x->is_complex ? 1 : 2;
}

/* LAPACK 3.12 answers 1 for the other workspaces. */
static void syevr_left(const struct lapack_sizes *x, struct accel_lengths *lengths)
{
    const bool newer = lengths->iwork == 1;
    if (x->n != 1)
        return;
    if (x->is_complex)
        lengths->work = newer ? 1 : 2;
    else if (!accel_is_double(x->call->routine->dtype))
        lengths->work = 26;
    else
        lengths->work = newer ? 1 : 7;
}

/* As much as ?syevd leaves, which it calls: room for blocks of the tridiagonal form. */
static void sygvd_left(const struct lapack_sizes *x, struct accel_lengths *lengths)
{
    const int64_t vectors = x->is_complex ? 1 : 2;
    if (x->n > 1)
        lengths->work = accel_max(lengths->work, (vectors + LAPACK_SYTRD_BLOCK) * x->n);
}

/* A range has only the vectors and values that were found. */
static void trim_to_found(struct accel_call *call)
{
    const int64_t found = accel_max(accel_integer(&call->span[ACCEL_found], 0), 0);
    call->span[ACCEL_c].cols = accel_min(found, call->span[ACCEL_c].cols);
    call->span[ACCEL_x].cols = accel_min(found, call->span[ACCEL_x].cols);
}

/* LAPACK wants room for n eigenvalues. PLINK 1.9, which asks for some by their numbers, has room
 * for these alone, and the vectors right behind it. */
static void narrow_to_range(struct accel_call *call)
{
    if (call->blas.flag[ACCEL_range] == 'I')
        call->span[ACCEL_x].cols = lapack_range_length(call);
}

#define OF_ONE LAPACK_ITERATES(.hermitian = true)
#define OF_TWO                                                                                     \
    LAPACK_ITERATES(.hermitian = true, .triangles = 1 << ACCEL_b, .definite = 1 << ACCEL_b)
#define RULES_OF_TWO .fault = itype_fault, .check = check_sygv
#define OF_RANGE     .trim = trim_to_found, .may_be_short = 1 << ACCEL_c, .narrow = narrow_to_range

static const struct accel_gpu decomposed = {.steps = run_syev, .decompose = spectral_decompose},
                              of_two = {.is_hopeless = has_no_factor,
                                        .steps = run_sygv,
                                        .whole = LAPACK_CONDENSES};

const struct accel_op op_syev = {
    OF_ONE, OP_RULES(.workspace = syev_workspace, .left = syev_left, .check = check_syev),
    .gpu = &decomposed};
const struct accel_op op_syevd = {
    OF_ONE, OP_RULES(.workspace = syevd_workspace, .check = check_syev), .gpu = &decomposed};
const struct accel_op op_syevr = {
    OF_ONE,
    OP_RULES(.workspace = syevr_workspace, .left = syevr_left, OF_RANGE, .check = check_syev),
    OP_GPU(.steps = run_syevr, .whole = LAPACK_CONDENSES)};
const struct accel_op op_syevx = {
    OF_ONE, OP_RULES(.workspace = syevx_workspace, OF_RANGE, .check = check_syev),
    OP_GPU(.steps = run_syevx, .whole = LAPACK_CONDENSES)};
const struct accel_op op_sygv = {OF_TWO, OP_RULES(RULES_OF_TWO, .workspace = syev_workspace),
                                 .gpu = &of_two};
const struct accel_op op_sygvd = {
    OF_TWO, OP_RULES(RULES_OF_TWO, .workspace = syevd_workspace, .left = sygvd_left),
    .gpu = &of_two};
const struct accel_op op_sygvx = {
    OF_TWO, OP_RULES(RULES_OF_TWO, .workspace = sygvx_workspace, OF_RANGE),
    OP_GPU(.is_hopeless = has_no_factor, .steps = run_sygvx, .whole = LAPACK_CONDENSES)};
