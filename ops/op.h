/*
 * Operations: what the routines of several types do alike. Each is defined once, in a file of its library's folder (ops/blas/,
 * ops/lapack/), and listed in ops.def; a routine's row names its operation. Constant data; the functions are pure, except run.
 *
 * Of ops/, what can be computed: it includes base/, headers of gpu/, and the checks of cpu_ref/. A library is a folder below it.
 */
#ifndef ACCEL_OP_H
#define ACCEL_OP_H

#include "call.h"
#include "gpu/gpu.h"
#include "passing.h"

struct gpu_work;
struct solver;
struct lapack_sizes;
struct equation;
struct equation_source;
struct test;

enum accel_op_group {
    ACCEL_LEVEL_3,
    ACCEL_BATCH,   /* many products of Level 3 in one call */
    ACCEL_LEVEL_2, /* touches as many elements as it computes */
    ACCEL_LAPACK,
    ACCEL_NO_BLAS /* a function of another library: see FUNCTION in routines.def */
};

/* Operations by which the machine is measured where each of them would be too many. */
enum accel_sample {
    ACCEL_NO_SAMPLE,
    ACCEL_SAMPLE_PRODUCT, /* its rate stands for the rates of all others */
    ACCEL_SAMPLE_SVD      /* the algorithms for singular values are compared by it */
};

/* LWORK, LRWORK and LIWORK. RWORK without an argument for its length has one where it needs squares. */
struct accel_lengths {
    int64_t work, rwork, iwork;
};

/* A line of the log under way: takes fields in the order in which they come. */
struct accel_fields {
    void (*integer)(const struct accel_fields *fields, const char *name, int64_t value);
    void (*string)(const struct accel_fields *fields, const char *name, const char *value);
};

/* The library that has a function which the program has called, for an operation to tell whether it is the one that it knows. */
struct accel_provider {
    void *function;
    /* The address of what the same object defines under that name, NULL where it defines none. */
    void *(*symbol)(const struct accel_provider *provider, const char *name);
};

/* For machines where nothing was measured: the shares of a large product's rate that the operation reaches, and the cost of
 * each step of the order on the GPU, where panels wait for each other. */
struct accel_nominal {
    double cpu_share, gpu_share, gpu_step_ms;
};

struct accel_op {
    enum accel_op_group group;

    /* ---- Properties ---- */
    bool
        moves; /* it moves as many bytes as it computes: it pays only where its matrix is there already */
    bool hermitian;      /* of complex types, the matrix of which a triangle counts is Hermitian */
    bool conjugates;     /* A := alpha x y^H + A */
    bool three_products; /* a complex product by three real ones */
    bool iterates;       /* reduces to a condensed form, and then iterates, on a copy of A */
    uint8_t
        triangles; /* the spans of which only the triangle uplo is written: bits, 1 << enum accel_matrix */
    uint8_t definite; /* those that should be definite, so that a workload has a result: bits */
    bool reflectors;  /* x holds the scalars of elementary reflectors */
    struct accel_nominal nominal;
    enum accel_sample sample;

    /* ---- A call in parts, each of which is decided for itself; NULL: calls are whole ---- */
    /* Makes a part of the caller's arguments the one behind it; false where it is the last. */
    bool (*next)(struct accel_call *part, const struct accel_passed *passed);
    /* Of the sizes that the entries' gate looks at, the largest that any part has: before the call is read. Negative: one is
     * negative, or the call is whole. */
    int64_t (*largest)(const struct accel_routine *routine, const struct accel_passed *passed);

    /* ---- A function of another library; of BLAS and LAPACK all are NULL ---- */
    /* Whether the provider's function is the one that this operation knows, such as by its version. NULL: it is not. Calls that
     * are not accepted go to the original, untouched. */
    bool (*accepts)(const struct accel_provider *provider);
    /* Words of arguments that it has on the stack. */
    size_t stack_words;
    /* Fills in the spans and call->own, in a call where all else is that of a single product. False where the arguments are not
     * understood: the original has the call, untouched. */
    bool (*parse)(struct accel_call *call, const struct accel_passed *passed);
    /* The sizes that the cost depends on, ACCEL_DIMENSIONS of them; 0: there is no such size. */
    const int64_t *(*sizes)(const struct accel_call *call);
    /* Real floating-point operations of a call. */
    double (*flops)(const struct accel_call *call);
    /* The log's fields that say what was called. */
    void (*describe)(const struct accel_call *call, const struct accel_fields *fields);
    /* After a call that the GPU has done, and whose results stand: what the program finds in the registers. */
    void (*complete)(const struct accel_call *call, struct accel_result *result);

