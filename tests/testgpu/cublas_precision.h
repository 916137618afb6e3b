/* Level 3 in the precision that a handle's math mode asks for. */
#ifndef TESTGPU_CUBLAS_PRECISION_H
#define TESTGPU_CUBLAS_PRECISION_H

#include "cublas_routine.h"

/* How a routine computes in a math mode. */
struct math_mode {
    const char *of; /* the routine's name */
    int math;
    const char *name; /* in the mode */
    double gain;      /* operations cost so much less */
    void (*compute)(const struct blas_call *call, const void *a, const void *b, void *c);
};

/* Returns how the handle's math mode has a call computed; NULL: as ever. */
const struct math_mode *math_mode_of(cublasHandle_t handle, const struct blas_call *call);

#endif
