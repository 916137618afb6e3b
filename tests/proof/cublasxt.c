/*
 * What time_calls calls in time_calls_xt: Level 3 by cuBLASXt on operands in pinned memory, which
 * is the most that a program written for NVIDIA's own engine can get. Operands are pinned when they
 * are taken, outside of what is timed. CUBLASXT_BLOCK_DIM is the order of its tiles. Each
 * failure prints a line on stderr, and ends the program.
 */
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"
#include "time_calls.h"

static cublasXtHandle_t handle;

static void fail(void)
{
    fprintf(stderr, "cuBLASXt: %s\n", driver_failure());
    exit(1);
}

static void start(void)
{
    const char *dimension = getenv("CUBLASXT_BLOCK_DIM");
    int device = 0;
    if (!(driver_open() && driver_enter() && driver_open_cublasxt() &&
          CUBLAS_OK(cublasXtCreate, &handle) &&
          CUBLAS_OK(cublasXtDeviceSelect, handle, 1, &device) &&
          CUBLAS_OK(cublasXtSetBlockDim, handle, dimension ? atoi(dimension) : 2048)))
        fail();
}

char *new_operand(size_t bytes)
{
    void *memory = NULL;
    if (!handle)
        start();
    return CUDA_OK(cuMemHostAlloc, &memory, bytes, CU_MEMHOSTALLOC_PORTABLE) ? memory : NULL;
}

void free_operand(char *memory)
{
    if (memory && !CUDA_OK(cuMemFreeHost, memory))
        fail();
}

static cublasOperation_t operation_of(const char *letter)
{
    return *letter == 'N' ? CUBLAS_OP_N : *letter == 'T' ? CUBLAS_OP_T : CUBLAS_OP_C;
}

static cublasFillMode_t triangle_of(const char *letter)
{
    return *letter == 'L' ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}

/* Behind the last argument: the hidden lengths of CHARACTER arguments. */
#define GEMM_ARGUMENTS                                                                             \
    const char *transa, const char *transb, const int *m, const int *n, const int *k,              \
        const void *alpha, const void *a, const int *lda, const void *b, const int *ldb,           \
        const void *beta, void *c, const int *ldc, size_t hidden_a, size_t hidden_b
#define GEMM(name, function, type)                                                                 \
    void name(GEMM_ARGUMENTS);                                                                     \
    void name(GEMM_ARGUMENTS)                                                                      \
    {                                                                                              \
        (void)hidden_a, (void)hidden_b;                                                            \
        if (!CUBLAS_OK(function, handle, operation_of(transa), operation_of(transb), (size_t)*m,   \
                       (size_t)*n, (size_t)*k, (const type *)alpha, (const type *)a, (size_t)*lda, \
                       (const type *)b, (size_t)*ldb, (const type *)beta, (type *)c,               \
                       (size_t)*ldc))                                                              \
            fail();                                                                                \
    }
GEMM(sgemm_, cublasXtSgemm, float)
GEMM(dgemm_, cublasXtDgemm, double)
GEMM(zgemm_, cublasXtZgemm, cuDoubleComplex)

#define SYRK_ARGUMENTS                                                                             \
    const char *uplo, const char *trans, const int *n, const int *k, const double *alpha,          \
        const double *a, const int *lda, const double *beta, double *c, const int *ldc,            \
        size_t hidden_a, size_t hidden_b
void dsyrk_(SYRK_ARGUMENTS);
void dsyrk_(SYRK_ARGUMENTS)
{
    (void)hidden_a, (void)hidden_b;
    if (!CUBLAS_OK(cublasXtDsyrk, handle, triangle_of(uplo), operation_of(trans), (size_t)*n,
                   (size_t)*k, alpha, a, (size_t)*lda, beta, c, (size_t)*ldc))
        fail();
}

#define TRSM_ARGUMENTS                                                                             \
    const char *side, const char *uplo, const char *trans, const char *diag, const int *m,         \
        const int *n, const double *alpha, const double *a, const int *lda, double *b,             \
        const int *ldb, size_t hidden_a, size_t hidden_b, size_t hidden_c, size_t hidden_d
void dtrsm_(TRSM_ARGUMENTS);
void dtrsm_(TRSM_ARGUMENTS)
{
    (void)hidden_a, (void)hidden_b, (void)hidden_c, (void)hidden_d;
    if (!CUBLAS_OK(cublasXtDtrsm, handle, *side == 'L' ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT,
                   triangle_of(uplo), operation_of(trans),
                   *diag == 'U' ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, (size_t)*m, (size_t)*n,
                   alpha, a, (size_t)*lda, b, (size_t)*ldb))
        fail();
}
