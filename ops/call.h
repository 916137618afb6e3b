/*
 * The canonical call: the one form in which every layer sees a call, whatever ABI it came through.
 * Column-major, 64-bit sizes, flags as upper-case letters, operands with shape and access.
 * Plain data; nothing here knows ELF or CUDA.
 */
#ifndef ACCEL_CALL_H
#define ACCEL_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A routine is of one of the four types of BLAS; an operand may also be of a narrower one. */
enum accel_dtype {
    ACCEL_FLOAT32,
    ACCEL_FLOAT64,
    ACCEL_COMPLEX64,
    ACCEL_COMPLEX128,
    ACCEL_DTYPES,
    ACCEL_BFLOAT16 = ACCEL_DTYPES, /* the upper half of a float32 */
    ACCEL_INT32,                   /* LAPACK's INTEGER arrays: pivots, counts */
    ACCEL_INT64,
    /* in the table: */
    ACCEL_SAME,    /* the routine's own */
    ACCEL_REALS,   /* its real counterpart: eigenvalues, singular values */
    ACCEL_INTEGERS /* the provider's INTEGER */
};

static inline bool accel_is_complex(enum accel_dtype dtype)
{
    return dtype == ACCEL_COMPLEX64 || dtype == ACCEL_COMPLEX128;
}

static inline bool accel_is_double(enum accel_dtype dtype)
{
    return dtype == ACCEL_FLOAT64 || dtype == ACCEL_COMPLEX128;
}

/* The type of norms, eigenvalues and singular values. */
static inline enum accel_dtype accel_real_dtype(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32;
}

/* Bytes of one element. */
static inline size_t accel_dtype_size(enum accel_dtype dtype)
{
    if (dtype == ACCEL_BFLOAT16)
        return 2;
    if (dtype == ACCEL_INT32 || dtype == ACCEL_INT64)
        return dtype == ACCEL_INT64 ? 8 : 4;
    return (accel_is_double(dtype) ? 8u : 4u) * (accel_is_complex(dtype) ? 2u : 1u);
}

/* Where an argument's value stands in the canonical call, by kind. */
enum accel_size {
    ACCEL_m,
    ACCEL_n,
    ACCEL_k,
    ACCEL_nrhs,
    ACCEL_DIMENSIONS, /* the shapes come from those before; what follows can have any value */
    ACCEL_itype = ACCEL_DIMENSIONS,
    ACCEL_il,
    ACCEL_iu,
    ACCEL_k1,
    ACCEL_k2,
    ACCEL_incx,
    ACCEL_lwork,
    ACCEL_lrwork,
    ACCEL_liwork,
    ACCEL_SIZES,
    /* What follows from them and from the flags: accel_call_size(). */
    ACCEL_order = ACCEL_SIZES, /* of the square matrix that stands at `side` */
    ACCEL_one,
    ACCEL_minmn,
    ACCEL_maxmn,
    ACCEL_urows, /* left singular vectors in U */
    ACCEL_ucols,
    ACCEL_vtrows, /* right ones in VT */
    ACCEL_vtcols,
    ACCEL_zrows, /* eigenvectors in Z */
    ACCEL_zcols,
    ACCEL_supports, /* where the vectors are not zero: two numbers for each */
    ACCEL_vlorder,  /* left and right eigenvectors */
    ACCEL_vrorder,
    ACCEL_lda_,  /* laswp tells of its matrix only how far its columns are apart */
    ACCEL_swaps, /* and has its exchanges at intervals */
};
enum accel_flag {
    ACCEL_transa,
    ACCEL_transb,
    ACCEL_side,
    ACCEL_uplo,
    ACCEL_trans,
    ACCEL_diag,
    ACCEL_norm,
    ACCEL_jobz,
    ACCEL_range,
    ACCEL_jobu,
    ACCEL_jobvt,
    ACCEL_jobvl,
    ACCEL_jobvr,
    ACCEL_FLAGS,
    ACCEL_noflag = ACCEL_FLAGS
};
enum accel_scalar {
    ACCEL_alpha,
    ACCEL_beta,
    ACCEL_vl,
    ACCEL_vu,
    ACCEL_abstol,
    ACCEL_rcond,
    ACCEL_anorm,
    ACCEL_SCALARS
};
/* Matrices, and the vectors of Level 2 and of LAPACK; LAPACK's count of what was found. */
enum accel_matrix { ACCEL_a, ACCEL_b, ACCEL_c, ACCEL_x, ACCEL_y, ACCEL_found, ACCEL_MATRICES };

