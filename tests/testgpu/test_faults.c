/* Planted failures, misuse, capture, fork and exit. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test_testgpu.h"

static int not_initialised(void)
{
    int count;
    CUcontext context;
    CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cuCtxGetCurrent(&context) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    CHECK(count == 1);
    return 0;
}

static int no_device(void)
{
    CHECK(cuInit(0) == CUDA_ERROR_NO_DEVICE);
    return 0;
}

static int no_context(void)
{
    CUdeviceptr device;
    cublasHandle_t handle;
    OK(cuInit(0));
    CHECK(cuMemAlloc(&device, 1) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cublasCreate(&handle) == CUBLAS_STATUS_NOT_INITIALIZED);
    CHECK(cuCtxPopCurrent(NULL) == CUDA_ERROR_INVALID_CONTEXT);
    return 0;
}

static int fails_once(void)
{
    CUdeviceptr device;
    begin();
    OK(cuMemAlloc(&device, 1));
    CHECK(cuMemAlloc(&device, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc(&device, 1));
    CHECK(cuMemcpyHtoD(device, "a", 1) == CUDA_ERROR_UNKNOWN);
    OK(cuMemcpyHtoD(device, "a", 1));
    return 0;
}

static int fails_from_then_on(void)
{
    CUstream stream;
    begin();
    OK(cuStreamCreate(&stream, 0));
    CHECK(cuStreamCreate(&stream, 0) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuStreamCreate(&stream, 0) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuStreamSynchronize(NULL) == 46);
    return 0;
}

static int any_call_fails(void)
{
    int count;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_UNKNOWN);
    OK(cuDeviceGetCount(&count));
    return 0;
}

static int planted_sticky(void)
{
    CUdeviceptr device;
    begin();
    CHECK(cuMemAlloc(&device, 1) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(cuMemAlloc(&device, 1) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
    OK(cuDevicePrimaryCtxRelease(0));
    return 0;
}

static int planted_in_a_stream(void)
{
    CUdeviceptr device;
    CUstream stream;
    char back = 'x';
    begin();
    OK(cuMemAlloc(&device, 1));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpyHtoD(device, "a", 1));
    struct gate gate;
    OK(gate_close(&gate, stream));
    OK(cuMemcpyDtoHAsync(&back, device, 1, stream));
    gate_open(&gate);
    CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ECC_UNCORRECTABLE);
    CHECK(cuMemFree(device) == CUDA_ERROR_ECC_UNCORRECTABLE);
    CHECK(back == 'x');
    return 0;
}

static int cublas_fails(void)
{
    cublasHandle_t handle;
    begin();
    CHECK(cublasCreate(&handle) == CUBLAS_STATUS_ALLOC_FAILED);
    BLAS_OK(cublasCreate(&handle));
    CHECK(cublasSetStream(handle, NULL) == CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(cublasSetStream(handle, NULL) == CUBLAS_STATUS_INTERNAL_ERROR);
    BLAS_OK(cublasSetStream(handle, NULL));
    double one = 1;
    CHECK(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, 0, 0, &one, NULL, 1, NULL, 1, &one, NULL,
                      1) == CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(cublasDgemm_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, 0, 0, &one, NULL, 1, NULL, 1, &one,
                         NULL, 1) == CUBLAS_STATUS_EXECUTION_FAILED);
    BLAS_OK(cublasDestroy(handle));
    return 0;
}

static int forked(void)
{
    CUcontext current;
    begin();
    pid_t child = fork();
    if (child == 0) {
        int count;
        if (cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED ||
            cuInit(0) != CUDA_ERROR_NOT_INITIALIZED)
            _exit(1);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(cuCtxGetCurrent(&current));
    return 0;
}

static int forked_before(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(cuInit(0) != CUDA_SUCCESS);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(cuInit(0));
    return 0;
}

static void too_late(void)
{
    int count;
    if (cuDeviceGetCount(&count) != CUDA_ERROR_DEINITIALIZED)
        _exit(3);
}

static int deinitialised(void)
{
    CHECK(atexit(too_late) == 0);
    begin();
    return 0;
}

struct capture {
    CUcontext context;
    CUstreamCaptureMode mode;
    CUresult code;
};

static void *allocate_elsewhere(void *data)
{
    struct capture *capture = data;
    CUdeviceptr device;
    CUstreamCaptureMode mode = capture->mode;
    cuCtxPushCurrent(capture->context);
    cuThreadExchangeStreamCaptureMode(&mode);
    capture->code = cuMemAlloc(&device, 16);
    if (capture->code == CUDA_SUCCESS)
        capture->code = cuMemFree(device);
    cuThreadExchangeStreamCaptureMode(&mode);
    return NULL;
}

static CUresult allocate_in_thread(CUcontext context, CUstreamCaptureMode mode)
{
    struct capture capture = {.context = context, .mode = mode};
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate_elsewhere, &capture) != 0)
        abort();
    pthread_join(thread, NULL);
    return capture.code;
}

static int capture_rule(void)
{
    CUcontext context = begin();
    CUstream stream;
    CUgraph graph;
    CUstreamCaptureStatus status;
    CUdeviceptr device;
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK(cuMemAlloc(&device, 16));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));

    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemsetD8Async(device, 1, 16, stream));
    OK(allocate_in_thread(context, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(allocate_in_thread(context, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuThreadExchangeStreamCaptureMode(&relaxed));
    CHECK(relaxed == CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuCtxSynchronize());
    OK(cuThreadExchangeStreamCaptureMode(&relaxed));
    OK(cuStreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));

    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(allocate_in_thread(context, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(cuStreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == NULL);

    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(allocate_in_thread(context, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuStreamSynchronize(NULL) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuStreamSynchronize(stream));
    OK(cuMemFree(device));
    OK(cuStreamDestroy(stream));
    return 0;
}

static int procedures(void)
{
    void *found;
    int version;
    CUdriverProcAddressQueryResult status;
    OK(cuDriverGetVersion(&version));
    CHECK(version == 13000);
    CHECK(cuGetProcAddress("cuMemAlloc", &found, 13010, 0, &status) == CUDA_ERROR_INVALID_VALUE);
    OK(cuGetProcAddress("cuMemAlloc", &found, 12000, 0, &status));
    CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS && found == dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    OK(cuGetProcAddress("cuCtxCreate", &found, 12000, 0, &status));
    CHECK(found == dlsym(RTLD_DEFAULT, "cuCtxCreate_v2"));
    OK(cuGetProcAddress("cuCtxCreate", &found, 13000, 0, &status));
    CHECK(found == dlsym(RTLD_DEFAULT, "cuCtxCreate_v4"));
    OK(cuGetProcAddress("cuMemAlloc_v2", &found, 12000, 0, &status));
    CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND && found == NULL);
    static const char *const older[] = {"cuEventElapsedTime", "cuDeviceGetUuid", "cuGetProcAddress",
                                        "cuCtxCreate_v2"};
    for (size_t i = 0; i < sizeof older / sizeof *older; i++)
        CHECK(dlsym(RTLD_DEFAULT, older[i]) != NULL);
    /* The forms with 32-bit addresses are not there to be picked by mistake. */
    CHECK(dlsym(RTLD_DEFAULT, "cuMemAlloc") == NULL);
    const char *name;
    OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
    CHECK(strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    CHECK(cuGetErrorString((CUresult)12345, &name) == CUDA_ERROR_INVALID_VALUE);
    return 0;
}

