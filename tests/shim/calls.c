#include "calls.h"

#include <fnmatch.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_ref/level3.h"

/* ---- The program's BLAS ---- */

union scalar {
    float f[2];
    double d[2];
};

/* A call as its caller writes it: flags, sizes and matrices in the order of the routine's own
 * arguments. */
struct arguments {
    int layout;
    char letter[4]; /* Fortran's flags */
    int code[4];    /* the same for CBLAS */
    blas_int size[3];
    union scalar alpha, beta;
    void *matrix[3];
    blas_int ld[3];
};

/*
 * The interfaces have five shapes. For each: its Fortran types and arguments, its hidden lengths,
 * its CBLAS types and arguments for the two scalars. Fortran scalars and matrices are of the
 * routine's type, here without one.
 */
#define LETTER const char *
#define INT    const blas_int *
#define IN     const void *
#define OUT    void *

#define FORTRAN_TYPES_GEMM LETTER, LETTER, INT, INT, INT, IN, IN, INT, IN, INT, IN, OUT, INT
#define FORTRAN_GEMM                                                                               \
    &x->letter[0], &x->letter[1], &x->size[0], &x->size[1], &x->size[2], &x->alpha, x->matrix[0],  \
        &x->ld[0], x->matrix[1], &x->ld[1], &x->beta, x->matrix[2], &x->ld[2]
#define LENGTHS_GEMM 1, 1
#define CBLAS_TYPES_GEMM(alpha, beta)                                                              \
    int, int, int, blas_int, blas_int, blas_int, alpha, IN, blas_int, IN, blas_int, beta, OUT,     \
        blas_int
#define CBLAS_GEMM(alpha, beta)                                                                    \
    x->layout, x->code[0], x->code[1], x->size[0], x->size[1], x->size[2], alpha, x->matrix[0],    \
        x->ld[0], x->matrix[1], x->ld[1], beta, x->matrix[2], x->ld[2]

#define FORTRAN_TYPES_SYMM LETTER, LETTER, INT, INT, IN, IN, INT, IN, INT, IN, OUT, INT
#define FORTRAN_SYMM                                                                               \
    &x->letter[0], &x->letter[1], &x->size[0], &x->size[1], &x->alpha, x->matrix[0], &x->ld[0],    \
        x->matrix[1], &x->ld[1], &x->beta, x->matrix[2], &x->ld[2]
#define LENGTHS_SYMM 1, 1
#define CBLAS_TYPES_SYMM(alpha, beta)                                                              \
    int, int, int, blas_int, blas_int, alpha, IN, blas_int, IN, blas_int, beta, OUT, blas_int
#define CBLAS_SYMM(alpha, beta)                                                                    \
    x->layout, x->code[0], x->code[1], x->size[0], x->size[1], alpha, x->matrix[0], x->ld[0],      \
        x->matrix[1], x->ld[1], beta, x->matrix[2], x->ld[2]

#define FORTRAN_TYPES_SYRK LETTER, LETTER, INT, INT, IN, IN, INT, IN, OUT, INT
#define FORTRAN_SYRK                                                                               \
    &x->letter[0], &x->letter[1], &x->size[0], &x->size[1], &x->alpha, x->matrix[0], &x->ld[0],    \
        &x->beta, x->matrix[1], &x->ld[1]
#define LENGTHS_SYRK 1, 1
#define CBLAS_TYPES_SYRK(alpha, beta)                                                              \
    int, int, int, blas_int, blas_int, alpha, IN, blas_int, beta, OUT, blas_int
#define CBLAS_SYRK(alpha, beta)                                                                    \
    x->layout, x->code[0], x->code[1], x->size[0], x->size[1], alpha, x->matrix[0], x->ld[0],      \
        beta, x->matrix[1], x->ld[1]

#define FORTRAN_TYPES_SYR2K FORTRAN_TYPES_SYMM
#define FORTRAN_SYR2K       FORTRAN_SYMM
#define LENGTHS_SYR2K       LENGTHS_SYMM
#define CBLAS_TYPES_SYR2K   CBLAS_TYPES_SYMM
#define CBLAS_SYR2K         CBLAS_SYMM

