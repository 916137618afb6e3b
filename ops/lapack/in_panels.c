#include "in_panels.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/exchange.h"
#include "gpu/solver_shared.h"
#include "rules.h"

/* ---- Which jobs ---- */

struct panels_call lapack_factoring(const struct accel_call *call, enum panels_kind kind)
{
    const struct accel_span *a = &call->span[ACCEL_a];
    return (struct panels_call){.kind = kind,
                                .across =
                                    kind == PANELS_CHOLESKY && call->blas.flag[ACCEL_uplo] == 'U',
                                .m = a->rows,
                                .n = a->cols,
                                .size = (int64_t)accel_dtype_size(call->routine->dtype),
                                .per_term = accel_is_complex(call->routine->dtype) ? 8 : 2};
}

/* The right-hand sides go through in panels, the factors in blocks. */
static struct panels_call applying(const struct accel_call *call)
{
    struct panels_call applied = lapack_factoring(call, PANELS_APPLY);
    applied.m = call->span[ACCEL_a].rows;
    applied.n = call->span[ACCEL_b].cols;
    applied.order = call->span[ACCEL_a].cols;
    return applied;
}

/* Adds a sweep that solves by a triangle, or its transpose. */
static void add_solve(struct panels_job *job, char uplo, char trans, char diag)
{
    struct panels_call *call = &job->call;
    const bool upper = uplo == 'U';
    job->action[call->sweeps] = (struct panels_action){false, uplo, trans, diag};
    call->sweep[call->sweeps++] = (struct panels_sweep){upper == (trans == 'N'), upper};
}

/* Adds one that multiplies by Q, or its adjoint. */
static void add_reflections(struct panels_job *job, char trans)
{
    struct panels_call *call = &job->call;
    job->action[call->sweeps] = (struct panels_action){.reflects = true, .trans = trans};
    call->sweep[call->sweeps++] = (struct panels_sweep){trans == 'N', false};
}

static char adjoint_of(const struct accel_call *call)
{
    return accel_is_complex(call->routine->dtype) ? 'C' : 'T';
}

static bool has_right_sides(const struct accel_call *call)
{
    return accel_has_size(call->routine, ACCEL_nrhs) && call->blas.size[ACCEL_nrhs] > 0;
}

static struct panels_job cholesky_solving(const struct accel_call *call)
{
    struct panels_job job = {.call = applying(call)};
    const char uplo = call->blas.flag[ACCEL_uplo], adjoint = adjoint_of(call);
    add_solve(&job, uplo, uplo == 'L' ? 'N' : adjoint, 'N');
    add_solve(&job, uplo, uplo == 'L' ? adjoint : 'N', 'N');
    return job;
}

static struct panels_job lu_solving(const struct accel_call *call, char trans)
{
    struct panels_job job = {.call = applying(call)};
    add_solve(&job, trans == 'N' ? 'L' : 'U', trans, trans == 'N' ? 'U' : 'N');
    add_solve(&job, trans == 'N' ? 'U' : 'L', trans, trans == 'N' ? 'N' : 'U');
    return job;
}

static struct panels_job triangle_solving(const struct accel_call *call)
{
    struct panels_job job = {.call = applying(call)};
    add_solve(&job, call->blas.flag[ACCEL_uplo], call->blas.flag[ACCEL_trans],
              call->blas.flag[ACCEL_diag]);
    return job;
}

/* The tall matrix's least squares, or the shortest solution of its adjoint's system. */
static struct panels_job qr_solving(const struct accel_call *call)
{
    struct panels_job job = {.call = applying(call)};
    const char adjoint = adjoint_of(call);
    if (call->blas.flag[ACCEL_trans] == 'N') {
        add_reflections(&job, adjoint);
        add_solve(&job, 'U', 'N', 'N');
    } else {
        add_solve(&job, 'U', adjoint, 'N');
        add_reflections(&job, 'N');
    }
    return job;
}

/* ---- Which calls ---- */

