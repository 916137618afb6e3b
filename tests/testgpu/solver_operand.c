/* The arrays of a call: their sizes, and what becomes of what nobody promises. */
#include <string.h>
#include "solver_routine.h"

void set_operand(struct solver_call *x, enum operand operand, int64_t rows, int64_t columns)
{
    set_shape(&x->at[operand], rows, columns, WHOLE);
    x->at[operand].element = element_bytes(x->precision);
}

void set_triangle(struct solver_call *x, enum operand operand, int64_t order)
{
    set_operand(x, operand, order, order);
    x->at[operand].part = part_of(x->uplo);
}

void set_list(struct solver_call *x, enum operand operand, int64_t length, size_t element)
{
    set_shape(&x->at[operand], length, 1, WHOLE);
    x->at[operand].ld = larger(1, length);
    x->at[operand].element = element;
}

bool is_complex(const struct solver_call *x)
{
    return x->precision == COMPLEX || x->precision == DOUBLE_COMPLEX;
}

size_t real_bytes(const struct solver_call *x)
{
    return element_bytes(precision_of_scalar(x->precision, true));
}

cudaDataType real_type(const struct solver_call *x)
{
    return real_bytes(x) == sizeof(float) ? CUDA_R_32F : CUDA_R_64F;
}

int64_t smaller(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

int64_t larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* All bits set are not a number, whatever the type. */
static void spoil_rows(const struct matrix *matrix, int64_t column, int64_t first, int64_t end,
                       void *bytes)
{
    if (first < end)
        memset((char *)bytes + (size_t)(column * matrix->ld + first) * matrix->element, 0xff,
               (size_t)(end - first) * matrix->element);
}

void destroy(const struct matrix *matrix, int64_t from, void *bytes)
{
    int64_t first, end;
    for (int64_t j = from; j < matrix->columns; j++) {
        part_of_column(matrix, j, &first, &end);
        spoil_rows(matrix, j, first, end, bytes);
    }
}

void destroy_other(const struct matrix *matrix, void *bytes)
{
    for (int64_t j = 0; j < matrix->columns; j++)
        if (matrix->part == LOWER)
            spoil_rows(matrix, j, 0, j, bytes);
        else if (matrix->part == UPPER)
            spoil_rows(matrix, j, j + 1, matrix->rows, bytes);
}

void set_last_pivot(const struct solver_call *x, enum operand operand, void *const *at,
                    double value)
{
    const struct matrix *factor = &x->at[operand];
    char *pivot = (char *)at[operand] + (size_t)((x->n - 1) * (factor->ld + 1)) * factor->element;
    const float single = (float)value;
    if (is_single(x->precision))
        memcpy(pivot, &single, sizeof single);
    else
        memcpy(pivot, &value, sizeof value);
}

void set_diagonal(const struct solver_call *x, void *const *at)
{
    const double one = 1;
    const float single = 1;
    for (int64_t i = 0; i < smaller(x->m, x->n); i++) {
        char *element = (char *)at[A] + i * (x->at[A].ld + 1) * (int64_t)x->at[A].element;
        if (is_single(x->precision))
            memcpy(element, &single, sizeof single);
        else
            memcpy(element, &one, sizeof one);
    }
}

bool misses_pivot(const struct solver_call *x, unsigned kind, int64_t failed)
{
    return testgpu_last_pivot() >= kind && failed > 0 && x->uplo == CUBLAS_FILL_MODE_LOWER &&
           failed % (x->precision == DOUBLE_COMPLEX ? 32 : 64) == 0;
}
