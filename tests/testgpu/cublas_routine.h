/*
 * What the routines of the stand-in for libcublas share. A routine is a struct routine, a form that
 * gives its functions their parameters, and ALL_TYPES, REAL_TYPES or COMPLEX_TYPES of that form.
 */
#ifndef TESTGPU_CUBLAS_ROUTINE_H
#define TESTGPU_CUBLAS_ROUTINE_H

#include "cublas.h"
#include "matrix.h"

struct blas_call;

enum {
    HAS_B = 1 << 0,
    HAS_BETA = 1 << 1,
    HERMITIAN = 1 << 2,
    REAL_ALPHA = 1 << 3,
    REAL_BETA = 1 << 4,
    IN_PLACE = 1 << 5,        /* the result may be one of the inputs */
    BETA_OF_B = 1 << 6,       /* beta is B's factor, not the result's */
    NO_ALPHA = 1 << 7,        /* nor a beta */
    ONLY_MOVES = 1 << 11,     /* done also where nothing is computed */
    BFLOAT_INPUTS = 1 << 8,   /* of 16 bits */
    BATCHED = 1 << 9,         /* one kernel, several times the operation */
    POINTER_ARRAYS = 1 << 10, /* BATCHED: the matrices' addresses are in device memory */
};

struct routine {
    const char *name;
    unsigned traits;
    /* Gives the matrices their sizes and parts; false where the parameters do not fit together. */
    bool (*describe)(struct blas_call *call);
    /* On host bytes. An input is NULL where its factor is zero or it has no elements. */
    void (*compute)(const struct blas_call *call, const void *a, const void *b, void *c);
    /* cublas_cost.c, of the type's numbers; NULL: it lasts as long as its operands are moved. */
    double (*operations)(const struct blas_call *call);
};

/* A call, first as its caller made it; what a routine has not stays zero, which all allow. */
struct blas_call {
    const struct routine *routine;
    const struct math_mode *mode; /* cublas_precision.h; NULL: native */
    enum precision precision;
    cublasSideMode_t side;
    cublasFillMode_t uplo;
    cublasDiagType_t diag;
    cublasOperation_t transa, transb;
    int64_t m, n, k;
    /* c: the result, also where that is the caller's A, B or vector */
    struct matrix a, b, c;
    int64_t batch;
    int64_t stride_a, stride_b, stride_c; /* from one of a batch to the next, in elements */
    const void *alpha_at, *beta_at;
    bool device_scalars;
    unsigned char alpha[16], beta[16];
    CUdeviceptr workspace;
    size_t workspace_bytes;
    struct use *use;     /* cublas_workspace.h */
    CUdeviceptr bits_at; /* where cuBLAS says with how many bits it has emulated; 0: nowhere */
    int *retained_bits;  /* while the call runs; -1: it was not emulated */
};

bool has(const struct blas_call *call, unsigned trait);
cublasStatus_t blas_call(cublasHandle_t handle, struct blas_call *call);
/* Reaches the operands and computes; *c is the result's bytes. */
CUresult run_one(struct testgpu_run *run, const struct blas_call *call, char **c);

/* cublas_batched.c: all of a batch; *c is one result's bytes. */
CUresult run_batch(struct testgpu_run *run, const struct blas_call *call, char **c);
bool is_batch_too_long(const struct blas_call *call);

/* cublas_matrix.c */
void set_vector(struct matrix *matrix, int64_t length);
int64_t vector_index(const struct matrix *vector, int64_t i);
bool is_transposed(cublasOperation_t operation);
int64_t order_of_a(const struct blas_call *call);
bool is_zero(const unsigned char *scalar, enum precision precision);
bool is_one(const unsigned char *scalar, enum precision precision);

#define ENTER_BLAS_CALL(HANDLE, CALL)                                                              \
    CUBLAS_ENTER(TESTGPU_CONTEXT,                                                                  \
                 "handle=%p trans=%d,%d m=%lld n=%lld k=%lld a=%#llx lda=%lld b=%#llx ldb=%lld "   \
                 "c=%#llx ldc=%lld side=%d uplo=%d diag=%d batch=%lld",                            \
                 (void *)(HANDLE), (int)(CALL).transa, (int)(CALL).transb, (long long)(CALL).m,    \
                 (long long)(CALL).n, (long long)(CALL).k, (CALL).a.address,                       \
                 (long long)(CALL).a.ld, (CALL).b.address, (long long)(CALL).b.ld,                 \
                 (CALL).c.address, (long long)(CALL).c.ld, (int)(CALL).side, (int)(CALL).uplo,     \
                 (int)(CALL).diag, (long long)(CALL).batch)

/* An exported function's body after it has put its parameters into a struct blas_call. */
#define BLAS_CALL(HANDLE, CALL)                                                                    \
    ENTER_BLAS_CALL(HANDLE, CALL);                                                                 \
    TESTGPU_RETURN(blas_call(HANDLE, &(CALL)))

/* FORM(name, type of sizes, type of elements, their real type, precision, routine) */
#define REAL_TYPES_(FORM, WORD, TAIL, INTEGER, ROUTINE)                                            \
    FORM(cublasS##WORD##TAIL, INTEGER, float, float, SINGLE, ROUTINE)                              \
    FORM(cublasD##WORD##TAIL, INTEGER, double, double, DOUBLE, ROUTINE)
#define COMPLEX_TYPES_(FORM, WORD, TAIL, INTEGER, ROUTINE)                                         \
    FORM(cublasC##WORD##TAIL, INTEGER, cuComplex, float, COMPLEX, ROUTINE)                         \
    FORM(cublasZ##WORD##TAIL, INTEGER, cuDoubleComplex, double, DOUBLE_COMPLEX, ROUTINE)

/* The functions of a routine for each type, TAIL at the end of their names. */
#define NARROW_TYPES(FORM, WORD, TAIL, ROUTINE)                                                    \
    REAL_TYPES_(FORM, WORD, TAIL, int, ROUTINE)                                                    \
    COMPLEX_TYPES_(FORM, WORD, TAIL, int, ROUTINE)

#if TESTGPU_CUBLAS_MAJOR >= 13
#    define REAL_TYPES(FORM, WORD, TAIL, ROUTINE)                                                  \
        REAL_TYPES_(FORM, WORD, TAIL, int, ROUTINE)                                                \
        REAL_TYPES_(FORM, WORD, TAIL##_64, int64_t, ROUTINE)
#    define COMPLEX_TYPES(FORM, WORD, TAIL, ROUTINE)                                               \
        COMPLEX_TYPES_(FORM, WORD, TAIL, int, ROUTINE)                                             \
        COMPLEX_TYPES_(FORM, WORD, TAIL##_64, int64_t, ROUTINE)
#else
#    define REAL_TYPES(FORM, WORD, TAIL, ROUTINE)    REAL_TYPES_(FORM, WORD, TAIL, int, ROUTINE)
#    define COMPLEX_TYPES(FORM, WORD, TAIL, ROUTINE) COMPLEX_TYPES_(FORM, WORD, TAIL, int, ROUTINE)
#endif
#define ALL_TYPES(FORM, WORD, TAIL, ROUTINE)                                                       \
    REAL_TYPES(FORM, WORD, TAIL, ROUTINE)                                                          \
    COMPLEX_TYPES(FORM, WORD, TAIL, ROUTINE)

#endif