static int potrf_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = lapack_factoring(call, PANELS_CHOLESKY);
    panels[1] = has_right_sides(call) ? cholesky_solving(call).call : panels[0];
    return 1 + has_right_sides(call);
}

static int potrs_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = cholesky_solving(call).call;
    return 1;
}

static int getrf_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = lapack_factoring(call, PANELS_LU);
    panels[1] = has_right_sides(call) ? lu_solving(call, 'N').call : panels[0];
    return 1 + has_right_sides(call);
}

static int getrs_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = lu_solving(call, call->blas.flag[ACCEL_trans]).call;
    return 1;
}

static int geqrf_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = lapack_factoring(call, PANELS_QR);
    return 1;
}

/* LAPACK factors a wide matrix by LQ. */
static int gels_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = lapack_factoring(call, PANELS_QR);
    panels[1] = qr_solving(call).call;
    return panels[0].m < panels[0].n ? 0 : 1 + has_right_sides(call);
}

static int trtrs_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = triangle_solving(call).call;
    return 1;
}

/* ---- Times ---- */

enum { JOBS = 2 };

/* Sets the jobs of a call that may go in panels, and returns how many there are; 0: none. */
static int jobs_of(const struct accel_call *call, struct panels_call jobs[JOBS])
{
    return lapack_has_panels(call) ? accel_op_of(call->routine)->in_panels->calls(call, jobs) : 0;
}

bool lapack_has_panels(const struct accel_call *call)
{
    return accel_op_of(call->routine)->in_panels && accel_is_on_host(call) &&
           lapack_gpu_bytes(call) >= (double)PANELS_LEAST_BYTES;
}

bool lapack_factors(const struct accel_call *call)
{
    struct panels_call jobs[JOBS];
    return jobs_of(call, jobs) > 0 && jobs[0].kind != PANELS_APPLY;
}

static int64_t memory_for(const struct panels_call *job, int64_t memory_bytes)
{
    return memory_bytes - solver_panels_reserve(job);
}

bool lapack_fits_in_panels(const struct accel_call *call, int64_t memory_bytes)
{
    struct panels_call jobs[JOBS];
    const int count = jobs_of(call, jobs);
    for (int i = 0; i < count; i++)
        if (!panels_fit(&jobs[i], memory_for(&jobs[i], memory_bytes)))
            return false;
    return count > 0;
}

/* From the device's memory, results go to a copy in host memory. The copy is written to the program's as fast as results come down, at
 * most. */
static double above_memory_ms(const struct panels_call *jobs, int count,
                              const struct schedule_rates *rates, int64_t memory_bytes)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        const double ms = panels_ms(&jobs[i], rates, memory_for(&jobs[i], memory_bytes));
        if (ms < 0)
            return -1;
        sum += ms + panels_down_ms(&jobs[i], rates);
    }
    return sum;
}

/* The matrix comes up while it is factored; all else comes behind that. */
static double in_core_ms(const struct panels_call *jobs, int count,
                         const struct schedule_rates *rates)
{
    const double ms = panels_in_core_ms(&jobs[0], rates);
    if (ms < 0)
        return -1;
    const double solution =
        count > 1 ? panels_whole_ms(&jobs[1], rates) + panels_down_ms(&jobs[1], rates) : 0;
    return ms + panels_down_ms(&jobs[0], rates) + solution;
}

double lapack_panels_ms(const struct accel_call *call, const struct schedule_rates *rates,
                        int64_t memory_bytes)
{
    struct panels_call jobs[JOBS];
    const int count = jobs_of(call, jobs);
    if (count == 0)
        return -1;
    return lapack_gpu_bytes(call) > (double)memory_bytes
               ? above_memory_ms(jobs, count, rates, memory_bytes)
               : in_core_ms(jobs, count, rates);
}

double lapack_panels_floor_ms(const struct accel_call *call, const struct schedule_rates *rates)
{
    struct panels_call jobs[JOBS];
    const int count = jobs_of(call, jobs);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += panels_floor(&jobs[i], rates);
    return sum;
}

