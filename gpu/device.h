/*
 * The device in use, inside gpu/: its context, its failures, the way in and out of CUDA for one
 * call.
 */
#ifndef ACCEL_DEVICE_H
#define ACCEL_DEVICE_H

#include "cuda_api.h"
#include "gpu.h"

struct gpu_device {
    CUdevice device;
    CUcontext context; /* the primary one, shared with the program if it uses the runtime API */
    int ordinal;
    int64_t budget; /* bytes of its memory that we may use */
};

/* Set by gpu_start(), constant afterwards. */
extern struct gpu_device gpu_device;

/* The calling thread inside our context, and what it had before. */
struct gpu_scope {
    CUstreamCaptureMode mode;
    bool mode_exchanged;
};

/* Makes our context current. Another thread's graph capture is not disturbed by what follows: this
 * thread's capture mode is relaxed meanwhile. */
enum gpu_status gpu_enter(struct gpu_scope *scope);
void gpu_leave(const struct gpu_scope *scope);

/* The status that a result means: out of memory is one that passes, all else is final and is kept
 * for gpu_failure(). */
enum gpu_status gpu_check(CUresult result, const char *function);
/* The same where running out of memory is no answer: waiting, entering. It is final, too. */
enum gpu_status gpu_check_final(CUresult result, const char *function);
enum gpu_status gpu_check_cublas(cublasStatus_t status, const char *function);
enum gpu_status gpu_check_cusolver(cusolverStatus_t status, const char *function);

/* The status of a call that the original has finished after this one. */
static inline enum gpu_status gpu_finished_else(enum gpu_status status)
{
    return status == GPU_ERROR ? GPU_FINISHED_ELSE : GPU_SHORT_ELSE;
}

/* Call a function of the table (cuda_functions.def) and take its status. */
#define GPU_CHECK(function, ...) gpu_check(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_FINAL(function, ...)                                                             \
    gpu_check_final(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_CUBLAS(function, ...)                                                            \
    gpu_check_cublas(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_CUSOLVER(function, ...)                                                          \
    gpu_check_cusolver(cuda_api.function##_p(__VA_ARGS__), #function)

#endif
