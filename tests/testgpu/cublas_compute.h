/* The arithmetic: each routine on host bytes, as struct routine's compute. */
#ifndef TESTGPU_CUBLAS_COMPUTE_H
#define TESTGPU_CUBLAS_COMPUTE_H

#include "cublas_routine.h"
#include "openblas.h"

/* cublas_compute.c */
void compute_gemm(const struct blas_call *call, const void *a, const void *b, void *c);
void compute_symm(const struct blas_call *call, const void *a, const void *b, void *c);
void compute_syrk(const struct blas_call *call, const void *a, const void *b, void *c);
void compute_syr2k(const struct blas_call *call, const void *a, const void *b, void *c);
void compute_trmm(const struct blas_call *call, const void *a, const void *b, void *c);
void compute_trsm(const struct blas_call *call, const void *a, const void *b, void *c);

/* cublas_compute_level2.c */
void compute_gemv(const struct blas_call *call, const void *a, const void *x, void *y);
void compute_symv(const struct blas_call *call, const void *a, const void *x, void *y);
void compute_ger(const struct blas_call *call, const void *x, const void *y, void *a);
void compute_gerc(const struct blas_call *call, const void *x, const void *y, void *a);
void compute_syr(const struct blas_call *call, const void *x, const void *none, void *a);
void compute_syr2(const struct blas_call *call, const void *x, const void *y, void *a);
void compute_trmv(const struct blas_call *call, const void *a, const void *none, void *x);
void compute_trsv(const struct blas_call *call, const void *a, const void *none, void *x);

/* A call in Fortran's words; a vector's increment is in its matrix's place. */
struct words {
    char side, uplo, diag, transa, transb;
    int m, n, k, lda, ldb, ldc;
};
struct words words_of(const struct blas_call *call);

/* What is left of a routine whose inputs do not count: OpenBLAS would read them, or crash. */
void scale(const struct blas_call *call, void *c);

#endif
