/* The Level 3 routines' results, against naive loops. */
#include <math.h>
#include <string.h>
#include "test_level3.h"

enum { LARGEST = 23, LDA = 24, LDB = 25, LDC = 26, AREA = LDC * (LARGEST + 1) };

struct matrix {
    double complex x[AREA];
    int rows, columns, ld;
};
static struct matrix a, b, c;

/* Beside the call's parameters: which inputs are the result's matrix, and the scalars' values. */
struct task {
    struct trial call;
    bool a_is_c, b_is_c;
    double complex alpha, beta;
};

static bool in_triangle(const struct trial *t, int row, int column)
{
    return t->uplo == CUBLAS_FILL_MODE_LOWER ? row >= column : row <= column;
}

/* What no routine may read gives results that are not numbers. */
static void spoil(struct matrix *m, int rows, int columns, int ld)
{
    m->rows = rows;
    m->columns = columns;
    m->ld = ld;
    for (int i = 0; i < AREA; i++)
        m->x[i] = complex_of(NAN, NAN);
}

static void make_dense(struct matrix *m, enum type type)
{
    for (int j = 0; j < m->columns; j++)
        for (int i = 0; i < m->rows; i++)
            m->x[j * m->ld + i] = value(type);
}

/* A triangle far from singular; the diagonal only where it is read, and as much as is read. */
static void make_triangle(const struct trial *t)
{
    for (int j = 0; j < a.columns; j++)
        for (int i = 0; i < a.rows; i++) {
            double complex *at = &a.x[j * a.ld + i];
            if (in_triangle(t, i, j) && i != j)
                *at = value(t->type) / (has_diagonal(t->kind) ? a.rows : 1);
            else if (i == j && !(has_diagonal(t->kind) && t->diag == CUBLAS_DIAG_UNIT))
                *at = is_hermitian(t->kind) ? complex_of(noise(), NAN) : 2 + value(t->type);
        }
}

static bool is_result(const struct trial *t, int row, int column)
{
    return row < c.rows && column < c.columns &&
           (!is_rank_update(t->kind) || in_triangle(t, row, column));
}

static void make_result(const struct task *task)
{
    const struct trial *t = &task->call;
    for (int i = 0; i < AREA; i++) {
        int row = i % LDC, column = i / LDC;
        bool read = task->beta != 0 || t->kind == TRSM;
        c.x[i] = value(t->type);
        if (is_result(t, row, column) && !read && !task->a_is_c && !task->b_is_c)
            c.x[i] = complex_of(NAN, NAN);
        else if (row == column && is_rank_update(t->kind) && is_hermitian(t->kind))
            c.x[i] = complex_of(noise(), NAN);
    }
}

static void make_matrices(const struct task *task)
{
    const struct trial *t = &task->call;
    bool turned = t->ta != CUBLAS_OP_N;
    int order = t->side == CUBLAS_SIDE_LEFT ? t->m : t->n;
    if (is_rank_update(t->kind)) {
        spoil(&a, turned ? t->k : t->n, turned ? t->n : t->k, LDA);
        spoil(&b, a.rows, a.columns, LDB);
        spoil(&c, t->n, t->n, LDC);
    } else if (t->kind == GEAM) {
        spoil(&a, turned ? t->n : t->m, turned ? t->m : t->n, task->a_is_c ? LDC : LDA);
        turned = t->tb != CUBLAS_OP_N;
        spoil(&b, turned ? t->n : t->m, turned ? t->m : t->n, task->b_is_c ? LDC : LDB);
        spoil(&c, t->m, t->n, LDC);
    } else {
        spoil(&a, order, order, LDA);
        spoil(&b, t->m, t->n, task->b_is_c ? LDC : LDB);
        spoil(&c, t->m, t->n, LDC);
    }
    if (has_side(t->kind))
        make_triangle(t);
    else
        make_dense(&a, t->type);
    make_dense(&b, t->type);
    make_result(task);
    if (task->a_is_c)
        memcpy(a.x, c.x, sizeof a.x);
    if (task->b_is_c)
        memcpy(b.x, c.x, sizeof b.x);
}

