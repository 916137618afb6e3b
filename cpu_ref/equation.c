#include "equation.h"

#include "call/shape.h"

/* ---- Elements ---- */

static void exchange(int64_t *row, int64_t *col)
{
    int64_t old = *row;
    *row = *col;
    *col = old;
}

static bool is_triangular(const struct view *x)
{
    return x->structure == TRIANGULAR || x->structure == UNIT_TRIANGULAR;
}

bool factor_is_empty(const struct factor *x, int64_t row, int64_t col)
{
    if (op_is_across(x->op))
        exchange(&row, &col);
    return is_triangular(&x->view) && !in_triangle(x->view.uplo, row, col);
}

value factor_element(const struct factor *x, int64_t row, int64_t col)
{
    const struct view *const view = &x->view;
    bool conjugate = x->op == 'C' || x->op == 'R';
    if (factor_is_empty(x, row, col))
        return 0;
    if (op_is_across(x->op))
        exchange(&row, &col);
    if (view->structure == UNIT_TRIANGULAR && row == col)
        return 1;
    if (view->structure != GENERAL && !in_triangle(view->uplo, row, col)) {
        conjugate = conjugate != (view->structure == HERMITIAN);
        exchange(&row, &col);
    }
    value z = view_element(view, row, col);
    if (view->structure == HERMITIAN && row == col)
        return creall(z);
    return conjugate ? conjl(z) : z;
}

bool equation_is_singular(const struct equation *e)
{
    for (int64_t i = 0; i < e->inner; i++)
        if (factor_element(equation_matrix(e), i, i) == 0)
            return true;
    return false;
}

/* ---- Operands ---- */

/* A matrix that is stored by rows is seen as its transpose. */
static struct factor operand(const struct accel_span *x, const void *ptr, int64_t ld, char op,
                             enum accel_layout layout)
{
    if (x->inc == 0 && layout == ACCEL_ROW_MAJOR)
        return (struct factor){{ptr, x->cols, x->rows, ld, x->dtype, GENERAL, 0},
                               op_transposed(op)};
    /* The elements of a negative increment end at the pointer. */
    if (x->inc < 0 && x->cols > 0)
        ptr = (const char *)ptr + (x->cols - 1) * ld * (int64_t)accel_dtype_size(x->dtype);
    return (struct factor){{ptr, x->rows, x->cols, x->inc < 0 ? -ld : ld, x->dtype, GENERAL, 0},
                           op};
}

/* The call's operands, while its equation is made. */
struct equation_source {
    const struct accel_call *call;
    enum accel_layout layout;
    int64_t index;
    value alpha; /* 1 if the routine has no alpha */
    struct factor old, result;
};

static struct factor factor(const struct equation_source *from, enum accel_matrix which, char op)
{
    const struct accel_span *x = &from->call->span[which];
    const void *ptr = from->index ? accel_matrix_of(x, from->index)
                      : x->array  ? x->array[0]
                                  : x->ptr;
    return operand(x, ptr, x->ld, op ? op : 'N', from->layout);
}

static char seen_triangle(const struct equation_source *from, char uplo)
{
    return from->layout != ACCEL_ROW_MAJOR ? uplo : uplo == 'U' ? 'L' : 'U';
}

static struct factor square(const struct equation_source *from, char op, enum structure structure)
{
    struct factor a = factor(from, ACCEL_a, op);
    if (structure != GENERAL)
        a.view =
            view_shaped(a.view, structure, seen_triangle(from, from->call->blas.flag[ACCEL_uplo]));
    return a;
}

static value scalar(const struct accel_call *call, enum accel_scalar which)
{
    return call->blas.scalar[which].re + call->blas.scalar[which].im * (value)_Complex_I;
}

/* ---- The operations ---- */

static bool is_hermitian(const struct equation_source *from)
{
    return from->call->op->traits.hermitian;
}

static enum structure symmetric(const struct equation_source *from)
{
    return is_hermitian(from) ? HERMITIAN : SYMMETRIC;
}

static enum structure triangular(const struct equation_source *from)
{
    return from->call->blas.flag[ACCEL_diag] == 'U' ? UNIT_TRIANGULAR : TRIANGULAR;
}

static void one_product(struct equation *e, value alpha, struct factor x, struct factor y,
                        int64_t inner)
{
    e->product[0] = (struct product){alpha, x, y};
    e->products = 1;
    e->inner = inner;
}

void equation_gemm(struct equation *e, const struct equation_source *from)
{
    const struct accel_call *call = from->call;
    one_product(e, from->alpha, factor(from, ACCEL_a, call->blas.flag[ACCEL_transa]),
                factor(from, ACCEL_b, call->blas.flag[ACCEL_transb]), call->blas.size[ACCEL_k]);
}

/* symm, hemm, trmm, trsm: A, and a rectangle beside it. */
static void beside(struct equation *e, const struct equation_source *from, enum structure structure,
                   value alpha, struct factor rectangle)
{
    const struct accel_call *call = from->call;
    struct factor a = square(from, call->blas.flag[ACCEL_trans], structure);
    bool right = call->blas.flag[ACCEL_side] == 'R';
    one_product(e, alpha, right ? rectangle : a, right ? a : rectangle,
                accel_call_size(call, ACCEL_order));
}

/* 0 = op(A) X - alpha B, or the same for a vector. */
static void solve_for(struct equation *e, const struct equation_source *from)
{
    e->solve = from->alpha != 0;
    e->beta = -from->alpha;
}

void equation_symm(struct equation *e, const struct equation_source *from)
{
    beside(e, from, symmetric(from), from->alpha, factor(from, ACCEL_b, 'N'));
}

