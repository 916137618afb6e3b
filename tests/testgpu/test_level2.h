/* A call of one of cuBLAS's Level 2 routines, or of copy, as data. */
#ifndef TEST_LEVEL2_H
#define TEST_LEVEL2_H

#include "test_testgpu.h"

enum kind { GEMV, SYMV, HEMV, GER, GERU, GERC, SYR, HER, SYR2, HER2, TRMV, TRSV, COPY, KINDS };

struct trial {
    enum kind kind;
    enum type type;
    bool wide; /* the 64-bit form */
    cublasFillMode_t uplo;
    cublasDiagType_t diag;
    cublasOperation_t trans;
    int m, n, lda, incx, incy;
    const void *alpha, *beta;
    CUdeviceptr a, x, y;
};

cublasStatus_t level2_call(cublasHandle_t handle, const struct trial *trial);

/* Whether the kind has such a parameter, or comes in such a type. */
bool takes_operation(enum kind kind);
bool takes_diagonal(enum kind kind);
bool takes_uplo(enum kind kind);
bool takes_m(enum kind kind);
bool takes_a(enum kind kind);
bool takes_y(enum kind kind);
bool takes_alpha(enum kind kind);
bool takes_beta(enum kind kind);
bool takes_real_alpha(enum kind kind);

bool updates_matrix(enum kind kind);
bool conjugates(enum kind kind);
bool takes_type(enum kind kind, enum type type);

#endif
