#include "equation.h"

/* ---- Elements ---- */

value stored_element(const struct stored *x, int64_t row, int64_t col)
{
    return load(x->ptr, row * x->row_step + col * x->col_step, x->dtype);
}

static void exchange(int64_t *row, int64_t *col)
{
    int64_t old = *row;
    *row = *col;
    *col = old;
}

static bool is_transposed(const struct factor *x)
{
    return x->op == 'T' || x->op == 'C';
}

static bool is_triangular(const struct factor *x)
{
    return x->structure == TRIANGULAR || x->structure == UNIT_TRIANGULAR;
}

bool factor_is_empty(const struct factor *x, int64_t row, int64_t col)
{
    if (is_transposed(x))
        exchange(&row, &col);
    return is_triangular(x) && !in_triangle(x->uplo, row, col);
}

value factor_element(const struct factor *x, int64_t row, int64_t col)
{
    bool conjugate = x->op == 'C' || x->op == 'R';
    if (factor_is_empty(x, row, col))
        return 0;
    if (is_transposed(x))
        exchange(&row, &col);
    if (x->structure == UNIT_TRIANGULAR && row == col)
        return 1;
    if (x->structure != GENERAL && !in_triangle(x->uplo, row, col)) {
        conjugate = conjugate != (x->structure == HERMITIAN);
        exchange(&row, &col);
    }
    value z = stored_element(&x->stored, row, col);
    if (x->structure == HERMITIAN && row == col)
        return creall(z);
    return conjugate ? conjl(z) : z;
}

/* ---- Operands ---- */

static struct stored stored(const struct accel_operand *x, const void *ptr, int64_t ld,
                            enum accel_layout layout)
{
    if (x->inc == 0)
        return layout == ACCEL_ROW_MAJOR ? (struct stored){ptr, ld, 1, x->dtype}
                                         : (struct stored){ptr, 1, ld, x->dtype};
    /* The elements of a negative increment end at the pointer. */
    int64_t first = x->inc < 0 ? (x->cols - 1) * ld : 0;
    if (x->cols > 0)
        ptr = (const char *)ptr + first * (int64_t)accel_dtype_size(x->dtype);
    return (struct stored){ptr, 0, x->inc < 0 ? -ld : ld, x->dtype};
}

static struct factor packed(const struct accel_operand *x, const void *ptr,
                            enum accel_layout layout)
{
    int64_t ld = layout == ACCEL_ROW_MAJOR && x->inc == 0 ? x->cols : x->rows;
    return (struct factor){stored(x, ptr, ld, layout), 'N', GENERAL, 0};
}

/* The call's operands in the making of its equation. */
struct source {
    const struct accel_call *call;
    enum accel_layout layout;
    int64_t index;
};

static struct factor factor(const struct source *from, enum accel_matrix which, char op)
{
    const struct accel_operand *x = &from->call->operand[which];
    const void *ptr = from->index ? accel_matrix_of(x, from->index)
                      : x->array  ? x->array[0]
                                  : x->ptr;
    return (struct factor){stored(x, ptr, x->ld, from->layout), op ? op : 'N', GENERAL, 0};
}

static struct factor square(const struct source *from, char op, enum structure structure)
{
    struct factor a = factor(from, ACCEL_a, op);
    a.structure = structure;
    a.uplo = from->call->flag[ACCEL_uplo];
    return a;
}

static value scalar(const struct accel_call *call, enum accel_scalar which)
{
    return call->scalar[which].re + call->scalar[which].im * (value)_Complex_I;
}

/* ---- The families ---- */

static void one_product(struct equation *e, value alpha, struct factor x, struct factor y,
                        int64_t inner)
{
    e->product[0] = (struct product){alpha, x, y};
    e->products = 1;
    e->inner = inner;
}

/* symm, hemm, trmm, trsm: A, and a rectangle beside it. */
static void beside(struct equation *e, const struct source *from, enum structure structure,
                   value alpha, struct factor rectangle)
{
    const struct accel_call *call = from->call;
    struct factor a = square(from, call->flag[ACCEL_trans], structure);
    bool right = call->flag[ACCEL_side] == 'R';
    one_product(e, alpha, right ? rectangle : a, right ? a : rectangle,
                accel_call_size(call, ACCEL_order));
}

/* gemv, symv, hemv, trmv, trsv: a row x' op(A)'. */
static void row_beside(struct equation *e, const struct source *from, enum structure structure,
                       value alpha, struct factor x)
{
    static const char ops[] = "NTCR", transposed[] = "TNRC";
    char op = from->call->flag[ACCEL_trans];
    if (from->call->conjugated)
        op = 'R';
    op = transposed[strchr(ops, op ? op : 'N') - ops];
    one_product(e, alpha, x, square(from, op, structure), from->call->operand[ACCEL_x].cols);
}

/* A product and, for `two`, the same with its operands exchanged. */
static void outer(struct equation *e, const struct source *from, enum accel_matrix one,
                  enum accel_matrix other, const char ops[2], bool two)
{
    value alpha = scalar(from->call, ACCEL_alpha);
    if (from->call->conjugated && two)
        alpha = conjl(alpha);
    e->product[0] = (struct product){alpha, factor(from, one, ops[0]), factor(from, other, ops[1])};
    e->product[1] = (struct product){e->real_diagonal ? conjl(alpha) : alpha,
                                     factor(from, other, ops[0]), factor(from, one, ops[1])};
    e->products = two ? 2 : 1;
}

