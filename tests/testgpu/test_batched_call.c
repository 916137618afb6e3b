/* Calls gemmBatched or gemmStridedBatched by type and width. */
#include "test_batched.h"
#include "test_calls.h"

static const double complex one = 1;

cublasStatus_t multiply_batch(cublasHandle_t handle, const struct trial *t)
{
    void *a = (void *)t->a, *b = (void *)t->b, *c = (void *)t->c;
    if (t->pointers) {
        BY_WIDTH(ALL_ONES, gemmBatched, , handle, t->ta, t->tb, t->m, t->n, t->k, t->alpha, a,
                 t->lda, b, t->ldb, t->beta, c, t->ldc, t->count);
    } else {
        BY_WIDTH(ALL_ONES, gemmStridedBatched, , handle, t->ta, t->tb, t->m, t->n, t->k, t->alpha,
                 a, t->lda, t->stride_a, b, t->ldb, t->stride_b, t->beta, c, t->ldc, t->stride_c,
                 t->count);
    }
}

int set_up_batch(struct batch *batch)
{
    CHECK(set_up(&batch->f) == 0);
    OK(cuMemAlloc(&batch->a, COUNT * sizeof(CUdeviceptr)));
    OK(cuMemAlloc(&batch->b, COUNT * sizeof(CUdeviceptr)));
    OK(cuMemAlloc(&batch->c, COUNT * sizeof(CUdeviceptr)));
    return 0;
}

int tear_down_batch(struct batch *batch)
{
    OK(cuMemFree(batch->a));
    OK(cuMemFree(batch->b));
    OK(cuMemFree(batch->c));
    return tear_down(&batch->f);
}

int point_at(CUdeviceptr array, CUdeviceptr first, long long stride, enum type type)
{
    CUdeviceptr addresses[COUNT];
    for (int i = 0; i < COUNT; i++)
        addresses[i] = first + (CUdeviceptr)(i * stride) * type_bytes(type);
    OK(cuMemcpyHtoD(array, addresses, sizeof addresses));
    return 0;
}

int batch_trial(struct trial *t, bool pointers, enum type type, const struct batch *batch)
{
    *t = (struct trial){.pointers = pointers,
                        .type = type,
                        .m = M,
                        .n = N,
                        .k = K,
                        .lda = LD,
                        .ldb = LD,
                        .ldc = LD,
                        .count = COUNT,
                        .stride_a = STRIDE,
                        .stride_b = STRIDE,
                        .stride_c = STRIDE,
                        .alpha = &one,
                        .beta = &one,
                        .a = pointers ? batch->a : batch->f.a,
                        .b = pointers ? batch->b : batch->f.b,
                        .c = pointers ? batch->c : batch->f.c};
    if (pointers) {
        CHECK(point_at(batch->a, batch->f.a, STRIDE, type) == 0);
        CHECK(point_at(batch->b, batch->f.b, STRIDE, type) == 0);
        CHECK(point_at(batch->c, batch->f.c, STRIDE, type) == 0);
    }
    return 0;
}
