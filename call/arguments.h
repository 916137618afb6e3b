/*
 * The arguments of BLAS and LAPACK, in the routine table and in a call: column-major, 64-bit sizes,
 * flags as upper-case letters. Plain data.
 */
#ifndef ACCEL_ARGUMENTS_H
#define ACCEL_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* An argument's place in the canonical call, by kind. */
enum accel_size {
    ACCEL_m,
    ACCEL_n,
    ACCEL_k,
    ACCEL_nrhs,
    ACCEL_DIMENSIONS, /* shapes follow from those above; those below can have any value */
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
    /* Derived from these and from the flags: accel_call_size(). */
    ACCEL_order = ACCEL_SIZES, /* of the square matrix at `side` */
    ACCEL_one,
    ACCEL_minmn,
    ACCEL_maxmn,
    ACCEL_urows, /* left singular vectors in U */
    ACCEL_ucols,
    ACCEL_vtrows, /* right ones in VT */
    ACCEL_vtcols,
    ACCEL_zrows, /* eigenvectors in Z */
    ACCEL_zcols,
    ACCEL_supports, /* where vectors are not zero: two numbers for each */
    ACCEL_failures, /* a number for each eigenvector; without vectors, LAPACK does not reference the
                       array */
    ACCEL_vlorder,  /* of the left and the right eigenvectors */
    ACCEL_vrorder,
    ACCEL_lda_,  /* rows in laswp, whose arguments do not tell them */
    ACCEL_swaps, /* laswp's exchanges, with the gaps between them */
    ACCEL_packed /* elements of a triangle of order n */
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
/* The spans of a call: matrices, vectors of Level 2 and of LAPACK, LAPACK's count of results. */
enum accel_matrix { ACCEL_a, ACCEL_b, ACCEL_c, ACCEL_x, ACCEL_y, ACCEL_found, ACCEL_SPANS };

enum accel_kind {
    ACCEL_ARG_FLAG,
    ACCEL_ARG_SIZE,
    ACCEL_ARG_SCALAR,
    ACCEL_ARG_REAL, /* a scalar that is real in complex routines too */
    ACCEL_ARG_MATRIX,
    ACCEL_ARG_VECTOR,
    ACCEL_ARG_LD,
    ACCEL_ARG_INC,    /* of a vector: to the next element; negative: in reverse order */
    ACCEL_ARG_STRIDE, /* of a batch: from one matrix to the next */
    ACCEL_ARG_BATCH,  /* how many products */
    ACCEL_ARG_GROUPS, /* how many groups of products: the length of the arrays */
    /* of LAPACK: */
    ACCEL_ARG_INTEGER, /* an INTEGER that is not a size */
    /* only in the Fortran interface: */
    ACCEL_ARG_WORK,  /* workspace that the GPU does not need; slot: 0, or a length that it tells */
    ACCEL_ARG_LWORK, /* INTEGER length of one, -1: a question */
    ACCEL_ARG_INFO,
    /* only in LAPACKE: */
    ACCEL_ARG_EXTRA /* an array that only failures write to */
};

static inline bool accel_is_fortran_only(enum accel_kind kind)
{
    return kind == ACCEL_ARG_WORK || kind == ACCEL_ARG_LWORK || kind == ACCEL_ARG_INFO;
}

/* One argument of a routine, in the order of its Fortran interface. */
struct accel_arg {
    char name[12]; /* the routine's own name for it: what the log prints */
    enum accel_kind kind;
    bool array;     /* one for each group of a batch; matrices: one for each product */
    uint8_t slot;   /* index by kind: accel_size, accel_flag, accel_scalar, accel_matrix; LD, INC
                           and STRIDE have that of their matrix */
    uint8_t access; /* matrices: enum accel_access */
    uint8_t rows, cols; /* matrices: op(X) is size[rows] x size[cols] */
    /* Matrices are stored transposed, vectors have size[cols] elements and not size[rows], unless
     * flag[transposed_by] is N. */
    uint8_t transposed_by;
    uint8_t dtype;   /* matrices: enum accel_dtype */
    char allowed[6]; /* flags: the letters; *: any other too */
};

#define ACCEL_ARGS_MAX 24

/* How a CBLAS row-major call becomes a column-major one. */
enum accel_row_major {
    ACCEL_SWAP_A_B,   /* C' = op(B)' op(A)': exchange the operands, their flags, and m with n; the
                         other triangle */
    ACCEL_FLIP_SIDE,  /* C' = B' A': the other side and triangle, exchange m with n */
    ACCEL_FLIP_TRANS, /* C' = C: the other triangle and transposition; C = C^H: alpha conjugated */
    ACCEL_TRANSPOSE,  /* Level 2: A' for A: exchange m with n, the other triangle and transposition;
                         C  becomes R, a Hermitian A `conjugated` */
    ACCEL_SWAP_X_Y,   /* A' = y x': exchange the vectors, m with n; A = x y^H: conjugated */
    ACCEL_TO_FORTRAN  /* LAPACKE: the original transposes, and calls the Fortran name */
};

enum accel_layout {
    ACCEL_COLUMN_MAJOR,
    ACCEL_ROW_MAJOR,
    ACCEL_NO_LAYOUT /* the caller's value is neither */
};

/* A scalar of any type; im is 0 in a real one. */
struct accel_complex {
    double re, im;
};

/* The arguments of one call. */
struct blas_arguments {
    enum accel_layout layout;  /* the caller's; all below is column-major, except `given` */
    int width;                 /* bits of the provider's INTEGER */
    bool has_work;             /* LAPACK: the caller passes workspace */
    int64_t size[ACCEL_SIZES]; /* 0 if the routine has no such size */
    /* A letter of those allowed; '*': any other, if allowed; 'R': only in OpenBLAS, conjugated and
     * not transposed; '?': wrong; 0: no such flag. */
    char flag[ACCEL_FLAGS];
    /* Level 2, row-major calls: A stands for its conjugate; if A is written, products of x and y
     * stand for theirs. (gemv, trmv and trsv have trans = 'R' instead.) */
    bool conjugated;
    struct accel_complex scalar[ACCEL_SCALARS];
    int64_t before; /* products in the groups before this one */
    /* A part that cut.h makes of a triangular result: its rows, and so its columns, are the first
     * `head` ones and those behind `gap` further ones; between these two groups, the blocks `omits`
     * (bits of enum schedule_blocks) are other parts', and are not written. No original has such
     * arguments. Else 0. */
    int64_t head, gap;
    unsigned omits;
    /* The caller's value, by argument: a number or a flag's letter, in arrays this group's; the
     * address of workspace and INFO. */
    int64_t given[ACCEL_ARGS_MAX];
};

/* Returns the span that an argument is or describes; 0 for other arguments, so that an index is
 * always valid. */
static inline int accel_span_of(const struct accel_arg *arg)
{
    return arg->slot < ACCEL_SPANS ? arg->slot : 0;
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

#endif
