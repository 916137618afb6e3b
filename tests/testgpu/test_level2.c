/* The Level 2 routines' and copy's results, against naive loops. */
#include <math.h>
#include <string.h>
#include "test_level2.h"

enum { LARGEST = 23, LDA = 24, AREA = LDA * (LARGEST + 1) };

static double complex a[AREA], x[AREA], y[AREA];
static double complex want[AREA]; /* the result */
static bool touched[AREA];        /* which of it is the routine's to write */

struct task {
    struct trial call;
    double complex alpha, beta;
};

static bool in_triangle(const struct trial *t, int row, int column)
{
    return t->uplo == CUBLAS_FILL_MODE_LOWER ? row >= column : row <= column;
}

static int rows(const struct trial *t)
{
    return takes_m(t->kind) ? t->m : t->n;
}

static bool turns(const struct trial *t)
{
    return t->trans != CUBLAS_OP_N;
}

static int length_of_x(const struct trial *t)
{
    bool by_rows = t->kind == GEMV ? turns(t) : takes_m(t->kind);
    return by_rows ? rows(t) : t->n;
}

static int length_of_y(const struct trial *t)
{
    return t->kind == GEMV && !turns(t) ? t->m : t->n;
}

/* Where a vector's element is: backwards from the end if the increment is negative. */
static size_t spot(int i, int length, int increment)
{
    return (size_t)(increment > 0 ? i * increment : (i - length + 1) * increment);
}

static size_t spot_x(const struct trial *t, int i)
{
    return spot(i, length_of_x(t), t->incx);
}

static size_t spot_y(const struct trial *t, int i)
{
    return spot(i, length_of_y(t), t->incy);
}

/* Of an input only what may be read is a number; of the result all but what may not be read is one,
 * so that a stray write shows. A triangle is far from singular. */
static double complex part_of_a(const struct trial *t, int i, int j)
{
    bool square = takes_uplo(t->kind);
    if (square && !in_triangle(t, i, j))
        return updates_matrix(t->kind) ? value(t->type) : complex_of(NAN, NAN);
    if (square && i == j && conjugates(t->kind))
        return complex_of(noise(), NAN);
    if (!takes_diagonal(t->kind))
        return value(t->type);
    if (i != j)
        return value(t->type) / t->n;
    return t->diag == CUBLAS_DIAG_UNIT ? complex_of(NAN, NAN) : 2 + value(t->type);
}

static void make_operands(const struct task *task)
{
    const struct trial *t = &task->call;
    const double complex none = complex_of(NAN, NAN);
    bool y_read = takes_beta(t->kind) ? task->beta != 0 : t->kind != COPY;
    for (int i = 0; i < AREA; i++) {
        a[i] = updates_matrix(t->kind) ? value(t->type) : none;
        x[i] = takes_diagonal(t->kind) ? value(t->type) : none;
        y[i] = updates_matrix(t->kind) ? none : value(t->type);
    }
    for (int j = 0; j < t->n; j++)
        for (int i = 0; i < rows(t); i++)
            a[j * LDA + i] = part_of_a(t, i, j);
    for (int i = 0; i < length_of_x(t); i++)
        x[spot_x(t, i)] = value(t->type);
    for (int i = 0; i < length_of_y(t); i++)
        y[spot_y(t, i)] = y_read ? value(t->type) : none;
}

/* An element of what A stands for, as the operation turns it. */
static double complex element(const struct trial *t, int i, int j)
{
    if (turns(t)) {
        struct trial straight = *t;
        straight.trans = CUBLAS_OP_N;
        double complex mirrored = element(&straight, j, i);
        return t->trans == CUBLAS_OP_C ? conj(mirrored) : mirrored;
    }
    if (takes_diagonal(t->kind)) {
        if (i == j && t->diag == CUBLAS_DIAG_UNIT)
            return 1;
        return in_triangle(t, i, j) ? a[j * LDA + i] : 0;
    }
    if (t->kind == GEMV || (i != j && in_triangle(t, i, j)))
        return a[j * LDA + i];
    if (i == j)
        return conjugates(t->kind) ? creal(a[j * LDA + i]) : a[j * LDA + i];
    return conjugates(t->kind) ? conj(a[i * LDA + j]) : a[i * LDA + j];
}

static double complex row_times(const struct trial *t, int i, const double complex *vector)
{
    double complex sum = 0;
    for (int j = 0; j < length_of_x(t); j++)
        sum += element(t, i, j) * vector[spot_x(t, j)];
    return sum;
}

static void expect(size_t at, double complex value)
{
    want[at] = value;
    touched[at] = true;
}

static double complex products(const struct task *task, int i, int j)
{
    const struct trial *t = &task->call;
    double complex xi = x[spot_x(t, i)], xj = x[spot_x(t, j)];
    if (t->kind == SYR)
        return task->alpha * xi * xj;
    if (t->kind == HER)
        return task->alpha * xi * conj(xj);
    double complex yi = y[spot_y(t, i)], yj = y[spot_y(t, j)];
    if (t->kind == SYR2)
        return task->alpha * (xi * yj + yi * xj);
    return task->alpha * xi * conj(yj) + conj(task->alpha) * yi * conj(xj);
}

