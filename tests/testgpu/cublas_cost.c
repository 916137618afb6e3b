/* What the routines cost: multiplications and additions of the type's numbers, two for each
 * pair. */
#include "cublas_cost.h"
#include "cublas_precision.h"

static double product(int64_t x, int64_t y, int64_t z)
{
    return (double)x * (double)y * (double)z;
}

double operations_of_gemm(const struct blas_call *x)
{
    double one = 2 * product(x->m, x->n, x->k);
    return has(x, BATCHED) ? one * (double)x->batch : one;
}

double operations_of_symm(const struct blas_call *x)
{
    return 2 * product(x->m, x->n, order_of_a(x));
}

double operations_of_syrk(const struct blas_call *x)
{
    return product(x->n, x->n + 1, x->k);
}

double operations_of_syr2k(const struct blas_call *x)
{
    return 2 * product(x->n, x->n + 1, x->k);
}

double operations_of_triangular(const struct blas_call *x)
{
    return product(x->m, x->n, order_of_a(x));
}

struct testgpu_cost cost_of(const struct blas_call *x)
{
    struct testgpu_cost cost = {
        .bytes = matrix_elements_bytes(&x->a) + matrix_elements_bytes(&x->b) +
                 matrix_elements_bytes(&x->c),
        .dimension = smallest_size(x->m, x->n, x->k),
        .single = is_single(x->precision),
    };
    if (has(x, BATCHED))
        cost.bytes *= (double)x->batch;
    if (x->routine->operations != NULL)
        cost.operations = x->routine->operations(x) * real_operations(x->precision);
    if (x->mode != NULL)
        cost.operations /= x->mode->gain;
    return cost;
}
