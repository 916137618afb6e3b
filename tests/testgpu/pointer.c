/* What a pointer is. */
#include <string.h>
#include "driver.h"

/* With the lock. The address at an allocation's end belongs to nobody here. */
static struct allocation *owner(CUdeviceptr address)
{
    struct allocation *a = allocation_at((uintptr_t)address);
    return a != NULL && !a->ending && address < a->address + a->bytes ? a : NULL;
}

#define PUT(TYPE, VALUE)                                                                           \
    do {                                                                                           \
        TYPE value_ = (VALUE);                                                                     \
        memcpy(data, &value_, sizeof value_);                                                      \
    } while (0)

/* With the lock. `a` is NULL for memory that CUDA does not know. */
static CUresult attribute(void *data, CUpointer_attribute which, CUdeviceptr address,
                          const struct allocation *a)
{
    bool host = a != NULL && (a->kind == MEMORY_PINNED || a->kind == MEMORY_REGISTERED);
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        PUT(CUcontext, a != NULL && a->pool == NULL ? a->context : NULL);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        PUT(unsigned int, a == NULL ? 0 : host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        PUT(CUdeviceptr, a != NULL ? address : 0);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (a != NULL && a->kind == MEMORY_DEVICE) {
            PUT(void *, NULL);
            return CUDA_ERROR_INVALID_VALUE;
        }
        PUT(void *, a != NULL ? (void *)(uintptr_t)address : NULL);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        PUT(unsigned long long, a != NULL ? a->id : 0);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        PUT(unsigned int, a != NULL && a->kind == MEMORY_MANAGED);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        PUT(int, a == NULL ? 0 : a->pool != NULL ? a->pool->device : a->context->device);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        PUT(CUdeviceptr, a != NULL ? a->address : 0);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        PUT(size_t, a != NULL ? a->bytes : 0);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr address)
{
    DRIVER_ENTER(TESTGPU_ANY_CONTEXT, "attribute=%d address=%#llx", (int)which, address);
    if (data == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    struct allocation *a = owner(address);
    CUresult code =
        a != NULL ? attribute(data, which, address, a) : (CUresult)CUDA_ERROR_INVALID_VALUE;
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute *which, void **data,
                                        CUdeviceptr address)
{
    DRIVER_ENTER(TESTGPU_ANY_CONTEXT, "count=%u address=%#llx", count, address);
    if (count == 0 || which == NULL || data == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    CUresult code = CUDA_SUCCESS;
    testgpu_lock();
    const struct allocation *a = owner(address);
    for (unsigned i = 0; i < count; i++)
        if (attribute(data[i], which[i], address, a) == CUDA_ERROR_NOT_SUPPORTED)
            code = CUDA_ERROR_INVALID_VALUE;
    testgpu_unlock();
    TESTGPU_RETURN(code);
}
