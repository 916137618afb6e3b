/*
 * What has failed, by the statuses of CUDA, cuBLAS and cuSOLVER. A failure of a library says little about the device:
 * whether the stream still works does. So each call notes its first failure, and gpu_run() judges it at the end.
 * Thread-safe.
 */
#ifndef ACCEL_FAILURE_H
#define ACCEL_FAILURE_H

#include "cuda_api.h"
#include "gpu/device.h"

enum failure_kind {
    FAILURE_NONE,
    FAILURE_LIBRARY,  /* of a function of cuBLAS or cuSOLVER */
    FAILURE_CUSOLVER, /* cuSOLVER does not start */
    FAILURE_DEVICE    /* of the driver, or of all that the device is used by */
};

struct failure {
    enum failure_kind kind;
    char text[GPU_FAILURE_BYTES]; /* "function: what it has answered" */
};

/* From here on this thread's failures are noted anew: the first one tells, and what the driver adds to a library's. *outer keeps
 * what was noted before, until failure_end(). */
void failure_begin(struct failure *outer);
void failure_end(const struct failure *outer);

/* Ends it, and notes what was noted since failure_begin() beside what was before; where this was the outermost, publishes it as the
 * device's. */
void failure_pass_on(const struct failure *outer, struct gpu_device *device);

/* What this thread has noted. */
const struct failure *failure_noted(void);

/* Notes one. */
void failure_note(enum failure_kind kind, const char *function, const char *answer);

/* Makes what was noted of this kind, unless it is the device's already. */
void failure_is_of(enum failure_kind kind);

/* In the child of a fork. */
void failure_fork_child(void);

/* For gpu_failure(). */
void failure_publish(struct gpu_device *device, const struct failure *failure);

/* The status that a result means: out of memory is one that passes, all else is GPU_ERROR and is noted. */
enum gpu_status gpu_check(CUresult result, const char *function);
/* The same where running out of memory is no answer: waiting, entering. It is final, too. */
enum gpu_status gpu_check_final(CUresult result, const char *function);
enum gpu_status gpu_check_cublas(cublasStatus_t status, const char *function);
enum gpu_status gpu_check_cusolver(cusolverStatus_t status, const char *function);

/* Call a function of the table (cuda_functions.def) and take its status. */
#define GPU_CHECK(function, ...) gpu_check(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_FINAL(function, ...)                                                             \
    gpu_check_final(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_CUBLAS(function, ...)                                                            \
    gpu_check_cublas(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_CUSOLVER(function, ...)                                                          \
    gpu_check_cusolver(cuda_api.function##_p(__VA_ARGS__), #function)

#endif
