/*
 * What the routines of the stand-in for libcusolver share. A routine is a struct solver_routine and
 * its exported functions: for a call, and for the size of the workspace of one.
 */
#ifndef TESTGPU_SOLVER_ROUTINE_H
#define TESTGPU_SOLVER_ROUTINE_H

#include "matrix.h"
#include "solver.h"

/* The arrays of a call in device memory; what a call has not, has no elements. */
enum operand {
    A,
    B, /* also: C, U, VR */
    VT,
    VALUES, /* of W, S or tau */
    PIVOTS,
    INFO,
    OPERANDS
};

struct solver_call;

enum {
    HAS_PARAMS = 1 << 0,
    HOST_WORK = 1 << 1, /* needs a workspace on the host too */
    NO_INFO = 1 << 2,
    READS_PIVOTS_AT_ONCE = 1 << 3, /* when it is called, not in stream order */
};

struct solver_routine {
    const char *name;
    unsigned traits;
    enum operand result; /* the one to be wrong for TESTGPU_WRONG */
    /* Gives the operands their sizes; false where the parameters do not fit together. */
    bool (*describe)(struct solver_call *call);
    /* Elements of workspace on the device; NULL: none. */
    int64_t (*room)(const struct solver_call *call);
    /* What only the pivots tell; false where they are none. */
    bool (*read_pivots)(struct solver_call *call, const void *pivots);
    /* On host bytes; LAPACK's info. */
    int (*compute)(const struct solver_call *call, void *const *at);
    /* What a success that computes nothing leaves beside its info, where a caller judges by that;
     * NULL: nothing. */
    void (*pretend)(const struct solver_call *call, void *const *at);
    /* solver_cost.c, of the type's numbers; NULL: it lasts as long as its operands are moved. */
    double (*operations)(const struct solver_call *call);
};

/* A call, first as its caller made it; what a routine has not stays zero, which all allow. */
struct solver_call {
    const struct solver_routine *routine;
    cusolverDnParams_t params;
    cudaDataType type, type_b, type_vt, type_values, compute_type;
    enum precision precision;
    cusolverEigType_t itype;
    cusolverEigMode_t jobz;
    cusolverEigRange_t range;
    char jobu, jobvt;
    bool economy;
    cublasSideMode_t side;
    cublasFillMode_t uplo;
    cublasDiagType_t diag;
    cublasOperation_t trans;
    int64_t m, n, k;
    double vl, vu;
    int64_t il, iu; /* of laswp: its rows */
    /* Where the host gets the number of eigenvalues; the call then waits for its kernel. */
    int *found;
    int64_t *found64;
    double *perturbation; /* likewise, of gesvdp */
    struct matrix at[OPERANDS];
    CUdeviceptr work;
    size_t work_bytes;
    void *host_work;
    size_t host_bytes;
};

cusolverStatus_t solver_call(cusolverDnHandle_t handle, struct solver_call *call);
/* Bytes. */
cusolverStatus_t solver_sizes(cusolverDnHandle_t handle, struct solver_call *call, size_t *device,
                              size_t *host);
/* Elements. */
cusolverStatus_t solver_size(cusolverDnHandle_t handle, struct solver_call *call, int *elements);

/* solver_operand.c: for routines' describe and compute. */
void set_operand(struct solver_call *call, enum operand operand, int64_t rows, int64_t columns);
void set_triangle(struct solver_call *call, enum operand operand, int64_t order);
void set_list(struct solver_call *call, enum operand operand, int64_t length, size_t element);
bool is_complex(const struct solver_call *call);
size_t real_bytes(const struct solver_call *call);
/* The type of real numbers as precise as the call's. */
cudaDataType real_type(const struct solver_call *call);
int64_t smaller(int64_t one, int64_t other);
int64_t larger(int64_t one, int64_t other);
/* Overwrites, from a column on, what a routine leaves undefined. */
void destroy(const struct matrix *matrix, int64_t from, void *bytes);
/* The triangle beside that of the matrix, without its diagonal. */
void destroy_other(const struct matrix *matrix, void *bytes);
/* Sets the last pivot of a Cholesky factor to a real number. */
void set_last_pivot(const struct solver_call *call, enum operand operand, void *const *at,
                    double value);

