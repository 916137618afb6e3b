/* Where a matrix's elements lie, and what a parameter means for it. */
#include <string.h>
#include "cublas_routine.h"

size_t element_bytes(enum precision precision)
{
    static const size_t bytes[] = {4, 8, 8, 16};
    return bytes[precision];
}

void set_shape(struct matrix *matrix, int64_t rows, int64_t columns, enum part part)
{
    matrix->rows = rows;
    matrix->columns = columns;
    matrix->part = part;
}

void set_vector(struct matrix *matrix, int64_t length)
{
    set_shape(matrix, 1, length, WHOLE);
    matrix->backwards = matrix->ld < 0;
    if (matrix->backwards)
        matrix->ld = -matrix->ld;
}

void part_of_column(const struct matrix *matrix, int64_t column, int64_t *first, int64_t *end)
{
    *first = matrix->part == LOWER ? column : 0;
    *end = matrix->part == UPPER ? column + 1 : matrix->rows;
}

/* From the first element to the last; a triangle has both, as the whole matrix does. */
size_t matrix_bytes(const struct matrix *matrix)
{
    if (matrix->rows == 0 || matrix->columns == 0)
        return 0;
    return ((size_t)(matrix->columns - 1) * (size_t)matrix->ld + (size_t)matrix->rows) *
           matrix->element;
}

int64_t vector_index(const struct matrix *vector, int64_t i)
{
    return (vector->backwards ? vector->columns - 1 - i : i) * vector->ld;
}

struct span {
    uint64_t start, end;
};

static struct span column_span(const struct matrix *matrix, int64_t column)
{
    int64_t first, end;
    part_of_column(matrix, column, &first, &end);
    uint64_t top = matrix->address + (uint64_t)column * (uint64_t)matrix->ld * matrix->element;
    return (struct span){top + (uint64_t)first * matrix->element,
                         top + (uint64_t)end * matrix->element};
}

/* By elements, not by extents: two blocks of one larger matrix are apart. */
bool matrices_overlap(const struct matrix *one, const struct matrix *other)
{
    int64_t i = 0, j = 0;
    while (i < one->columns && j < other->columns) {
        struct span x = column_span(one, i);
        struct span y = column_span(other, j);
        if (x.start < y.end && y.start < x.end)
            return true;
        if (x.end <= y.start)
            i++;
        else
            j++;
    }
    return false;
}

bool is_transposed(cublasOperation_t operation)
{
    return operation != CUBLAS_OP_N;
}

enum part part_of(cublasFillMode_t uplo)
{
    return uplo == CUBLAS_FILL_MODE_LOWER ? LOWER : UPPER;
}

/* Of the square A beside an m by n matrix. */
int64_t order_of_a(const struct blas_call *call)
{
    return call->side == CUBLAS_SIDE_LEFT ? call->m : call->n;
}

enum precision precision_of_scalar(enum precision precision, bool real)
{
    if (!real)
        return precision;
    return precision == SINGLE || precision == COMPLEX ? SINGLE : DOUBLE;
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
