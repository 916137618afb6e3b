/*
 * gesvd, gesdd. cuSOLVER wants rows >= columns: a wide matrix is transposed, and so are its
 * vectors. A matrix much longer than wide is first reduced to its R, as in LAPACK: R's bidiagonal
 * form costs less.
 */
#include "cpu_ref/checks.h"
#include "ops/rules/lapack_rules.h"
#include "svd_algorithm.h"

struct singular_vectors {
    struct array u, vt;
};

/* Returns the number of vectors of one side. Job O is S in another place. */
static int64_t vectors_of_side(char job, int64_t all, int64_t values)
{
    return lapack_vectors(job == 'O' ? 'S' : job, all, values);
}

static char plain(char job)
{
    return job == 'O' ? 'S' : job;
}

/* Returns whether the matrix is long enough for two steps. */
static bool is_long(struct array a)
{
    return a.rows / 8 * 5 >= a.cols;
}

static struct singular_vectors decompose_r(struct solver *s, char jobu, char jobvt, struct array a,
                                           struct array values)
{
    int64_t n = a.cols;
    bool left = jobu != 'N';
    struct array tau = solver_vector(s, n, s->dtype);
    solver_library(s)->geqrf(s, a, tau);
    struct array r = solver_upper(s, a), small = solver_array(s, n, left ? n : 0);
    struct singular_vectors v = {solver_zeros(s, a.rows, left ? n : 0),
                                 solver_array(s, n, vectors_of_side(jobvt, n, n))};
    svd_of(s, plain(jobu), plain(jobvt), r, values, small, v.vt);
    if (left) {
        solver_copy(s, solver_part(v.u, 0, 0, n, n), small);
        solver_library(s)->ormqr(s, 'L', 'N', a, tau, v.u);
    }
    return v;
}

/* Decomposes a matrix with rows >= columns. */
static struct singular_vectors decompose(struct solver *s, char jobu, char jobvt, struct array a,
                                         struct array values)
{
    if (is_long(a) && jobu != 'A')
        return decompose_r(s, jobu, jobvt, a, values);
    struct singular_vectors v = {solver_array(s, a.rows, vectors_of_side(jobu, a.rows, a.cols)),
                                 solver_array(s, a.cols, vectors_of_side(jobvt, a.cols, a.cols))};
    svd_of(s, plain(jobu), plain(jobvt), a, values, v.u, v.vt);
    return v;
}

static struct array adjoint(struct solver *s, struct array x)
{
    struct array to = solver_array(s, x.cols, x.rows);
    solver_transpose(s, to, x);
    return to;
}

/* Returns an empty matrix if there are no right vectors: decompose() gives VT n rows then. */
static struct array rows_of_vt(char job, struct array vt)
{
    return job == 'N' ? solver_part(vt, 0, 0, 0, 0) : vt;
}

static void run_svd(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    char jobu = lapack_job_of(s->call, ACCEL_jobu), jobvt = lapack_job_of(s->call, ACCEL_jobvt);
    struct singular_vectors v;
    struct array whole = solver_upload(s, a, 0);
    struct array values = solver_reals(s, accel_min(whole.rows, whole.cols));
    solver_refuse_extremes(s);
    if (whole.rows >= whole.cols) {
        v = decompose(s, jobu, jobvt, whole, values);
    } else {
        const struct singular_vectors of_adjoint =
            decompose(s, jobvt, jobu, adjoint(s, whole), values);
        v.u = adjoint(s, rows_of_vt(jobu, of_adjoint.vt));
        v.vt = adjoint(s, of_adjoint.u);
    }
    solver_return(s, &s->call->span[ACCEL_x], values, 0);
    if (jobu != 'N')
        solver_return(s, jobu == 'O' ? a : &s->call->span[ACCEL_b], v.u, 0);
    if (jobvt != 'N')
        solver_return(s, jobvt == 'O' ? a : &s->call->span[ACCEL_c], v.vt, 0);
}

static const char *gesvd_fault(const struct accel_call *call)
{
    return call->blas.flag[ACCEL_jobu] == 'O' && call->blas.flag[ACCEL_jobvt] == 'O' ? "jobvt"
                                                                                     : NULL;
}

static struct accel_lengths gesvd_workspace(const struct lapack_sizes *x)
{
    bool tall = x->call->blas.size[ACCEL_m] >= x->call->blas.size[ACCEL_n];
    bool short_way =
        lapack_is_tall(x->mx, x->mn) && x->call->blas.flag[tall ? ACCEL_jobu : ACCEL_jobvt] == 'N';
    int64_t work = x->is_complex ? short_way ? 3 * x->mn : 2 * x->mn + x->mx
                   : short_way   ? 5 * x->mn
                                 : accel_max(3 * x->mn + x->mx, 5 * x->mn);
    return (struct accel_lengths){work, 0, 0};
}

/* By the code of LAPACK from 3.7 on, which asks for less than the documentation. */
static int64_t gesdd_work(char jobz, bool complex, int64_t mn, int64_t mx)
{
    int64_t square = mn * mn, inner = jobz == 'N' ? 7 * mn : 3 * square + 4 * mn;
    if (complex) {
        if (mx < mn * 17 / 9)
            return 2 * mn + mx + (jobz == 'O' ? square : 0);
        return jobz == 'N'   ? 3 * mn
               : jobz == 'O' ? 2 * square + 3 * mn
               : jobz == 'S' ? square + 3 * mn
                             : square + accel_max(3 * mn, mn + mx);
    }
    if (mx < mn * 11 / 6)
        return 3 * mn + accel_max(mx, inner + (jobz == 'O' ? square : 0));
    return jobz == 'N'   ? inner + mn
           : jobz == 'O' ? inner + 2 * square + 3 * mn
           : jobz == 'S' ? inner + square + 3 * mn
                         : square + accel_max(3 * mn + inner, mn + mx);
}

/* In complex types; RWORK has no argument for its length. */
static int64_t gesdd_rwork(char jobz, int64_t mn, int64_t mx)
{
    int64_t square = 5 * mn * mn + 5 * mn;
    if (jobz == 'N')
        return 7 * mn;
    return mx < mn * 17 / 9 ? accel_max(square, 2 * mx * mn + 2 * mn * mn + mn) : square;
}

static struct accel_lengths gesdd_workspace(const struct lapack_sizes *x)
{
    const char jobz = x->call->blas.flag[ACCEL_jobz];
    return (struct accel_lengths){gesdd_work(jobz, x->is_complex, x->mn, x->mx),
                                  x->is_complex ? gesdd_rwork(jobz, x->mn, x->mx) : 0, 0};
}

static const struct accel_gpu svd = {.steps = run_svd, .whole = LAPACK_CONDENSES};

const struct accel_op op_gesvd = {
    LAPACK_ITERATES(),
    OP_RULES(.fault = gesvd_fault, .workspace = gesvd_workspace, .check = check_gesvd),
    .gpu = &svd};
const struct accel_op op_gesdd = {
    LAPACK_TRAITS(.iterates = true), OP_COST(LAPACK_ITERATES_NOMINAL, .sample = ACCEL_SAMPLE_SVD),
    OP_RULES(.workspace = gesdd_workspace, .check = check_gesvd), .gpu = &svd};
