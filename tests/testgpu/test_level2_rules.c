/* What the Level 2 routines and copy refuse, touch and report. */
#include <string.h>
#include <sys/mman.h>
#include "test_level2.h"

enum { M = 2, N = 3, LD = 5, INC = 2 };

static const double complex one = 1, zero = 0;

static struct trial trial_of(enum kind kind, const struct fixture *f)
{
    return (struct trial){
        .kind = kind,
        .type = takes_type(kind, Z) ? Z : D,
        .m = M,
        .n = N,
        .lda = LD,
        .incx = INC,
        .incy = -INC,
        .alpha = &one,
        .beta = &one,
        .a = f->a,
        .x = f->b,
        .y = f->c,
    };
}

static int rows(enum kind kind)
{
    return takes_m(kind) ? M : N;
}

static CUdeviceptr *result(struct trial *t)
{
    return updates_matrix(t->kind) ? &t->a : takes_diagonal(t->kind) ? &t->x : &t->y;
}

#define REFUSED(CONDITION, CHANGE)                                                                 \
    do {                                                                                           \
        struct trial t = trial_of(kind, &f);                                                       \
        CHANGE;                                                                                    \
        if (CONDITION)                                                                             \
            CHECK(level2_call(f.handle, &t) == CUBLAS_STATUS_INVALID_VALUE);                       \
    } while (0)

static int level2_checks(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct trial good = trial_of(kind, &f);
        BLAS_OK(level2_call(f.handle, &good));
        CHECK(level2_call(NULL, &good) == CUBLAS_STATUS_NOT_INITIALIZED);
        REFUSED(takes_m(kind), t.m = -1);
        REFUSED(true, t.n = -1);
        REFUSED(takes_uplo(kind), t.uplo = CUBLAS_FILL_MODE_FULL);
        REFUSED(takes_diagonal(kind), t.diag = 2);
        REFUSED(takes_operation(kind), t.trans = CUBLAS_OP_CONJG);
        REFUSED(takes_operation(kind), t.trans = 7);
        REFUSED(takes_a(kind), t.lda = rows(kind) - 1);
        REFUSED(takes_a(kind), (t.m = t.n = 0, t.lda = 0));
        REFUSED(true, t.incx = 0);
        REFUSED(takes_y(kind), t.incy = 0);
        REFUSED(true, (t.m = t.n = t.incx = 0));
        REFUSED(takes_alpha(kind), t.alpha = NULL);
        REFUSED(takes_beta(kind), t.beta = NULL);
        REFUSED(takes_alpha(kind), t.alpha = (void *)f.a);
        REFUSED(takes_beta(kind), t.beta = (void *)f.a);
    }
    OK(cuStreamSynchronize(f.stream));
    return tear_down(&f);
}

static size_t vector_bytes(int length)
{
    return (size_t)((length - 1) * INC + 1) * sizeof(double complex);
}

/* Allocations that end where the operands do are enough; an element further is a fault. */
static int reach(enum kind kind, cublasOperation_t trans, int late)
{
    const struct fixture none = {0};
    struct trial t = trial_of(kind, &none);
    t.trans = trans;
    CUcontext context;
    cublasHandle_t handle;
    size_t element = type_bytes(t.type), shrink = sizeof(double complex) / element;
    bool straight = kind == GEMV && trans == CUBLAS_OP_N;
    int length_of_x = straight || !takes_m(kind) ? N : M;
    int length_of_y = straight ? M : N;
    OK(cuCtxCreate(&context, NULL, 0, 0));
    BLAS_OK(cublasCreate(&handle));
    OK(cuMemAlloc(&t.a, (size_t)((N - 1) * LD + rows(kind)) * element));
    OK(cuMemAlloc(&t.x, vector_bytes(length_of_x) / shrink));
    OK(cuMemAlloc(&t.y, vector_bytes(length_of_y) / shrink));
    BLAS_OK(level2_call(handle, &t));
    OK(cuCtxSynchronize());
    CUdeviceptr *moved[] = {&t.a, &t.x, &t.y};
    *moved[late] += element;
    BLAS_OK(level2_call(handle, &t));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxDestroy(context));
    return 0;
}

static int level2_out_of_bounds(void)
{
    OK(cuInit(0));
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (int late = 0; late < 3; late++) {
            if ((late == 0 && !takes_a(kind)) || (late == 2 && !takes_y(kind)))
                continue;
            CHECK(reach(kind, CUBLAS_OP_N, late) == 0);
            CHECK(kind != GEMV || reach(kind, CUBLAS_OP_C, late) == 0);
        }
    return 0;
}

