#include "precision.h"

#include "gpu/device/copies.h"
#include "call/operation.h"

/* cuBLAS, "Floating Point Emulation": the emulation of double precision is in cuBLAS of CUDA 13.0
 * update 2, for compute capabilities from 8.0 on; that of single precision in 12.9, for 10.0 and
 * 10.3. Those are of gemm. Of syrk, herk, syr2k and her2k that of single precision came with CUDA
 * 13.0 update 2, that of double precision with 13.2, for 10.0 alone (CUDA's release notes). Of
 * others, notes and manual name none; TF32 is for all "single precision routines"
 * (cublasMath_t). */
void precision_all(unsigned char all[GPU_PRODUCTS], CUdevice device, int cublas_version)
{
    enum { NATIVE = 1 << GPU_NATIVE, TF32 = 1 << GPU_TF32, BF16X9 = 1 << GPU_BF16X9 };
    enum { EMULATED = 1 << GPU_EMULATED };
    const int major = cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
              minor = cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    const bool is_b200 = major == 10 && minor == 0, is_b300 = major == 10 && minor == 3;
    const bool emulates =
        CUDA(cublasSetWorkspace_v2) && CUDA(cublasSetFixedPointEmulationMantissaBitCountPointer);
    const int modes = CUDA(cublasSetMathMode) && major >= 8 ? NATIVE | TF32 : NATIVE;
    all[GPU_NO_PRODUCTS] = NATIVE;
    all[GPU_GEMM] = all[GPU_RANK_K] = all[GPU_OTHERS] = (unsigned char)modes;
    if (modes == NATIVE)
        return;
    if (is_b200 || is_b300) {
        all[GPU_GEMM] |= cublas_version >= 120900 ? BF16X9 : 0;
        all[GPU_RANK_K] |= cublas_version >= 130100 ? BF16X9 : 0;
    }
    all[GPU_GEMM] |= emulates ? EMULATED : 0;
    all[GPU_RANK_K] |= emulates && is_b200 && cublas_version >= 130300 ? EMULATED : 0;
}

static enum gpu_status set_math(struct stream_ctx *ctx, cublasMath_t math)
{
    if (ctx->math != math)
        GPU_TRY(GPU_CHECK_CUBLAS(cublasSetMathMode, ctx->cublas, math));
    ctx->math = math;
    return GPU_OK;
}

/* The sizes of the call's product: those of gemm, and of syrk and its relatives, whose result is n
 * x n. */
struct sizes {
    int64_t m, n, k, batch;
};

static struct sizes sizes_of_products(const struct accel_call *call)
{
    const int64_t *size = call->blas.size;
    const bool rank_k = accel_product_kind(call) == GPU_RANK_K;
    return (struct sizes){rank_k ? size[ACCEL_n] : size[ACCEL_m], size[ACCEL_n], size[ACCEL_k],
                          call->op->traits.group == ACCEL_BATCH ? call->batch : 1};
}

/* Returns the most bytes of workspace for a call: half of the memory there is; of a batch no more
 * than eight times its matrices, or 1 GB: small products need as much each as one of size 1024,
 * which would take the memory from others for little. */
static int64_t most_bytes(struct gpu_work *work, const struct sizes *s)
{
    const int64_t half = gpu_memory(work)->available(work) / 2;
    if (work->call->op->traits.group != ACCEL_BATCH)
        return half;
    const int64_t elements = (s->m * s->k + s->k * s->n + s->m * s->n) * s->batch;
    const int64_t modest = 8 * elements * (int64_t)accel_dtype_size(work->call->routine->dtype);
    return accel_min(half, modest > INT64_C(1) << 30 ? modest : INT64_C(1) << 30);
}

/* Returns the bytes with which the call's product is emulated, if it may have so many. One of gemm
 * alone goes through in tiles otherwise: sets the largest size whose products have theirs, or
 * INT64_MAX: the whole product has it, and its schedule is the usual one. Sizes below 1024 need as
 * much. 0: there is too little, or a size is too large. */
