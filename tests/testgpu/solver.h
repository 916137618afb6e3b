/* Inside the stand-in for libcusolver. */
#ifndef TESTGPU_SOLVER_H
#define TESTGPU_SOLVER_H

#include "testgpu.h"
#include <cusolverDn.h>

extern const struct testgpu_library solver_library;
extern struct testgpu_life solver_life;

#define SOLVER_ENTER(FLAGS, ...) TESTGPU_ENTER(solver_library, FLAGS, __VA_ARGS__)

/* cuSOLVER is a version behind the CUDA that it comes with. */
enum { SOLVER_MAJOR = TESTGPU_CUBLAS_MAJOR - 1 };

struct cusolverDnContext {
    struct testgpu_object object;
    CUstream stream;
    cusolverDeterministicMode_t determinism;
    unsigned users; /* threads inside a call with this handle */
};

struct cusolverDnParams {
    struct testgpu_object object;
};

/* A call takes the handle for its time; two threads in one handle are a fault. */
cusolverStatus_t solver_take(cusolverDnHandle_t handle);
void solver_give(cusolverDnHandle_t handle);
cusolverStatus_t solver_check_params(cusolverDnParams_t params);

#endif
