/* Names of errors and of functions. */
#include <string.h>
#include "driver.h"

static const struct {
    CUresult code;
    const char *name;
    const char *text;
} errors[] = {
#define ERROR(NAME, TEXT)                                                                          \
    {                                                                                              \
        NAME, #NAME, TEXT                                                                          \
    }
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    ERROR(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
    ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
          "the provided PTX was compiled with an unsupported toolchain"),
    ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    ERROR(CUDA_ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error detected"),
    ERROR(CUDA_ERROR_CONTAINED, "Invalid access of peer GPU memory over nvlink"),
    ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "memory region is already registered"),
    ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer is not a registered memory region"),
    ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these devices"),
    ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    ERROR(CUDA_ERROR_TOO_MANY_PEERS, "peer mapping resources exhausted"),
    ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
    ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ERROR(CUDA_ERROR_INVALID_ADDRESS_SPACE, "operation not supported on this address space"),
    ERROR(CUDA_ERROR_INVALID_PC, "invalid program counter"),
    ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported driver combination"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when capturing"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to an earlier error"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend"),
    ERROR(CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "attempt to terminate a foreign capture"),
    ERROR(CUDA_ERROR_TIMEOUT, "wait operation timed out"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

/* cuBLAS's, cuSOLVER's and cuFFT's, for TESTGPU_FAIL alone: this library does not use their
 * headers. */
static const struct {
    int code;
    const char *name;
} statuses[] = {
    {1, "CUBLAS_STATUS_NOT_INITIALIZED"},
    {3, "CUBLAS_STATUS_ALLOC_FAILED"},
    {7, "CUBLAS_STATUS_INVALID_VALUE"},
    {8, "CUBLAS_STATUS_ARCH_MISMATCH"},
    {11, "CUBLAS_STATUS_MAPPING_ERROR"},
    {13, "CUBLAS_STATUS_EXECUTION_FAILED"},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR"},
    {15, "CUBLAS_STATUS_NOT_SUPPORTED"},
    {16, "CUBLAS_STATUS_LICENSE_ERROR"},
    {1, "CUSOLVER_STATUS_NOT_INITIALIZED"},
    {2, "CUSOLVER_STATUS_ALLOC_FAILED"},
    {3, "CUSOLVER_STATUS_INVALID_VALUE"},
    {4, "CUSOLVER_STATUS_ARCH_MISMATCH"},
    {5, "CUSOLVER_STATUS_MAPPING_ERROR"},
    {6, "CUSOLVER_STATUS_EXECUTION_FAILED"},
    {7, "CUSOLVER_STATUS_INTERNAL_ERROR"},
    {8, "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED"},
    {9, "CUSOLVER_STATUS_NOT_SUPPORTED"},
    {31, "CUSOLVER_STATUS_INVALID_WORKSPACE"},
    {1, "CUFFT_INVALID_PLAN"},
    {2, "CUFFT_ALLOC_FAILED"},
    {3, "CUFFT_INVALID_TYPE"},
    {4, "CUFFT_INVALID_VALUE"},
    {5, "CUFFT_INTERNAL_ERROR"},
    {6, "CUFFT_EXEC_FAILED"},
    {7, "CUFFT_SETUP_FAILED"},
    {8, "CUFFT_INVALID_SIZE"},
    {11, "CUFFT_INVALID_DEVICE"},
    {13, "CUFFT_NO_WORKSPACE"},
    {14, "CUFFT_NOT_IMPLEMENTED"},
    {16, "CUFFT_NOT_SUPPORTED"},
};

bool error_by_name(const char *name, int *code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(errors[i].name, name) == 0) {
            *code = (int)errors[i].code;
            return true;
        }
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (strcmp(statuses[i].name, name) == 0) {
            *code = statuses[i].code;
            return true;
        }
    return false;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **name)
{
    DRIVER_ENTER(TESTGPU_ANYTIME, "error=%d", (int)error);
    if (name == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    *name = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == error)
            *name = errors[i].name;
    TESTGPU_RETURN(*name != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **text)
{
    DRIVER_ENTER(TESTGPU_ANYTIME, "error=%d", (int)error);
    if (text == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == error)
            *text = errors[i].text;
    TESTGPU_RETURN(*text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuGetProcAddress_v1(const char *symbol, void **function, int version,
                                     cuuint64_t flags) __asm__("cuGetProcAddress");

/* The name is written before cuda.h turns it into that of its newest version; the address after. */
#define SINCE(NAME, VERSION)                                                                       \
    {                                                                                              \
#        NAME, VERSION, (void (*)(void))NAME                                                       \
    }
#define FUNCTION(NAME)                                                                             \
    {                                                                                              \
#        NAME, 4000, (void (*)(void))NAME                                                          \
    }

static const struct {
    const char *name;
    int since;
    void (*address)(void);
} functions[] = {
    FUNCTION(cuInit),
    FUNCTION(cuDriverGetVersion),
    FUNCTION(cuDeviceGetCount),
    FUNCTION(cuDeviceGet),
    FUNCTION(cuDeviceGetName),
    FUNCTION(cuDeviceGetUuid),
    FUNCTION(cuDeviceGetAttribute),
    FUNCTION(cuDeviceTotalMem),
    FUNCTION(cuDeviceGetPCIBusId),
    FUNCTION(cuDeviceCanAccessPeer),
    SINCE(cuDeviceGetP2PAttribute, 8000),
    FUNCTION(cuCtxEnablePeerAccess),
    FUNCTION(cuCtxDisablePeerAccess),
    FUNCTION(cuMemcpyPeerAsync),
    FUNCTION(cuDevicePrimaryCtxRetain),
    FUNCTION(cuDevicePrimaryCtxRelease),
    FUNCTION(cuDevicePrimaryCtxGetState),
    FUNCTION(cuDevicePrimaryCtxSetFlags),
    {"cuCtxCreate", 3020, (void (*)(void))cuCtxCreate_v2},
    SINCE(cuCtxCreate, 12050),
    FUNCTION(cuCtxDestroy),
    FUNCTION(cuCtxPushCurrent),
    FUNCTION(cuCtxPopCurrent),
    FUNCTION(cuCtxGetCurrent),
    FUNCTION(cuCtxSetCurrent),
    FUNCTION(cuCtxGetDevice),
    FUNCTION(cuCtxSynchronize),
    FUNCTION(cuCtxGetStreamPriorityRange),
    FUNCTION(cuMemGetInfo),
    FUNCTION(cuMemAlloc),
    FUNCTION(cuMemFree),
    FUNCTION(cuMemAllocManaged),
    SINCE(cuMemPoolCreate, 11020),
    SINCE(cuMemPoolDestroy, 11020),
    SINCE(cuMemPoolSetAccess, 11020),
    SINCE(cuMemPoolTrimTo, 11020),
    SINCE(cuMemAllocFromPoolAsync, 11020),
    SINCE(cuMemFreeAsync, 11020),
    FUNCTION(cuMemHostAlloc),
    FUNCTION(cuMemAllocHost),
    FUNCTION(cuMemFreeHost),
    FUNCTION(cuMemHostRegister),
    FUNCTION(cuMemHostUnregister),
    FUNCTION(cuMemcpy),
    FUNCTION(cuMemcpyAsync),
    FUNCTION(cuMemcpyHtoD),
    FUNCTION(cuMemcpyDtoH),
    FUNCTION(cuMemcpyDtoD),
    FUNCTION(cuMemcpyHtoDAsync),
    FUNCTION(cuMemcpyDtoHAsync),
    FUNCTION(cuMemcpyDtoDAsync),
    FUNCTION(cuMemcpy2D),
    FUNCTION(cuMemcpy2DUnaligned),
    FUNCTION(cuMemcpy2DAsync),
    FUNCTION(cuMemsetD8),
    FUNCTION(cuMemsetD8Async),
    FUNCTION(cuStreamCreate),
    FUNCTION(cuStreamCreateWithPriority),
    FUNCTION(cuStreamDestroy),
    FUNCTION(cuStreamSynchronize),
    FUNCTION(cuStreamQuery),
    FUNCTION(cuStreamWaitEvent),
    FUNCTION(cuStreamGetCtx),
    SINCE(cuStreamBeginCapture, 10010),
    SINCE(cuStreamEndCapture, 10000),
    SINCE(cuStreamIsCapturing, 10000),
    SINCE(cuThreadExchangeStreamCaptureMode, 10010),
    SINCE(cuGraphDestroy, 10000),
    SINCE(cuLaunchHostFunc, 10000),
    FUNCTION(cuModuleLoadData),
    FUNCTION(cuModuleUnload),
    FUNCTION(cuModuleGetFunction),
    FUNCTION(cuFuncGetAttribute),
    FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    FUNCTION(cuLaunchKernel),
    FUNCTION(cuLaunchCooperativeKernel),
    FUNCTION(cuEventCreate),
    FUNCTION(cuEventRecord),
    FUNCTION(cuEventSynchronize),
    FUNCTION(cuEventQuery),
    FUNCTION(cuEventElapsedTime),
    FUNCTION(cuEventDestroy),
    FUNCTION(cuPointerGetAttribute),
    FUNCTION(cuPointerGetAttributes),
    FUNCTION(cuGetErrorName),
    FUNCTION(cuGetErrorString),
    {"cuGetProcAddress", 11030, (void (*)(void))cuGetProcAddress_v1},
    SINCE(cuGetProcAddress, 12000),
};

static CUdriverProcAddressQueryResult look_up(const char *symbol, int version, void **function)
{
    bool known = false;
    int newest = 0;
    *function = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(functions[i].name, symbol) != 0)
            continue;
        known = true;
        if (functions[i].since <= version && functions[i].since > newest) {
            newest = functions[i].since;
            memcpy(function, &functions[i].address, sizeof *function);
        }
    }
    if (*function != NULL)
        return CU_GET_PROC_ADDRESS_SUCCESS;
    return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                 : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **function, int version,
                                  cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    DRIVER_ENTER(TESTGPU_ANYTIME, "symbol=%s version=%d flags=%llu", symbol != NULL ? symbol : "-",
                 version, (unsigned long long)flags);
    if (symbol == NULL || function == NULL || version > DRIVER_VERSION)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    CUdriverProcAddressQueryResult found = look_up(symbol, version, function);
    if (status != NULL)
        *status = found;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

/* The form of CUDA 11, under the name without a version. */
CUresult CUDAAPI cuGetProcAddress_v1(const char *symbol, void **function, int version,
                                     cuuint64_t flags)
{
    DRIVER_ENTER(TESTGPU_ANYTIME, "symbol=%s version=%d flags=%llu", symbol != NULL ? symbol : "-",
                 version, (unsigned long long)flags);
    if (symbol == NULL || function == NULL || version > DRIVER_VERSION)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    TESTGPU_RETURN(look_up(symbol, version, function) == CU_GET_PROC_ADDRESS_SUCCESS
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_NOT_FOUND);
}

/* The first form of cuDeviceGetUuid, which CUDA 12 still has. */
#undef cuDeviceGetUuid
CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}