#define FORTRAN_TYPES_TRMM LETTER, LETTER, LETTER, LETTER, INT, INT, IN, IN, INT, OUT, INT
#define FORTRAN_TRMM                                                                               \
    &x->letter[0], &x->letter[1], &x->letter[2], &x->letter[3], &x->size[0], &x->size[1],          \
        &x->alpha, x->matrix[0], &x->ld[0], x->matrix[1], &x->ld[1]
#define LENGTHS_TRMM 1, 1, 1, 1
#define CBLAS_TYPES_TRMM(alpha, beta)                                                              \
    int, int, int, int, int, blas_int, blas_int, alpha, IN, blas_int, OUT, blas_int
#define CBLAS_TRMM(alpha, beta)                                                                    \
    x->layout, x->code[0], x->code[1], x->code[2], x->code[3], x->size[0], x->size[1], alpha,      \
        x->matrix[0], x->ld[0], x->matrix[1], x->ld[1]

typedef void fortran_GEMM(FORTRAN_TYPES_GEMM, size_t, size_t);
typedef void fortran_SYMM(FORTRAN_TYPES_SYMM, size_t, size_t);
typedef void fortran_SYRK(FORTRAN_TYPES_SYRK, size_t, size_t);
typedef void fortran_SYR2K(FORTRAN_TYPES_SYR2K, size_t, size_t);
typedef void fortran_TRMM(FORTRAN_TYPES_TRMM, size_t, size_t, size_t, size_t);
/* As C programs have them that know nothing of hidden lengths. */
typedef void no_lengths_GEMM(FORTRAN_TYPES_GEMM);
typedef void no_lengths_SYMM(FORTRAN_TYPES_SYMM);
typedef void no_lengths_SYRK(FORTRAN_TYPES_SYRK);
typedef void no_lengths_SYR2K(FORTRAN_TYPES_SYR2K);
typedef void no_lengths_TRMM(FORTRAN_TYPES_TRMM);

/* How CBLAS takes a scalar: real ones by value. */
#define TYPE_s    float
#define TYPE_d    double
#define TYPE_c    const void *
#define TYPE_z    const void *
#define PASS_s(z) (z).f[0]
#define PASS_d(z) (z).d[0]
#define PASS_c(z) &(z)
#define PASS_z(z) &(z)

