/* What a parameter of cuBLAS means for a matrix. */
#include <string.h>
#include "cublas_routine.h"

void set_vector(struct matrix *matrix, int64_t length)
{
    set_shape(matrix, 1, length, WHOLE);
    matrix->backwards = matrix->ld < 0;
    if (matrix->backwards)
        matrix->ld = -matrix->ld;
}

int64_t vector_index(const struct matrix *vector, int64_t i)
{
    return (vector->backwards ? vector->columns - 1 - i : i) * vector->ld;
}

bool is_transposed(cublasOperation_t operation)
{
    return operation != CUBLAS_OP_N;
}

/* Of the square A beside an m by n matrix. */
int64_t order_of_a(const struct blas_call *call)
{
    return call->side == CUBLAS_SIDE_LEFT ? call->m : call->n;
}

static bool equals(const unsigned char *scalar, enum precision precision, int value)
{
    float single[2] = {0};
    double twice[2] = {0};
    if (precision == SINGLE || precision == COMPLEX) {
        memcpy(single, scalar, element_bytes(precision));
        return single[0] == (float)value && single[1] == 0;
    }
    memcpy(twice, scalar, element_bytes(precision));
    return twice[0] == value && twice[1] == 0;
}

bool is_zero(const unsigned char *scalar, enum precision precision)
{
    return equals(scalar, precision, 0);
}

bool is_one(const unsigned char *scalar, enum precision precision)
{
    return equals(scalar, precision, 1);
}