/* ---- Steps ---- */

/* Factors the operand A. The list: of pivots (int64_t) or the scalars of reflectors; NULL: none. Returns its packed factors, which the
 * caller frees or returns. */
static char *factor(struct solver *s, enum panels_kind kind, void *list)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct panels_job job = {.call = lapack_factoring(s->call, kind),
                             .x = a,
                             .from = a->ptr,
                             .from_ld = a->ld,
                             .list = list};
    job.to = solver_panels_memory(s, job.call.m, job.call.n, job.call.size);
    (s->work->host->shared ? solver_shared_lead : solver_panels)(s, &job);
    return job.to;
}

/* Applies factors to the operand B. */
static char *apply(struct solver *s, struct panels_job *job, const void *factors, int64_t ld)
{
    const struct accel_span *b = &s->call->span[ACCEL_b];
    job->x = b;
    job->other = &s->call->span[ACCEL_a];
    job->factors = factors;
    job->factors_ld = ld;
    if (!job->from) {
        job->from = b->ptr;
        job->from_ld = b->ld;
    }
    job->to = solver_panels_memory(s, job->call.m, job->call.n, job->call.size);
    solver_panels(s, job);
    return job->to;
}

static void return_matrix(struct solver *s, enum accel_matrix which, char *packed, char uplo)
{
    const struct accel_span *to = &s->call->span[which];
    solver_return_packed(s, to, to->rows, to->cols, packed, uplo);
}

static void run_potrf(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    char *l = factor(s, PANELS_CHOLESKY, NULL);
    if (has_right_sides(s->call)) {
        struct panels_job job = cholesky_solving(s->call);
        return_matrix(s, ACCEL_b, apply(s, &job, l, a->rows), 0);
    }
    return_matrix(s, ACCEL_a, l, s->call->blas.flag[ACCEL_uplo]);
}

static void run_potrs(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct panels_job job = cholesky_solving(s->call);
    return_matrix(s, ACCEL_b, apply(s, &job, a->ptr, a->ld), 0);
}

static void run_getrf(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    int64_t *pivots = solver_panels_memory(s, s->call->span[ACCEL_x].cols, 1, sizeof *pivots);
    char *lu = factor(s, PANELS_LU, pivots);
    if (has_right_sides(s->call)) {
        struct panels_job job = lu_solving(s->call, 'N');
        job.pivots = pivots;
        return_matrix(s, ACCEL_b, apply(s, &job, lu, a->rows), 0);
    }
    solver_return_packed(s, &s->call->span[ACCEL_x], s->call->span[ACCEL_x].cols, 1, pivots, 0);
    return_matrix(s, ACCEL_a, lu, 0);
}

/* Returns the program's pivots, which must be within the matrix: others are GPU_UNSUPPORTED. */
static int64_t *read_pivots(struct solver *s)
{
    const struct accel_span *x = &s->call->span[ACCEL_x];
    int64_t *pivots = solver_panels_memory(s, x->cols, 1, sizeof *pivots);
    for (int64_t i = 0; pivots && i < x->cols; i++) {
        pivots[i] = accel_integer(x, i);
        if (pivots[i] < 1 || pivots[i] > s->call->span[ACCEL_a].rows) {
            solver_note(s, GPU_UNSUPPORTED);
            break;
        }
    }
    return pivots;
}

/* By the transpose, the exchanges come last, in the opposite order. */
static void run_getrs(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    const char trans = s->call->blas.flag[ACCEL_trans];
    struct panels_job job = lu_solving(s->call, trans);
    int64_t *pivots = read_pivots(s);
    if (trans == 'N')
        job.pivots = pivots;
    char *x = apply(s, &job, a->ptr, a->ld);
    if (solver_is_well(s) && trans != 'N')
        exchange_rows(x, job.call.m, job.call.n, job.call.size, pivots, 0, a->rows, true);
    free(pivots);
    return_matrix(s, ACCEL_b, x, 0);
}

