/* Matrices in device memory, of the stand-ins for libcublas and libcusolver. */
#ifndef TESTGPU_MATRIX_H
#define TESTGPU_MATRIX_H

#include <cublas_v2.h>
#include "testgpu.h"

enum precision { SINGLE, DOUBLE, COMPLEX, DOUBLE_COMPLEX };

size_t element_bytes(enum precision precision);
enum precision precision_of_scalar(enum precision precision, bool real);
bool is_single(enum precision precision);
/* On real numbers, for each on the type's. */
double real_operations(enum precision precision);
/* Sizes that a call has not are zero. */
int64_t smallest_size(int64_t m, int64_t n, int64_t k);

/* Of a triangle, the other one is neither read nor written. */
enum part { WHOLE, LOWER, UPPER };

enum part part_of(cublasFillMode_t uplo);

/* A vector is a matrix of one row, its elements as far apart as its increment says. */
struct matrix {
    CUdeviceptr address; /* of gemmBatched: where the addresses are */
    int64_t ld;          /* a vector's increment, until set_vector has told its sign */
    bool backwards;
    int64_t rows, columns;
    enum part part;
    size_t element; /* bytes */
};

#define MATRIX(ADDRESS, LD)                                                                        \
    {                                                                                              \
        .address = (CUdeviceptr)(uintptr_t)(ADDRESS), .ld = (LD)                                   \
    }

void set_shape(struct matrix *matrix, int64_t rows, int64_t columns, enum part part);
/* Rows *first up to *end of a column are in the matrix's part. */
void part_of_column(const struct matrix *matrix, int64_t column, int64_t *first, int64_t *end);
size_t matrix_bytes(const struct matrix *matrix);
/* Of its elements alone. */
double matrix_elements_bytes(const struct matrix *matrix);
/* Says that an operation reads or writes the matrix. */
void touch_matrix(struct testgpu_run *run, const struct matrix *matrix, bool writes);
bool matrices_overlap(const struct matrix *one, const struct matrix *other);
/* Makes a result wrong, in an element that every part has. */
void add_one(const struct matrix *matrix, enum precision precision, void *bytes);

#endif
