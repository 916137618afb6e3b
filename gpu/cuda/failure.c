#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "gpu/device/ending.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all devices' gpu_failures */

static atomic_bool gone; /* the driver has been unloaded */

static _Thread_local struct failure noted __attribute__((tls_model("initial-exec")));
static _Thread_local int noting __attribute__((tls_model("initial-exec")));

void failure_begin(struct failure *outer)
{
    *outer = noted;
    noted.kind = FAILURE_NONE;
    noted.text[0] = 0;
    noting++;
}

void failure_end(const struct failure *outer)
{
    noting--;
    noted = *outer;
}

const struct failure *failure_noted(void)
{
    return &noted;
}

static void publish(char *to, const char *text)
{
    pthread_mutex_lock(&lock);
    if (!to[0])
        snprintf(to, GPU_FAILURE_BYTES, "%s", text);
    pthread_mutex_unlock(&lock);
}

void failure_publish(struct gpu_device *device, const struct failure *failure)
{
    struct gpu_failures *known = &device->failures;
    if (failure->kind != FAILURE_NONE)
        publish(failure->kind == FAILURE_DEVICE ? known->of_device : known->of_library,
                failure->text);
}

static void note(const struct failure failure)
{
    if (noted.kind == FAILURE_NONE) {
        noted = failure;
    } else if (failure.kind == FAILURE_DEVICE && noted.kind != FAILURE_DEVICE) {
        size_t length = strlen(noted.text);
        snprintf(noted.text + length, sizeof noted.text - length, ", then %.200s", failure.text);
        noted.kind = FAILURE_DEVICE;
    }
}

void failure_note(enum failure_kind kind, const char *function, const char *answer)
{
    struct failure failure = {.kind = kind};
    snprintf(failure.text, sizeof failure.text, "%s: %s", function,
             answer ? answer : "unknown error");
    note(failure);
}

void failure_pass_on(const struct failure *outer, struct gpu_device *device)
{
    struct failure own = noted;
    failure_end(outer);
    if (own.kind == FAILURE_NONE)
        return;
    if (noting) {
        note(own);
    } else {
        own.kind = FAILURE_DEVICE;
        failure_publish(device, &own);
    }
}

void failure_is_of(enum failure_kind kind)
{
    if (noted.kind != FAILURE_DEVICE)
        noted.kind = kind;
}

bool gpu_has_failure(const struct gpu_device *device)
{
    pthread_mutex_lock(&lock);
    bool has = device->failures.of_device[0] != 0;
    pthread_mutex_unlock(&lock);
    return has;
}

const char *gpu_failure(const struct gpu_device *device)
{
    const struct gpu_failures *known = &device->failures;
    pthread_mutex_lock(&lock);
    const char *text = known->of_device[0]    ? known->of_device
                       : known->of_library[0] ? known->of_library
                                              : "no reason known";
    pthread_mutex_unlock(&lock);
    return text;
}

bool gpu_is_gone(void)
{
    return atomic_load(&gone) || ending_has_begun();
}

void failure_fork_child(void)
{
    pthread_mutex_init(&lock, NULL);
}

/* ---- Statuses ---- */

enum gpu_status gpu_check(CUresult result, const char *function)
{
    return result == CUDA_ERROR_OUT_OF_MEMORY ? GPU_NO_MEMORY : gpu_check_final(result, function);
}

enum gpu_status gpu_check_final(CUresult result, const char *function)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return GPU_OK;
    if (result == CUDA_ERROR_DEINITIALIZED)
        atomic_store(&gone, true);
    CUDA(cuGetErrorName)(result, &name);
    failure_note(FAILURE_DEVICE, function, name);
    return GPU_ERROR;
}

enum gpu_status gpu_check_cublas(cublasStatus_t status, const char *function)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return GPU_OK;
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
        return GPU_NO_MEMORY;
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH)
        return GPU_UNSUPPORTED;
    failure_note(FAILURE_LIBRARY, function,
                 CUDA(cublasGetStatusName) ? CUDA(cublasGetStatusName)(status) : "cuBLAS failed");
    return GPU_ERROR;
}

/* Returns the name of a status, for which cuSOLVER has no function, or NULL. */
static const char *cusolver_name(cusolverStatus_t status)
{
#define NAME(status)                                                                               \
    case status:                                                                                   \
        return #status
    switch (status) {
        NAME(CUSOLVER_STATUS_NOT_INITIALIZED);
        NAME(CUSOLVER_STATUS_MAPPING_ERROR);
        NAME(CUSOLVER_STATUS_EXECUTION_FAILED);
        NAME(CUSOLVER_STATUS_INTERNAL_ERROR);
    default:
        return NULL;
    }
#undef NAME
}

/* cuSOLVER leaves operands untouched if it does not take the arguments, such as sizes beyond 32
 * bits. */
enum gpu_status gpu_check_cusolver(cusolverStatus_t status, const char *function)
{
    char number[32];
    switch (status) {
    case CUSOLVER_STATUS_SUCCESS:
        return GPU_OK;
    case CUSOLVER_STATUS_ALLOC_FAILED:
        return GPU_NO_MEMORY;
    case CUSOLVER_STATUS_NOT_SUPPORTED:
    case CUSOLVER_STATUS_ARCH_MISMATCH:
    case CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
    case CUSOLVER_STATUS_INVALID_VALUE:
        return GPU_UNSUPPORTED;
    default:
        snprintf(number, sizeof number, "cuSOLVER status %d", (int)status);
        failure_note(FAILURE_LIBRARY, function,
                     cusolver_name(status) ? cusolver_name(status) : number);
        return GPU_ERROR;
    }
}
