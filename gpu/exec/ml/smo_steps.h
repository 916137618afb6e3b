/*
 * What smo.c, smo_solve.c and smo_check.c share. All do nothing after a failure.
 */
#ifndef ACCEL_SMO_STEPS_H
#define ACCEL_SMO_STEPS_H

#include "gpu/device/own.h"
#include "smo.h"

/* The most blocks in the second dimension of a grid (CUDA C++ Programming Guide, Technical
 * Specifications per Compute Capability). */
#define SMO_GRID_MOST 65535

/* Notes a failure, unless there has been one; returns whether all is well. */
bool smo_note(struct smo *s, enum gpu_status status);

/* Take device memory; copy bytes to it and back, in stream order. */
gpu_address smo_take(struct smo *s, int64_t bytes);
void smo_write(struct smo *s, gpu_address to, const void *from, int64_t bytes);
void smo_read(struct smo *s, void *to, gpu_address from, int64_t bytes);

/* Returns host memory of zeros, at least an element, which the caller frees; NULL after a
 * failure. */
void *smo_allocate(struct smo *s, int64_t count, int64_t size);

void smo_launch(struct smo *s, const char *kernel, struct gpu_grid grid, void **arguments);
/* Returns how many threads a block of the kernel has, at most `threads`. */
unsigned smo_threads(struct smo *s, const char *kernel, unsigned threads);

/* Returns the matrix as kernels take it, with the squares of its rows' norms. */
struct svm_rows smo_rows(struct smo *s, const struct smo_matrix *x);

/* Make dense rows of CSR: a new matrix; or some rows, in memory of zeros. */
struct smo_matrix smo_densify(struct smo *s, const struct svm_rows *x);
void smo_fill_dense(struct smo *s, const struct svm_rows *x, int64_t first, int64_t rows,
                    gpu_address to, int64_t ld);

/* k := the kernel matrix as floats, by some columns at a time. dense: the rows of x. *bad := 1 if a
 * value does not fit a float. */
void smo_kernel_matrix(struct smo *s, const struct svm_rows *x, const struct smo_matrix *dense,
                       gpu_address k, int64_t ld, int64_t columns, gpu_address bad);

/* A problem's rows of the matrix, each once. */
struct smo_columns {
    int64_t count;
    const int32_t *of; /* of each variable, its column */
    gpu_address row;   /* of each column, its row: int32, on the device */
};

/* Recomputes the gradients of solved problems in double. Notes GPU_UNSUPPORTED if neither eps nor
 * rounding explains the gap of one that has converged, or if rounding does not explain how the
 * objective of one that a cap has ended differs. */
void smo_check(struct smo *s, const struct svm_rows *x, struct smo_problem *problems,
               const struct smo_columns *columns, int64_t count);

#endif