/* An element of what a matrix stands for. */
static double complex element(const struct trial *t, const struct matrix *m, int i, int j)
{
    const double complex *stored = &m->x[j * m->ld + i];
    if (m != &a || !has_side(t->kind))
        return *stored;
    if (has_diagonal(t->kind)) {
        if (i == j && t->diag == CUBLAS_DIAG_UNIT)
            return 1;
        return in_triangle(t, i, j) ? *stored : 0;
    }
    if (i == j)
        return is_hermitian(t->kind) ? creal(*stored) : *stored;
    if (in_triangle(t, i, j))
        return *stored;
    double complex mirrored = m->x[i * m->ld + j];
    return is_hermitian(t->kind) ? conj(mirrored) : mirrored;
}

static double complex turned(const struct trial *t, const struct matrix *m,
                             cublasOperation_t operation, int i, int j)
{
    if (operation == CUBLAS_OP_N)
        return element(t, m, i, j);
    double complex mirrored = element(t, m, j, i);
    return operation == CUBLAS_OP_C ? conj(mirrored) : mirrored;
}

/* op(A) times a matrix, or that matrix times op(A). */
static double complex side_product(const struct trial *t, const struct matrix *m, int i, int j)
{
    double complex sum = 0;
    for (int l = 0; l < a.rows; l++)
        sum += t->side == CUBLAS_SIDE_LEFT ? turned(t, &a, t->ta, i, l) * m->x[j * m->ld + l]
                                           : m->x[l * m->ld + i] * turned(t, &a, t->ta, l, j);
    return sum;
}

static double complex rank_product(const struct trial *t, double complex alpha,
                                   const struct matrix *left, const struct matrix *right, int i,
                                   int j)
{
    double complex sum = 0;
    for (int l = 0; l < t->k; l++) {
        double complex other = turned(t, right, t->ta, j, l);
        sum += turned(t, left, t->ta, i, l) * (is_hermitian(t->kind) ? conj(other) : other);
    }
    return alpha * sum;
}

static double complex expected(const struct task *task, int i, int j)
{
    const struct trial *t = &task->call;
    double complex old = c.x[j * LDC + i];
    double complex alpha = task->alpha, beta = task->beta;
    double complex sum = 0;
    if (is_rank_update(t->kind) && is_hermitian(t->kind) && i == j)
        old = creal(old);
    if (has_beta(t->kind) && t->kind != GEAM && beta != 0)
        sum = beta * old;
    if (t->kind == GEAM && beta != 0)
        sum = beta * turned(t, &b, t->tb, i, j);
    if (alpha == 0)
        return sum;
    switch (t->kind) {
    case SYRK:
    case HERK:
        return sum + rank_product(t, alpha, &a, &a, i, j);
    case SYR2K:
    case HER2K:
        return sum + rank_product(t, alpha, &a, &b, i, j) +
               rank_product(t, t->kind == HER2K ? conj(alpha) : alpha, &b, &a, i, j);
    case TRSM:
        return alpha * old;
    case GEAM:
        return sum + alpha * turned(t, &a, t->ta, i, j);
    default:
        return sum + alpha * side_product(t, &b, i, j);
    }
}

/* Compares the result: the equation solved for trsm, and every byte outside it as it was. */
static int compare(const struct task *task, const char *before, const char *after)
{
    static struct matrix got;
    const struct trial *t = &task->call;
    size_t bytes = type_bytes(t->type);
    double bound = 400 * rounding(t->type);
    bool solves = t->kind == TRSM && task->alpha != 0;
    got.ld = LDC;
    for (size_t i = 0; i < AREA; i++)
        got.x[i] = widen(t->type, after, i);
    for (int j = 0; j < AREA / LDC; j++)
        for (int i = 0; i < LDC; i++) {
            size_t at = (size_t)(j * LDC + i);
            if (!is_result(t, i, j)) {
                CHECK(memcmp(before + at * bytes, after + at * bytes, bytes) == 0);
                continue;
            }
            double complex is = solves ? side_product(t, &got, i, j) : got.x[at];
            CHECK(cabs(is - expected(task, i, j)) <= bound);
            if (is_hermitian(t->kind) && is_rank_update(t->kind) && i == j)
                CHECK(cimag(is) == 0);
        }
    return 0;
}