/* X(name, family, dtype, shape, CBLAS's alpha and beta) for every routine. */
#define FOUR(X, name, FAMILY, shape)                                                               \
    X(s##name, FAMILY, FLOAT32, shape, s, s)                                                       \
    X(d##name, FAMILY, FLOAT64, shape, d, d)                                                       \
    X(c##name, FAMILY, COMPLEX64, shape, c, c)                                                     \
    X(z##name, FAMILY, COMPLEX128, shape, z, z)
#define ROUTINES(X)                                                                                \
    FOUR(X, gemm, GEMM, GEMM)                                                                      \
    FOUR(X, symm, SYMM, SYMM)                                                                      \
    X(chemm, HEMM, COMPLEX64, SYMM, c, c)                                                          \
    X(zhemm, HEMM, COMPLEX128, SYMM, z, z)                                                         \
    FOUR(X, syrk, SYRK, SYRK)                                                                      \
    X(cherk, HERK, COMPLEX64, SYRK, s, s)                                                          \
    X(zherk, HERK, COMPLEX128, SYRK, d, d)                                                         \
    FOUR(X, syr2k, SYR2K, SYR2K)                                                                   \
    X(cher2k, HER2K, COMPLEX64, SYR2K, c, s)                                                       \
    X(zher2k, HER2K, COMPLEX128, SYR2K, z, d)                                                      \
    FOUR(X, trmm, TRMM, TRMM)                                                                      \
    FOUR(X, trsm, TRSM, TRMM)

#define DEFINE_CALL(name, family, dtype, shape, alpha_type, beta_type)                             \
    fortran_##shape name##_;                                                                       \
    void cblas_##name(CBLAS_TYPES_##shape(TYPE_##alpha_type, TYPE_##beta_type));                   \
    static void call_##name(enum test_interface interface, const struct arguments *x)              \
    {                                                                                              \
        no_lengths_##shape *no_lengths = (no_lengths_##shape *)(void (*)(void))name##_;            \
        if (interface == TEST_FORTRAN)                                                             \
            name##_(FORTRAN_##shape, LENGTHS_##shape);                                             \
        else if (interface == TEST_NO_LENGTHS)                                                     \
            no_lengths(FORTRAN_##shape);                                                           \
        else                                                                                       \
            cblas_##name(CBLAS_##shape(PASS_##alpha_type(x->alpha), PASS_##beta_type(x->beta)));   \
    }
ROUTINES(DEFINE_CALL)

/* The order of a shape's arguments, and how a row-major call is a column-major one. */
struct shape {
    enum accel_row_major row_major;
    int flags, sizes, matrices;
    enum accel_flag flag[4];
    enum accel_size size[3];
    enum accel_matrix matrix[3]; /* the output last */
};

static const struct shape shape_of_GEMM = {ACCEL_SWAP_A_B,
                                           2,
                                           3,
                                           3,
                                           {ACCEL_transa, ACCEL_transb},
                                           {ACCEL_m, ACCEL_n, ACCEL_k},
                                           {ACCEL_a, ACCEL_b, ACCEL_c}},
                          shape_of_SYMM = {ACCEL_FLIP_SIDE,
                                           2,
                                           2,
                                           3,
                                           {ACCEL_side, ACCEL_uplo},
                                           {ACCEL_m, ACCEL_n},
                                           {ACCEL_a, ACCEL_b, ACCEL_c}},
                          shape_of_SYRK = {ACCEL_FLIP_TRANS,
                                           2,
                                           2,
                                           2,
                                           {ACCEL_uplo, ACCEL_trans},
                                           {ACCEL_n, ACCEL_k},
                                           {ACCEL_a, ACCEL_c}},
                          shape_of_SYR2K = {ACCEL_FLIP_TRANS,
                                            2,
                                            2,
                                            3,
                                            {ACCEL_uplo, ACCEL_trans},
                                            {ACCEL_n, ACCEL_k},
                                            {ACCEL_a, ACCEL_b, ACCEL_c}},
                          shape_of_TRMM = {ACCEL_FLIP_SIDE,
                                           4,
                                           2,
                                           2,
                                           {ACCEL_side, ACCEL_uplo, ACCEL_trans, ACCEL_diag},
                                           {ACCEL_m, ACCEL_n},
                                           {ACCEL_a, ACCEL_b}};

struct row {
    struct accel_routine routine; /* what cpu_ref looks at: name, family, dtype */
    const struct shape *shape;
    void (*call)(enum test_interface interface, const struct arguments *x);
};

#define ROW(name_, family_, dtype_, shape_, alpha, beta)                                           \
    {.routine = {.name = #name_, .family = ACCEL_##family_, .dtype = ACCEL_##dtype_},              \
     .shape = &shape_of_##shape_,                                                                  \
     .call = call_##name_},
static const struct row rows[] = {ROUTINES(ROW)};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool is_hermitian(const struct row *row)
{
    enum accel_family family = row->routine.family;
    return family == ACCEL_HEMM || family == ACCEL_HERK || family == ACCEL_HER2K;
}

static bool is_triangular(const struct row *row)
{
    return row->routine.family == ACCEL_TRMM || row->routine.family == ACCEL_TRSM;
}

/* ---- Random numbers ---- */

static double uniform(unsigned *seed)
{
    return 2.0 * rand_r(seed) / RAND_MAX - 1;
}

static int64_t below(unsigned *seed, int64_t n)
{
    return n > 0 ? rand_r(seed) % n : 0;
}

static struct accel_complex pick_scalar(bool complex, unsigned *seed)
{
    static const double usual[] = {0, 1, -1};
    int64_t which = below(seed, 5);
    if (which < 3)
        return (struct accel_complex){usual[which], 0};
    double re = (float)uniform(seed);
    return (struct accel_complex){re, complex ? (float)uniform(seed) : 0};
}

static int64_t pick_size(int max, unsigned *seed)
{
    int64_t which = below(seed, 12);
    return which < 2 ? which : 1 + below(seed, max);
}

static char pick_flag(const struct row *row, enum accel_flag flag, unsigned *seed)
{
    const char *letters = flag == ACCEL_side ? "LR" : flag == ACCEL_uplo ? "UL" : "NU";
    if (flag == ACCEL_transa || flag == ACCEL_transb || flag == ACCEL_trans) {
        letters = "NTC";
        if (row->shape->row_major == ACCEL_FLIP_TRANS && accel_is_complex(row->routine.dtype))
            letters = is_hermitian(row) ? "NC" : "NT";
    }
    return letters[below(seed, (int64_t)strlen(letters))];
}

/* ---- Random matrices with room around and between the columns ---- */

#define MARGIN 64 /* bytes before and behind */

struct matrix {
    int64_t rows, cols, ld;
    enum accel_dtype dtype;
    char uplo; /* the triangle that counts; 0: all of it */
    bool unit; /* not even its diagonal */
    bool nan;  /* its elements, too, must not be read */
    bool output, real_diagonal, solvable;
    size_t bytes; /* with the margins */
    char *memory, *copy;
    void *where; /* what kind->put returned */
    const struct test_memory *kind;
};

/* Whether the routine reads or writes this element. */
static bool counts(const struct matrix *x, int64_t row, int64_t col)
{
    if (row == col)
        return !x->unit;
    return !x->uplo || (x->uplo == 'U') == (row < col);
}

static size_t place_of(const struct matrix *x, int64_t row, int64_t col)
{
    return MARGIN + (size_t)(col * x->ld + row) * accel_dtype_size(x->dtype);
}

static void store_real(char *at, enum accel_dtype dtype, double value)
{
    if (accel_is_double(dtype))
        *(double *)at = value;
    else
        *(float *)at = (float)value;
}

/* A random element. Where systems are to be solved, the diagonal outweighs what is beside it. */
static void store_random(const struct matrix *x, int64_t row, int64_t col, unsigned *seed)
{
    char *at = x->memory + place_of(x, row, col);
    bool diagonal = row == col;
    double re = uniform(seed), im = uniform(seed);
    if (x->solvable && diagonal)
        re += copysign(1, re);
    if (x->solvable && !diagonal) {
        re /= (double)x->rows;
        im /= (double)x->rows;
    }
    if (x->real_diagonal && diagonal)
        im = x->output ? uniform(seed) : NAN; /* not read. NaN in the output stays in BLIS 0.9.0 */
    store_real(at, x->dtype, x->nan ? NAN : re);
    if (accel_is_complex(x->dtype))
        store_real(at + accel_dtype_size(x->dtype) / 2, x->dtype, x->nan ? NAN : im);
}

/* Fills in the rest of x. What does not count is NaN, which shows where it is read; or numbers, if
 * asked for, which show better where it is written: NaN times anything may be the same NaN. */
static void make(struct matrix *x, bool numbers_around, unsigned *seed)
{
    size_t part = accel_is_double(x->dtype) ? 8 : 4;
    x->ld = (x->rows > 0 ? x->rows : 1) + (below(seed, 2) ? below(seed, 5) : 0);
    x->bytes =
        (size_t)(x->ld * (x->cols > 0 ? x->cols : 1)) * accel_dtype_size(x->dtype) + 2 * MARGIN;
    x->memory = aligned_alloc(64, (x->bytes + 63) / 64 * 64);
    x->copy = malloc(x->bytes);
    if (!x->memory || !x->copy)
        abort();
    for (size_t i = 0; i < x->bytes; i += part)
        store_real(x->memory + i, x->dtype, numbers_around ? uniform(seed) : NAN);
    for (int64_t col = 0; col < x->cols; col++)
        for (int64_t row = 0; row < x->rows; row++)
            if (counts(x, row, col))
                store_random(x, row, col, seed);
    memcpy(x->copy, x->memory, x->bytes);
    x->where = x->kind ? x->kind->put(x->memory, x->bytes) : x->memory;
}

static void bring_back(struct matrix *x)
{
    if (x->kind)
        x->kind->get(x->memory, x->where, x->bytes);
}

static void release(struct matrix *x)
{
    if (x->kind)
        x->kind->release(x->where);
    free(x->memory);
    free(x->copy);
}

/* Whether every byte is as it was; of the output, every byte outside the elements that count. */
static bool untouched(const struct matrix *x)
{
    size_t size = accel_dtype_size(x->dtype);
    if (!x->output)
        return memcmp(x->memory, x->copy, x->bytes) == 0;
    char *masked = malloc(x->bytes);
    if (!masked)
        abort();
    memcpy(masked, x->memory, x->bytes);
    for (int64_t col = 0; col < x->cols; col++)
        for (int64_t row = 0; row < x->rows; row++)
            if (counts(x, row, col))
                memcpy(masked + place_of(x, row, col), x->copy + place_of(x, row, col), size);
    bool same = memcmp(masked, x->copy, x->bytes) == 0;
    free(masked);
    return same;
}

/* The elements packed, as they were. */
static void *packed_copy(const struct matrix *x)
{
    size_t size = accel_dtype_size(x->dtype);
    char *packed = malloc((size_t)(x->rows * x->cols) * size + 1);
    if (!packed)
        abort();
    for (int64_t col = 0; col < x->cols; col++)
        memcpy(packed + (size_t)(col * x->rows) * size, x->copy + place_of(x, 0, col),
               (size_t)x->rows * size);
    return packed;
}

/* ---- One call ---- */

static bool is_zero(struct accel_complex z)
{
    return z.re == 0 && z.im == 0;
}

static void pick_call(struct accel_call *call, const struct row *row, int max_size, unsigned *seed)
{
    enum accel_family family = row->routine.family;
    bool complex = accel_is_complex(row->routine.dtype);
    memset(call, 0, sizeof *call);
    call->routine = &row->routine;
    for (int i = 0; i < row->shape->flags; i++)
        call->flag[row->shape->flag[i]] = pick_flag(row, row->shape->flag[i], seed);
    for (int i = 0; i < row->shape->sizes; i++) {
        int64_t *size = &call->size[row->shape->size[i]];
        *size = pick_size(max_size, seed);
        if (below(seed, 6) == 0) /* squares, too */
            *size = call->size[row->shape->size[0]];
    }
    call->scalar[ACCEL_alpha] = pick_scalar(complex && family != ACCEL_HERK, seed);
    if (!is_triangular(row))
        call->scalar[ACCEL_beta] =
            pick_scalar(complex && family != ACCEL_HERK && family != ACCEL_HER2K, seed);
}

/* The shape of op(x), and the flag of its op. */
static char operand_shape(const struct accel_call *call, enum accel_row_major row_major,
                          enum accel_matrix which, int64_t *rows, int64_t *cols)
{
    int64_t m = call->size[ACCEL_m], n = call->size[ACCEL_n], k = call->size[ACCEL_k];
    int64_t order = accel_call_size(call, ACCEL_order);
    switch (row_major) {
    case ACCEL_SWAP_A_B:
        *rows = which == ACCEL_b ? k : m;
        *cols = which == ACCEL_a ? k : n;
        return which == ACCEL_c ? 'N' : call->flag[which == ACCEL_a ? ACCEL_transa : ACCEL_transb];
    case ACCEL_FLIP_SIDE:
        *rows = which == ACCEL_a ? order : m;
        *cols = which == ACCEL_a ? order : n;
        return 'N';
    default:
        *rows = n;
        *cols = which == ACCEL_c ? n : k;
        return which == ACCEL_c ? 'N' : call->flag[ACCEL_trans];
    }
}

static void make_operand(struct matrix *x, const struct row *row, const struct accel_call *call,
                         int i, const struct test_memory *kind, unsigned *seed)
{
    enum accel_row_major row_major = row->shape->row_major;
    enum accel_matrix which = row->shape->matrix[i];
    bool square =
        which == (row_major == ACCEL_FLIP_SIDE ? ACCEL_a : ACCEL_c) && row_major != ACCEL_SWAP_A_B;
    bool alpha = !is_zero(call->scalar[ACCEL_alpha]), beta = !is_zero(call->scalar[ACCEL_beta]);
    *x = (struct matrix){
        .dtype = row->routine.dtype, .kind = kind, .output = i == row->shape->matrices - 1};
    bool transposed = operand_shape(call, row_major, which, &x->rows, &x->cols) != 'N';
    if (transposed) {
        int64_t rows = x->rows;
        x->rows = x->cols;
        x->cols = rows;
    }
    if (square) {
        x->uplo = call->flag[ACCEL_uplo];
        x->unit = call->flag[ACCEL_diag] == 'U';
        x->real_diagonal = is_hermitian(row);
        x->solvable = row->routine.family == ACCEL_TRSM;
    }
    /* s- and dgemm of OpenBLAS 0.3.21 do read A and B with alpha = 0 (small matrices, AVX-512). */
    if (x->output && !is_triangular(row))
        x->nan = !beta;
    else
        x->nan = !alpha && row->routine.family != ACCEL_GEMM;
    make(x, x->output && below(seed, 2), seed);
}

static void exchange(int64_t *one, int64_t *other)
{
    int64_t old = *one;
    *one = *other;
    *other = old;
}

/* The row-major call that is this column-major one. (A real syrk may say C for T.) */
static void to_row_major(struct accel_call *call, const struct row *row, unsigned *seed)
{
    char *flag = call->flag;
    struct accel_operand a = call->operand[ACCEL_a];
    switch (row->shape->row_major) {
    case ACCEL_SWAP_A_B: {
        char transa = flag[ACCEL_transa];
        flag[ACCEL_transa] = flag[ACCEL_transb];
        flag[ACCEL_transb] = transa;
        call->operand[ACCEL_a] = call->operand[ACCEL_b];
        call->operand[ACCEL_b] = a;
        exchange(&call->size[ACCEL_m], &call->size[ACCEL_n]);
        return;
    }
    case ACCEL_FLIP_SIDE:
        flag[ACCEL_side] = flag[ACCEL_side] == 'L' ? 'R' : 'L';
        exchange(&call->size[ACCEL_m], &call->size[ACCEL_n]);
        break;
    case ACCEL_FLIP_TRANS: {
        bool c = is_hermitian(row) || (!accel_is_complex(row->routine.dtype) && below(seed, 2));
        flag[ACCEL_trans] = flag[ACCEL_trans] != 'N' ? 'N' : c ? 'C' : 'T';
        if (is_hermitian(row))
            call->scalar[ACCEL_alpha].im *= -1;
        break;
    }
    }
    flag[ACCEL_uplo] = flag[ACCEL_uplo] == 'U' ? 'L' : 'U';
}

static union scalar scalar_of(struct accel_complex z, enum accel_dtype dtype)
{
    return accel_is_double(dtype) ? (union scalar){.d = {z.re, z.im}}
                                  : (union scalar){.f = {(float)z.re, (float)z.im}};
}

/* The CBLAS value of a flag (the reference cblas.h). */
static int code_of(enum accel_flag flag, char letter)
{
    switch (flag) {
    case ACCEL_side:
        return letter == 'L' ? 141 : 142;
    case ACCEL_uplo:
        return letter == 'U' ? 121 : 122;
    case ACCEL_diag:
        return letter == 'N' ? 131 : 132;
    default:
        return letter == 'N' ? 111 : letter == 'T' ? 112 : 113;
    }
}

static struct arguments arguments_of(const struct accel_call *call, const struct row *row,
                                     enum test_interface interface, unsigned *seed)
{
    const struct shape *shape = row->shape;
    struct arguments x = {.layout = interface == TEST_CBLAS_ROW ? 101 : 102,
                          .alpha = scalar_of(call->scalar[ACCEL_alpha], row->routine.dtype),
                          .beta = scalar_of(call->scalar[ACCEL_beta], row->routine.dtype)};
    for (int i = 0; i < shape->flags; i++) {
        x.code[i] = code_of(shape->flag[i], call->flag[shape->flag[i]]);
        x.letter[i] = (char)(call->flag[shape->flag[i]] | (below(seed, 2) ? 32 : 0));
    }
    for (int i = 0; i < shape->sizes; i++)
        x.size[i] = (blas_int)call->size[shape->size[i]];
    for (int i = 0; i < shape->matrices; i++) {
        x.matrix[i] = call->operand[shape->matrix[i]].ptr;
        x.ld[i] = (blas_int)call->operand[shape->matrix[i]].ld;
    }
    return x;
}

static const char *const interfaces[] = {"fortran", "no-lengths", "cblas-column", "cblas-row"};

static void describe(const struct row *row, enum test_interface interface,
                     const struct arguments *x, const struct accel_call *call, unsigned seed,
                     int max_size, double ratio, bool right_memory)
{
    const struct accel_complex alpha = call->scalar[ACCEL_alpha], beta = call->scalar[ACCEL_beta];
    fprintf(stderr,
            "wrong: %s %s %.4s sizes %ld %ld %ld ld %ld %ld %ld alpha (%g,%g) beta (%g,%g), "
            "-n %d -s %u: ratio %g, memory %s\n",
            interfaces[interface], row->routine.name, x->letter, (long)x->size[0], (long)x->size[1],
            (long)x->size[2], (long)x->ld[0], (long)x->ld[1], (long)x->ld[2], alpha.re, alpha.im,
            beta.re, beta.im, max_size, seed, ratio, right_memory ? "untouched" : "touched");
}

static bool one_call(const struct row *row, enum test_interface interface, int max_size,
                     unsigned *seed, const struct test_memory *memory[3])
{
    const struct shape *shape = row->shape;
    struct accel_call call, given;
    struct matrix matrix[3];
    unsigned first_seed = *seed;
    int last = shape->matrices - 1;

    pick_call(&call, row, max_size, seed);
    for (int i = 0; i <= last; i++) {
        struct matrix *x = &matrix[i];
        make_operand(x, row, &call, i, memory[shape->matrix[i]], seed);
        call.operand[shape->matrix[i]] = (struct accel_operand){
            .ptr = (char *)x->where + MARGIN, .rows = x->rows, .cols = x->cols, .ld = x->ld};
    }
    given = call;
    if (interface == TEST_CBLAS_ROW)
        to_row_major(&given, row, seed);
    struct arguments arguments = arguments_of(&given, row, interface, seed);
    row->call(interface, &arguments);

    bool right_memory = true;
    for (int i = 0; i <= last; i++) {
        bring_back(&matrix[i]);
        call.operand[shape->matrix[i]].ptr = matrix[i].memory + MARGIN;
        right_memory = untouched(&matrix[i]) && right_memory;
    }
    void *before = packed_copy(&matrix[last]);
    double ratio = cpu_ref_level3_ratio(&call, before);
    bool right = right_memory && ratio <= CPU_REF_THRESHOLD;
    if (!right)
        describe(row, interface, &arguments, &given, first_seed, max_size, ratio, right_memory);
    free(before);
    for (int i = 0; i <= last; i++)
        release(&matrix[i]);
    return right;
}

/* ---- All calls ---- */

static bool wanted(const struct test_options *options, int row)
{
    return fnmatch(options->routines, rows[row].routine.name, 0) == 0;
}

int test_calls_count(const struct test_options *options)
{
    int n = 0;
    for (int row = 0; row < ROWS; row++)
        n += wanted(options, row) ? options->count : 0;
    return n;
}

int test_calls(const struct test_options *options, const struct test_memory *memory[3])
{
    static const struct test_memory *host[3];
    unsigned seed = options->seed;
    int wrong = 0;
    for (int i = 0; i < options->count; i++)
        for (int row = 0; row < ROWS; row++)
            if (wanted(options, row))
                wrong += !one_call(&rows[row], options->interface, options->max_size, &seed,
                                   memory ? memory : host);
    return wrong;
}

int test_options_read(struct test_options *options, int argc, char **argv)
{
    int option;
    *options = (struct test_options){TEST_FORTRAN, 1, 10, 40, "*"};
    while ((option = getopt(argc, argv, "+i:s:c:n:r:")) != -1) {
        switch (option) {
        case 'i': {
            size_t i = 0;
            while (i < 4 && strcmp(interfaces[i], optarg) != 0)
                i++;
            if (i == 4) {
                fprintf(stderr, "-i: fortran, no-lengths, cblas-column, cblas-row\n");
                exit(2);
            }
            options->interface = (enum test_interface)i;
            break;
        }
        case 's':
            options->seed = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'c':
            options->count = atoi(optarg);
            break;
        case 'n':
            options->max_size = atoi(optarg);
            break;
        case 'r':
            options->routines = optarg;
            break;
        default:
            exit(2);
        }
    }
    if (test_calls_count(options) < 1) {
        fprintf(stderr, "no calls: -c %d -r %s\n", options->count, options->routines);
        exit(2);
    }
    return optind;
}
