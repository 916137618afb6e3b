/*
 * Which of cuSOLVER's algorithms for singular values is the fastest on this GPU, for each type, with vectors and without, at
 * some orders. One counts only where its results are as accurate as LAPACK's own tests demand, on random, singular and
 * graded matrices.
 */
#ifndef ACCEL_TOOL_SVD_SURVEY_H
#define ACCEL_TOOL_SVD_SURVEY_H

#include <stdio.h>

#include "workload.h"

enum { SVD_ORDERS = 4 };

struct svd_survey {
    int measured; /* of the orders, the first so many */
    enum gpu_svd algorithm[SVD_ORDERS][ACCEL_DTYPES][2];
};

/* Measures until the deadline (seconds of survey_now(); what has begun is ended) and tells the device (gpu_svd_choose) what it
 * has found. progress: told of each order, NULL: not wanted. */
void svd_survey_run(struct svd_survey *found, struct gpu_device *device,
                    struct workload_memory *memory, double deadline,
                    void (*progress)(int64_t order));

/* The lines of a calibration's section. */
void svd_survey_write(const struct svd_survey *found, FILE *to);

#endif
