#include "level3.h"

#include "element.h"

static value scalar(const struct accel_call *call, enum accel_scalar which)
{
    return call->scalar[which].re + call->scalar[which].im * (value)_Complex_I;
}

/* ---- Matrices as they enter a product ---- */

enum structure { GENERAL, SYMMETRIC, HERMITIAN, TRIANGULAR, UNIT_TRIANGULAR };

/* op(x), x stored as `structure` says: in the triangle uplo alone unless it is general. */
struct factor {
    const void *ptr;
    int64_t ld;
    enum accel_dtype dtype;
    char op; /* as a routine's flag */
    enum structure structure;
    char uplo;
};

/* Whether (row, col) is in a triangle, the diagonal included. */
static bool in_triangle(char uplo, int64_t row, int64_t col)
{
    return uplo == 'U' ? row <= col : row >= col;
}

static void exchange(int64_t *row, int64_t *col)
{
    int64_t old = *row;
    *row = *col;
    *col = old;
}

/* Element (row, col) of op(x). */
static value element(const struct factor *x, int64_t row, int64_t col)
{
    bool conjugate = x->op == 'C' || x->op == 'R';
    if (x->op == 'T' || x->op == 'C')
        exchange(&row, &col);
    if (x->structure == UNIT_TRIANGULAR && row == col)
        return 1;
    if (x->structure != GENERAL && !in_triangle(x->uplo, row, col)) {
        if (x->structure == TRIANGULAR || x->structure == UNIT_TRIANGULAR)
            return 0;
        conjugate = conjugate != (x->structure == HERMITIAN);
        exchange(&row, &col);
    }
    value z = load(x->ptr, col * x->ld + row, x->dtype);
    if (x->structure == HERMITIAN && row == col)
        return creall(z);
    return conjugate ? conjl(z) : z;
}

/* ---- What a call computes ---- */

struct product {
    value alpha;
    struct factor x, y;
};

/* result = sum of the products + beta before; for solving, 0 instead of the result. */
struct equation {
    struct product product[2];
    int products;
    int64_t inner; /* of the products */
    value beta;
    bool solve;
    const struct accel_operand *out;
    char uplo; /* of the output; 0: all of it is written */
    bool real_diagonal;
};

static struct factor factor(const struct accel_call *call, enum accel_matrix which, char op)
{
    const struct accel_operand *x = &call->operand[which];
    return (struct factor){
        .ptr = x->ptr, .ld = x->ld, .dtype = call->routine->dtype, .op = op ? op : 'N'};
}

/* symm, hemm, trmm, trsm: A, and a rectangle beside it. */
static void beside(struct equation *e, const struct accel_call *call, enum structure structure,
                   value alpha, struct factor rectangle)
{
    struct factor a = factor(call, ACCEL_a, call->flag[ACCEL_trans]);
    bool right = call->flag[ACCEL_side] == 'R';
    a.structure = structure;
    a.uplo = call->flag[ACCEL_uplo];
    e->product[0] = (struct product){alpha, right ? rectangle : a, right ? a : rectangle};
    e->products = 1;
    e->inner = accel_call_size(call, ACCEL_order);
}

/* syrk, herk, syr2k, her2k: op(A) op(A)', or op(A) op(B)' and op(B) op(A)'. */
static void rank_k(struct equation *e, const struct accel_call *call, bool hermitian, bool two)
{
    char op = call->flag[ACCEL_trans], dash = op != 'N' ? 'N' : hermitian ? 'C' : 'T';
    enum accel_matrix other = two ? ACCEL_b : ACCEL_a;
    value alpha = scalar(call, ACCEL_alpha);
    e->product[0] = (struct product){alpha, factor(call, ACCEL_a, op), factor(call, other, dash)};
    e->product[1] = (struct product){hermitian ? conjl(alpha) : alpha, factor(call, other, op),
                                     factor(call, ACCEL_a, dash)};
    e->products = two ? 2 : 1;
    e->inner = call->size[ACCEL_k];
    e->uplo = call->flag[ACCEL_uplo];
    e->real_diagonal = hermitian;
}