/* x ends where nothing can be read any more: kernels load no element behind its last, of whatever
 * length it is. */
static int level2_reads_no_more(void)
{
    enum { STEP = 40, LONGEST = 12, ROWS = 10, PAGE = 4096, PAGES = 2 };
    struct fixture f;
    CHECK(set_up(&f) == 0);
    char *room = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(room != MAP_FAILED && mprotect(room, PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
    OK(cuMemHostRegister(room, PAGES * PAGE, 0));
    for (enum type type = S; type <= Z; type++)
        for (int n = 1; n <= LONGEST; n++)
            for (int turned = 0; turned < 2; turned++) {
                struct trial t = trial_of(GEMV, &f);
                t.type = type;
                t.trans = turned ? CUBLAS_OP_T : CUBLAS_OP_N;
                t.m = turned ? n : ROWS;
                t.n = turned ? ROWS : n;
                t.lda = LONGEST;
                t.incx = STEP;
                t.x = (CUdeviceptr)(uintptr_t)(room + PAGES * PAGE) -
                      ((size_t)(n - 1) * STEP + 1) * type_bytes(type);
                BLAS_OK(level2_call(f.handle, &t));
                OK(cuStreamSynchronize(f.stream));
            }
    OK(cuMemHostUnregister(room));
    munmap(room, (PAGES + 2) * PAGE);
    return tear_down(&f);
}

/* An address that is no multiple of its element: the kernel fails, and its context with it. */
static int level2_misaligned(void)
{
    OK(cuInit(0));
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (int moved = 0; moved < 3; moved++) {
            if ((moved == 0 && !takes_a(kind)) || (moved == 2 && !takes_y(kind)))
                continue;
            CUcontext context;
            cublasHandle_t handle;
            const struct fixture none = {0};
            struct trial t = trial_of(kind, &none);
            CUdeviceptr *at[] = {&t.a, &t.x, &t.y};
            OK(cuCtxCreate(&context, NULL, 0, 0));
            BLAS_OK(cublasCreate(&handle));
            for (int i = 0; i < 3; i++)
                OK(cuMemAlloc(at[i], ROOM * sizeof(double complex)));
            *at[moved] += type_bytes(t.type) / 2;
            BLAS_OK(level2_call(handle, &t));
            CHECK(cuCtxSynchronize() == CUDA_ERROR_MISALIGNED_ADDRESS);
            CHECK(cuMemFree(t.a) == CUDA_ERROR_MISALIGNED_ADDRESS);
            OK(cuCtxDestroy(context));
        }
    return 0;
}

/* One wrong element for each kernel, and one of the result's own. */
static int level2_spoiled(void)
{
    static char zeros[LD * N * sizeof(double complex)], host[sizeof zeros];
    struct fixture f;
    CHECK(set_up(&f) == 0);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct trial t = trial_of(kind, &f);
        t.alpha = t.beta = &zero;
        OK(cuMemcpyHtoD(f.a, zeros, sizeof zeros));
        OK(cuMemcpyHtoD(f.b, zeros, sizeof zeros));
        OK(cuMemcpyHtoD(f.c, zeros, sizeof zeros));
        t.diag = CUBLAS_DIAG_UNIT; /* so that the triangle of zeros can be solved with */
        BLAS_OK(level2_call(f.handle, &t));
        OK(cuStreamSynchronize(f.stream));
        OK(cuMemcpyDtoH(host, *result(&t), sizeof host));
        int wrong = 0;
        for (size_t i = 0; i < sizeof host / type_bytes(t.type); i++) {
            double complex got = widen(t.type, host, i);
            if (got == 0)
                continue;
            CHECK(got == 1);
            if (!updates_matrix(kind))
                CHECK(i % INC == 0);
            else if (takes_uplo(kind))
                CHECK(i % LD == i / LD);
            else
                CHECK(i % LD < M);
            wrong++;
        }
        CHECK(wrong == 1);
    }
    return tear_down(&f);
}

/* What lies in device memory when the kernel runs counts: operands as well as such scalars. */
static int level2_device_scalars(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    BLAS_OK(cublasSetPointerMode(f.handle, CUBLAS_POINTER_MODE_DEVICE));
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct trial t = trial_of(kind, &f);
        double complex in[2] = {3, 5}, out, packed[2];
        CUdeviceptr alpha, beta;
        struct gate gate;
        size_t element = type_bytes(t.type);
        t.m = t.n = 1;
        OK(cuMemAlloc(&alpha, takes_real_alpha(kind) ? sizeof(double) : element));
        OK(cuMemAlloc(&beta, element));
        t.alpha = (void *)alpha;
        t.beta = (void *)beta;
        OK(gate_close(&gate, f.stream));
        BLAS_OK(level2_call(f.handle, &t));
        narrow(t.type, in, packed, 2);
        OK(cuMemcpyHtoD(alpha, packed, takes_real_alpha(kind) ? sizeof(double) : element));
        OK(cuMemcpyHtoD(beta, (char *)packed + element, element));
        in[0] = in[1] = 2;
        narrow(t.type, in, packed, 2);
        OK(cuMemcpyHtoD(f.a, packed, element));
        OK(cuMemcpyHtoD(f.b, packed, element));
        OK(cuMemcpyHtoD(f.c, packed, element));
        gate_open(&gate);
        OK(cuStreamSynchronize(f.stream));
        OK(cuMemcpyDtoH(packed, *result(&t), element));
        out = widen(t.type, packed, 0);
        bool twice = kind == SYR2 || kind == HER2;
        double product = twice ? 3 * 2 * 4 : takes_alpha(kind) ? 3 * 4 : 4;
        double solution = kind == COPY ? 2 : kind == TRSV ? 1 : product;
        CHECK(out == solution + (takes_beta(kind) ? 5 * 2 : updates_matrix(kind) ? 2 : 0));
        OK(cuMemFree(alpha));
        OK(cuMemFree(beta));
    }
    return tear_down(&f);
}

