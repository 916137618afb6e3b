#define _GNU_SOURCE
#include "driver.h"
#include "gpu/cuda/api/find_cuda.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda cuda;

static CUcontext context;
static CUdevice device;
static char failure[512];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Failures ---- */

static void fail(const char *function, const char *why)
{
    pthread_mutex_lock(&lock);
    if (!failure[0])
        snprintf(failure, sizeof failure, "%s%s%s", function, *function ? ": " : "", why);
    pthread_mutex_unlock(&lock);
}

bool driver_is_ok(CUresult result, const char *function)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return true;
    if (!cuda.cuGetErrorName || cuda.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
        name = "an unknown error";
    fail(function, name);
    return false;
}

static bool is_success(int status, const char *function)
{
    char text[32];
    if (status == 0)
        return true;
    snprintf(text, sizeof text, "status %d", status);
    fail(function, text);
    return false;
}

bool cublas_is_ok(cublasStatus_t status, const char *function)
{
    return is_success((int)status, function); /* CUBLAS_STATUS_SUCCESS is 0 */
}

bool cusolver_is_ok(cusolverStatus_t status, const char *function)
{
    return is_success((int)status, function); /* CUSOLVER_STATUS_SUCCESS is 0 */
}

const char *driver_failure(void)
{
    return failure;
}

void driver_forget(void)
{
    failure[0] = 0;
}

/* ---- Opening ---- */

struct search {
    const char *name;
    void *handle;
};

static bool open_in(const char *folder, void *context)
{
    struct search *search = context;
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, search->name) < (int)sizeof path)
        search->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return search->handle;
}

/* In libaccel's places, in its order. */
static void *open_library(const char *name)
{
    const char *folder = getenv("ACCEL_CUDA_DIR");
    struct search search = {name, NULL};
    if (folder && *folder && open_in(folder, &search))
        return search.handle;
    find_cuda_environment(open_in, &search);
    if (!search.handle)
        search.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!search.handle)
        find_cuda_system(open_in, &search);
    return search.handle;
}

const char *driver_path(void)
{
    Dl_info info;
    void *address;
    memcpy(&address, &cuda.cuInit, sizeof address);
    return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

/* Looks a function up and stores its address; false where it is required and not there. */
static bool look_up(void *library, const char *name, void *address, bool required)
{
    void *found = dlsym(library, name);
    memcpy(address, &found, sizeof found);
    if (!found && required)
        fail(name, "the library has no such function");
    return found || !required;
}

#define NAME(x)             #x
#define LOOK_UP(name, need) good = look_up(library, NAME(name), &cuda.name, need) && good;
#define REQUIRED(name)      LOOK_UP(name, true)
#define OPTIONAL(name)      LOOK_UP(name, false)

bool driver_open(void)
{
    bool good = true;
    void *library = open_library("libcuda.so.1");
    if (!library) {
        fail("", dlerror());
        return false;
    }
    DRIVER_REQUIRED(REQUIRED)
    DRIVER_OPTIONAL(OPTIONAL)
    return good;
}

/* Of two versions the newer one that is there; NULL with the failure. */
static void *open_newer(const char *newer, const char *older)
{
    void *library = open_library(newer);
    if (!library)
        library = open_library(older);
    if (!library)
        fail("", dlerror());
    return library;
}

bool driver_open_cublas(void)
{
    void *library = open_newer("libcublas.so.13", "libcublas.so.12");
    bool good = library;
    if (library) {
        CUBLAS_REQUIRED(REQUIRED)
    }
    return good;
}

bool driver_open_cublasxt(void)
{
    void *library = open_newer("libcublas.so.13", "libcublas.so.12");
    bool good = library;
    if (library) {
        CUBLASXT_REQUIRED(REQUIRED)
    }
    return good;
}

/* cuSOLVER 12 is CUDA 13's, and 11 CUDA 12's. */
bool driver_open_cusolver(void)
{
    void *library = open_newer("libcusolver.so.12", "libcusolver.so.11");
    bool good = library;
    if (library) {
        CUSOLVER_REQUIRED(REQUIRED)
    }
    return good;
}

/* ---- The context ---- */

bool driver_enter(void)
{
    if (!context && !(CUDA_OK(cuInit, 0) && CUDA_OK(cuDeviceGet, &device, 0) &&
                      CUDA_OK(cuDevicePrimaryCtxRetain, &context, device)))
        return false;
    return CUDA_OK(cuCtxSetCurrent, context);
}

void driver_stop(void)
{
    if (!context)
        return;
    CUDA_OK(cuCtxSetCurrent, NULL);
    CUDA_OK(cuDevicePrimaryCtxRelease, device);
    context = NULL;
}
