/*
 * Products of random matrices for unit tests of gpu/: C := -1.25 op(A) op(B) + beta C,
 * column-major, each matrix without a gap between its columns.
 */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include "gpu/device/gpu.h"
#include "call/call.h"

struct product {
    struct accel_call call;
    void *before;
    struct gpu_host host;
    int original_calls, allocated, in_place;
};

/* Returns a matrix of values between -1 and 1, which the caller frees. */
void *random_matrix(int64_t rows, int64_t cols, enum accel_dtype dtype);

/* Makes a product with matrices, and a host that counts the calls of its original and events;
 * destroy_product() ends it. ta, tb: N, T or C. */
void make_product(struct product *p, enum accel_dtype dtype, char ta, char tb, int64_t m, int64_t n,
                  int64_t k, double beta);
void destroy_product(struct product *p);

/* Fails the test if C is not within the bounds for this product, or the original was called. */
void right_product(const struct product *p);

#endif
