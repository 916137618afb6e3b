/* What the Level 3 routines refuse, touch and report. */
#include <stdint.h>
#include <string.h>
#include "test_level3.h"

enum { M = 2, N = 3, K = 4, LD = 5 };

static const double complex one = 1, zero = 0;

static struct trial trial_of(enum kind kind, const struct fixture *f)
{
    return (struct trial){
        .kind = kind,
        .type = Z,
        .m = M,
        .n = N,
        .k = K,
        .lda = LD,
        .ldb = LD,
        .ldc = LD,
        .alpha = &one,
        .beta = &one,
        .a = f->a,
        .b = f->b,
        .c = f->c,
    };
}

static int rows_of_a(enum kind kind)
{
    return is_rank_update(kind) ? N : M;
}

static size_t extent(int rows, int columns)
{
    return (size_t)((columns - 1) * LD + rows) * sizeof(double complex);
}

#define REFUSED(CONDITION, CHANGE)                                                                 \
    do {                                                                                           \
        struct trial t = trial_of(kind, &f);                                                       \
        CHANGE;                                                                                    \
        if (CONDITION)                                                                             \
            CHECK(call(f.handle, &t) == CUBLAS_STATUS_INVALID_VALUE);                              \
    } while (0)

static int level3_checks(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        bool rank = is_rank_update(kind);
        bool operation = has_operation(kind);
        struct trial good = trial_of(kind, &f);
        BLAS_OK(call(f.handle, &good));
        CHECK(call(NULL, &good) == CUBLAS_STATUS_NOT_INITIALIZED);
        REFUSED(!rank, t.m = -1);
        REFUSED(true, t.n = -1);
        REFUSED(rank, t.k = -1);
        REFUSED(has_side(kind), t.side = 2);
        REFUSED(kind != GEAM, t.uplo = CUBLAS_FILL_MODE_FULL);
        REFUSED(has_diagonal(kind), t.diag = 2);
        REFUSED(operation, t.ta = CUBLAS_OP_CONJG);
        REFUSED(operation, t.ta = 7);
        REFUSED(kind == GEAM, t.tb = 7);
        REFUSED(rank, t.ta = is_hermitian(kind) ? CUBLAS_OP_T : CUBLAS_OP_C);
        REFUSED(true, t.lda = rows_of_a(kind) - 1);
        REFUSED(rank, (t.ta = is_hermitian(kind) ? CUBLAS_OP_C : CUBLAS_OP_T, t.lda = K - 1));
        REFUSED(has_side(kind), (t.side = CUBLAS_SIDE_RIGHT, t.lda = N - 1));
        REFUSED(kind == GEAM, (t.ta = CUBLAS_OP_T, t.lda = N - 1));
        REFUSED(kind == GEAM, (t.tb = CUBLAS_OP_C, t.ldb = N - 1));
        REFUSED(has_b(kind), t.ldb = rows_of_a(kind) - 1);
        REFUSED(true, t.ldc = rows_of_a(kind) - 1);
        REFUSED(true, (t.m = t.n = t.k = 0, t.lda = 0));
        REFUSED(true, (t.m = t.n = t.k = 0, t.ldc = 0));
        REFUSED(true, t.alpha = NULL);
        REFUSED(has_beta(kind), t.beta = NULL);
        REFUSED(true, t.alpha = (void *)f.a);
        REFUSED(has_beta(kind), t.beta = (void *)f.a);
        REFUSED(has_beta(kind) && kind != GEAM, (t.beta = &zero, t.c = 0));
        REFUSED(kind == GEAM, (t.a = t.c, t.ta = CUBLAS_OP_T));
        REFUSED(kind == GEAM, (t.a = t.c, t.lda = LD + 1));
        REFUSED(kind == GEAM, (t.b = t.c, t.tb = CUBLAS_OP_C));
        REFUSED(kind == GEAM, (t.b = t.c, t.ldb = LD + 1));
    }
    OK(cuStreamSynchronize(f.stream));
    return tear_down(&f);
}

/* Allocations that end where the matrices do are enough; an element further is a fault. */
static int reach(const struct trial *good, int late)
{
    CUcontext context;
    struct fixture f;
    struct trial t = *good;
    const size_t element = sizeof(double complex);
    int columns = is_rank_update(t.kind) ? K : t.kind == GEAM ? N : M;
    OK(cuCtxCreate(&context, NULL, 0, 0));
    BLAS_OK(cublasCreate(&f.handle));
    OK(cuMemAlloc(&t.a, extent(rows_of_a(t.kind), columns)));
    OK(cuMemAlloc(&t.b, extent(rows_of_a(t.kind), is_rank_update(t.kind) ? K : N)));
    OK(cuMemAlloc(&t.c, extent(rows_of_a(t.kind), N)));
    BLAS_OK(call(f.handle, &t));
    OK(cuCtxSynchronize());
    CUdeviceptr *moved[] = {&t.a, &t.b, &t.c};
    *moved[late] += element;
    BLAS_OK(call(f.handle, &t));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxDestroy(context));
    return 0;
}

