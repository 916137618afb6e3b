/*
 * geqrf, orgqr (ungqr), ormqr (unmqr): Q is a product of elementary reflectors, stored as LAPACK's.
 */
#include "cpu_ref/checks.h"
#include "gpu/exec/lapack/solver_in_core.h"
#include "in_panels.h"
#include "ops/rules/lapack_rules.h"

static void run_geqrf(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    const struct panels_call call = lapack_factoring(s->call, PANELS_QR);
    struct array tau = solver_vector(s, accel_min(a->rows, a->cols), s->dtype);
    struct array qr = solver_factor(s, &call, a, tau);
    solver_return(s, &s->call->span[ACCEL_x], tau, 0);
    solver_return(s, a, qr, 0);
}

/* Only the reflectors are read, below the diagonal of the first k columns. */
static void run_orgqr(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct array qr = solver_zeros(s, a->rows, a->cols);
    solver_upload_to(s, qr, a, a->rows, s->call->blas.size[ACCEL_k], 'l');
    solver_library(s)->orgqr(s, qr, solver_upload(s, &s->call->span[ACCEL_x], 0));
    solver_return(s, a, qr, 0);
}

static void run_ormqr(struct solver *s)
{
    const struct accel_span *c = &s->call->span[ACCEL_c];
    struct array qr = solver_upload(s, &s->call->span[ACCEL_a], 'l');
    struct array tau = solver_upload(s, &s->call->span[ACCEL_x], 0);
    struct array product = solver_upload(s, c, 0);
    solver_library(s)->ormqr(s, s->call->blas.flag[ACCEL_side], s->call->blas.flag[ACCEL_trans], qr,
                             tau, product);
    solver_return(s, c, product, 0);
}

static const char *orgqr_fault(const struct accel_call *call)
{
    int64_t m = call->blas.size[ACCEL_m], n = call->blas.size[ACCEL_n],
            k = call->blas.size[ACCEL_k];
    return n > m ? "n" : k > n ? "k" : NULL;
}

/* k = 0 is not empty: Q is the identity. */
static bool orgqr_is_empty(const struct accel_call *call)
{
    return call->blas.size[ACCEL_n] == 0;
}

static bool orgqr_is_supported(const struct accel_call *call)
{
    return call->blas.size[ACCEL_k] > 0;
}

static const char *ormqr_fault(const struct accel_call *call)
{
    return call->blas.size[ACCEL_k] > accel_call_size(call, ACCEL_order) ? "k" : NULL;
}

static struct accel_lengths ormqr_workspace(const struct lapack_sizes *x)
{
    return (struct accel_lengths){x->call->blas.flag[ACCEL_side] == 'L' ? x->n : x->m, 0, 0};
}

static void geqrf_left(const struct lapack_sizes *x, struct accel_lengths *lengths)
{
    lapack_left_by_blocks(x, accel_min(x->m, x->n), LAPACK_QR_CROSSOVER, lengths);
}

static void orgqr_left(const struct lapack_sizes *x, struct accel_lengths *lengths)
{
    lapack_left_by_blocks(x, x->call->blas.size[ACCEL_k], LAPACK_QR_CROSSOVER, lengths);
}

const struct accel_op op_geqrf = {
    LAPACK_REFLECTS(),
    OP_RULES(.workspace = lapack_n_workspace, .left = geqrf_left, .check = check_geqrf),
    OP_GPU(.steps = run_geqrf, .in_panels = &lapack_geqrf_in_panels)};
const struct accel_op op_orgqr = {LAPACK_REFLECTS(.reflectors = true),
                                  OP_RULES(.fault = orgqr_fault, .is_empty = orgqr_is_empty,
                                           .workspace = lapack_n_workspace, .left = orgqr_left,
                                           .check = check_orgqr),
                                  OP_GPU(.is_supported = orgqr_is_supported, .steps = run_orgqr,
                                         .in_panels = &lapack_orgqr_in_panels)};
const struct accel_op op_ormqr = {
    LAPACK_REFLECTS(.reflectors = true),
    OP_RULES(.fault = ormqr_fault, .workspace = ormqr_workspace, .check = check_ormqr),
    OP_GPU(.steps = run_ormqr, .in_panels = &lapack_ormqr_in_panels)};