enum accel_kind {
    ACCEL_ARG_FLAG,
    ACCEL_ARG_SIZE,
    ACCEL_ARG_SCALAR,
    ACCEL_ARG_REAL, /* a scalar that is real in a complex routine, too */
    ACCEL_ARG_MATRIX,
    ACCEL_ARG_VECTOR,
    ACCEL_ARG_LD,
    ACCEL_ARG_INC, /* of a vector: from one element to the next, negative for the reverse order */
    ACCEL_ARG_STRIDE, /* of a batch: from one matrix to the next */
    ACCEL_ARG_BATCH,  /* how many products */
    ACCEL_ARG_GROUPS, /* how many groups of products: the length of the arrays */
    /* of LAPACK: */
    ACCEL_ARG_INTEGER, /* an INTEGER that is not a size */
    /* in the Fortran interface alone: */
    ACCEL_ARG_WORK,  /* workspace, which the GPU does not need */
    ACCEL_ARG_LWORK, /* INTEGER length of one, -1: a question */
    ACCEL_ARG_INFO,
    /* in LAPACKE alone: */
    ACCEL_ARG_EXTRA /* an array that nothing is written to on success */
};

static inline bool accel_is_fortran_only(enum accel_kind kind)
{
    return kind == ACCEL_ARG_WORK || kind == ACCEL_ARG_LWORK || kind == ACCEL_ARG_INFO;
}

enum accel_access { ACCEL_READ = 1, ACCEL_WRITE = 2, ACCEL_READWRITE = 3 };

/* One argument of a routine, in the order of its Fortran interface. */
struct accel_arg {
    char name[12]; /* the routine's own name for it: what the log prints */
    enum accel_kind kind;
    bool array;         /* one for each group of a batch; matrices: for each product */
    uint8_t slot;       /* index by kind: accel_size, accel_flag, accel_scalar, accel_matrix
                              (an LD, INC or STRIDE has the index of its matrix) */
    uint8_t access;     /* matrices: enum accel_access */
    uint8_t rows, cols; /* matrices: op(X) has shape size[rows] x size[cols] ... */
    uint8_t
        transposed_by; /* ... and is stored transposed unless flag[transposed_by] is 'N'; vectors:
                              size[rows] elements, or size[cols] */
    uint8_t dtype;     /* matrices: enum accel_dtype */
    char allowed[6];   /* flags: the letters there are; with a * any other one will do */
};

#define ACCEL_ARGS_MAX 24

/* How a CBLAS row-major call becomes a column-major one. */
enum accel_row_major {
    ACCEL_SWAP_A_B,   /* C' = op(B)' op(A)': exchange the operands, their flags, and m with n; the
                         other triangle */
    ACCEL_FLIP_SIDE,  /* C' = B' A': the other side and triangle, exchange m with n */
    ACCEL_FLIP_TRANS, /* C' = C: the other triangle and transposition; C = C^H: alpha conjugated */
    ACCEL_TRANSPOSE,  /* Level 2: A' for A: exchange m with n, the other triangle and transposition;
                         where that would be a conjugation alone, it is one: see `conjugated` */
    ACCEL_SWAP_X_Y,   /* A' = y x': exchange the vectors, m with n; A = x y^H: conjugated */
    ACCEL_TO_FORTRAN  /* LAPACKE: the original transposes, and calls the Fortran name */
};

enum accel_layout {
    ACCEL_COLUMN_MAJOR,
    ACCEL_ROW_MAJOR,
    ACCEL_NO_LAYOUT /* the caller's value names none */
};