static void run_geqrf(struct solver *s)
{
    const int64_t size = (int64_t)accel_dtype_size(s->dtype);
    const struct accel_span *tau = &s->call->span[ACCEL_x];
    char *scalars = solver_panels_memory(s, tau->cols, 1, size);
    char *qr = factor(s, PANELS_QR, scalars);
    solver_return_packed(s, tau, tau->cols, 1, scalars, 0);
    return_matrix(s, ACCEL_a, qr, 0);
}

/* ---- gels ---- */

/* LAPACK says which element of R's diagonal is zero, and computes no solution. */
static void refuse_singular(struct solver *s, const char *qr, int64_t rows, int64_t cols)
{
    const int64_t size = (int64_t)accel_dtype_size(s->dtype);
    for (int64_t i = 0; solver_is_well(s) && i < cols; i++)
        if (solver_has_zero(s, qr + i * (rows + 1) * size, 1))
            solver_note(s, GPU_UNSUPPORTED);
}

/* Returns B's first `rows` rows above zeros: what the shortest solution begins with. */
static char *above_zeros(struct solver *s, int64_t rows)
{
    const struct accel_span *b = &s->call->span[ACCEL_b];
    const int64_t size = gpu_size_of(b);
    char *x = solver_panels_memory(s, b->rows, b->cols, size);
    for (int64_t j = 0; x && j < b->cols; j++) {
        char *column = x + j * b->rows * size;
        memcpy(column, gpu_element(b, 0, j), (size_t)(rows * size));
        memset(column + rows * size, 0, (size_t)((b->rows - rows) * size));
    }
    return x;
}

/* LAPACK scales B, too, if its numbers are very large or small, but zeros it does not. Their size does not count in s->largest. */
static char *solve_least_squares(struct solver *s, const char *qr, const void *scalars)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct panels_job job = qr_solving(s->call);
    const bool shortest = s->call->blas.flag[ACCEL_trans] != 'N';
    char *begun = shortest ? above_zeros(s, a->cols) : NULL;
    job.from = begun;
    job.from_ld = a->rows;
    job.scalars = scalars;
    s->largest = 0;
    char *x = apply(s, &job, qr, a->rows);
    if (s->largest > 0)
        solver_refuse_extremes(s);
    free(begun);
    return x;
}

static void run_gels(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    if (a->rows < a->cols)
        solver_note(s, GPU_NO_MEMORY);
    char *scalars = solver_panels_memory(s, a->cols, 1, (int64_t)accel_dtype_size(s->dtype));
    char *qr = factor(s, PANELS_QR, scalars);
    solver_refuse_extremes(s);
    refuse_singular(s, qr, a->rows, a->cols);
    if (has_right_sides(s->call))
        return_matrix(s, ACCEL_b, solve_least_squares(s, qr, scalars), 0);
    free(scalars);
    return_matrix(s, ACCEL_a, qr, 0);
}

/* ---- trtrs ---- */

static void run_trtrs(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct panels_job job = triangle_solving(s->call);
    if (s->call->blas.flag[ACCEL_diag] == 'N')
        solver_refuse_zero_diagonal(s, a);
    return_matrix(s, ACCEL_b, apply(s, &job, a->ptr, a->ld), 0);
}

const struct lapack_panels lapack_potrf_in_panels = {potrf_calls, run_potrf},
                           lapack_potrs_in_panels = {potrs_calls, run_potrs},
                           lapack_getrf_in_panels = {getrf_calls, run_getrf},
                           lapack_getrs_in_panels = {getrs_calls, run_getrs},
                           lapack_geqrf_in_panels = {geqrf_calls, run_geqrf},
                           lapack_gels_in_panels = {gels_calls, run_gels},
                           lapack_trtrs_in_panels = {trtrs_calls, run_trtrs};
