/*
 * syev, syevd, syevr, syevx (and he): all eigenvalues, or a range of them. sygv, sygvd, sygvx (and he) of two matrices.
 * geev, whose left vectors cuSOLVER does not have.
 */
#include "gpu/cuda/cusolver_call.h"

#include <float.h>
#include <math.h>

static cusolverEigMode_t mode(char job)
{
    return job == 'V' ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}

static cusolverEigRange_t range_of(char range)
{
    return range == 'I'   ? CUSOLVER_EIG_RANGE_I
           : range == 'V' ? CUSOLVER_EIG_RANGE_V
                          : CUSOLVER_EIG_RANGE_ALL;
}

/* What the drivers with a range return: of the first `found` eigenvalues and vectors. */
static void return_range(struct solver *s, struct array w, struct array vectors, int64_t found)
{
    const struct accel_call *call = s->work->call;
    const struct accel_operand *extra = &call->operand[ACCEL_y];
    bool wanted = call->flag[ACCEL_jobz] == 'V';
    solver_return_integers(s, &call->operand[ACCEL_found], 1, found, found);
    solver_return(s, &call->operand[ACCEL_x], solver_part(w, 0, 0, found, 1), 0);
    if (!wanted)
        return;
    solver_return(s, &call->operand[ACCEL_c], solver_part(vectors, 0, 0, vectors.rows, found), 0);
    /* A vector may have elements everywhere. Of a part of the spectrum LAPACK does not say, and programs have no room
     * for it (SciPy). */
    if (call->routine->family == ACCEL_SYEVR && call->flag[ACCEL_range] != 'V' &&
        found == vectors.rows)
        solver_return_integers(s, extra, 2 * found, 1, found);
    else if (call->routine->family != ACCEL_SYEVR) /* none has failed */
        solver_return_integers(s, extra, found, 0, 0);
}

/* ---- One matrix ---- */

static void solve_all(struct solver *s, struct array a, struct array w)
{
    const struct accel_call *call = s->work->call;
    GENERIC(s, cusolverDnXsyevd, SOLVER_PARAMS(s), mode(call->flag[ACCEL_jobz]),
            fill(call->flag[ACCEL_uplo]), a.rows, s->type, MATRIX(a), s->real_type, AT(w), s->type);
    solver_require_success(s);
}

static int64_t solve_range(struct solver *s, struct array a, struct array w)
{
    const struct accel_call *call = s->work->call;
    /* No eigenvalue is larger (Gershgorin); programs say infinity where they mean no bound. */
    double bound = 2 * (double)a.rows * s->largest;
    double lower = call->scalar[ACCEL_vl].re, upper = call->scalar[ACCEL_vu].re;
    lower = lower < -bound ? -bound : lower;
    upper = upper > bound ? bound : upper;
    float lower_single = (float)lower, upper_single = (float)upper;
    void *vl = s->real == ACCEL_FLOAT64 ? (void *)&lower : &lower_single;
    void *vu = s->real == ACCEL_FLOAT64 ? (void *)&upper : &upper_single;
    int64_t found = 0;
    if (call->flag[ACCEL_range] == 'V' && !(lower < upper)) { /* all beyond, or beside it */
        solver_note(s, GPU_UNSUPPORTED);
        return 0;
    }
    GENERIC(s, cusolverDnXsyevdx, SOLVER_PARAMS(s), mode(call->flag[ACCEL_jobz]),
            range_of(call->flag[ACCEL_range]), fill(call->flag[ACCEL_uplo]), a.rows, s->type,
            MATRIX(a), vl, vu, call->size[ACCEL_il], call->size[ACCEL_iu], &found, s->real_type,
            AT(w), s->type);
    solver_require_success(s);
    return found;
}

enum gpu_status gpu_symmetric(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct accel_operand *a = &call->operand[ACCEL_a];
    char range = call->flag[ACCEL_range];
    struct solver s;
    solver_begin(&s, work);
    struct array vectors = solver_upload_hermitian(&s, a, call->flag[ACCEL_uplo]);
    struct array w = solver_reals(&s, vectors.rows);
    int64_t found = vectors.rows;
    solver_refuse_extremes(&s);
    if (range == 'I' || range == 'V')
        found = solve_range(&s, vectors, w);
    else
        solve_all(&s, vectors, w);
    if (range) {
        return_range(&s, w, vectors, found);
    } else {
        solver_return(&s, &call->operand[ACCEL_x], w, 0);
        if (call->flag[ACCEL_jobz] == 'V')
            solver_return(&s, a, vectors, 0);
    }
    return solver_end(&s);
}

