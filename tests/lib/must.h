/*
 * For programs that use CUDA themselves: calls that must succeed. If one fails, the program ends
 * with status 3.
 */
#ifndef ACCEL_TEST_MUST_H
#define ACCEL_TEST_MUST_H

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "%s: %d\n", #call, (int)result_);                                      \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

#endif