/* syrk, herk, syr2k, her2k. */
static void rank_k(struct equation *e, const struct source *from, bool hermitian, bool two)
{
    char op = from->call->flag[ACCEL_trans];
    const char ops[2] = {op, op != 'N' ? 'N' : hermitian ? 'C' : 'T'};
    e->real_diagonal = hermitian;
    e->inner = from->call->size[ACCEL_k];
    outer(e, from, ACCEL_a, two ? ACCEL_b : ACCEL_a, ops, two);
}

/* ger, gerc, syr, her, syr2, her2: x is a column here. */
static void rank_1(struct equation *e, const struct source *from, bool hermitian, bool two,
                   enum accel_matrix other)
{
    bool conjugated = from->call->conjugated;
    const char ops[2] = {hermitian && conjugated ? 'C' : 'T', hermitian && !conjugated ? 'R' : 'N'};
    e->inner = 1;
    e->beta = 1;
    outer(e, from, ACCEL_x, other, ops, two);
}

static enum accel_matrix output_of(enum accel_family family)
{
    switch (family) {
    case ACCEL_TRMM:
    case ACCEL_TRSM:
        return ACCEL_b;
    case ACCEL_GEMV:
    case ACCEL_SYMV:
    case ACCEL_HEMV:
        return ACCEL_y;
    case ACCEL_TRMV:
    case ACCEL_TRSV:
        return ACCEL_x;
    default:
        return accel_is_level2(family) ? ACCEL_a : ACCEL_c;
    }
}

struct equation equation_of(const struct accel_call *call, enum accel_layout layout,
                            const void *before, int64_t index)
{
    const struct source from = {call, layout, index};
    enum accel_family family = call->routine->family;
    enum accel_matrix output = output_of(family);
    const struct accel_operand *out = &call->operand[output];
    enum structure triangular = call->flag[ACCEL_diag] == 'U' ? UNIT_TRIANGULAR : TRIANGULAR;
    bool without_alpha = family == ACCEL_TRMV || family == ACCEL_TRSV;
    value alpha = without_alpha ? 1 : scalar(call, ACCEL_alpha);
    if (before)
        before = (const char *)before + index * accel_bytes(out);
    struct factor old = packed(out, before, layout), result = factor(&from, output, 'N');
    struct equation e = {.out = result.stored,
                         .before = old.stored,
                         .rows = out->rows,
                         .cols = out->cols,
                         .uplo = accel_writes_triangle(family) ? call->flag[ACCEL_uplo] : 0,
                         .beta = scalar(call, ACCEL_beta)};
    switch (family) {
    case ACCEL_GEMM:
    case ACCEL_GEMM3M:
    case ACCEL_GEMMT:
    case ACCEL_GEMM_BATCH:
        one_product(&e, alpha, factor(&from, ACCEL_a, call->flag[ACCEL_transa]),
                    factor(&from, ACCEL_b, call->flag[ACCEL_transb]), call->size[ACCEL_k]);
        break;
    case ACCEL_SYMM:
    case ACCEL_HEMM:
        beside(&e, &from, family == ACCEL_HEMM ? HERMITIAN : SYMMETRIC, alpha,
               factor(&from, ACCEL_b, 'N'));
        break;
    case ACCEL_TRMM:
        beside(&e, &from, triangular, alpha, old);
        break;
    case ACCEL_TRSM: /* 0 = op(A) X - alpha B */
        beside(&e, &from, triangular, 1, result);
        break;
    case ACCEL_SYRK:
    case ACCEL_HERK:
        rank_k(&e, &from, family == ACCEL_HERK, false);
        break;
    case ACCEL_SYR2K:
    case ACCEL_HER2K:
        rank_k(&e, &from, family == ACCEL_HER2K, true);
        break;
    case ACCEL_GEMV:
        row_beside(&e, &from, GENERAL, alpha, factor(&from, ACCEL_x, 'N'));
        if (call->operand[ACCEL_x].cols == 0) /* the reference leaves y even so */
            e.beta = 1;
        break;
    case ACCEL_SYMV:
    case ACCEL_HEMV:
        row_beside(&e, &from, family == ACCEL_HEMV ? HERMITIAN : SYMMETRIC, alpha,
                   factor(&from, ACCEL_x, 'N'));
        break;
    case ACCEL_TRMV:
        row_beside(&e, &from, triangular, 1, old);
        break;
    case ACCEL_TRSV:
        row_beside(&e, &from, triangular, 1, result);
        break;
    case ACCEL_GER:
    case ACCEL_GERC:
        rank_1(&e, &from, family == ACCEL_GERC, false, ACCEL_y);
        break;
    case ACCEL_SYR:
    case ACCEL_HER:
        e.real_diagonal = family == ACCEL_HER;
        rank_1(&e, &from, e.real_diagonal, false, ACCEL_x);
        break;
    case ACCEL_SYR2:
    case ACCEL_HER2:
        e.real_diagonal = family == ACCEL_HER2;
        rank_1(&e, &from, e.real_diagonal, true, ACCEL_y);
        break;
    default: /* of BLAS alone */
        break;
    }
    if (family == ACCEL_TRSM || family == ACCEL_TRSV) {
        e.solve = alpha != 0;
        e.beta = -alpha;
    }
    if (family == ACCEL_TRMM || family == ACCEL_TRMV)
        e.beta = 0;
    if (alpha == 0)
        e.products = 0;
    return e;
}
