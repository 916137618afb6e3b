/*
 * The canonical call: the form in which every layer sees a call, whatever its ABI. Memory, devices
 * and verification see its spans; its operation alone reads the arguments. Plain data; nothing here
 * knows ELF or CUDA.
 */
#ifndef ACCEL_CALL_H
#define ACCEL_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arguments.h"

/* A routine has one of the first four types; an operand may have any. */
enum accel_dtype {
    ACCEL_FLOAT32,
    ACCEL_FLOAT64,
    ACCEL_COMPLEX64,
    ACCEL_COMPLEX128,
    ACCEL_DTYPES,
    ACCEL_BFLOAT16 = ACCEL_DTYPES, /* the upper half of a float32 */
    ACCEL_INT32,                   /* LAPACK's INTEGER arrays: pivots, counts */
    ACCEL_INT64,
    /* in the table's rows alone: */
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

/* Returns the type of norms, eigenvalues and singular values. */
static inline enum accel_dtype accel_real_dtype(enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? ACCEL_FLOAT64 : ACCEL_FLOAT32;
}

/* Returns the bytes of one element. */
static inline size_t accel_dtype_size(enum accel_dtype dtype)
{
    if (dtype == ACCEL_BFLOAT16)
        return 2;
    if (dtype == ACCEL_INT32 || dtype == ACCEL_INT64)
        return dtype == ACCEL_INT64 ? 8 : 4;
    return (accel_is_double(dtype) ? 8u : 4u) * (accel_is_complex(dtype) ? 2u : 1u);
}

enum accel_access { ACCEL_READ = 1, ACCEL_WRITE = 2, ACCEL_READWRITE = 3 };

struct accel_call;

/* A row of the routine table (ops/blas/blas.def). Constant. */
struct accel_routine {
    char name[28]; /* lower case, without any mangling */
    uint8_t op;    /* its operation's place in ops.def: accel_op_of() */
    enum accel_dtype dtype;
    enum accel_row_major row_major;
    int small; /* another library's: below this count a struct cannot pay (op->foreign->count_at) */
    int args;
    struct accel_arg arg[ACCEL_ARGS_MAX];
};

/* All routines, in the order of the table. Without pointers: the dynamic linker writes to no page
 * of it. */
extern const struct accel_routine accel_routines[];
extern const uint32_t accel_routine_count;
enum { ACCEL_ROUTINES_MOST = 512 }; /* at least that */

/* Where an operand's bytes are. */
enum accel_place {
    ACCEL_HOST,    /* only the host may touch it; pinned host memory too */
    ACCEL_DEVICE,  /* memory of the device in use: kernels may, the host may not */
    ACCEL_MANAGED, /* both may */
    ACCEL_PLACED,  /* host memory that this call's kernels read where it is: gpu_host.placed in
                      gpu/device/gpu.h */
    ACCEL_REMOTE   /* memory of another device or context: can be copied, not used */
};

/* A matrix as it is stored: column-major, rows x cols elements, ld elements from one column to the
 * next (LAPACK's leading dimension, ld >= max(1, rows)). The caller owns the memory. A vector is a
 * matrix of one row with ld = |inc|. In a batch, ptr is the first matrix; the others follow by
 * stride, or `array` points to them. */
struct accel_span {
    const char *name; /* of the argument, in the routine's documentation */
    void *ptr;
    int64_t rows, cols, ld;
    int64_t inc;        /* vectors: the caller's increment; 0: not a vector */
    int64_t stride;     /* batch: elements to the next matrix; 0: all products share an input */
    void *const *array; /* batch: pointers to the matrices, owned by the caller; NULL: none */
    enum accel_dtype dtype;
    enum accel_access access;
    /* The part that is written, or stays: U or L; u or l: without the diagonal; 0: all */
    char triangle;
    enum accel_place place; /* of a batch: the least favourable place of its matrices */
};

struct accel_op;

struct accel_call {
    const struct accel_routine *routine;
    const struct accel_op *op; /* the routine's (operation.h) */
    struct accel_span span[ACCEL_SPANS];
    int64_t batch;       /* products; 1 in a routine without a batch */
    int64_t part, parts; /* this is part `part`, from 0; parts = 1: the caller's whole call */
    union {
        struct blas_arguments blas; /* BLAS and LAPACK */
        /* A function of another library: as its operation's parse() has filled them in. */
        union {
            int64_t integer[14];
            double number[14];
            const void *pointer[14];
        } own;
    };
};

/* Returns the span of an array: one column. */
static inline struct accel_span accel_column(const char *name, void *ptr, int64_t length,
                                             enum accel_dtype dtype, enum accel_access access)
{
    return (struct accel_span){.name = name,
                               .ptr = ptr,
                               .rows = length,
                               .cols = 1,
                               .ld = length,
                               .dtype = dtype,
                               .access = access};
}

static inline bool accel_is_on_host(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call->span[i].place != ACCEL_HOST)
            return false;
    return true;
}

/* Returns whether kernels can use an operand where it is. */
static inline bool gpu_in_place(const struct accel_span *x)
{
    return x->place == ACCEL_DEVICE || x->place == ACCEL_MANAGED || x->place == ACCEL_PLACED;
}

/* Return the bytes of an operand's element, and the address of its element (row, col). */
static inline int64_t gpu_size_of(const struct accel_span *x)
{
    return (int64_t)accel_dtype_size(x->dtype);
}
static inline void *gpu_element(const struct accel_span *x, int64_t row, int64_t col)
{
    return (char *)x->ptr + (col * x->ld + row) * gpu_size_of(x);
}

/* Returns element i of an array of INT32 or INT64 at any address. The CPU must be able to read
 * it. */
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

/* *product = a * b. Returns false if that does not fit. */
static inline bool accel_mul(int64_t a, int64_t b, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* Returns the bytes from an operand's first element to the end of its last; of `array`, those of
 * one matrix. batch: the call's products. Returns -1 if the bytes of one matrix, or of all,
 * overflow; 0 in an empty batch. */
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

/* Returns the bytes of one matrix's elements, without gaps between columns. Fits if accel_extent()
 * does. */
static inline int64_t accel_bytes(const struct accel_span *x)
{
    return x->rows * x->cols * (int64_t)accel_dtype_size(x->dtype);
}

/* Returns the address of matrix i of a batch's operand. */
static inline void *accel_matrix_of(const struct accel_span *x, int64_t i)
{
    return x->array ? x->array[i]
                    : (char *)x->ptr + i * x->stride * (int64_t)accel_dtype_size(x->dtype);
}

/* Returns products [first, first + count) of a batch as a call of their own. */
static inline struct accel_call accel_products_of(const struct accel_call *call, int64_t first,
                                                  int64_t count)
{
    struct accel_call part = *call;
    part.batch = count;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        struct accel_span *x = &part.span[i];
        if (!x->ptr)
            continue;
        x->ptr = accel_matrix_of(&call->span[i], first);
        x->array = x->array && count > 1 ? x->array + first : NULL;
    }
    return part;
}

#endif
