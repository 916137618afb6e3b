/* The stand-in for cuSOLVER: handles, planted failures and the library itself. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "test_solver.h"

/* What a program's own LAPACK looks like from a library in it. The stand-in must not come here. */
#define OF_PROGRAM(NAME)                                                                           \
    void NAME(void);                                                                               \
    void NAME(void)                                                                                \
    {                                                                                              \
        abort();                                                                                   \
    }
OF_PROGRAM(dgetrf_)
OF_PROGRAM(dpotrf_)
OF_PROGRAM(dtrsm_)
OF_PROGRAM(dsyevd_)
OF_PROGRAM(dlaswp_)
OF_PROGRAM(xerbla_)
OF_PROGRAM(ilaenv_)
OF_PROGRAM(lsame_)
OF_PROGRAM(_gfortran_concat_string)

enum { N = SMALL, BYTES = SMALL_BYTES };

static int wrong_handles(void)
{
    struct solver s;
    CUcontext other;
    cudaStream_t stream;
    CHECK(solver_set_up(&s) == 0);
    cusolverDnParams_t params = s.params;
    s.params = NULL;
    CHECK(factor(&s) == CUSOLVER_STATUS_INVALID_VALUE);
    SOLVER_OK(cusolverDnDestroyParams(params));
    s.params = params;
    CHECK(factor(&s) == CUSOLVER_STATUS_INVALID_VALUE);
    SOLVER_OK(cusolverDnCreateParams(&s.params));
    OK(cuCtxCreate(&other, NULL, 0, 0));
    CHECK(cusolverDnGetStream(s.handle, &stream) == CUSOLVER_STATUS_EXECUTION_FAILED);
    OK(cuCtxDestroy(other));
    SOLVER_OK(cusolverDnGetStream(s.handle, &stream));
    CHECK(stream == s.stream);
    SOLVER_OK(cusolverDnDestroy(s.handle));
    CHECK(factor(&s) == CUSOLVER_STATUS_NOT_INITIALIZED);
    CHECK(cusolverDnGetStream(NULL, &stream) == CUSOLVER_STATUS_NOT_INITIALIZED);
    SOLVER_OK(cusolverDnCreate(&s.handle));
    SOLVER_OK(cusolverDnSetStream(s.handle, s.stream));
    OK(cuStreamDestroy(s.stream));
    CHECK(factor(&s) == CUSOLVER_STATUS_EXECUTION_FAILED);
    return 0;
}

struct user {
    CUcontext context;
    cusolverDnHandle_t handle;
};

static void *use_handle(void *data)
{
    struct user *user = data;
    cudaStream_t stream;
    cuCtxPushCurrent(user->context);
    for (int i = 0; i < 20000; i++)
        cusolverDnGetStream(user->handle, &stream);
    return NULL;
}

static int handle_in_two_threads(void)
{
    struct user user = {.context = begin()};
    pthread_t threads[4];
    SOLVER_OK(cusolverDnCreate(&user.handle));
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use_handle, &user) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}

static int planted(void)
{
    struct solver s;
    cusolverDnHandle_t handle;
    size_t bytes;
    begin();
    CHECK(cusolverDnCreate(&handle) == CUSOLVER_STATUS_ALLOC_FAILED);
    CHECK(cusolverDnCreate(&handle) == CUSOLVER_STATUS_NOT_INITIALIZED);
    CHECK(solver_set_up(&s) == 0);
    CHECK(factor(&s) == CUSOLVER_STATUS_INTERNAL_ERROR);
    CHECK(cusolverDnXpotrf_bufferSize(s.handle, s.params, CUBLAS_FILL_MODE_LOWER, N, CUDA_R_64F,
                                      NULL, N, CUDA_R_64F, &bytes,
                                      &bytes) == CUSOLVER_STATUS_NOT_SUPPORTED);
    OK(cuMemcpyHtoD(s.slot[0], definite, sizeof definite));
    SOLVER_OK(factor(&s));
    OK(cuStreamSynchronize(s.stream));
    OK(cuDevicePrimaryCtxRelease(0));
    return solver_tear_down(&s);
}

