/* Memory pools: what they check, the order in streams, who may use their memory. */
#include <stdlib.h>
#include <string.h>
#include "test_testgpu.h"

enum { BYTES = 1 << 20 };

static const CUmemPoolProps usual = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

/* A pool of the first device, some of its memory, and two streams. */
struct fixture_pool {
    CUcontext context;
    CUmemoryPool pool;
    CUstream stream, other;
    CUdeviceptr memory;
};

static int begin_pool(struct fixture_pool *f)
{
    f->context = begin();
    OK(cuMemPoolCreate(&f->pool, &usual));
    OK(cuStreamCreate(&f->stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&f->other, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocFromPoolAsync(&f->memory, BYTES, f->pool, f->stream));
    return 0;
}

static int end_pool(struct fixture_pool *f)
{
    OK(cuMemFreeAsync(f->memory, f->stream));
    OK(cuStreamSynchronize(f->stream));
    OK(cuMemPoolDestroy(f->pool));
    OK(cuStreamDestroy(f->stream));
    OK(cuStreamDestroy(f->other));
    return 0;
}

static int pool_properties(void)
{
    CUmemPoolProps one = usual;
    CUmemoryPool pool;
    begin();
    CHECK(cuMemPoolCreate(NULL, &usual) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemPoolCreate(&pool, NULL) == CUDA_ERROR_INVALID_VALUE);
    one.allocType = (CUmemAllocationType)0;
    CHECK(cuMemPoolCreate(&pool, &one) == CUDA_ERROR_INVALID_VALUE);
    one = usual;
    one.location.type = CU_MEM_LOCATION_TYPE_HOST;
    CHECK(cuMemPoolCreate(&pool, &one) == CUDA_ERROR_INVALID_VALUE);
    one = usual;
    one.location.id = 1;
    CHECK(cuMemPoolCreate(&pool, &one) == CUDA_ERROR_INVALID_DEVICE);
    one = usual;
    one.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CHECK(cuMemPoolCreate(&pool, &one) == CUDA_ERROR_NOT_SUPPORTED);
    one = usual;
    memset(one.reserved, 1, 1);
    CHECK(cuMemPoolCreate(&pool, &one) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolCreate(&pool, &usual));
    OK(cuMemPoolDestroy(pool));
    CHECK(cuMemPoolDestroy(pool) == CUDA_ERROR_INVALID_VALUE);
    return 0;
}

static int no_pools(void)
{
    CUmemoryPool pool;
    int value = 1;
    begin();
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
    CHECK(value == 0 && cuMemPoolCreate(&pool, &usual) == CUDA_ERROR_NOT_SUPPORTED);
    return 0;
}

static int pool_in_order(void)
{
    struct fixture_pool f;
    char back[5];
    CUcontext context = NULL;
    int device = -1;
    CHECK(begin_pool(&f) == 0);
    OK(cuMemsetD8Async(f.memory, 'a', BYTES, f.stream)); /* in the order of its allocation */
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemcpyDtoHAsync(back, f.memory + BYTES - sizeof back, sizeof back, f.other));
    OK(cuStreamSynchronize(f.other));
    CHECK(memcmp(back, "aaaaa", sizeof back) == 0);
    OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, f.memory));
    OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, f.memory));
    CHECK(context == NULL && device == 0);
    return end_pool(&f);
}

static int pool_too_early(void)
{
    struct fixture_pool f;
    struct gate gate;
    begin();
    OK(cuMemPoolCreate(&f.pool, &usual));
    OK(cuStreamCreate(&f.stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&f.other, CU_STREAM_NON_BLOCKING));
    OK(gate_close(&gate, f.stream));
    OK(cuMemAllocFromPoolAsync(&f.memory, BYTES, f.pool, f.stream));
    OK(cuMemsetD8Async(f.memory, 0, BYTES, f.other));
    CHECK(cuStreamSynchronize(f.other) == CUDA_ERROR_ILLEGAL_ADDRESS);
    gate_open(&gate);
    return 0;
}