static int64_t fitting_bytes(struct gpu_work *work)
{
    const struct sizes s = sizes_of_products(work->call);
    const int64_t allowed = most_bytes(work, &s), largest = INT64_C(1) << 17;
    const int64_t largest_size = accel_max(s.m, accel_max(s.n, s.k));
    const bool is_complex = accel_is_complex(work->call->routine->dtype);
    const bool in_tiles =
        accel_product_kind(work->call) == GPU_GEMM && work->call->op->traits.group != ACCEL_BATCH;
    if (s.batch > allowed >> 20) /* each needs more than a megabyte */
        return 0;
    if (!in_tiles && (s.m > largest || s.n > largest || s.k > largest))
        return 0;
    for (int64_t most = largest; most >= (in_tiles ? 1024 : largest); most /= 2) {
        const int64_t bytes = gpu_emulation_bytes(accel_min(s.m, most), accel_min(s.n, most),
                                                  accel_min(s.k, most), s.batch, is_complex);
        if (bytes > allowed)
            continue;
        work->largest = in_tiles && most < largest_size ? most : INT64_MAX;
        return bytes;
    }
    return 0;
}

/* Without memory, the call is computed in native precision. */
static enum gpu_status give_workspace(struct call_precision *precision, struct gpu_work *work)
{
    struct stream_ctx *ctx = work->ctx;
    const int64_t bytes = fitting_bytes(work), own = 256; /* the count's */
    const struct pool_wish wish = {.bytes = bytes + own, .user = work->host->user};
    struct pool_taken taken;
    enum gpu_status status = GPU_NO_MEMORY;
    if (bytes > 0)
        status = pool_take(ctx->device, &wish, &taken);
    if (status == GPU_NO_MEMORY) {
        work->largest = INT64_MAX;
        work->host->precision = GPU_NATIVE;
        return GPU_OK;
    }
    GPU_TRY(status);
    precision->workspace = taken.block;
    GPU_TRY(stream_ctx_clear(ctx, &taken, wish.user.id));
    precision->bits = precision->workspace + (CUdeviceptr)bytes;
    if (taken.grew)
        gpu_work_event(work, GPU_EVENT_ALLOCATE, NULL, 0, 0, bytes + own);
    /* -1: not emulated. cuBLAS writes another number if it emulates. */
    GPU_TRY(GPU_CHECK(cuMemsetD8Async, precision->bits, 0xff, sizeof(int), stream_ctx_stream(ctx)));
    GPU_TRY(GPU_CHECK_CUBLAS(cublasSetWorkspace_v2, ctx->cublas,
                             (void *)(uintptr_t)precision->workspace, (size_t)bytes));
    return GPU_CHECK_CUBLAS(cublasSetFixedPointEmulationMantissaBitCountPointer, ctx->cublas,
                            (int *)(uintptr_t)precision->bits);
}

enum gpu_status precision_begin(struct call_precision *precision, struct gpu_work *work)
{
    static const cublasMath_t maths[GPU_PRECISIONS] = {
        CUBLAS_DEFAULT_MATH, CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH, CUBLAS_TF32_TENSOR_OP_MATH,
        CUBLAS_FP32_EMULATED_BF16X9_MATH};
    *precision = (struct call_precision){0, 0};
    if (work->host->precision == GPU_EMULATED)
        GPU_TRY(give_workspace(precision, work));
    return set_math(work->ctx, maths[work->host->precision]);
}

/* What cuBLAS says of the call's last product; native if it cannot be asked. */
static enum gpu_precision used(const struct call_precision *precision, struct gpu_work *work)
{
    int bits = -1;
    int64_t cols, rows;
    const struct host_rectangle to = host_whole(&bits, 1, 1, 1, sizeof bits);
    enum gpu_status status =
        stream_ctx_download(work->ctx, &to, (struct dmat){precision->bits, 1}, &cols, &rows);
    return status == GPU_OK && bits >= 0 ? GPU_EMULATED : GPU_NATIVE;
}

void precision_end(struct call_precision *precision, struct gpu_work *work, bool done)
{
    struct stream_ctx *ctx = work->ctx;
    if (!precision->workspace)
        return;
    if (done)
        work->host->precision = used(precision, work);
    enum gpu_status status =
        GPU_CHECK_CUBLAS(cublasSetFixedPointEmulationMantissaBitCountPointer, ctx->cublas, NULL);
    /* Setting the stream takes the workspace back (cuBLAS, cublasSetStream()). */
    if (status == GPU_OK)
        status = GPU_CHECK_CUBLAS(cublasSetStream_v2, ctx->cublas, ctx->stream);
    if (status != GPU_OK)
        precision->workspace = 0;
}