static int spoiled(void)
{
    struct solver s;
    double out[N * N];
    CHECK(solver_set_up(&s) == 0);
    for (int i = 0; i < 2; i++) {
        OK(cuMemcpyHtoD(s.slot[0], definite, sizeof definite));
        SOLVER_OK(factor(&s));
        OK(cuStreamSynchronize(s.stream));
        OK(cuMemcpyDtoH(out, s.slot[0], sizeof out));
        CHECK(out[0] + out[N + 1] + out[2 * (N + 1)] + out[3 * (N + 1)] == 8 + i);
    }
    return solver_tear_down(&s);
}

static int facts(void)
{
    cusolverDnHandle_t handle;
    cusolverDeterministicMode_t mode;
    int version;
    SOLVER_OK(cusolverGetVersion(&version));
    CHECK(version == 12000);
    SOLVER_OK(cusolverGetProperty(MAJOR_VERSION, &version));
    CHECK(version == 12);
    CHECK(cusolverGetProperty((libraryPropertyType)3, &version) == CUSOLVER_STATUS_INVALID_VALUE);
    OK(cuInit(0));
    CHECK(cusolverDnCreate(&handle) == CUSOLVER_STATUS_NOT_INITIALIZED);
    begin();
    SOLVER_OK(cusolverDnCreate(&handle));
    SOLVER_OK(cusolverDnGetDeterministicMode(handle, &mode));
    CHECK(mode == CUSOLVER_DETERMINISTIC_RESULTS);
    CHECK(cusolverDnSetDeterministicMode(handle, 0) == CUSOLVER_STATUS_INVALID_VALUE);
    SOLVER_OK(cusolverDnSetDeterministicMode(handle, CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS));
    SOLVER_OK(cusolverDnGetDeterministicMode(handle, &mode));
    CHECK(mode == CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS);
    return 0;
}

/* The other major version, opened the way a program would, beside its own driver library. */
static int older_library(void)
{
    char path[4096];
    Dl_info own;
    CHECK(dladdr((void *)(uintptr_t)cusolverDnCreate, &own) != 0);
    const char *end = strstr(own.dli_fname, "/testgpu/");
    CHECK(end != NULL);
    snprintf(path, sizeof path, "%.*s/testgpu-cuda12/libcusolver.so.11", (int)(end - own.dli_fname),
             own.dli_fname);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    int version = 0;
    cusolverStatus_t (*property)(libraryPropertyType, int *);
    *(void **)&property = dlsym(library, "cusolverGetProperty");
    SOLVER_OK(property(MAJOR_VERSION, &version));
    CHECK(version == 11);
    void *found = dlsym(library, "cusolverDnXgeev");
    CHECK(found == NULL);
    found = dlsym(library, "cusolverDnXgeev_bufferSize");
    CHECK(found == NULL);
    found = dlsym(library, "cusolverDnXhetrf");
    CHECK(found == NULL);
    found = dlsym(library, "cusolverDnXhetrs");
    CHECK(found == NULL);
    found = dlsym(library, "cusolverDnXsyevdx");
    CHECK(found != NULL);
    return 0;
}

const struct scenario solver_handle_scenarios[] = {
    {"solver_wrong_handles",
     wrong_handles,
     {0},
     {"fault what=unknown_params", "fault what=destroyed_params",
      "fault what=handle_of_another_context", "fault what=destroyed_handle",
      "fault what=unknown_handle", "faults n=6\n"}},
    {"solver_handle_in_two_threads",
     handle_in_two_threads,
     {"TESTGPU_DELAY_US=1"},
     {"fault what=handle_in_two_threads"}},
    {"solver_planted",
     planted,
     {"TESTGPU_FAIL=cusolverDnCreate:1,cusolverDnCreate:2=CUSOLVER_STATUS_NOT_INITIALIZED,"
      "cusolverDnXpotrf:1,cusolverDnXpotrf_bufferSize:1=CUSOLVER_STATUS_NOT_SUPPORTED"},
     {"call name=cusolverDnXpotrf n=2 failed=1", "call name=cusolverDnCreate n=3 failed=2",
      "kernels gemm=0 potrf=1\n", "handles=0 contexts=0"}},
    {"solver_spoiled", spoiled, {"TESTGPU_WRONG=2"}, {"planted wrong=2 matched=2 fired=1"}},
    {"solver_facts", facts, {0}, {"fault what=no_context", "faults n=1\n"}},
    {"solver_older_library", older_library, {0}, {0}},
    {0},
};