static int pool_too_late(void)
{
    struct fixture_pool f;
    CHECK(begin_pool(&f) == 0);
    OK(cuMemFreeAsync(f.memory, f.stream));
    OK(cuMemsetD8Async(f.memory, 0, BYTES, f.stream));
    CHECK(cuStreamSynchronize(f.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int pool_wrong_frees(void)
{
    struct fixture_pool f;
    CUdeviceptr plain;
    CHECK(begin_pool(&f) == 0);
    OK(cuMemAlloc(&plain, BYTES));
    CHECK(cuMemFreeAsync(plain, f.stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemFreeAsync(f.memory + 1, f.stream) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(f.memory, f.stream));
    CHECK(cuMemFreeAsync(f.memory, f.stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemFree(f.memory) == CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemAllocFromPoolAsync(&f.memory, BYTES, f.pool, f.stream));
    OK(cuMemFree(plain));
    return end_pool(&f);
}

/* While a copy from it runs. */
static int pool_freed_in_use(void)
{
    struct fixture_pool f;
    static char back[BYTES];
    CHECK(begin_pool(&f) == 0);
    OK(cuStreamSynchronize(f.stream));
    OK(cuMemcpyDtoHAsync(back, f.memory, BYTES, f.other)); /* 0.1 s */
    for (double start = milliseconds(); milliseconds() < start + 30;)
        continue;
    OK(cuMemFreeAsync(f.memory, f.stream));
    OK(cuStreamSynchronize(f.stream));
    OK(cuStreamSynchronize(f.other));
    OK(cuMemPoolDestroy(f.pool));
    return 0;
}

static size_t available(void)
{
    size_t left = 0, all;
    return cuMemGetInfo(&left, &all) == CUDA_SUCCESS ? left : 0;
}

/* Freed memory is the pool's until somebody waits, and can be had from it again. */
static int pool_capacity(void)
{
    enum { LARGE = 5 << 20 }; /* of 8 MiB */
    struct fixture_pool f;
    CUdeviceptr more;
    CHECK(begin_pool(&f) == 0);
    CHECK(available() == (7 << 20));
    CHECK(cuMemAllocFromPoolAsync(&more, 8 << 20, f.pool, f.stream) == CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAllocFromPoolAsync(&more, LARGE, f.pool, f.stream));
    CHECK(available() == (2 << 20));
    OK(cuMemFreeAsync(more, f.stream));
    while (cuStreamQuery(f.stream) == CUDA_ERROR_NOT_READY)
        continue;
    CHECK(available() == (2 << 20));
    OK(cuMemAllocFromPoolAsync(&more, LARGE, f.pool, f.stream));
    CHECK(available() == (2 << 20));
    OK(cuMemFreeAsync(more, f.stream));
    while (cuStreamQuery(f.stream) == CUDA_ERROR_NOT_READY)
        continue;
    OK(cuMemPoolTrimTo(f.pool, 0));
    CHECK(available() == (7 << 20));
    CHECK(end_pool(&f) == 0);
    CHECK(available() == (8 << 20));
    return 0;
}

static int pool_leaks(void)
{
    struct fixture_pool f;
    CHECK(begin_pool(&f) == 0);
    OK(cuStreamSynchronize(f.stream));
    return 0;
}

static int pool_destroyed_in_use(void)
{
    struct fixture_pool f;
    CUdeviceptr more;
    CHECK(begin_pool(&f) == 0);
    OK(cuMemPoolDestroy(f.pool));
    CHECK(cuMemAllocFromPoolAsync(&more, BYTES, f.pool, f.stream) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemsetD8Async(f.memory, 0, BYTES, f.stream));
    OK(cuMemFreeAsync(f.memory, f.stream));
    OK(cuStreamSynchronize(f.stream));
    CHECK(available() == (8 << 20));
    return 0;
}

static int pool_in_capture(void)
{
    struct fixture_pool f;
    CUdeviceptr more;
    CHECK(begin_pool(&f) == 0);
    OK(cuStreamBeginCapture(f.other, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuMemAllocFromPoolAsync(&more, BYTES, f.pool, f.other) ==
          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return end_pool(&f);
}

static int pool_failures(void)
{
    struct fixture_pool f;
    CUdeviceptr more;
    CHECK(begin_pool(&f) == 0);
    CHECK(cuMemAllocFromPoolAsync(&more, BYTES, f.pool, f.stream) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cuMemFreeAsync(f.memory, f.stream) == CUDA_ERROR_UNKNOWN);
    return end_pool(&f);
}

/* ---- Other devices ---- */

static CUresult open_to(CUmemoryPool pool, int device, CUmemAccess_flags flags)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    .flags = flags};
    return cuMemPoolSetAccess(pool, &access, 1);
}

static int pool_access(void)
{
    const bool reach = getenv("TESTGPU_PEER_GBPS") != NULL;
    struct fixture_pool f;
    CHECK(begin_pool(&f) == 0);
    CHECK(open_to(f.pool, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ==
          (reach ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE));
    CHECK(open_to(f.pool, 2, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(open_to(f.pool, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE) == CUDA_ERROR_INVALID_VALUE);
    CHECK(open_to(f.pool, 0, (CUmemAccess_flags)2) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemPoolSetAccess(f.pool, NULL, 1) == CUDA_ERROR_INVALID_VALUE);
    return end_pool(&f);
}

/* The second device copies from the first one's pool, which is open to it or not. */
static int copy_over(bool opens, bool closes)
{
    struct fixture_pool f;
    CUcontext second;
    CUstream stream;
    CUdeviceptr to;
    char back[2][4];
    CHECK(begin_pool(&f) == 0);
    OK(cuMemsetD8Async(f.memory, 'a', 4, f.stream));
    OK(cuMemsetD8Async(f.memory + BYTES - 4, 'z', 4, f.stream));
    OK(cuStreamSynchronize(f.stream));
    if (opens)
        OK(open_to(f.pool, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    if (closes)
        OK(open_to(f.pool, 1, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxPushCurrent(second));
    OK(cuMemAlloc(&to, BYTES));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpyDtoDAsync(to, f.memory, BYTES, stream));
    if (!opens || closes) {
        CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
        return 0;
    }
    OK(cuMemcpyDtoHAsync(back[0], to, 4, stream));
    OK(cuMemcpyDtoHAsync(back[1], to + BYTES - 4, 4, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(memcmp(back, "aaaazzzz", 8) == 0);
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(to));
    OK(cuCtxPopCurrent(NULL));
    return end_pool(&f);
}

static int pool_copies(void)
{
    return copy_over(true, false);
}

static int pool_copies_without_access(void)
{
    return copy_over(false, false);
}

static int pool_copies_after_access(void)
{
    return copy_over(true, true);
}

/* A fill is a kernel of the second device. */
static int pool_kernel_without_access(void)
{
    struct fixture_pool f;
    CUcontext second;
    CHECK(begin_pool(&f) == 0);
    OK(cuStreamSynchronize(f.stream));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxPushCurrent(second));
    OK(cuMemsetD8(f.memory, 0, BYTES));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

#define TWO "TESTGPU_DEVICES=2"

const struct scenario mempool_scenarios[] = {
    {"pool_properties",
     pool_properties,
     {0},
     {"fault what=pool_properties", "fault what=destroyed_pool", "faults n=2\n", "pools=0"}},
    {"no_pools", no_pools, {"TESTGPU_ATTRIBUTES=115=0"}, {0}},
    {"pool_in_order",
     pool_in_order,
     {0},
     {"leaked device_bytes=0 device_allocations=0", "streams=0", "pools=0"}},
    {"pool_too_early", pool_too_early, {0}, {"fault what=pool_memory_too_early", "faults n=1\n"}},
    {"pool_too_late", pool_too_late, {0}, {"fault what=illegal_address", "faults n=1\n"}},
    {"pool_wrong_frees",
     pool_wrong_frees,
     {0},
     {"fault what=free_of_unknown_pointer", "faults n=4\n", "leaked device_bytes=0"}},
    {"pool_freed_in_use",
     pool_freed_in_use,
     {"TESTGPU_DOWN_GBPS=0.01", "TESTGPU_DELAY_US=0"},
     {"fault what=pool_memory_freed_in_use", "faults n=1\n"}},
    {"pool_capacity", pool_capacity, {"TESTGPU_MEMORY=8M"}, {"pools=0"}},
    {"pool_leaks",
     pool_leaks,
     {0},
     {"leaked device_bytes=1048576 device_allocations=1", "modules=0 pools=1\n"}},
    {"pool_destroyed_in_use",
     pool_destroyed_in_use,
     {"TESTGPU_MEMORY=8M"},
     {"fault what=destroyed_pool", "faults n=1\n", "leaked device_bytes=0"}},
    {"pool_in_capture", pool_in_capture, {0}, {"fault what=pool_in_capture", "faults n=1\n"}},
    {"pool_failures",
     pool_failures,
     {"TESTGPU_FAIL=cuMemAllocFromPoolAsync:2,cuMemFreeAsync:1"},
     {"leaked device_bytes=0"}},
    {"pool_access", pool_access, {TWO, "TESTGPU_PEER_GBPS=0"}, {0}},
    {"no_pool_access", pool_access, {TWO}, {0}},
    {"pool_copies",
     pool_copies,
     {TWO, "TESTGPU_PEER_GBPS=0.1048576", "TESTGPU_UP_GBPS=0.01"},
     {"up_us=10000", "d2d_bytes=1048576", "between_devices bytes=1048576\n",
      "leaked device_bytes=0"}},
    {"pool_copies_without_data",
     pool_copies,
     {TWO, "TESTGPU_PEER_GBPS=0", "TESTGPU_DATA=0"},
     {"between_devices bytes=1048576\n"}},
    {"pool_copies_without_access",
     pool_copies_without_access,
     {TWO, "TESTGPU_PEER_GBPS=0"},
     {"fault what=pool_memory_without_access", "faults n=1\n"}},
    {"pool_copies_after_access",
     pool_copies_after_access,
     {TWO, "TESTGPU_PEER_GBPS=0"},
     {"fault what=pool_memory_without_access", "faults n=1\n"}},
    {"pool_kernel_without_access",
     pool_kernel_without_access,
     {TWO, "TESTGPU_PEER_GBPS=0"},
     {"fault what=pool_memory_without_access", "faults n=1\n"}},
    {0},
};