static int perform(struct fixture *f, struct task *task)
{
    static double complex before[AREA], after[AREA], packed[AREA];
    struct trial *t = &task->call;
    double complex alpha, beta;
    make_matrices(task);
    OK(cuMemcpyHtoD(f->a, packed, narrow(t->type, a.x, packed, AREA)));
    OK(cuMemcpyHtoD(f->b, packed, narrow(t->type, b.x, packed, AREA)));
    OK(cuMemcpyHtoD(f->c, before, narrow(t->type, c.x, before, AREA)));
    /* An input whose factor is zero, or which is empty, need not exist. */
    bool unread = task->alpha == 0 || a.rows == 0 || a.columns == 0;
    t->a = unread ? 0 : task->a_is_c ? f->c : f->a;
    if (t->kind == GEAM)
        unread = task->beta == 0;
    t->b = unread ? 0 : task->b_is_c ? f->c : f->b;
    t->c = c.rows == 0 || c.columns == 0 ? 0 : f->c;
    t->lda = a.ld;
    t->ldb = b.ld;
    t->ldc = c.ld;
    narrow(t->type, &task->alpha, &alpha, 1);
    narrow(t->type, &task->beta, &beta, 1);
    t->alpha = &alpha;
    t->beta = &beta;
    BLAS_OK(call(f->handle, t));
    memset(&alpha, 0xff, sizeof alpha); /* read at the call */
    memset(&beta, 0xff, sizeof beta);
    OK(cuStreamSynchronize(f->stream));
    OK(cuMemcpyDtoH(after, f->c, AREA * type_bytes(t->type)));
    return compare(task, (char *)before, (char *)after);
}

/* In the places where an input can be the result, too. */
static int perform_all_ways(struct fixture *f, struct task *task)
{
    CHECK(perform(f, task) == 0);
    bool a_can = task->call.kind == GEAM && task->call.ta == CUBLAS_OP_N && task->alpha != 0;
    bool b_can = task->call.kind == TRMM ||
                 (task->call.kind == GEAM && task->call.tb == CUBLAS_OP_N && task->beta != 0);
    for (int way = 1; way < 4; way++) {
        task->a_is_c = way & 1;
        task->b_is_c = way & 2;
        if ((task->a_is_c && !a_can) || (task->b_is_c && !b_can))
            continue;
        CHECK(perform(f, task) == 0);
    }
    task->a_is_c = task->b_is_c = false;
    return 0;
}

static int all_scalars(struct fixture *f, struct task *task)
{
    struct trial *t = &task->call;
    bool real = is_real(t->type);
    double complex alpha = 0.75 + (real || has_real_scalar(t->kind, false) ? 0 : 0.5 * I);
    double complex beta = -0.5 + (real || has_real_scalar(t->kind, true) ? 0 : 0.25 * I);
    const double complex pairs[][2] = {{alpha, beta}, {alpha, 0}, {0, beta}, {0, 0}, {alpha, 1}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        task->alpha = pairs[i][0];
        task->beta = pairs[i][1];
        if (!has_beta(t->kind) && task->beta != beta)
            continue;
        CHECK(perform_all_ways(f, task) == 0);
    }
    return 0;
}

static int all_sizes(struct fixture *f, struct task *task)
{
    static const int sizes[][3] = {{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 1, 1},
                                   {2, 3, 1}, {1, 6, 2}, {5, 4, 7}, {19, LARGEST, 17}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        task->call.m = sizes[i][0];
        task->call.n = sizes[i][1];
        task->call.k = sizes[i][2];
        CHECK(all_scalars(f, task) == 0);
    }
    return 0;
}