struct accel_call;

/* A row of the routine table (ops/blas/blas.def). Constant. */
struct accel_routine {
    char name[24]; /* lower case, without any mangling */
    uint8_t op;    /* its operation's place in ops.def: accel_op_of() */
    enum accel_dtype dtype;
    enum accel_row_major row_major;
    /* Real floating-point operations of the call (a complex multiply-add counts 8, a real one 2).
     */
    double (*flops)(const struct accel_call *call);
    int args;
    const struct accel_arg *arg; /* apart: what the dynamic linker has to write to stays small */
};

/* All of them, in the order of the table. */
extern const struct accel_routine accel_routines[];
extern const uint32_t accel_routine_count;

/* Where an operand's bytes are. */
enum accel_place {
    ACCEL_HOST,    /* only the host may touch it; pinned host memory too */
    ACCEL_DEVICE,  /* memory of the device in use: kernels may, the host may not */
    ACCEL_MANAGED, /* both may */
    ACCEL_REMOTE   /* memory of another device or context: can be copied, not used */
};

/* A matrix as it is stored: column-major, rows x cols elements, ld elements from one column to the
 * next (LAPACK's leading dimension, ld >= max(1, rows)). The memory is the caller's.
 * A vector is a matrix of one row with ld = |inc|. In a batch this is the first matrix; the others
 * follow by stride, or stand in the array. */
struct accel_span {
    const char *name; /* the caller's name for it */
    void *ptr;
    int64_t rows, cols, ld;
    int64_t inc; /* vectors: as the caller has it; 0: not a vector */
    int64_t
        stride; /* elements from one matrix of a batch to the next; 0 for the inputs: the same */
    void *const *array; /* pointers to the matrices of a batch, where it has such; the caller's */
    enum accel_dtype dtype;
    enum accel_access access;
    char triangle; /* U or L: that alone is written; u or l: without its diagonal; 0: all */
    enum accel_place place; /* of a batch's matrices, the least favourable one */
};

/* Real scalars use the first member; float32 scalars are widened, which loses nothing. */
struct accel_complex {
    double re, im;
};

struct accel_call {
    const struct accel_routine *routine;
    enum accel_layout layout;  /* the caller's; everything below but `given` is column-major */
    int width;                 /* bits of the provider's INTEGER */
    bool has_work;             /* LAPACK: the caller has passed workspace */
    int64_t size[ACCEL_SIZES]; /* 0 where the routine has no such size */
    /* A letter of those allowed; 'R' for a transposition that OpenBLAS alone has (conjugate, not
     * transposed); '?' for what names nothing. */
    char flag[ACCEL_FLAGS];
    /* Level 2, from row-major calls: A stands for its conjugate, or, where A is written, the products of
     * x and y for theirs. (gemv, trmv and trsv have trans = 'R' instead.) */
    bool conjugated;
    struct accel_complex scalar[ACCEL_SCALARS];
    struct accel_span span[ACCEL_MATRICES];
    int64_t batch; /* products; 1 but for the batched routines */
    int64_t group,
        groups; /* this is group `group` of so many; 0 of 1 but for the grouped batches */
    /* Of a function of another library: what its operation has read and computed. */
    union {
        int64_t integer[8];
        double number[8];
        const void *pointer[8];
    } own;
    /* What the caller passed, by argument: a number or a flag's letter; of arrays, this group's; of
     * workspace and INFO, the address. */
    int64_t given[ACCEL_ARGS_MAX];
};

/* Element i of an array of integers of either size, at any address; of an operand in memory that the CPU reads. */
static inline int64_t accel_integer_at(enum accel_dtype dtype, const void *array, int64_t i)
{
    int64_t wide;
    int32_t narrow;
    if (dtype == ACCEL_INT64)
        return memcpy(&wide, (const char *)array + i * 8, 8), wide;
    return memcpy(&narrow, (const char *)array + i * 4, 4), narrow;
}

static inline int64_t accel_integer(const struct accel_span *x, int64_t i)
{
    return accel_integer_at(x->dtype, x->ptr, i);
}