/* ---- Two matrices ---- */

static int64_t solve_two(struct solver *s, struct array a, struct array b, struct array w)
{
    const struct accel_call *call = s->work->call;
    const cusolverEigType_t type = (cusolverEigType_t)call->size[ACCEL_itype];
    const cusolverEigMode_t job = mode(call->flag[ACCEL_jobz]);
    const cublasFillMode_t uplo = fill(call->flag[ACCEL_uplo]);
    int n = (int)a.rows, found = n;
    if (!solver_fits_int(s, a.rows, a.ld))
        return 0;
    if (call->routine->family == ACCEL_SYGVX)
        LEGACY(s, sygvdx, hegvdx, type, job, range_of(call->flag[ACCEL_range]), uplo, n, TYPED(a),
               TYPED(b), (R)call->scalar[ACCEL_vl].re, (R)call->scalar[ACCEL_vu].re,
               (int)call->size[ACCEL_il], (int)call->size[ACCEL_iu], &found, REALS(w));
    else
        LEGACY(s, sygvd, hegvd, type, job, uplo, n, TYPED(a), TYPED(b), REALS(w));
    solver_require_success(s);
    return found;
}

enum gpu_status gpu_generalized(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct accel_operand *a = &call->operand[ACCEL_a], *b = &call->operand[ACCEL_b];
    char uplo = call->flag[ACCEL_uplo];
    struct solver s;
    solver_begin(&s, work);
    if (call->flag[ACCEL_range] == 'V' &&
        !(fabs(call->scalar[ACCEL_vl].re) <= DBL_MAX && fabs(call->scalar[ACCEL_vu].re) <= DBL_MAX))
        solver_note(&s, GPU_UNSUPPORTED);
    struct array vectors = solver_upload_hermitian(&s, a, uplo);
    solver_refuse_extremes(&s);
    struct array factor = solver_upload_hermitian(&s, b, uplo), w = solver_reals(&s, vectors.rows);
    int64_t found = solve_two(&s, vectors, factor, w);
    if (call->routine->family == ACCEL_SYGVX) {
        return_range(&s, w, vectors, found);
    } else {
        solver_return(&s, &call->operand[ACCEL_x], w, 0);
        if (call->flag[ACCEL_jobz] == 'V')
            solver_return(&s, a, vectors, 0);
    }
    solver_return(&s, b, factor, uplo);
    return solver_end(&s);
}

/* ---- No symmetry ---- */

/* Eigenvalues of a real matrix come as their real parts, then their imaginary parts. */
enum gpu_status gpu_geev(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    bool complex = accel_is_complex(call->routine->dtype);
    struct solver s;
    solver_begin(&s, work);
    if (!CUDA(cusolverDnXgeev)) /* before anything goes up */
        solver_note(&s, GPU_UNSUPPORTED);
    struct array a = solver_upload(&s, &call->operand[ACCEL_a], 0);
    int64_t n = a.rows, wanted = call->flag[ACCEL_jobvr] == 'V' ? n : 0;
    struct array w = solver_array(&s, complex ? n : 2 * n, 1), vr = solver_array(&s, n, wanted),
                 vl = {0, n, 0, n, s.dtype};
    solver_refuse_extremes(&s);
    GENERIC(&s, cusolverDnXgeev, SOLVER_PARAMS(&s), CUSOLVER_EIG_MODE_NOVECTOR,
            mode(call->flag[ACCEL_jobvr]), n, s.type, MATRIX(a), s.type, AT(w), s.type, MATRIX(vl),
            s.type, MATRIX(vr), s.type);
    solver_require_success(&s);
    solver_return(&s, &call->operand[ACCEL_x], solver_part(w, 0, 0, n, 1), 0);
    if (!complex)
        solver_return(&s, &call->operand[ACCEL_y], solver_part(w, n, 0, n, 1), 0);
    solver_return(&s, &call->operand[ACCEL_c], vr, 0);
    return solver_end(&s);
}