void equation_trmm(struct equation *e, const struct equation_source *from)
{
    beside(e, from, triangular(from), from->alpha, from->old);
    e->beta = 0;
}

void equation_trsm(struct equation *e, const struct equation_source *from)
{
    beside(e, from, triangular(from), 1, from->result);
    solve_for(e, from);
}

/* gemv, symv, hemv, trmv, trsv: a row x' op(A)'. */
static void row_beside(struct equation *e, const struct equation_source *from,
                       enum structure structure, value alpha, struct factor x)
{
    char op = from->call->blas.flag[ACCEL_trans];
    if (from->call->blas.conjugated)
        op = 'R';
    one_product(e, alpha, x, square(from, op_transposed(op ? op : 'N'), structure),
                from->call->span[ACCEL_x].cols);
}

/* A product; with `two`, also the product with its operands exchanged. */
static void outer(struct equation *e, const struct equation_source *from, enum accel_matrix one,
                  enum accel_matrix other, const char ops[2], bool two)
{
    value alpha = scalar(from->call, ACCEL_alpha);
    if (from->call->blas.conjugated && two)
        alpha = conjl(alpha);
    e->product[0] = (struct product){alpha, factor(from, one, ops[0]), factor(from, other, ops[1])};
    e->product[1] = (struct product){e->real_diagonal ? conjl(alpha) : alpha,
                                     factor(from, other, ops[0]), factor(from, one, ops[1])};
    e->products = two ? 2 : 1;
}

/* syrk, herk, syr2k, her2k. */
static void rank_k(struct equation *e, const struct equation_source *from, bool two)
{
    char op = from->call->blas.flag[ACCEL_trans];
    const char ops[2] = {op, op != 'N' ? 'N' : is_hermitian(from) ? 'C' : 'T'};
    e->real_diagonal = is_hermitian(from);
    e->symmetric = true;
    e->inner = from->call->blas.size[ACCEL_k];
    outer(e, from, ACCEL_a, two ? ACCEL_b : ACCEL_a, ops, two);
}

void equation_syrk(struct equation *e, const struct equation_source *from)
{
    rank_k(e, from, false);
}

void equation_syr2k(struct equation *e, const struct equation_source *from)
{
    rank_k(e, from, true);
}

void equation_gemv(struct equation *e, const struct equation_source *from)
{
    row_beside(e, from, GENERAL, from->alpha, factor(from, ACCEL_x, 'N'));
    if (from->call->span[ACCEL_x].cols == 0) /* the reference leaves y even so */
        e->beta = 1;
}

void equation_symv(struct equation *e, const struct equation_source *from)
{
    row_beside(e, from, symmetric(from), from->alpha, factor(from, ACCEL_x, 'N'));
}

void equation_trmv(struct equation *e, const struct equation_source *from)
{
    row_beside(e, from, triangular(from), 1, from->old);
    e->beta = 0;
}

void equation_trsv(struct equation *e, const struct equation_source *from)
{
    row_beside(e, from, triangular(from), 1, from->result);
    solve_for(e, from);
}

/* ger, gerc, syr, her, syr2, her2: x is a column here. */
static void rank_1(struct equation *e, const struct equation_source *from, bool hermitian, bool two,
                   enum accel_matrix other)
{
    bool conjugated = from->call->blas.conjugated;
    const char ops[2] = {hermitian && conjugated ? 'C' : 'T', hermitian && !conjugated ? 'R' : 'N'};
    e->inner = 1;
    e->beta = 1;
    outer(e, from, ACCEL_x, other, ops, two);
}

void equation_ger(struct equation *e, const struct equation_source *from)
{
    rank_1(e, from, from->call->op->traits.conjugates, false, ACCEL_y);
}

void equation_syr(struct equation *e, const struct equation_source *from)
{
    e->symmetric = true;
    e->real_diagonal = is_hermitian(from);
    rank_1(e, from, is_hermitian(from), false, ACCEL_x);
}

void equation_syr2(struct equation *e, const struct equation_source *from)
{
    e->symmetric = true;
    e->real_diagonal = is_hermitian(from);
    rank_1(e, from, is_hermitian(from), true, ACCEL_y);
}

enum accel_matrix equation_output(const struct accel_routine *routine)
{
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].access & ACCEL_WRITE)
            return (enum accel_matrix)routine->arg[i].slot;
    return ACCEL_c;
}

struct equation equation_of(const struct accel_call *call, enum accel_layout layout,
                            const void *before, int64_t index)
{
    const struct accel_routine *routine = call->routine;
    enum accel_matrix output = equation_output(routine);
    const struct accel_span *out = &call->span[output];
    struct equation_source from = {.call = call, .layout = layout, .index = index, .alpha = 1};
    if (accel_has_scalar(routine, ACCEL_alpha))
        from.alpha = scalar(call, ACCEL_alpha);
    if (before)
        before = (const char *)before + index * accel_bytes(out);
    from.old =
        operand(out, before, layout == ACCEL_ROW_MAJOR && out->inc == 0 ? out->cols : out->rows,
                'N', layout);
    from.result = factor(&from, output, 'N');
    struct equation e = {.out = from.result,
                         .before = from.old,
                         .rows = out->rows,
                         .cols = out->cols,
                         .uplo = out->triangle,
                         .beta = scalar(call, ACCEL_beta)};
    call->op->rules->equation(&e, &from);
    if (e.symmetric && e.uplo) /* the triangle stands for the whole */
        e.out.view.structure = e.before.view.structure = e.real_diagonal ? HERMITIAN : SYMMETRIC;
    e.out.view.uplo = e.before.view.uplo = seen_triangle(&from, e.uplo);
    if (from.alpha == 0)
        e.products = 0;
    return e;
}