static inline int64_t accel_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t accel_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* gesdd has one flag for both sides; O: the vectors of the longer side come into A, the others into their
 * own matrix, all of them. */
static inline char accel_job_of(const struct accel_call *call, enum accel_flag job)
{
    char both = call->flag[ACCEL_jobz];
    if (!both)
        return call->flag[job];
    if (both != 'O')
        return both;
    return (call->size[ACCEL_m] >= call->size[ACCEL_n]) == (job == ACCEL_jobu) ? 'O' : 'A';
}

/* How many vectors a job asks for in a matrix of their own: all of them, or as many as singular values. */
static inline int64_t accel_vectors(char job, int64_t all, int64_t values)
{
    return job == 'A' ? all : job == 'S' ? values : 0;
}

static inline int64_t accel_swaps(const struct accel_call *call)
{
    int64_t k1 = call->size[ACCEL_k1], k2 = call->size[ACCEL_k2], inc = call->size[ACCEL_incx],
            length;
    if (inc == 0 || k1 < 1 || k2 < k1 || inc == INT64_MIN ||
        __builtin_mul_overflow(k2 - k1, inc < 0 ? -inc : inc, &length))
        return 0;
    return length < INT64_MAX - k1 ? k1 + length : 0;
}

/* Eigenvalues of a range by index; 0 where it is none. */
static inline int64_t accel_range_length(const struct accel_call *call)
{
    int64_t il = call->size[ACCEL_il], iu = call->size[ACCEL_iu];
    return il >= 1 && iu >= il && iu <= call->size[ACCEL_n] ? iu - il + 1 : 0;
}

/* The shapes of LAPACK's matrices, as its documentation has them for each routine's flags. */
static inline int64_t accel_lapack_size(const struct accel_call *call, int which)
{
    int64_t m = call->size[ACCEL_m], n = call->size[ACCEL_n];
    bool wantz = call->flag[ACCEL_jobz] == 'V';
    switch (which) {
    case ACCEL_one:
        return 1;
    case ACCEL_minmn:
        return accel_min(m, n);
    case ACCEL_maxmn:
        return accel_max(m, n);
    case ACCEL_ucols:
    case ACCEL_urows: {
        int64_t cols = accel_vectors(accel_job_of(call, ACCEL_jobu), m, accel_min(m, n));
        return which == ACCEL_ucols ? cols : cols > 0 ? m : 0;
    }
    case ACCEL_vtcols:
    case ACCEL_vtrows: {
        int64_t rows = accel_vectors(accel_job_of(call, ACCEL_jobvt), n, accel_min(m, n));
        return which == ACCEL_vtrows ? rows : rows > 0 ? n : 0;
    }
    case ACCEL_zrows:
        return wantz ? n : 0;
    case ACCEL_zcols:
        return !wantz ? 0 : call->flag[ACCEL_range] == 'I' ? accel_range_length(call) : n;
    case ACCEL_supports:
        return accel_lapack_size(call, ACCEL_zcols) == n && n > 0 && n < INT64_MAX / 2 &&
                       call->flag[ACCEL_range] != 'V'
                   ? 2 * n
                   : 0;
    case ACCEL_vlorder:
        return call->flag[ACCEL_jobvl] == 'V' ? n : 0;
    case ACCEL_vrorder:
        return call->flag[ACCEL_jobvr] == 'V' ? n : 0;
    case ACCEL_lda_:
        return call->span[ACCEL_a].ld;
    default:
        return accel_swaps(call);
    }
}

/* A size of the call, or one that follows from its sizes and flags. */
static inline int64_t accel_call_size(const struct accel_call *call, int which)
{
    if (which == ACCEL_order)
        which = call->flag[ACCEL_side] == 'R' ? ACCEL_n : ACCEL_m;
    return which < ACCEL_SIZES ? call->size[which] : accel_lapack_size(call, which);
}

