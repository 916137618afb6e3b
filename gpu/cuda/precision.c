#include "precision.h"

#include "gpu/staging.h"

/* cuBLAS, "Floating Point Emulation": the emulation of double precision is in cuBLAS of CUDA 13.0 update 2, for compute
 * capabilities from 8.0 on; that of single precision in 12.9, for 10.0 and 10.3. */
unsigned precision_all(CUdevice device, int cublas_version)
{
    const int major = cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
              minor = cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    unsigned all = 1u << GPU_NATIVE;
    if (!CUDA(cublasSetMathMode) || major < 8)
        return all;
    all |= 1u << GPU_TF32;
    if (cublas_version >= 120900 && major == 10 && (minor == 0 || minor == 3))
        all |= 1u << GPU_BF16X9;
    if (CUDA(cublasSetWorkspace_v2) && CUDA(cublasSetFixedPointEmulationMantissaBitCountPointer))
        all |= 1u << GPU_EMULATED;
    return all;
}

static enum gpu_status set_math(struct gpu_lane *lane, cublasMath_t math)
{
    enum gpu_status status = GPU_OK;
    if (lane->math != math)
        status = GPU_CHECK_CUBLAS(cublasSetMathMode, lane->cublas, math);
    if (status == GPU_OK)
        lane->math = math;
    return status;
}

/* Sets the largest size whose products have their workspace in half of the memory there is, and returns that; 0: there is too
 * little for any. Sizes below 1024 need as much. */
static int64_t fitting_bytes(struct gpu_work *work)
{
    const int64_t *size = work->call->blas.size, half = gpu_work_available(work) / 2;
    const bool is_complex = accel_is_complex(work->call->routine->dtype);
    for (int64_t most = INT64_C(1) << 17; most >= 1024; most /= 2) {
        const int64_t bytes =
            gpu_emulation_bytes(accel_min(size[ACCEL_m], most), accel_min(size[ACCEL_n], most),
                                accel_min(size[ACCEL_k], most), is_complex);
        if (bytes > half)
            continue;
        work->largest = most;
        return bytes;
    }
    return 0;
}

/* Without memory, the call is computed in native precision. */
static enum gpu_status give_workspace(struct precision *precision, struct gpu_work *work)
{
    struct gpu_lane *lane = work->lane;
    const int64_t bytes = fitting_bytes(work), own = 256; /* the count's */
    bool grew;
    enum gpu_status status = GPU_NO_MEMORY;
    if (bytes > 0)
        status = pool_get(lane->device, bytes + own, &precision->workspace, &grew);
    if (status == GPU_NO_MEMORY) {
        work->largest = INT64_MAX;
        work->host->precision = GPU_NATIVE;
        return GPU_OK;
    }
    if (status != GPU_OK)
        return status;
    precision->bits = precision->workspace + (CUdeviceptr)bytes;
    if (grew)
        gpu_work_event(work, GPU_EVENT_ALLOCATE, NULL, 0, 0, bytes + own);
    /* -1: not emulated. cuBLAS writes another number if it emulates. */
    status = GPU_CHECK(cuMemsetD8Async, precision->bits, 0xff, sizeof(int), lane_stream(lane));
    if (status == GPU_OK)
        status = GPU_CHECK_CUBLAS(cublasSetWorkspace_v2, lane->cublas,
                                  (void *)(uintptr_t)precision->workspace, (size_t)bytes);
    if (status == GPU_OK)
        status = GPU_CHECK_CUBLAS(cublasSetFixedPointEmulationMantissaBitCountPointer, lane->cublas,
                                  (int *)(uintptr_t)precision->bits);
    return status;
}

enum gpu_status precision_begin(struct precision *precision, struct gpu_work *work)
{
    static const cublasMath_t maths[GPU_PRECISIONS] = {
        CUBLAS_DEFAULT_MATH, CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH, CUBLAS_TF32_TENSOR_OP_MATH,
        CUBLAS_FP32_EMULATED_BF16X9_MATH};
    enum gpu_status status = GPU_OK;
    *precision = (struct precision){0, 0};
    if (work->host->precision == GPU_EMULATED)
        status = give_workspace(precision, work);
    return status == GPU_OK ? set_math(work->lane, maths[work->host->precision]) : status;
}

/* What cuBLAS says of the call's last product; native if it cannot be asked. */
static enum gpu_precision used(const struct precision *precision, struct gpu_work *work)
{
    int bits = -1;
    int64_t cols, rows;
    const struct lane_rectangle to = lane_whole(&bits, 1, 1, 1, sizeof bits);
    enum gpu_status status = lane_download(work->lane, &to, precision->bits, 1, &cols, &rows);
    return status == GPU_OK && bits >= 0 ? GPU_EMULATED : GPU_NATIVE;
}

void precision_end(struct precision *precision, struct gpu_work *work, bool done)
{
    struct gpu_lane *lane = work->lane;
    if (!precision->workspace)
        return;
    if (done)
        work->host->precision = used(precision, work);
    enum gpu_status status =
        GPU_CHECK_CUBLAS(cublasSetFixedPointEmulationMantissaBitCountPointer, lane->cublas, NULL);
    /* Setting the stream takes the workspace back (cuBLAS, cublasSetStream()). */
    if (status == GPU_OK)
        status = GPU_CHECK_CUBLAS(cublasSetStream_v2, lane->cublas, lane->stream);
    if (status != GPU_OK)
        precision->workspace = 0;
}
