/* A call of one of cuBLAS's Level 3 routines other than gemm, as data. */
#ifndef TEST_LEVEL3_H
#define TEST_LEVEL3_H

#include "test_testgpu.h"

enum kind { SYMM, HEMM, SYRK, HERK, SYR2K, HER2K, TRMM, TRSM, GEAM, KINDS };

struct trial {
    enum kind kind;
    enum type type;
    bool wide; /* the 64-bit form */
    cublasSideMode_t side;
    cublasFillMode_t uplo;
    cublasDiagType_t diag;
    cublasOperation_t ta, tb;
    int m, n, k, lda, ldb, ldc;
    const void *alpha, *beta;
    CUdeviceptr a, b, c; /* trsm's B is c */
};

cublasStatus_t call(cublasHandle_t handle, const struct trial *trial);

/* Whether the kind has such a parameter. */
bool has_side(enum kind kind);
bool has_operation(enum kind kind);
bool has_diagonal(enum kind kind);
bool has_b(enum kind kind);
bool has_beta(enum kind kind);
bool is_rank_update(enum kind kind);
bool is_hermitian(enum kind kind);
bool has_real_scalar(enum kind kind, bool beta);

#endif
