/*
 * Kernel functions of support vector machines, computed as libsvm does from products in double.
 */
#ifndef ACCEL_OWN_SVM_CUH
#define ACCEL_OWN_SVM_CUH

#include "own.cuh"
#include "svm.h"

/* sum + a b, rounded twice, as libsvm is compiled: where two variables are worth the same, a last
 * bit decides on the way of all steps. The compiler would fuse the two. */
static __device__ inline double svm_add_product(double sum, double a, double b)
{
    return __dadd_rn(sum, __dmul_rn(a, b));
}

/* By repeated squares, as in libsvm; 1 for a negative degree. */
static __device__ inline double svm_power(double base, int degree)
{
    double power = 1;
    for (; degree > 0; degree /= 2) {
        if (degree % 2 == 1)
            power *= base;
        base *= base;
    }
    return power;
}

/* Returns K(u, v) of u.v, u.u and v.v. Rounding must not make a squared distance negative, since
 * then u and v would be closer than equal vectors are. */
static __device__ inline double svm_value(struct smo_kernel kernel, double product, double square_u,
                                          double square_v)
{
    if (kernel.type == SMO_POLY)
        return svm_power(svm_add_product(kernel.coef0, kernel.gamma, product), kernel.degree);
    if (kernel.type == SMO_SIGMOID)
        return tanh(svm_add_product(kernel.coef0, kernel.gamma, product));
    if (kernel.type == SMO_RBF) {
        double distance = square_u + square_v - 2 * product;
        return exp(-kernel.gamma * (distance < 0 ? 0 : distance));
    }
    return product;
}

/* Returns whether a float holds the value. */
static __device__ inline bool svm_fits(double value)
{
    return fabs(value) <= 3.4028234663852886e38;
}

/* Puts a window of dense rows, from a feature on, in shared memory. */
static __device__ inline void svm_load_dense(const struct svm_rows *x, const int32_t *rows,
                                             int count, int64_t from, double *window)
{
    for (int k = threadIdx.x; k < SVM_BATCH * SVM_WINDOW; k += blockDim.x) {
        const int b = k / SVM_WINDOW, f = k % SVM_WINDOW;
        window[f * SVM_BATCH + b] =
            b < count && from + f < x->features ? x->values[rows[b] * x->ld + from + f] : 0;
    }
}

static __device__ inline void svm_products_dense(const struct svm_rows *x, const int32_t *rows,
                                                 int count, int64_t own, double *window,
                                                 double *product)
{
    for (int64_t from = 0; from < x->features; from += SVM_WINDOW) {
        const int features = (int)min((int64_t)SVM_WINDOW, x->features - from);
        __syncthreads();
        svm_load_dense(x, rows, count, from, window);
        __syncthreads();
        for (int f = 0; own >= 0 && f < features; f++) {
            const double value = x->values[own * x->ld + from + f];
            OWN_UNROLL
            for (int b = 0; b < SVM_BATCH; b++)
                product[b] += value * window[f * SVM_BATCH + b];
        }
    }
}

/* Puts the elements of CSR rows with features below `end` in shared memory, beside zeros, and moves
 * the places in the rows on. Several threads share a row. */
static __device__ inline void svm_load_sparse(const struct svm_rows *x, const int32_t *rows,
                                              int count, int64_t from, int64_t *at, int *moved,
                                              double *window)
{
    const int lanes = 32;
    for (int k = threadIdx.x; k < SVM_BATCH * SVM_WINDOW; k += blockDim.x)
        window[k] = 0;
    for (int b = threadIdx.x; b < SVM_BATCH; b += blockDim.x)
        moved[b] = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < count * lanes; k += blockDim.x) {
        const int b = k / lanes;
        const int64_t end = x->start[rows[b] + 1];
        int loaded = 0;
        for (int64_t e = at[b] + k % lanes; e < end && x->column[e] < from + SVM_WINDOW;
             e += lanes) {
            window[(x->column[e] - from) * SVM_BATCH + b] = x->values[e];
            loaded++;
        }
        if (loaded > 0)
            atomicAdd(&moved[b], loaded);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < count; b += blockDim.x)
        at[b] += moved[b];
}

/* Goes from window to window, over features that no row of the batch has. */
static __device__ inline void svm_products_sparse(const struct svm_rows *x, const int32_t *rows,
                                                  int count, int64_t own, double *window,
                                                  double *product)
{
    __shared__ int64_t at[SVM_BATCH];
    __shared__ int32_t next[SVM_BATCH];
    __shared__ int moved[SVM_BATCH];
    int64_t mine = own >= 0 ? x->start[own] : 0;
    const int64_t end = own >= 0 ? x->start[own + 1] : 0;
    __syncthreads();
    for (int b = threadIdx.x; b < count; b += blockDim.x)
        at[b] = x->start[rows[b]];
    for (;;) {
        __syncthreads();
        for (int b = threadIdx.x; b < SVM_BATCH; b += blockDim.x)
            next[b] = b < count && at[b] < x->start[rows[b] + 1] ? x->column[at[b]] : INT32_MAX;
        __syncthreads();
        int32_t from = INT32_MAX;
        for (int b = 0; b < SVM_BATCH; b++)
            from = min(from, next[b]);
        if (from == INT32_MAX)
            break;
        svm_load_sparse(x, rows, count, from, at, moved, window);
        while (mine < end && x->column[mine] < from)
            mine++;
        for (; mine < end && x->column[mine] < (int64_t)from + SVM_WINDOW; mine++) {
            const double value = x->values[mine];
            OWN_UNROLL
            for (int b = 0; b < SVM_BATCH; b++)
                product[b] += value * window[(x->column[mine] - from) * SVM_BATCH + b];
        }
    }
}

/* value[b] := K(rows[b], own) for b < count <= SVM_BATCH; all threads of the block come here with
 * the same rows, in shared memory, and each with a row of its own, or -1. window: SVM_BATCH *
 * SVM_WINDOW doubles in shared memory. */
static __device__ inline void svm_batch(struct smo_kernel kernel, const struct svm_rows *x,
                                        const int32_t *rows, int count, int64_t own, double *window,
                                        double *value)
{
    OWN_UNROLL
    for (int b = 0; b < SVM_BATCH; b++)
        value[b] = 0;
    if (kernel.type == SMO_PRECOMPUTED) {
        OWN_UNROLL
        for (int b = 0; own >= 0 && b < SVM_BATCH; b++)
            value[b] = b < count ? x->values[rows[b] * x->ld + own] : 0;
        return;
    }
    if (x->start)
        svm_products_sparse(x, rows, count, own, window, value);
    else
        svm_products_dense(x, rows, count, own, window, value);
    OWN_UNROLL
    for (int b = 0; own >= 0 && b < SVM_BATCH; b++)
        if (b < count)
            value[b] = svm_value(kernel, value[b], x->square[rows[b]], x->square[own]);
}

#endif