/* Vectors may lie between each other's elements, and in a row of a larger matrix than A. */
static int level2_overlap(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    struct trial t = trial_of(COPY, &f);
    t.y = t.x + sizeof one;
    BLAS_OK(level2_call(f.handle, &t));
    t.y = t.x + INC * sizeof one;
    BLAS_OK(level2_call(f.handle, &t));
    t = trial_of(GEMV, &f);
    t.lda = t.incy = LD;
    t.y = t.a + M * sizeof one;
    BLAS_OK(level2_call(f.handle, &t));
    t.y = t.a;
    BLAS_OK(level2_call(f.handle, &t));
    OK(cuStreamSynchronize(f.stream));
    return tear_down(&f);
}

/* A failure is planted by the name of either width. */
static int level2_fails(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    struct trial t = trial_of(GEMV, &f);
    BLAS_OK(level2_call(f.handle, &t));
    t.wide = true;
    CHECK(level2_call(f.handle, &t) == CUBLAS_STATUS_INTERNAL_ERROR);
    BLAS_OK(level2_call(f.handle, &t));
    OK(cuStreamSynchronize(f.stream));
    return tear_down(&f);
}

const struct scenario level2_rule_scenarios[] = {
    {"level2_checks",
     level2_checks,
     {0},
     {"fault what=unknown_handle where=cublasZgemv_v2", "fault what=device_pointer_as_host",
      "faults n=26\n"}},
    {"level2_out_of_bounds",
     level2_out_of_bounds,
     {0},
     {"fault what=illegal_address where=gemv", "fault what=illegal_address where=copy",
      "faults n=37\n"}},
    {"level2_reads_no_more", level2_reads_no_more, {0}, {0}},
    {"level2_misaligned",
     level2_misaligned,
     {0},
     {"fault what=misaligned_address where=gemv", "fault what=misaligned_address where=copy",
      "faults n=34\n"}},
    {"level2_spoiled",
     level2_spoiled,
     {"TESTGPU_WRONG=1+"},
     {"kernels gemm=0 gemv=1 symv=1 hemv=1 ger=1 geru=1 gerc=1 syr=1 her=1 syr2=1 her2=1 trmv=1 "
      "trsv=1 copy=1\n",
      "planted wrong=1+ matched=13 fired=13"}},
    {"level2_device_scalars", level2_device_scalars, {0}, {0}},
    {"level2_overlap",
     level2_overlap,
     {0},
     {"fault what=overlapping_matrices where=copy", "fault what=overlapping_matrices where=gemv",
      "faults n=2\n"}},
    {"level2_fails",
     level2_fails,
     {"TESTGPU_FAIL=cublasZgemv:2=14"},
     {"planted function=cublasZgemv nth=2 matched=3 fired=1", "kernels gemm=0 gemv=2\n"}},
    {0},
};
