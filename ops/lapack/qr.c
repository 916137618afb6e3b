/*
 * geqrf, orgqr (ungqr), ormqr (unmqr): Q is a product of elementary reflectors, stored as LAPACK's.
 */
#include "gpu/cuda/cusolver_call.h"

static void generate(struct solver *s, struct array a, struct array tau)
{
    if (solver_fits_int(s, accel_max(a.rows, a.cols), a.ld))
        LEGACY(s, orgqr, ungqr, (int)a.rows, (int)a.cols, (int)tau.rows, TYPED(a), VALUES(tau));
    solver_require_success(s);
}

enum gpu_status gpu_qr(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct accel_operand *a = &call->operand[ACCEL_a], *c = &call->operand[ACCEL_c],
                               *x = &call->operand[ACCEL_x];
    struct array qr, tau, product;
    struct solver s;
    solver_begin(&s, work);
    switch (call->routine->family) {
    case ACCEL_GEQRF:
        qr = solver_upload(&s, a, 0);
        tau = solver_vector(&s, accel_min(qr.rows, qr.cols), s.dtype);
        solver_geqrf(&s, qr, tau);
        solver_return(&s, x, tau, 0);
        solver_return(&s, a, qr, 0);
        break;
    case ACCEL_ORGQR: /* only the reflectors, below the diagonal of the first k columns, are read */
        qr = solver_zeros(&s, a->rows, a->cols);
        solver_upload_to(&s, qr, a, a->rows, call->size[ACCEL_k], 'l');
        tau = solver_upload(&s, x, 0);
        generate(&s, qr, tau);
        solver_return(&s, a, qr, 0);
        break;
    default:
        qr = solver_upload(&s, a, 'l');
        tau = solver_upload(&s, x, 0);
        product = solver_upload(&s, c, 0);
        solver_ormqr(&s, call->flag[ACCEL_side], call->flag[ACCEL_trans], qr, tau, product);
        solver_return(&s, c, product, 0);
    }
    return solver_end(&s);
}