    /* ---- LAPACK's rules; NULL: there is no such rule ---- */
    /* The argument that contradicts another one, or NULL: see lapack_shape_fault(). */
    const char *(*fault)(const struct accel_call *call);
    /* Whether it returns at once; NULL: where any size is 0. */
    bool (*is_empty)(const struct accel_call *call);
    /* The least lengths of workspace that LAPACK 3.11 accepts; NULL: 1. */
    struct accel_lengths (*workspace)(const struct accel_call *call,
                                      const struct lapack_sizes *sizes);

    /* ---- Shapes that the arguments do not tell; NULL: they do ---- */
    /* How many rows the first span has, where the other spans are in host memory. */
    int64_t (*rows)(const struct accel_call *call);
    /* Cuts the spans down to what has been written, where the last one, which counts it, is in host memory. */
    void (*trim)(struct accel_call *call);

    /* ---- The GPU ---- */
    /* Whether the GPU's libraries have it, with these flags and sizes; NULL: with all. */
    bool (*is_supported)(const struct accel_call *call);
    /* Runs a valid call that is not empty on a lane, and returns when the result is in place: see gpu/work.h. NULL: it has
     * `steps`, or the GPU's libraries do not have it. */
    enum gpu_status (*run)(struct gpu_work *work);
    /* LAPACK: what solver_run() takes of gpu/solver.h's steps. NULL: the GPU's libraries do not have it. */
    void (*steps)(struct solver *s);

    /* ---- Judging a result: cpu_ref/ ---- */
    void (*equation)(struct equation *e, const struct equation_source *from); /* BLAS */
    void (*check)(struct test *test); /* LAPACK; NULL: not judged */
};

#define OP(name) extern const struct accel_op op_##name;
#include "ops.def"
#undef OP

/* As the operation has it. */
double accel_op_flops(const struct accel_call *call);

/* The sizes that the cost of a call depends on: of BLAS and LAPACK m, n, k and nrhs. 0: the routine has no such size. */
const int64_t *accel_sizes(const struct accel_call *call);

/* The log's fields that say what was called. */
void accel_describe(const struct accel_call *call, const struct accel_fields *fields);

/* In the order of ops.def. */
extern const struct accel_op *const accel_ops[];

static inline const struct accel_op *accel_op_of(const struct accel_routine *routine)
{
    return accel_ops[routine->op];
}

/* The sample's routine of this type, NULL: there is none. */
const struct accel_routine *accel_sample_of(enum accel_sample sample, enum accel_dtype dtype);

static inline bool accel_is_lapack(const struct accel_routine *routine)
{
    return accel_op_of(routine)->group == ACCEL_LAPACK;
}

/* Whether it is BLAS's or LAPACK's: its arguments are the table's. */
static inline bool accel_is_blas(const struct accel_routine *routine)
{
    return accel_op_of(routine)->group != ACCEL_NO_BLAS;
}

static inline bool accel_is_level2(const struct accel_routine *routine)
{
    return accel_op_of(routine)->group == ACCEL_LEVEL_2;
}

static inline bool accel_is_batch(const struct accel_routine *routine)
{
    return accel_op_of(routine)->group == ACCEL_BATCH;
}

/* Whether it is one of several parts of a caller's call. */
static inline bool accel_is_part(const struct accel_call *call)
{
    return accel_op_of(call->routine)->next && call->blas.groups > 1;
}

static inline bool accel_only_moves(const struct accel_routine *routine)
{
    return accel_op_of(routine)->moves;
}

static inline bool accel_is_hermitian(const struct accel_routine *routine)
{
    return accel_op_of(routine)->hermitian;
}

/* Whether it is cuSOLVER's to compute. */
static inline bool accel_uses_solver(const struct accel_routine *routine)
{
    return accel_is_lapack(routine) && !accel_only_moves(routine);
}

/* LAPACKE transposes row-major matrices and passes them on to the Fortran name: that call is decided, this one is the
 * original's. */
static inline bool accel_is_rows_of_lapack(const struct accel_call *call)
{
    return call->blas.layout == ACCEL_ROW_MAJOR && accel_is_lapack(call->routine);
}

#endif