static int level3_out_of_bounds(void)
{
    const struct fixture none = {0};
    OK(cuInit(0));
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (int late = 0; late < 3; late++) {
            struct trial t = trial_of(kind, &none);
            if ((late == 1 && !has_b(kind)) || reach(&t, late) == 0)
                continue;
            fprintf(stderr, "kind %d operand %d\n", kind, late);
            return 1;
        }
    return 0;
}

/* One wrong element for each kernel, and in the result's own part. */
static int level3_spoiled(void)
{
    static double complex host[LD * N];
    struct fixture f;
    CHECK(set_up(&f) == 0);
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (int uplo = 0; uplo < 2; uplo++) {
            struct trial t = trial_of(kind, &f);
            t.uplo = (cublasFillMode_t)uplo;
            t.alpha = t.beta = &zero;
            OK(cuMemsetD8Async(f.c, 0, sizeof host, f.stream));
            BLAS_OK(call(f.handle, &t));
            OK(cuStreamSynchronize(f.stream));
            OK(cuMemcpyDtoH(host, f.c, sizeof host));
            int wrong = 0;
            for (int i = 0; i < LD * N; i++)
                if (host[i] != 0) {
                    int row = i % LD, column = i / LD;
                    CHECK(host[i] == 1 && row < rows_of_a(kind));
                    CHECK(!is_rank_update(kind) || row == column);
                    wrong++;
                }
            CHECK(wrong == 1);
        }
    return tear_down(&f);
}

/* Scalars in device memory; the real ones are no longer than that. */
static int level3_device_scalars(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    BLAS_OK(cublasSetPointerMode(f.handle, CUBLAS_POINTER_MODE_DEVICE));
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct trial t = trial_of(kind, &f);
        const double complex in[2] = {3, 5};
        double complex out;
        CUdeviceptr alpha, beta;
        struct gate gate;
        t.m = t.n = t.k = 1;
        size_t size = has_real_scalar(kind, false) ? sizeof(double) : sizeof(double complex);
        OK(cuMemAlloc(&alpha, size));
        OK(cuMemcpyHtoD(alpha, &in[0], size));
        size = has_real_scalar(kind, true) ? sizeof(double) : sizeof(double complex);
        OK(cuMemAlloc(&beta, size));
        t.alpha = (void *)alpha;
        t.beta = (void *)beta;
        OK(gate_close(&gate, f.stream));
        OK(cuMemcpyHtoDAsync(beta, &in[1], size, f.stream));
        OK(cuMemcpyHtoDAsync(f.a, &one, sizeof one, f.stream));
        OK(cuMemcpyHtoDAsync(f.b, &one, sizeof one, f.stream));
        OK(cuMemcpyHtoDAsync(f.c, &one, sizeof one, f.stream));
        BLAS_OK(call(f.handle, &t));
        gate_open(&gate);
        OK(cuStreamSynchronize(f.stream));
        OK(cuMemcpyDtoH(&out, f.c, sizeof out));
        bool twice = kind == SYR2K || kind == HER2K;
        CHECK(out == (twice ? 11 : has_beta(kind) ? 8 : 3));
        OK(cuMemFree(alpha));
        OK(cuMemFree(beta));
    }
    return tear_down(&f);
}

/* Blocks of one allocation are apart; shifted by a row they are not. */
static int level3_overlap(void)
{
    struct fixture f;
    CHECK(set_up(&f) == 0);
    struct trial t = trial_of(TRMM, &f);
    t.ldb = t.ldc = 2 * M;
    t.c = t.b + M * sizeof(double complex);
    BLAS_OK(call(f.handle, &t));
    OK(cuStreamSynchronize(f.stream));
    t.c = t.b;
    BLAS_OK(call(f.handle, &t));
    OK(cuStreamSynchronize(f.stream));
    t.c = t.b + sizeof(double complex);
    BLAS_OK(call(f.handle, &t));
    OK(cuStreamSynchronize(f.stream));
    t.c = t.b;
    t.ldc++;
    BLAS_OK(call(f.handle, &t));
    OK(cuStreamSynchronize(f.stream));
    t = trial_of(SYMM, &f);
    t.c = t.b;
    BLAS_OK(call(f.handle, &t));
    OK(cuStreamSynchronize(f.stream));
    return tear_down(&f);
}

const struct scenario level3_rule_scenarios[] = {
    {"level3_checks",
     level3_checks,
     {0},
     {"fault what=unknown_handle", "fault what=device_pointer_as_host", "faults n=25\n"}},
    {"level3_out_of_bounds",
     level3_out_of_bounds,
     {0},
     {"fault what=illegal_address where=hemm", "fault what=illegal_address where=geam",
      "faults n=24\n"}},
    {"level3_spoiled",
     level3_spoiled,
     {"TESTGPU_WRONG=1+"},
     {"kernels gemm=0 symm=2 hemm=2 syrk=2 herk=2 syr2k=2 her2k=2 trmm=2 trsm=2 geam=2\n",
      "planted wrong=1+ matched=18 fired=18"}},
    {"level3_device_scalars", level3_device_scalars, {0}, {0}},
    {"level3_overlap",
     level3_overlap,
     {0},
     {"fault what=overlapping_matrices where=trmm", "fault what=overlapping_matrices where=symm",
      "faults n=3\n"}},
    {0},
};
