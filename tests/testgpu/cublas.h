/* Inside the stand-in for libcublas. */
#ifndef TESTGPU_CUBLAS_H
#define TESTGPU_CUBLAS_H

#include "testgpu.h"
#include <cublas_v2.h>

extern const struct testgpu_library cublas_library;
extern struct testgpu_life cublas_life;

#define CUBLAS_ENTER(FLAGS, ...) TESTGPU_ENTER(cublas_library, FLAGS, __VA_ARGS__)

struct cublasContext {
    struct testgpu_object object;
    CUstream stream;
    cublasMath_t math;
    cublasPointerMode_t pointers;
    cublasAtomicsMode_t atomics;
    CUdeviceptr workspace;
    size_t workspace_bytes;
    CUdeviceptr bits_at;
    unsigned users; /* threads inside a call with this handle */
};

/* 130100 is 13.1.0. */
int testgpu_cublas_version(void);

/* A call takes the handle for its time; two threads in one handle are a fault. */
cublasStatus_t handle_take(cublasHandle_t handle);
void handle_give(cublasHandle_t handle);

#endif
