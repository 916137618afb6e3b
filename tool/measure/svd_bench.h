/*
 * Finds cuSOLVER's fastest algorithm for singular values on this GPU: for each type, with and
 * without vectors, at some orders. An algorithm counts only if its results pass LAPACK's own tests
 * on random, singular and graded matrices.
 */
#ifndef ACCEL_TOOL_SVD_BENCH_H
#define ACCEL_TOOL_SVD_BENCH_H

#include <stdio.h>

#include "workload.h"

enum { SVD_ORDERS = 4 };

struct svd_bench {
    int measured; /* how many of the orders, from the first */
    enum gpu_svd algorithm[SVD_ORDERS][ACCEL_DTYPES][2]; /* [1]: with vectors */
};

/* Measures until the deadline (seconds of bench_now(); an order that has begun is finished), and
 * sets the device's algorithms by gpu_svd_choose(). progress: is told of each order; may be
 * NULL. */
void svd_bench_run(struct svd_bench *found, struct gpu_device *device,
                   struct workload_memory *memory, double deadline,
                   void (*progress)(int64_t order));

/* Writes the `svd_` lines of a calibration's section. */
void svd_bench_write(const struct svd_bench *found, FILE *to);

#endif