static struct equation equation_of(const struct accel_call *call, const void *before)
{
    enum accel_family family = call->routine->family;
    bool in_b = family == ACCEL_TRMM || family == ACCEL_TRSM;
    enum structure triangular = call->flag[ACCEL_diag] == 'U' ? UNIT_TRIANGULAR : TRIANGULAR;
    value alpha = scalar(call, ACCEL_alpha);
    struct equation e = {.out = &call->operand[in_b ? ACCEL_b : ACCEL_c],
                         .beta = in_b ? 0 : scalar(call, ACCEL_beta)};
    struct factor old = {before, e.out->rows, call->routine->dtype, 'N', GENERAL, 0};
    switch (family) {
    case ACCEL_SYMM:
    case ACCEL_HEMM:
        beside(&e, call, family == ACCEL_HEMM ? HERMITIAN : SYMMETRIC, alpha,
               factor(call, ACCEL_b, 'N'));
        break;
    case ACCEL_TRMM:
        beside(&e, call, triangular, alpha, old);
        break;
    case ACCEL_TRSM: /* 0 = op(A) X - alpha B */
        beside(&e, call, triangular, 1, factor(call, ACCEL_b, 'N'));
        e.solve = alpha != 0;
        e.beta = -alpha;
        break;
    default:
        rank_k(&e, call, family == ACCEL_HERK || family == ACCEL_HER2K,
               family == ACCEL_SYR2K || family == ACCEL_HER2K);
    }
    if (alpha == 0)
        e.products = 0;
    return e;
}

/* ---- The ratio ---- */

/* Element (row, col) of the right-hand side, and its sum of magnitudes. */
static value right_hand_side(const struct equation *e, value before, int64_t row, int64_t col,
                             long double *scale)
{
    value sum = e->beta * before;
    *scale = magnitude(e->beta) * magnitude(before);
    for (int i = 0; i < e->products; i++) {
        const struct product *product = &e->product[i];
        value part = 0;
        long double part_scale = 0;
        for (int64_t p = 0; p < e->inner; p++) {
            value x = element(&product->x, row, p), y = element(&product->y, p, col);
            if ((x == 0 && product->x.structure != GENERAL) ||
                (y == 0 && product->y.structure != GENERAL))
                continue; /* the other triangle's zeros meet nothing, not even a NaN */
            part += x * y;
            part_scale += magnitude(x) * magnitude(y);
        }
        sum += product->alpha * part;
        *scale += magnitude(product->alpha) * part_scale;
    }
    return sum;
}

static double element_ratio(const struct equation *e, enum accel_dtype dtype, const void *before,
                            int64_t row, int64_t col)
{
    bool real = e->real_diagonal && row == col;
    bool nothing_to_do = (e->products == 0 || e->inner == 0) && e->beta == 1;
    value old = e->beta == 0 ? 0 : load(before, col * e->out->rows + row, dtype);
    value got = load(e->out->ptr, col * e->out->ld + row, dtype);
    long double scale;
    if (real) {
        bool kept = nothing_to_do &&
                    (cimagl(got) == cimagl(old) || (isnan(cimagl(got)) && isnan(cimagl(old))));
        if (cimagl(got) != 0 && !kept)
            return INFINITY;
        got = creall(got);
        old = creall(old);
    }
    value expected = right_hand_side(e, old, row, col, &scale);
    if (real)
        expected = creall(expected);
    if (e->solve) {
        if (!is_finite(got))
            return INFINITY;
        got = 0;
    }
    if (is_finite(got) != is_finite(expected))
        return INFINITY;
    long double error = is_finite(expected) ? magnitude(got - expected) : 0;
    return error == 0 ? 0 : (double)(error / (cpu_ref_epsilon(dtype) * scale));
}

double cpu_ref_level3_ratio(const struct accel_call *call, const void *before)
{
    if (call->routine->family == ACCEL_GEMM)
        return cpu_ref_gemm_ratio(call, before);
    struct equation e = equation_of(call, before);
    double worst = 0;
    for (int64_t col = 0; col < e.out->cols; col++)
        for (int64_t row = 0; row < e.out->rows; row++) {
            if (e.uplo && !in_triangle(e.uplo, row, col))
                continue;
            double ratio = element_ratio(&e, call->routine->dtype, before, row, col);
            if (!(ratio <= worst))
                worst = ratio;
        }
    return worst;
}