/* Whether a flag that asks for vectors is set. */
static inline bool accel_wants_vectors(const struct accel_call *call)
{
    for (int job = ACCEL_jobz; job < ACCEL_FLAGS; job++)
        if (job != ACCEL_range && call->flag[job] && call->flag[job] != 'N')
            return true;
    return false;
}

/* The operand that an argument is, or tells of; of all other arguments, the first one, for nothing. */
static inline int accel_span_of(const struct accel_arg *arg)
{
    return arg->slot < ACCEL_MATRICES ? arg->slot : 0;
}

static inline bool accel_is_zero(struct accel_complex z)
{
    return z.re == 0 && z.im == 0;
}

static inline bool accel_is_one(struct accel_complex z)
{
    return z.re == 1 && z.im == 0;
}

static inline struct accel_complex accel_conjugate(struct accel_complex z)
{
    return (struct accel_complex){z.re, -z.im};
}

static inline bool accel_has_size(const struct accel_routine *routine, enum accel_size size)
{
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_SIZE && routine->arg[i].slot == size)
            return true;
    return false;
}

/* Whether the routine takes this scalar. */
static inline bool accel_has_scalar(const struct accel_routine *routine, enum accel_scalar scalar)
{
    for (int i = 0; i < routine->args; i++)
        if ((routine->arg[i].kind == ACCEL_ARG_SCALAR || routine->arg[i].kind == ACCEL_ARG_REAL) &&
            routine->arg[i].slot == scalar)
            return true;
    return false;
}

/* Whether alpha is 0: then inputs are not to be read, and the output keeps beta times its contents alone. */
static inline bool accel_adds_nothing(const struct accel_call *call)
{
    return accel_has_scalar(call->routine, ACCEL_alpha) && accel_is_zero(call->scalar[ACCEL_alpha]);
}

/* Whether an operand's old contents enter the result: an input does, an output unless beta is 0. */
static inline bool accel_is_read(const struct accel_call *call, const struct accel_span *x)
{
    if (x->access == ACCEL_WRITE)
        return false;
    return x->access == ACCEL_READ || !accel_is_zero(call->scalar[ACCEL_beta]) ||
           !accel_has_scalar(call->routine, ACCEL_beta);
}

/* a * b and a + b for sizes; false when the result does not fit. */
static inline bool accel_mul(int64_t a, int64_t b, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* Bytes from the first to behind the last element of an operand, of a batch's first matrix where they stand
 * in an array; -1 where that overflows, if only for a matrix of a batch of none. batch: products of the call. */
static inline int64_t accel_extent(const struct accel_span *x, int64_t batch)
{
    int64_t last, bytes, before = 0;
    if (x->rows <= 0 || x->cols <= 0)
        return 0;
    if (!accel_mul(x->cols - 1, x->ld, &last) || __builtin_add_overflow(last, x->rows, &last) ||
        !accel_mul(batch > 1 ? batch - 1 : 0, x->stride, &before) ||
        __builtin_add_overflow(last, before, &last) ||
        !accel_mul(last, (int64_t)accel_dtype_size(x->dtype), &bytes))
        return -1;
    return batch > 0 ? bytes : 0;
}

/* Bytes of the elements of one matrix, without what lies between the columns; < 2^63 wherever the
 * extent is. */
static inline int64_t accel_bytes(const struct accel_span *x)
{
    return x->rows * x->cols * (int64_t)accel_dtype_size(x->dtype);
}

/* Matrix i of a batch's operand. */
static inline void *accel_matrix_of(const struct accel_span *x, int64_t i)
{
    return x->array ? x->array[i]
                    : (char *)x->ptr + i * x->stride * (int64_t)accel_dtype_size(x->dtype);
}

/* Some products of a batch as a call of their own. */
static inline struct accel_call accel_products_of(const struct accel_call *call, int64_t first,
                                                  int64_t count)
{
    struct accel_call part = *call;
    part.batch = count;
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        struct accel_span *x = &part.span[i];
        if (!x->ptr)
            continue;
        x->ptr = accel_matrix_of(&call->span[i], first);
        x->array = x->array && count > 1 ? x->array + first : NULL;
    }
    return part;
}

#endif
