/* A call of gemmBatched or gemmStridedBatched, as data, and the memory that such calls need. */
#ifndef TEST_BATCHED_H
#define TEST_BATCHED_H

#include "test_testgpu.h"

enum { M = 5, N = 4, K = 3, LD = 6, STRIDE = 40, COUNT = 4, AREA = STRIDE * COUNT };

struct trial {
    bool pointers; /* gemmBatched, not gemmStridedBatched */
    enum type type;
    bool wide;
    cublasOperation_t ta, tb;
    int m, n, k, lda, ldb, ldc, count;
    long long stride_a, stride_b, stride_c;
    const void *alpha, *beta;
    CUdeviceptr a, b, c; /* matrices, or arrays of pointers */
};

cublasStatus_t multiply_batch(cublasHandle_t handle, const struct trial *trial);

/* In device memory: where a fixture's matrices are, and arrays that say so. */
struct batch {
    struct fixture f;
    CUdeviceptr a, b, c;
};

int set_up_batch(struct batch *batch);
int tear_down_batch(struct batch *batch);

/* Makes an array say what a first address and a stride, in elements, do. */
int point_at(CUdeviceptr array, CUdeviceptr first, long long stride, enum type type);

/* Scalars of one, no operation; the arrays say what the strides do. */
int batch_trial(struct trial *trial, bool pointers, enum type type, const struct batch *batch);

#endif