/* Sets the real parts of A's diagonal to 1: a zero there means of R that the matrix has not full
 * rank, of U that LAPACK would divide by it. */
void set_diagonal(const struct solver_call *call, void *const *at);
/* Whether pivot number `failed` of a Cholesky factor has failed, and something else is said of it.
 * kind: 1: potrf; 2: sygvd. */
bool misses_pivot(const struct solver_call *call, unsigned kind, int64_t failed);

/* Whether a call returns when its kernel has ended: the host gets something. */
static inline bool waits(const struct solver_call *call)
{
    return call->found != NULL || call->found64 != NULL || call->perturbation != NULL;
}

#define FLAGS_OF(CALL) (waits(&(CALL)) ? TESTGPU_CONTEXT | TESTGPU_UNSAFE : TESTGPU_CONTEXT)

#define ENTER_SOLVER_CALL(HANDLE, CALL)                                                            \
    SOLVER_ENTER(FLAGS_OF(CALL),                                                                   \
                 "handle=%p type=%d m=%lld n=%lld k=%lld a=%#llx lda=%lld b=%#llx ldb=%lld "       \
                 "work=%#llx,%zu,%zu",                                                             \
                 (void *)(HANDLE), (int)(CALL).type, (long long)(CALL).m, (long long)(CALL).n,     \
                 (long long)(CALL).k, (CALL).at[A].address, (long long)(CALL).at[A].ld,            \
                 (CALL).at[B].address, (long long)(CALL).at[B].ld, (CALL).work, (CALL).work_bytes, \
                 (CALL).host_bytes)

/* An exported function's body after it has put its parameters into a struct solver_call. */
#define SOLVER_CALL(HANDLE, CALL)                                                                  \
    ENTER_SOLVER_CALL(HANDLE, CALL);                                                               \
    TESTGPU_RETURN(solver_call(HANDLE, &(CALL)))
#define SOLVER_SIZES(HANDLE, CALL, DEVICE, HOST)                                                   \
    ENTER_SOLVER_CALL(HANDLE, CALL);                                                               \
    TESTGPU_RETURN(solver_sizes(HANDLE, &(CALL), DEVICE, HOST))
#define SOLVER_SIZE(HANDLE, CALL, ELEMENTS)                                                        \
    ENTER_SOLVER_CALL(HANDLE, CALL);                                                               \
    TESTGPU_RETURN(solver_size(HANDLE, &(CALL), ELEMENTS))

/* A call's fields. */
#define OPERAND(AT, ADDRESS, LD)                                                                   \
    .at[AT] = {.address = (CUdeviceptr)(uintptr_t)(ADDRESS), .ld = (LD)}
#define LIST(AT, ADDRESS) OPERAND(AT, ADDRESS, 0)
#define ONE_TYPE(TYPE)    .type = (TYPE), .compute_type = (TYPE)
/* Of an X function, by their names in the header. */
#define X_WORK                                                                                     \
    .work = (CUdeviceptr)(uintptr_t)bufferOnDevice, .work_bytes = workspaceInBytesOnDevice,        \
    .host_work = bufferOnHost, .host_bytes = workspaceInBytesOnHost, LIST(INFO, info)
/* Of a function of one type: a negative size is none. */
#define WORK(ELEMENT)                                                                              \
    .work = (CUdeviceptr)(uintptr_t)work,                                                          \
    .work_bytes = lwork > 0 ? (size_t)lwork * sizeof(ELEMENT) : 0, LIST(INFO, info)

/* FORM(the name's end, elements, their real type, their type's number, that of the real type) */
#define REAL_TYPES(FORM, WORD)                                                                     \
    FORM(S##WORD, float, float, CUDA_R_32F, CUDA_R_32F)                                            \
    FORM(D##WORD, double, double, CUDA_R_64F, CUDA_R_64F)
#define COMPLEX_TYPES(FORM, WORD)                                                                  \
    FORM(C##WORD, cuComplex, float, CUDA_C_32F, CUDA_R_32F)                                        \
    FORM(Z##WORD, cuDoubleComplex, double, CUDA_C_64F, CUDA_R_64F)
#define ALL_TYPES(FORM, WORD)                                                                      \
    REAL_TYPES(FORM, WORD)                                                                         \
    COMPLEX_TYPES(FORM, WORD)

#endif