static void expect_matrix(const struct task *task)
{
    const struct trial *t = &task->call;
    if (task->alpha == 0)
        return;
    for (int j = 0; j < t->n; j++)
        for (int i = 0; i < rows(t); i++) {
            double complex old = a[j * LDA + i];
            if (takes_m(t->kind)) {
                double complex yj = y[spot_y(t, j)];
                expect((size_t)(j * LDA + i),
                       old + task->alpha * x[spot_x(t, i)] * (t->kind == GERC ? conj(yj) : yj));
            } else if (in_triangle(t, i, j)) {
                if (conjugates(t->kind) && i == j)
                    old = creal(old);
                expect((size_t)(j * LDA + i), old + products(task, i, j));
            }
        }
}

/* As in BLAS, an A without elements leaves y as it is. */
static void expect_product(const struct task *task)
{
    const struct trial *t = &task->call;
    if (length_of_x(t) == 0)
        return;
    for (int i = 0; i < length_of_y(t); i++) {
        size_t at = spot_y(t, i);
        double complex sum = task->beta == 0 ? 0 : task->beta * y[at];
        expect(at, task->alpha == 0 ? sum : sum + task->alpha * row_times(t, i, x));
    }
}

static void expect_result(const struct task *task)
{
    const struct trial *t = &task->call;
    memset(touched, 0, sizeof touched);
    if (updates_matrix(t->kind))
        expect_matrix(task);
    else if (takes_beta(t->kind))
        expect_product(task);
    else
        for (int i = 0; i < t->n; i++) {
            if (t->kind == COPY)
                expect(spot_y(t, i), x[spot_x(t, i)]);
            else /* the equation is what trsv has to solve */
                expect(spot_x(t, i), t->kind == TRMV ? row_times(t, i, x) : x[spot_x(t, i)]);
        }
}

static int compare(const struct task *task, const char *before, const char *after)
{
    static double complex got[AREA], product[AREA];
    const struct trial *t = &task->call;
    size_t bytes = type_bytes(t->type);
    double bound = t->kind == COPY ? rounding(t->type) : 400 * rounding(t->type);
    for (size_t i = 0; i < AREA; i++)
        got[i] = widen(t->type, after, i);
    if (t->kind == TRSV) {
        for (int i = 0; i < t->n; i++)
            product[spot_x(t, i)] = row_times(t, i, got);
        memcpy(got, product, sizeof got);
    }
    for (size_t i = 0; i < AREA; i++)
        if (touched[i])
            CHECK(cabs(got[i] - want[i]) <= bound);
        else
            CHECK(memcmp(before + i * bytes, after + i * bytes, bytes) == 0);
    if (updates_matrix(t->kind) && conjugates(t->kind) && task->alpha != 0)
        for (int i = 0; i < t->n; i++)
            CHECK(cimag(got[i * LDA + i]) == 0);
    return 0;
}

static int perform(struct fixture *f, struct task *task)
{
    static double complex before[AREA], after[AREA], packed[AREA];
    struct trial *t = &task->call;
    double complex alpha, beta;
    make_operands(task);
    expect_result(task);
    OK(cuMemcpyHtoD(f->a, packed, narrow(t->type, a, packed, AREA)));
    OK(cuMemcpyHtoD(f->b, packed, narrow(t->type, x, packed, AREA)));
    OK(cuMemcpyHtoD(f->c, packed, narrow(t->type, y, packed, AREA)));
    /* What is not read or written need not exist. */
    bool empty = rows(t) == 0 || t->n == 0;
    bool unread = takes_alpha(t->kind) && task->alpha == 0;
    CUdeviceptr result = updates_matrix(t->kind) ? f->a : takes_diagonal(t->kind) ? f->b : f->c;
    const CUdeviceptr memory[] = {f->a, f->b, f->c};
    CUdeviceptr *const operands[] = {&t->a, &t->x, &t->y};
    for (int i = 0; i < 3; i++)
        *operands[i] = empty || (unread && memory[i] != result) ? 0 : memory[i];
    t->lda = LDA;
    OK(cuMemcpyDtoH(before, result, AREA * type_bytes(t->type)));
    narrow(t->type, &task->alpha, &alpha, 1);
    narrow(t->type, &task->beta, &beta, 1);
    t->alpha = &alpha;
    t->beta = &beta;
    BLAS_OK(level2_call(f->handle, t));
    memset(&alpha, 0xff, sizeof alpha); /* read at the call */
    memset(&beta, 0xff, sizeof beta);
    OK(cuStreamSynchronize(f->stream));
    OK(cuMemcpyDtoH(after, result, AREA * type_bytes(t->type)));
    return compare(task, (char *)before, (char *)after);
}

