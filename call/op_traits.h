/*
 * What is special of an operation, as plain data.
 */
#ifndef ACCEL_OP_TRAITS_H
#define ACCEL_OP_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

/* Routines whose products cuBLAS computes in the same precisions: see gpu/cuda/precision.c. */
enum gpu_products {
    GPU_NO_PRODUCTS, /* none, or only in native precision */
    GPU_GEMM,        /* gemm, and its batches */
    GPU_RANK_K,      /* syrk, herk, syr2k, her2k */
    GPU_OTHERS,      /* gemmt, symm, hemm, trmm, trsm */
    GPU_PRODUCTS
};

enum accel_op_group {
    ACCEL_LEVEL_3,
    ACCEL_BATCH,   /* many products of Level 3 in one call */
    ACCEL_LEVEL_2, /* touches as many elements as it computes */
    ACCEL_LAPACK,
    ACCEL_NO_BLAS /* a function of another library: FUNCTION in routines.def */
};

/* What kind of operation it is, and what its operands have that others have not. */
struct accel_traits {
    enum accel_op_group group;
    enum gpu_products products; /* may be computed in another precision if the user asks for it */
    bool moves;          /* as many bytes as operations: pays only if its matrix is on the device */
    bool hermitian;      /* the matrix whose triangle counts is Hermitian in complex types */
    bool conjugates;     /* A := alpha x y^H + A */
    bool three_products; /* a complex product by three real ones */
    bool iterates;       /* reduces to a condensed form, then iterates, on a copy of A */
    bool reflectors;     /* x holds the scalars of elementary reflectors */
    bool packed;         /* a holds a triangle without gaps, as triangle_place() says */
    /* Spans, as bits 1 << enum accel_matrix: */
    uint8_t triangles; /* only the triangle uplo is written */
    uint8_t definite;  /* must be definite in a workload, so that the call succeeds */
};

#endif