/* Not the combinations that the kind does not have. */
static bool is_call(const struct trial *t)
{
    bool real = is_real(t->type);
    if ((real && is_hermitian(t->kind)) || (t->side != 0 && !has_side(t->kind)) ||
        (t->uplo != 0 && t->kind == GEAM) || (t->diag != 0 && !has_diagonal(t->kind)) ||
        (t->ta != 0 && !has_operation(t->kind)) || (t->tb != 0 && t->kind != GEAM))
        return false;
    if (is_rank_update(t->kind) && !real)
        return t->ta != (is_hermitian(t->kind) ? CUBLAS_OP_T : CUBLAS_OP_C);
    return true;
}

static int all_of(enum kind kind)
{
    static const int bases[] = {4, 2, 2, 2, 2, 3, 3};
    int digits[7] = {0};
    struct fixture f;
    CHECK(set_up(&f) == 0);
    do {
        struct task task = {.call = {.kind = kind,
                                     .type = (enum type)digits[0],
                                     .wide = digits[1],
                                     .side = (cublasSideMode_t)digits[2],
                                     .uplo = (cublasFillMode_t)digits[3],
                                     .diag = (cublasDiagType_t)digits[4],
                                     .ta = (cublasOperation_t)digits[5],
                                     .tb = (cublasOperation_t)digits[6]}};
        if (is_call(&task.call) && all_sizes(&f, &task) != 0) {
            fprintf(stderr, "kind %d type %d wide %d side %d uplo %d diag %d trans %d %d\n", kind,
                    digits[0], digits[1], digits[2], digits[3], digits[4], digits[5], digits[6]);
            fprintf(stderr, "m %d n %d k %d alpha %g beta %g in place %d %d\n", task.call.m,
                    task.call.n, task.call.k, creal(task.alpha), creal(task.beta), task.a_is_c,
                    task.b_is_c);
            return 1;
        }
    } while (count_up(digits, bases, sizeof bases / sizeof *bases));
    return tear_down(&f);
}

#define ALL_OF(NAME, KIND)                                                                         \
    static int NAME(void)                                                                          \
    {                                                                                              \
        return all_of(KIND);                                                                       \
    }

ALL_OF(symm_right, SYMM)
ALL_OF(hemm_right, HEMM)
ALL_OF(syrk_right, SYRK)
ALL_OF(herk_right, HERK)
ALL_OF(syr2k_right, SYR2K)
ALL_OF(her2k_right, HER2K)
ALL_OF(trmm_right, TRMM)
ALL_OF(trsm_right, TRSM)
ALL_OF(geam_right, GEAM)

#define AT_ONCE "TESTGPU_DELAY_US=0"

const struct scenario level3_scenarios[] = {
    {"symm_right", symm_right, {AT_ONCE}, {"kernels gemm=0 symm=960\n"}},
    {"hemm_right", hemm_right, {AT_ONCE}, {"kernels gemm=0 hemm=480\n"}},
    {"syrk_right", syrk_right, {AT_ONCE}, {"kernels gemm=0 syrk=1400\n"}},
    {"herk_right", herk_right, {AT_ONCE}, {"kernels gemm=0 herk=560\n"}},
    {"syr2k_right", syr2k_right, {AT_ONCE}, {"kernels gemm=0 syr2k=1400\n"}},
    {"her2k_right", her2k_right, {AT_ONCE}, {"kernels gemm=0 her2k=560\n"}},
    {"trmm_right", trmm_right, {AT_ONCE}, {"kernels gemm=0 trmm=4608\n"}},
    {"trsm_right", trsm_right, {AT_ONCE}, {"kernels gemm=0 trsm=2304\n"}},
    {"geam_right", geam_right, {AT_ONCE}, {"kernels gemm=0 geam=3120\n"}},
    {0},
};
