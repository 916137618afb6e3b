/*
 * Memory pools of the driver. An allocation from a pool, and its end, have their place in a stream.
 * Devices to which the pool is open may use its memory. This is stricter than a driver: an
 * operation fails if it touches memory whose allocation has not run yet, or whose end is on a
 * stream already, or if its device has no access. A pool keeps the memory that the program has
 * freed, which the device lacks meanwhile, until the program waits for work of the device, or trims
 * the pool.
 */
#include <string.h>
#include "driver.h"

struct testgpu_pool mempools = {.name = "pools", .size = sizeof(struct CUmemPoolHandle_st)};

/* With the lock, as everything here that does not say otherwise. */
static void release(CUmemoryPool pool)
{
    devices[pool->device].used -= pool->unused;
    pool->unused = 0;
}

void mempools_release(void)
{
    for (size_t i = 0; i < mempools.used; i++)
        release(testgpu_object_at(&mempools, i));
}

void mempools_end_of_context(CUcontext context)
{
    for (size_t i = 0; i < mempools.used; i++) {
        CUmemoryPool pool = testgpu_object_at(&mempools, i);
        if (pool->object.context == context)
            pool->object.alive = false;
    }
    mempools_release();
}

static bool is_supported(int device)
{
    return device_attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device) > 0;
}

/* ---- Pools ---- */

static bool is_zero(const unsigned char *byte, size_t bytes)
{
    while (bytes > 0 && *byte == 0)
        byte++, bytes--;
    return bytes == 0;
}

/* Without the lock. The bytes of the structure behind `location` must be zero: in CUDA 12.0 they
 * are reserved, later versions give some of them names. */
static CUresult check_properties(const CUmemPoolProps *properties)
{
    if (properties == NULL || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_is(properties->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    const size_t named = offsetof(CUmemPoolProps, win32SecurityAttributes);
    if (!is_zero((const unsigned char *)properties + named, sizeof *properties - named)) {
        testgpu_fault("pool_properties", "what is reserved is not zero");
        return CUDA_ERROR_INVALID_VALUE;
    }
    return properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
                   is_supported(properties->location.id)
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_ALLOCATES, "device=%d",
                 properties != NULL ? properties->location.id : -1);
    CUresult code = pool == NULL ? CUDA_ERROR_INVALID_VALUE : check_properties(properties);
    if (code != CUDA_SUCCESS)
        TESTGPU_RETURN(code);
    testgpu_lock();
    CUmemoryPool new = testgpu_object_new(&mempools, testgpu_current());
    if (new != NULL) {
        new->device = properties->location.id;
        new->open_to[new->device] = true;
    }
    testgpu_unlock();
    if (new == NULL)
        TESTGPU_RETURN(CUDA_ERROR_OUT_OF_MEMORY);
    *pool = new;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

static CUresult check_alive(CUmemoryPool pool)
{
    return testgpu_object_is_alive(&mempools, pool, "pool") ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_VALUE;
}

/* What is left of its memory stays until it is freed. */
CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "pool=%p", (void *)pool);
    testgpu_lock();
    CUresult code = check_alive(pool);
    if (code == CUDA_SUCCESS) {
        release(pool);
        pool->object.alive = false;
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

static CUresult set_access(CUmemoryPool pool, const CUmemAccessDesc *access)
{
    const int device = access->location.id;
    const bool opens = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        (!opens && access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE))
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_is(device) || (device != pool->device && !peers_reach(device, pool->device)))
        return CUDA_ERROR_INVALID_DEVICE;
    if (device == pool->device && !opens)
        return CUDA_ERROR_INVALID_VALUE;
    pool->open_to[device] = opens;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    DRIVER_ENTER(TESTGPU_ANY_CONTEXT, "pool=%p count=%zu device=%d", (void *)pool, count,
                 access != NULL && count > 0 ? access->location.id : -1);
    if (access == NULL || count == 0)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    CUresult code = check_alive(pool);
    for (size_t i = 0; i < count && code == CUDA_SUCCESS; i++)
        code = set_access(pool, &access[i]);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
    DRIVER_ENTER(TESTGPU_ANY_CONTEXT, "pool=%p bytes=%zu", (void *)pool, bytes);
    testgpu_lock();
    const CUresult code = check_alive(pool);
    if (code == CUDA_SUCCESS && bytes < pool->unused)
        release(pool);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

/* ---- Their memory ---- */

/* Returns the memory that an operation is about, by its number: it may be gone. */
static struct allocation *of_number(unsigned long long id)
{
    struct allocation *a = allocations;
    while (a != NULL && a->id != id)
        a = a->next;
    return a;
}

/* Both run in their streams, without the lock, and late, so that who does not wait for them meets
 * them. */
static CUresult run_allocation(struct testgpu_run *run, void *argument)
{
    (void)run;
    random_delay();
    testgpu_lock();
    struct allocation *a = of_number(*(const unsigned long long *)argument);
    if (a != NULL)
        a->is_there = true;
    testgpu_unlock();
    return CUDA_SUCCESS;
}

static CUresult run_end(struct testgpu_run *run, void *argument)
{
    (void)run;
    random_delay();
    testgpu_lock();
    struct allocation *a = of_number(*(const unsigned long long *)argument);
    if (a != NULL) {
        if (!a->is_there)
            testgpu_fault("pool_memory_too_early", "address=%#llx: freed before its allocation",
                          (unsigned long long)a->address);
        if (a->pins > 0)
            testgpu_fault("pool_memory_freed_in_use", "address=%#llx",
                          (unsigned long long)a->address);
        memory_end(a);
    }
    testgpu_unlock();
    return CUDA_SUCCESS;
}

static CUresult put(CUstream handle, const char *name, testgpu_run_function *run,
                    unsigned long long id)
{
    CUresult code;
    CUstream stream = stream_of(handle, &code);
    if (stream == NULL)
        return code;
    if (capture_active(stream)) {
        testgpu_fault("pool_in_capture", "the test GPU's graphs have no memory");
        capture_spoil(stream);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    struct operation *operation = operation_new(name, run, &id, sizeof id);
    if (operation == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return stream_put(stream, operation, NULL);
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    CUresult code = check_alive(pool);
    if (code != CUDA_SUCCESS)
        return code;
    struct allocation *a = memory_allocate(pool->device, bytes, pool);
    if (a == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    code = put(stream, "pool allocation", run_allocation, a->id);
    if (code == CUDA_SUCCESS)
        *address = a->address;
    else
        memory_end(a);
    return code;
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                         CUstream stream)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_ALLOCATES, "bytes=%zu pool=%p stream=%p", bytes,
                 (void *)pool, (void *)stream);
    if (address == NULL || bytes == 0)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    const CUresult code = allocate(address, bytes, pool, stream);
    testgpu_unlock();
    cost_of_memory(0);
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "address=%#llx stream=%p", address, (void *)stream);
    CUresult code = CUDA_ERROR_INVALID_VALUE;
    testgpu_lock();
    struct allocation *a = allocation_at((uintptr_t)address);
    if (a == NULL || a->address != address || a->pool == NULL || a->ends)
        testgpu_fault("free_of_unknown_pointer", "address=%#llx", address);
    else
        code = put(stream, "pool free", run_end, a->id);
    if (code == CUDA_SUCCESS)
        a->ends = true;
    testgpu_unlock();
    cost_of_memory(0);
    TESTGPU_RETURN(code);
}
