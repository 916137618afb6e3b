/* Device, managed and pinned memory; copies. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test_testgpu.h"

static int unreadable(void)
{
    CUdeviceptr device;
    begin();
    OK(cuMemAlloc(&device, 4096));
    char byte;
    struct iovec here = {&byte, 1};
    struct iovec there = {(void *)(uintptr_t)device, 1};
    CHECK(process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        byte = *(volatile char *)(uintptr_t)device;
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    OK(cuMemFree(device));
    return 0;
}

static int poisoned(void)
{
    static const size_t sizes[] = {1, 1000, 100000, (9u << 20) + 5};
    begin();
    for (int i = 0; i < 4; i++) {
        CUdeviceptr device;
        unsigned char *host = calloc(sizes[i], 1);
        OK(cuMemAlloc(&device, sizes[i]));
        OK(cuMemcpyDtoH(host, device, sizes[i]));
        for (size_t at = 0; at < sizes[i]; at++)
            CHECK(host[at] == 0xff);
        OK(cuMemFree(device));
        free(host);
    }
    return 0;
}

static int interior(void)
{
    CUdeviceptr device;
    char back[4] = "";
    begin();
    OK(cuMemAlloc(&device, 1000));
    OK(cuMemcpyHtoD(device + 996, "abc", 4));
    OK(cuMemcpyDtoH(back, device + 996, 4));
    CHECK(memcmp(back, "abc", 4) == 0);
    OK(cuMemFree(device));
    return 0;
}

static int capacity(void)
{
    CUdeviceptr large, small;
    size_t available, total;
    begin();
    OK(cuMemGetInfo(&available, &total));
    CHECK(available == 8u << 20 && total == 8u << 20);
    CHECK(cuMemAlloc(&large, (8u << 20) + 1) == CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc(&large, 6u << 20));
    CHECK(cuMemAlloc(&small, 3u << 20) == CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemGetInfo(&available, &total));
    CHECK(available == 2u << 20);
    cublasHandle_t handle;
    CHECK(cublasCreate(&handle) == CUBLAS_STATUS_ALLOC_FAILED);
    OK(cuMemFree(large));
    BLAS_OK(cublasCreate(&handle));
    OK(cuMemGetInfo(&available, &total));
    CHECK(available == 4u << 20);
    BLAS_OK(cublasDestroy(handle));
    OK(cuMemAlloc(&large, 8u << 20));
    OK(cuMemFree(large));
    return 0;
}

static int addresses_come_back_late(void)
{
    CUdeviceptr first, next;
    begin();
    OK(cuMemAlloc(&first, 1 << 20));
    OK(cuMemFree(first));
    for (int i = 0; i < 100; i++) {
        OK(cuMemAlloc(&next, 1 << 20));
        CHECK(next != first);
        OK(cuMemFree(next));
    }
    return 0;
}

static int out_of_bounds(void)
{
    CUdeviceptr device, other;
    char host[101] = "";
    CUstream stream;
    begin();
    OK(cuMemAlloc(&device, 100));
    OK(cuMemAlloc(&other, 100));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemcpyHtoD(device, host, 101) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cuMemcpyHtoD(other, host, 100) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cuStreamQuery(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cuMemFree(other) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int use_after_free(void)
{
    CUdeviceptr device;
    char host[8] = "kept";
    begin();
    OK(cuMemAlloc(&device, 8));
    OK(cuMemFree(device));
    CHECK(cuMemcpyDtoH(host, device, 8) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(strcmp(host, "kept") == 0);
    return 0;
}

struct opener {
    struct gate gate;
    void *memory;
};

/* The memory is CUDA's until its free begins, which then waits for what is queued. */
static void *open_once_the_free_began(void *data)
{
    struct opener *opener = data;
    unsigned type;
    while (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 (CUdeviceptr)(uintptr_t)opener->memory) == CUDA_SUCCESS)
        sched_yield();
    gate_open(&opener->gate);
    return NULL;
}

