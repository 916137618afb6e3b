/*
 * What an operation is: what the routines of several types do alike, as a struct of properties and
 * functions. Each is defined in a file of its library's folder (ops/blas/, ops/lapack/, ...), and a
 * call carries its own (call->op). Constant data; the functions are pure, except `run`, `steps`,
 * `guide` and `discard`. What they take of other layers is declared here alone.
 */
#ifndef ACCEL_OPERATION_H
#define ACCEL_OPERATION_H

#include "op_cost.h"
#include "op_foreign.h"
#include "status.h"

struct gpu_work;
struct scheduled;
struct solver;
struct lapack_sizes;
struct composition;
struct panels_call;
struct equation;
struct equation_source;
struct test;

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

/* The least LWORK, LRWORK and LIWORK. Where RWORK has no argument for its length, rwork is set only
 * if it grows with a square. */
struct accel_lengths {
    int64_t work, rwork, iwork;
};

/* LAPACK: how a call goes through a device whose memory is too small for its operands: see
 * ops/lapack/in_panels.h. */
struct lapack_panels {
    /* Describes the call's jobs, two at most, and returns how many there are; 0: it cannot. */
    int (*calls)(const struct accel_call *call, struct panels_call *panels);
    /* In place of op->steps. All operands are in host memory. */
    void (*steps)(struct solver *s);
};

struct accel_op {
    const struct accel_cost *cost;
    const struct accel_foreign *foreign; /* NULL: BLAS and LAPACK */

    enum accel_op_group group;

    /* ---- Properties ---- */
    enum gpu_products products; /* may be computed in another precision if the user asks for it */
    bool moves;          /* as many bytes as operations: pays only if its matrix is on the device */
    bool hermitian;      /* the matrix whose triangle counts is Hermitian in complex types */
    bool conjugates;     /* A := alpha x y^H + A */
    bool three_products; /* a complex product by three real ones */
    bool iterates;       /* reduces to a condensed form, then iterates, on a copy of A */
    bool reflectors;     /* x holds the scalars of elementary reflectors */
    /* Spans, as bits 1 << enum accel_matrix: */
    uint8_t triangles; /* only the triangle uplo is written */
    uint8_t definite;  /* must be definite in a workload, so that the call succeeds */

    /* ---- A call in parts, each decided for itself; NULL: calls are whole ---- */
    /* Turns a part into the next one, from the caller's arguments. Returns false after the last. */
    bool (*next)(struct accel_call *part, const struct accel_passed *passed);
    /* Returns the largest of all parts' sizes that the entries' gate compares; the call has not
     * been read yet. Negative: a size is negative, or the call is whole. */
    int64_t (*largest)(const struct accel_routine *routine, const struct accel_passed *passed);

    /* ---- Over several devices; NULL: a call runs on one ---- */
    /* Returns where a valid call may be cut, as bits: enum accel_cuts (cut.h). */
    unsigned (*cuts)(const struct accel_call *call);

    /* ---- LAPACK's rules; NULL: no such rule ---- */
    /* Returns the name of an argument that contradicts another one, or NULL: see
     * lapack_shape_fault(). */
    const char *(*fault)(const struct accel_call *call);
    /* Returns whether the routine has nothing to do. NULL: if any size is 0. */
    bool (*is_empty)(const struct accel_call *call);
    /* Returns the least lengths of workspace that LAPACK 3.11 accepts. NULL: 1. */
    struct accel_lengths (*workspace)(const struct lapack_sizes *sizes);
    /* Turns the lengths that a workspace query answers into those that LAPACK leaves in the
     * workspaces on success. NULL: they are the same. */
    void (*left)(const struct lapack_sizes *sizes, struct accel_lengths *lengths);

    /* ---- Shapes that only operands tell; NULL: the arguments do ---- */
    /* Returns the first span's rows, if the other spans are in host memory. */
    int64_t (*rows)(const struct accel_call *call);
    /* Cuts the spans down to the results found, if the last span, which counts them, is in host
     * memory. */
    void (*trim)(struct accel_call *call);
    /* Operands, as bits 1 << enum accel_matrix, for which the program may have room as long as
     * these results alone. */
    unsigned may_be_short;
    /* Cuts the spans down to the results that the arguments ask for, where a routine's
     * documentation wants more room for them: on the GPU, a call writes no more. */
    void (*narrow)(struct accel_call *call);

    /* ---- The GPU ---- */
    /* LAPACK: looks at a few elements of operands in host memory, and returns whether the original
     * will have to report on the matrix (INFO > 0). Then nothing goes up. NULL: it does not. */
    bool (*is_hopeless)(const struct accel_call *call);
    /* Returns whether the GPU's libraries can do it with these flags and sizes. NULL: with all. */
    bool (*is_supported)(const struct accel_call *call);
    /* Runs a valid, non-empty call on a lane, and returns when the result is in place: see
     * gpu/device/work.h. NULL: `steps` does, or the GPU's libraries cannot. */
    enum gpu_status (*run)(struct gpu_work *work);
    /* Of another library: frees what run() has left, because the result was wrong; the call is not
     * completed. NULL: nothing is left. */
    void (*discard)(const struct accel_call *call);
    /* Level 3, and a batch of one product: fills in the kind of the schedule, its sizes, operations
     * and operands, and device memory that the kernels need besides (gpu/plan/scheduled.h), for a
     * valid call. NULL: it has no schedule. */
    void (*scheduled)(const struct accel_call *call, struct scheduled *scheduled);
    /* LAPACK: makes the steps of gpu/exec/lapack/solver.h that solver_run() takes. NULL: the GPU's
     * libraries cannot. */
    void (*steps)(struct solver *s);
    /* NULL: what exceeds the device's memory stays on the CPU */
    const struct lapack_panels *in_panels;
    /* Why the device must have the whole matrix at once, as docs/limits.md has it; NULL: there is
     * in_panels or compose, or `moves`, or no `steps`. */
    const char *whole;
    /* LAPACK: what exceeds that, all operands in host memory, by inner calls (compose.h). *done:
     * the call with results in memory of its own, which composition_free() frees; the operands are
     * only read. NULL: not so. */
    enum gpu_status (*compose)(struct composition *c, const struct accel_call *call,
                               struct accel_call *done);

    /* ---- Judging a result: cpu_ref/ ---- */
    void (*equation)(struct equation *e, const struct equation_source *from); /* BLAS */
    void (*check)(struct test *test); /* LAPACK, and GSL's factorisations; NULL: not judged */
};

/* Returns the kind of products by which a device computes the call in a precision that the user
 * asks for: none if inputs are narrower than the routine's type. */
static inline enum gpu_products accel_product_kind(const struct accel_call *call)
{
    return call->span[0].dtype == call->routine->dtype ? call->op->products : GPU_NO_PRODUCTS;
}

#endif