static int device_facts(void)
{
    int major, ratio, pageable;
    char name[32];
    size_t bytes;
    OK(cuInit(0));
    OK(cuDeviceGetName(name, sizeof name, 0));
    CHECK(strcmp(name, "Test GPU") == 0);
    OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    OK(cuDeviceGetAttribute(&ratio, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 0));
    OK(cuDeviceGetAttribute(&pageable, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0));
    CHECK(major == 9 && ratio == 2 && pageable == 0);
    OK(cuDeviceTotalMem(&bytes, 0));
    CHECK(bytes == 3ull << 30);
    CHECK(cuDeviceTotalMem(&bytes, 1) == CUDA_ERROR_INVALID_DEVICE);
    return 0;
}

const struct scenario fault_scenarios[] = {
    {"not_initialised", not_initialised, {0}, {0}},
    {"no_device", no_device, {"TESTGPU_DEVICES=0"}, {0}},
    {"no_context", no_context, {0}, {"fault what=no_context where=cuMemAlloc_v2", "faults n=3\n"}},
    {"fails_once",
     fails_once,
     {"TESTGPU_FAIL=cuMemAlloc:2,cuMemcpyHtoD_v2:1"},
     {"planted function=cuMemAlloc nth=2 matched=3 fired=1", "name=cuMemAlloc_v2 n=3 failed=1"}},
    {"fails_from_then_on",
     fails_from_then_on,
     {"TESTGPU_FAIL=cuStreamCreate:2+=CUDA_ERROR_INVALID_HANDLE,cuStreamSynchronize:1=46"},
     {"planted function=cuStreamCreate nth=2+ matched=3 fired=2"}},
    {"any_call_fails", any_call_fails, {"TESTGPU_FAIL=*:3"}, {"nth=3 matched=4 fired=1"}},
    {"planted_sticky",
     planted_sticky,
     {"TESTGPU_FAIL=cuMemAlloc:1=CUDA_ERROR_LAUNCH_FAILED"},
     {"leaked device_bytes=0"}},
    {"planted_in_a_stream",
     planted_in_a_stream,
     {"TESTGPU_FAIL=async:2=CUDA_ERROR_ECC_UNCORRECTABLE"},
     {"planted function=async nth=2 matched=2 fired=1", "lost device_bytes=1 "}},
    {"cublas_fails",
     cublas_fails,
     {"TESTGPU_FAIL=cublasCreate:1,cublasSetStream:1,cublasSetStream_v2:2="
      "CUBLAS_STATUS_INTERNAL_ERROR,cublasDgemm:1,cublasDgemm_v2_64:1"},
     {"handles=0", "call name=cublasDgemm_v2_64 n=1 failed=1"}},
    {"forked", forked, {0}, {"fault what=forked where=cuDeviceGetCount", "faults n=2\n"}},
    {"forked_before", forked_before, {0}, {0}},
    {"deinitialised", deinitialised, {"TESTGPU_EXIT_EARLY=1"}, {"contexts=1"}},
    {"capture_rule", capture_rule, {0}, {"fault what=unsafe_in_capture", "faults n=2\n"}},
    {"procedures", procedures, {0}, {0}},
    {"device_facts", device_facts, {"TESTGPU_MEMORY=3G"}, {0}},
    {0},
};