static int freed_before_it_ran(void)
{
    CUdeviceptr device;
    CUstream stream;
    struct opener opener;
    pthread_t thread;
    char host[8] = "";
    begin();
    OK(cuMemAlloc(&device, 8));
    opener.memory = (void *)(uintptr_t)device;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(gate_close(&opener.gate, stream));
    OK(cuMemcpyHtoDAsync(device, host, 8, stream));
    CHECK(pthread_create(&thread, NULL, open_once_the_free_began, &opener) == 0);
    OK(cuMemFree(device));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int wrong_frees(void)
{
    CUdeviceptr device;
    void *pinned;
    int stack;
    begin();
    OK(cuMemAlloc(&device, 100));
    CHECK(cuMemFree(device + 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemFree((CUdeviceptr)(uintptr_t)&stack) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(device));
    CHECK(cuMemFree(device) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostAlloc(&pinned, 100, 0));
    CHECK(cuMemFree((CUdeviceptr)(uintptr_t)pinned) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemFreeHost(&stack) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(0));
    return 0;
}

static int pinned_freed_after_use(void)
{
    CUdeviceptr device;
    CUstream stream;
    void *pinned;
    begin();
    OK(cuMemAlloc(&device, 64));
    OK(cuMemHostAlloc(&pinned, 64, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 20; i++)
        OK(cuMemcpyHtoDAsync(device, pinned, 64, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemFreeHost(pinned));
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(device));
    return 0;
}

static int pinned_freed_while_queued(void)
{
    CUdeviceptr device;
    CUstream stream;
    struct opener opener;
    pthread_t thread;
    begin();
    OK(cuMemAlloc(&device, 64));
    OK(cuMemHostAlloc(&opener.memory, 64, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(gate_close(&opener.gate, stream));
    OK(cuMemcpyHtoDAsync(device, opener.memory, 64, stream));
    CHECK(pthread_create(&thread, NULL, open_once_the_free_began, &opener) == 0);
    OK(cuMemFreeHost(opener.memory));
    CHECK(pthread_join(thread, NULL) == 0);
    OK(cuCtxSynchronize());
    return 0;
}

/* Pages of the host's move to a device that uses its page tables; a copy is not told that they are
 * the device's. */
#undef cuMemPrefetchAsync
CUresult cuMemPrefetchAsync(CUdeviceptr from, size_t bytes, CUdevice to, CUstream stream);

static int pages_move(void)
{
    const bool tables = getenv("TESTGPU_ATTRIBUTES") != NULL;
    CUdeviceptr device;
    CUstream stream;
    char *host = calloc(3, 4096);
    begin();
    CHECK(host != NULL);
    OK(cuMemAlloc(&device, 8192));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    const CUdeviceptr at = ((CUdeviceptr)(uintptr_t)host + 4095) / 4096 * 4096;
    CHECK((cuMemPrefetchAsync(at, 8192, 0, stream) == CUDA_SUCCESS) == tables);
    CHECK(cuMemPrefetchAsync(device, 8192, 0, stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemPrefetchAsync(at, 8192, 5, stream) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyDtoDAsync(device, at, 8192, stream));
    CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    free(host);
    return 0;
}

static int managed_is_late(void)
{
    CUdeviceptr managed, device;
    CUstream stream;
    struct gate gate;
    begin();
    OK(cuMemAllocManaged(&managed, 4, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAlloc(&device, 4));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    char *host = (char *)(uintptr_t)managed;
    memcpy(host, "old", 4);
    OK(cuMemcpyHtoD(device, "new", 4));
    OK(gate_close(&gate, stream));
    OK(cuMemcpyDtoDAsync(managed, device, 4, stream));
    CHECK(strcmp(host, "old") == 0);
    gate_open(&gate);
    OK(cuStreamSynchronize(stream));
    CHECK(strcmp(host, "new") == 0);
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(device));
    OK(cuMemFree(managed));
    return 0;
}

static int attributes_of(CUdeviceptr address, unsigned type, unsigned managed, CUdeviceptr start,
                         size_t bytes)
{
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    unsigned is_type = 99, is_managed = 99;
    int ordinal = 99;
    CUcontext context = NULL, current = NULL;
    CUdeviceptr range = 99;
    size_t size = 99;
    void *data[] = {&is_type, &is_managed, &ordinal, &context, &range, &size};
    OK(cuPointerGetAttributes(6, which, data, address));
    OK(cuCtxGetCurrent(&current));
    CHECK(is_type == type && is_managed == managed && ordinal == 0);
    CHECK(range == start && size == bytes);
    CHECK(context == (bytes != 0 ? current : NULL));
    return 0;
}

static int attributes(void)
{
    CUdeviceptr device, managed;
    void *pinned;
    char plain[16];
    unsigned type;
    begin();
    OK(cuMemAlloc(&device, 1000));
    OK(cuMemAllocManaged(&managed, 2000, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemHostAlloc(&pinned, 3000, 0));
    CHECK(attributes_of(device + 999, CU_MEMORYTYPE_DEVICE, 0, device, 1000) == 0);
    CHECK(attributes_of(managed + 7, CU_MEMORYTYPE_DEVICE, 1, managed, 2000) == 0);
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)pinned;
    CHECK(attributes_of(host, CU_MEMORYTYPE_HOST, 0, host, 3000) == 0);
    CHECK(attributes_of((CUdeviceptr)(uintptr_t)plain, 0, 0, 0, 0) == 0);
    CHECK(attributes_of(device + 1000, 0, 0, 0, 0) == 0);
    CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                (CUdeviceptr)(uintptr_t)plain) == CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    OK(cuMemFree(device));
    CHECK(attributes_of(device, 0, 0, 0, 0) == 0);
    OK(cuMemHostRegister(plain, sizeof plain, 0));
    host = (CUdeviceptr)(uintptr_t)plain;
    CHECK(attributes_of(host, CU_MEMORYTYPE_HOST, 0, host, sizeof plain) == 0);
    CHECK(cuMemHostRegister(plain + 1, 1, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemHostUnregister(plain));
    OK(cuMemFree(managed));
    OK(cuMemFreeHost(pinned));
    return 0;
}

static int two_devices(void)
{
    CUcontext second;
    CUdeviceptr device;
    int count;
    char host[4] = "";
    begin();
    OK(cuDeviceGetCount(&count));
    CHECK(count == 2);
    OK(cuMemAlloc(&device, 4));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    CHECK(cuMemcpyDtoH(host, device, 4) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

/* What one context has registered is pinned for another one only if it says so. */
static int registered_for_one(void)
{
    static char host[2][8];
    static const unsigned flags[] = {CU_MEMHOSTREGISTER_PORTABLE, 0};
    CUcontext second;
    CUdeviceptr device;
    CUstream stream;
    begin();
    for (int i = 0; i < 2; i++)
        OK(cuMemHostRegister(host[i], sizeof host[i], flags[i]));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    OK(cuMemAlloc(&device, sizeof *host));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++)
        OK(cuMemcpyHtoDAsync(device, host[i], sizeof host[i], stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemFree(device));
    for (int i = 0; i < 2; i++)
        OK(cuMemHostUnregister(host[i]));
    return 0;
}

/* One has half of the other's memory, and is half as fast. */
static int unequal_devices(void)
{
    enum { MB = 1 << 20 };
    static const int expected[] = {64, 32};
    static char host[MB];
    CUcontext context[2];
    CUdeviceptr device;
    size_t bytes;
    char name[32];
    OK(cuInit(0));
    for (int i = 0; i < 2; i++) {
        OK(cuDevicePrimaryCtxRetain(&context[i], i));
        OK(cuCtxSetCurrent(context[i]));
        OK(cuDeviceTotalMem(&bytes, i));
        CHECK(bytes == (size_t)expected[i] * MB);
        OK(cuDeviceGetName(name, sizeof name, i));
        CHECK(strcmp(name, i == 0 ? "Test GPU" : "Small GPU") == 0);
        CHECK(cuMemAlloc(&device, bytes + 1) == CUDA_ERROR_OUT_OF_MEMORY);
        OK(cuMemAlloc(&device, MB));
        double start = milliseconds();
        OK(cuMemcpyHtoD(device, host, MB));
        CHECK(milliseconds() - start >= (i == 0 ? 10 : 20));
        OK(cuMemFree(device));
    }
    return 0;
}

static int visible_devices(void)
{
    int count;
    char name[32];
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    CHECK(count == 2);
    OK(cuDeviceGetPCIBusId(name, sizeof name, 0));
    CHECK(strcmp(name, "0000:43:00.0") == 0);
    return 0;
}

static int planes(void)
{
    enum { ROWS = 5, WIDTH = 3, PITCH = 8, DEVICE_PITCH = 6 };
    char from[ROWS * PITCH + 2 * PITCH], to[ROWS * PITCH];
    CUdeviceptr device, other;
    begin();
    OK(cuMemAlloc(&device, ROWS * DEVICE_PITCH));
    OK(cuMemAlloc(&other, ROWS * DEVICE_PITCH));
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)i;
    memset(to, 0, sizeof to);
    CUDA_MEMCPY2D up = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = from,
                        .srcPitch = PITCH,
                        .srcXInBytes = 2,
                        .srcY = 1,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = device,
                        .dstPitch = DEVICE_PITCH,
                        .dstXInBytes = 1,
                        .WidthInBytes = WIDTH,
                        .Height = ROWS};
    OK(cuMemcpy2D(&up));
    CUDA_MEMCPY2D across = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                            .srcDevice = device,
                            .srcPitch = DEVICE_PITCH,
                            .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                            .dstDevice = other,
                            .dstPitch = DEVICE_PITCH,
                            .WidthInBytes = DEVICE_PITCH,
                            .Height = ROWS};
    OK(cuMemcpy2DAsync(&across, NULL));
    CUDA_MEMCPY2D down = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = other,
                          .srcPitch = DEVICE_PITCH,
                          .srcXInBytes = 1,
                          .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .dstDevice = (CUdeviceptr)(uintptr_t)to,
                          .dstPitch = PITCH,
                          .WidthInBytes = WIDTH,
                          .Height = ROWS};
    OK(cuMemcpy2DUnaligned(&down));
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < PITCH; column++)
            CHECK(to[row * PITCH + column] ==
                  (column < WIDTH ? from[(row + 1) * PITCH + column + 2] : 0));
    down.dstPitch = WIDTH - 1;
    CHECK(cuMemcpy2D(&down) == CUDA_ERROR_INVALID_VALUE);
    down.dstPitch = (size_t)1 << 31;
    CHECK(cuMemcpy2D(&down) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(device));
    OK(cuMemFree(other));
    return 0;
}

static int plane_out_of_bounds(void)
{
    char host[64];
    CUdeviceptr device;
    begin();
    OK(cuMemAlloc(&device, 31));
    CUDA_MEMCPY2D down = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = device,
                          .srcPitch = 8,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = host,
                          .dstPitch = 8,
                          .WidthInBytes = 7,
                          .Height = 4};
    OK(cuMemcpy2D(&down)); /* the last row ends at byte 31 */
    down.WidthInBytes = 8;
    CHECK(cuMemcpy2D(&down) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int fills(void)
{
    char host[10];
    CUdeviceptr device;
    begin();
    OK(cuMemAlloc(&device, 10));
    OK(cuMemsetD8(device, 7, 10));
    OK(cuMemsetD8Async(device + 1, 9, 8, NULL));
    OK(cuMemcpyDtoH(host, device, 10));
    CHECK(host[0] == 7 && host[1] == 9 && host[8] == 9 && host[9] == 7);
    CHECK(cuMemcpyHtoD(device, (void *)(uintptr_t)device, 4) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(device));
    return 0;
}

static int leaks(void)
{
    CUdeviceptr device, managed;
    CUstream stream;
    CUevent event;
    cublasHandle_t handle;
    void *pinned;
    begin();
    OK(cuMemAlloc(&device, 1000));
    OK(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemHostAlloc(&pinned, 10, 0));
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    BLAS_OK(cublasCreate(&handle));
    OK(cuMemcpyHtoD(device, pinned, 10));
    return 0;
}

static int released_context_leaks_nothing(void)
{
    CUdeviceptr device;
    CUstream stream;
    begin();
    OK(cuMemAlloc(&device, 1000));
    OK(cuStreamCreate(&stream, 0));
    OK(cuDevicePrimaryCtxRelease(0));
    return 0;
}

/* Of three kinds of host memory, up and down. Registered memory is followed by some that is not. */
static int copies_of_host_memory(void)
{
    enum { BYTES = 8192, REGISTERED = 4096 };
    static _Alignas(4096) char memory[2 * BYTES];
    void *pinned;
    CUdeviceptr device;
    CUstream stream;
    const bool waits = strcmp(getenv("TESTGPU_PAGEABLE"), "2") != 0;
    begin();
    OK(cuMemAlloc(&device, BYTES));
    OK(cuMemHostAlloc(&pinned, BYTES, 0));
    OK(cuMemHostRegister(memory, REGISTERED, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    char *const hosts[] = {pinned, memory, &memory[BYTES]};
    const size_t bytes[] = {BYTES, REGISTERED, BYTES};
    for (int i = 0; i < 3; i++) {
        OK(cuMemcpyHtoDAsync(device, hosts[i], bytes[i], stream));
        CHECK(i < 2 || !waits || cuStreamQuery(stream) == CUDA_SUCCESS);
        OK(cuMemcpyDtoHAsync(hosts[i], device, bytes[i], stream));
        CHECK(i < 2 || !waits || cuStreamQuery(stream) == CUDA_SUCCESS);
    }
    OK(cuMemcpyHtoDAsync(device, memory, REGISTERED + 1, stream));
    OK(cuMemcpyHtoD(device, &memory[BYTES], BYTES)); /* need not be pinned */
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy(stream));
    OK(cuMemHostUnregister(memory));
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(device));
    return 0;
}

#define LINK "TESTGPU_UP_GBPS=0.001", "TESTGPU_DOWN_GBPS=0.001"

const struct scenario memory_scenarios[] = {
    {"unreadable", unreadable, {0}, {"call name=cuMemAlloc_v2 n=1 failed=0"}},
    {"poisoned", poisoned, {0}, {"leaked device_bytes=0 device_allocations=0"}},
    {"interior", interior, {0}, {"copied h2d_bytes=4 d2h_bytes=4 d2d_bytes=0"}},
    {"capacity", capacity, {"TESTGPU_MEMORY=8M"}, {"name=cuMemAlloc_v2 n=4 failed=2"}},
    {"addresses_come_back_late", addresses_come_back_late, {0}, {0}},
    {"out_of_bounds",
     out_of_bounds,
     {0},
     {"fault what=illegal_address where=copy", "testgpu faults n=1\n",
      "lost device_bytes=200 device_allocations=2", "leaked device_bytes=0"}},
    {"use_after_free", use_after_free, {0}, {"fault what=illegal_address"}},
    {"freed_before_it_ran", freed_before_it_ran, {0}, {"fault what=illegal_address"}},
    {"pageable_memory_is_misused",
     copies_of_host_memory,
     {"TESTGPU_PAGEABLE=0"},
     {"fault what=pageable_memory where=cuMemcpyHtoDAsync",
      "fault what=pageable_memory where=cuMemcpyDtoHAsync", "faults n=3\n"}},
    {"pageable_memory_is_slow",
     copies_of_host_memory,
     {LINK, "TESTGPU_PAGEABLE=1"},
     {"up_us=133124 down_us=41779\n"}},
    {"pageable_memory_is_as_other_memory",
     copies_of_host_memory,
     {LINK, "TESTGPU_PAGEABLE=2", "TESTGPU_DELAY_US=0"},
     {"up_us=32769 down_us=20480\n"}},
    {"wrong_frees", wrong_frees, {0}, {"fault what=free_of_unknown_pointer", "faults n=5\n"}},
    {"pinned_freed_after_use", pinned_freed_after_use, {0}, {0}},
    {"pinned_freed_while_queued",
     pinned_freed_while_queued,
     {0},
     {"fault what=host_memory_freed_in_use", "faults n=1\n"}},
    {"pages_move",
     pages_move,
     {"TESTGPU_ATTRIBUTES=100=1"},
     {"migrated bytes=8192\n", "fault what=host_memory_as_device", "faults n=1\n"}},
    {"pages_do_not_move", pages_move, {0}, {"fault what=illegal_address where=copy"}},
    {"managed_is_late", managed_is_late, {0}, {"managed_allocations=0"}},
    {"attributes", attributes, {0}, {"registered=0"}},
    {"two_devices", two_devices, {"TESTGPU_DEVICES=2"}, {"fault what=pointer_of_another_device"}},
    {"registered_for_one",
     registered_for_one,
     {"TESTGPU_DEVICES=2", "TESTGPU_PAGEABLE=0"},
     {"fault what=pageable_memory where=cuMemcpyHtoDAsync", "faults n=1\n"}},
    {"unequal_devices",
     unequal_devices,
     {"TESTGPU_DEVICES=2", "TESTGPU_MEMORY=64M,32M", "TESTGPU_UP_GBPS=0.1048576,0.0524288",
      "TESTGPU_NAME=Test GPU,Small GPU", "TESTGPU_PAGEABLE=2"},
     {"up_us=30000"}},
    {"visible_devices",
     visible_devices,
     {"TESTGPU_DEVICES=4", "CUDA_VISIBLE_DEVICES=3,1,9,0"},
     {0}},
    {"planes", planes, {0}, {"copied h2d_bytes=15 d2h_bytes=15 d2d_bytes=30"}},
    {"plane_out_of_bounds", plane_out_of_bounds, {0}, {"fault what=illegal_address"}},
    {"fills", fills, {0}, {"fault what=device_pointer_as_host", "faults n=1\n"}},
    {"leaks",
     leaks,
     {0},
     {"leaked device_bytes=1000 device_allocations=1 host_allocations=1 streams=1 events=1 "
      "handles=1 contexts=1 managed_bytes=1000 managed_allocations=1"}},
    {"released_context_leaks_nothing",
     released_context_leaks_nothing,
     {0},
     {"leaked device_bytes=0 device_allocations=0 host_allocations=0 streams=0 events=0 "
      "handles=0 contexts=0"}},
    {0},
};