static int all_scalars(struct fixture *f, struct task *task)
{
    enum kind kind = task->call.kind;
    bool real = is_real(task->call.type);
    double complex alpha = 0.75 + (real || takes_real_alpha(kind) ? 0 : 0.5 * I);
    double complex beta = -0.5 + (real ? 0 : 0.25 * I);
    const double complex pairs[][2] = {{alpha, beta}, {0, beta}, {alpha, 0}, {0, 0}, {alpha, 1}};
    size_t count = takes_beta(kind) ? 5 : takes_alpha(kind) ? 2 : 1;
    for (size_t i = 0; i < count; i++) {
        task->alpha = pairs[i][0];
        task->beta = pairs[i][1];
        CHECK(perform(f, task) == 0);
    }
    return 0;
}

static int all_sizes(struct fixture *f, struct task *task)
{
    static const int sizes[][2] = {{0, 3}, {3, 0}, {1, 1}, {2, 6}, {6, 2}, {19, LARGEST}};
    static const int increments[][2] = {{1, 1}, {2, -1}, {-3, 2}, {-1, -2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof increments / sizeof *increments; j++) {
            task->call.m = sizes[i][0];
            task->call.n = sizes[i][1];
            task->call.incx = increments[j][0];
            task->call.incy = increments[j][1];
            CHECK(all_scalars(f, task) == 0);
        }
    return 0;
}

static bool is_call(const struct trial *t)
{
    return takes_type(t->kind, t->type) && (t->uplo == 0 || takes_uplo(t->kind)) &&
           (t->diag == 0 || takes_diagonal(t->kind)) && (t->trans == 0 || takes_operation(t->kind));
}

static int all_of(enum kind kind)
{
    static const int bases[] = {4, 2, 2, 2, 3};
    int digits[5] = {0};
    struct fixture f;
    CHECK(set_up(&f) == 0);
    do {
        struct task task = {.call = {.kind = kind,
                                     .type = (enum type)digits[0],
                                     .wide = digits[1],
                                     .uplo = (cublasFillMode_t)digits[2],
                                     .diag = (cublasDiagType_t)digits[3],
                                     .trans = (cublasOperation_t)digits[4]}};
        if (is_call(&task.call) && all_sizes(&f, &task) != 0) {
            fprintf(stderr, "kind %d type %d wide %d uplo %d diag %d trans %d\n", kind, digits[0],
                    digits[1], digits[2], digits[3], digits[4]);
            fprintf(stderr, "m %d n %d incx %d incy %d alpha %g beta %g\n", task.call.m,
                    task.call.n, task.call.incx, task.call.incy, creal(task.alpha),
                    creal(task.beta));
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

ALL_OF(gemv_right, GEMV)
ALL_OF(symv_right, SYMV)
ALL_OF(hemv_right, HEMV)
ALL_OF(ger_right, GER)
ALL_OF(geru_right, GERU)
ALL_OF(gerc_right, GERC)
ALL_OF(syr_right, SYR)
ALL_OF(her_right, HER)
ALL_OF(syr2_right, SYR2)
ALL_OF(her2_right, HER2)
ALL_OF(trmv_right, TRMV)
ALL_OF(trsv_right, TRSV)
ALL_OF(copy_right, COPY)

#define AT_ONCE "TESTGPU_DELAY_US=0"

const struct scenario level2_scenarios[] = {
    {"gemv_right", gemv_right, {AT_ONCE}, {"kernels gemm=0 gemv=1920\n"}},
    {"symv_right", symv_right, {AT_ONCE}, {"kernels gemm=0 symv=800\n"}},
    {"hemv_right", hemv_right, {AT_ONCE}, {"kernels gemm=0 hemv=800\n"}},
    {"ger_right", ger_right, {AT_ONCE}, {"kernels gemm=0 ger=128\n"}},
    {"geru_right", geru_right, {AT_ONCE}, {"kernels gemm=0 geru=128\n"}},
    {"gerc_right", gerc_right, {AT_ONCE}, {"kernels gemm=0 gerc=128\n"}},
    {"syr_right", syr_right, {AT_ONCE}, {"kernels gemm=0 syr=640\n"}},
    {"her_right", her_right, {AT_ONCE}, {"kernels gemm=0 her=320\n"}},
    {"syr2_right", syr2_right, {AT_ONCE}, {"kernels gemm=0 syr2=640\n"}},
    {"her2_right", her2_right, {AT_ONCE}, {"kernels gemm=0 her2=320\n"}},
    {"trmv_right", trmv_right, {AT_ONCE}, {"kernels gemm=0 trmv=1920\n"}},
    {"trsv_right", trsv_right, {AT_ONCE}, {"kernels gemm=0 trsv=1920\n"}},
    {"copy_right", copy_right, {AT_ONCE}, {"kernels gemm=0 copy=160\n"}},
    {0},
};
