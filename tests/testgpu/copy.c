/* Copies and fills. All of them are operations; the synchronous ones wait for theirs. */
#include <string.h>
#include "driver.h"

enum { PITCH_MAX = 0x7fffffff, ALWAYS_MOVED = 256 << 10, ENDS_MOVED = 4 << 10 };

struct side {
    bool device;
    uintptr_t address;
    size_t pitch;
};

struct copy {
    struct side from, to;
    size_t width, rows;
    /* Of pinned memory of the host, from which it copies behind the call's return */
    bool has_digest;
    uint64_t digest;
};

static size_t extent(const struct side *side, size_t width, size_t rows)
{
    return width == 0 || rows == 0 ? 0 : (rows - 1) * side->pitch + width;
}

/* Whether it goes from one device to another. */
static bool is_between_devices(const struct copy *copy)
{
    const int from = copy->from.device ? memory_device_of(copy->from.address) : -1;
    const int to = copy->to.device ? memory_device_of(copy->to.address) : -1;
    return from >= 0 && to >= 0 && from != to;
}

static void count(const struct copy *copy)
{
    uint64_t bytes = (uint64_t)copy->width * copy->rows;
    testgpu_lock();
    if (copy->from.device && copy->to.device)
        copied.device_to_device += bytes;
    else if (copy->from.device)
        copied.device_to_host += bytes;
    else if (copy->to.device)
        copied.host_to_device += bytes;
    else
        copied.host_to_host += bytes;
    if (is_between_devices(copy))
        copied.between_devices += bytes;
    testgpu_unlock();
}

static char *reach(struct testgpu_run *run, const struct side *side, size_t bytes)
{
    if (!side->device)
        return (char *)side->address;
    if (memory_is_hosts(
            run,
            side->address)) { /* kernels may reach it; a copy is told that it is the device's */
        testgpu_fault("host_memory_as_device", "address=%#llx bytes=%zu",
                      (unsigned long long)side->address, bytes);
        return NULL;
    }
    return testgpu_reach(run, (CUdeviceptr)side->address, bytes);
}

/* What is small tells of success, and is always there. */
static bool is_moved(size_t bytes)
{
    return settings.data || bytes <= ALWAYS_MOVED;
}

static uint64_t mix(uint64_t digest, const char *from, size_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, from, bytes < sizeof word ? bytes : sizeof word);
    digest = (digest ^ word) * 0x9e3779b97f4a7c15ull;
    return digest ^ digest >> 29;
}

/* Several at once: each step waits for the one before. */
static uint64_t digest_of(const struct copy *copy)
{
    enum { SIDE_BY_SIDE = 4, BYTES = SIDE_BY_SIDE * sizeof(uint64_t) };
    uint64_t digest[SIDE_BY_SIDE] = {copy->rows, 1, 2, 3};
    for (size_t row = 0; row < copy->rows; row++) {
        const char *from = (const char *)copy->from.address + row * copy->from.pitch;
        size_t at = 0;
        for (; at + BYTES <= copy->width; at += BYTES)
#pragma GCC unroll 4
            for (size_t i = 0; i < SIDE_BY_SIDE; i++)
                digest[i] = mix(digest[i], from + at + i * sizeof *digest, sizeof *digest);
        for (; at < copy->width; at += sizeof *digest)
            digest[0] = mix(digest[0], from + at, copy->width - at);
    }
    for (size_t i = 1; i < SIDE_BY_SIDE; i++)
        digest[0] = mix(digest[0], (const char *)&digest[i], sizeof *digest);
    return digest[0];
}

/* A device may read the source as soon as the copy is put on the stream, or later. */
static void check_source(const struct copy *copy)
{
    if (copy->has_digest && digest_of(copy) != copy->digest)
        testgpu_fault("source_changed", "address=%#llx bytes=%zu: since the copy was asked for",
                      (unsigned long long)copy->from.address, copy->width * copy->rows);
}

static void touch(struct testgpu_run *run, const struct side *side, const struct copy *copy,
                  bool writes)
{
    const struct testgpu_place place = {.address = side->address,
                                        .pitch = copy->rows > 1 ? side->pitch : copy->width,
                                        .bytes = copy->width,
                                        .columns = copy->rows};
    testgpu_touch(run, &place, writes);
}

static CUresult run_copy(struct testgpu_run *run, void *argument)
{
    struct copy *copy = argument;
    if (copy->width == 0 || copy->rows == 0)
        return CUDA_SUCCESS;
    const char *from = reach(run, &copy->from, extent(&copy->from, copy->width, copy->rows));
    char *to = reach(run, &copy->to, extent(&copy->to, copy->width, copy->rows));
    if (from == NULL || to == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    check_source(copy);
    touch(run, &copy->from, copy, false);
    touch(run, &copy->to, copy, true);
    bool moves = is_moved(copy->width * copy->rows);
    for (size_t row = 0; row < copy->rows && moves; row++)
        memmove(to + row * copy->to.pitch, from + row * copy->from.pitch, copy->width);
    if (!moves && copy->rows == 1 && is_between_devices(copy)) {
        const size_t last = copy->width - ENDS_MOVED;
        memmove(to, from, ENDS_MOVED);
        memmove(to + last, from + last, ENDS_MOVED);
    }
    count(copy);
    return CUDA_SUCCESS;
}

/* A device address where the call says host memory would be a crash inside the real library. */
static CUresult check_sides(const struct copy *copy)
{
    const struct side *sides[] = {&copy->from, &copy->to};
    for (int i = 0; i < 2 && copy->width != 0 && copy->rows != 0; i++) {
        if (sides[i]->address == 0)
            return CUDA_ERROR_INVALID_VALUE;
        if (!sides[i]->device && testgpu_is_device_address((void *)sides[i]->address)) {
            testgpu_fault("device_pointer_as_host", "address=%#llx",
                          (unsigned long long)sides[i]->address);
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

/* Whether host memory is neither pinned nor registered, or registered for another context alone.
 * With the lock. */
static bool is_pageable(const struct side *side, size_t bytes)
{
    const struct allocation *a = allocation_at(side->address);
    const bool is_here =
        a != NULL && side->address + bytes <= a->address + a->bytes &&
        (a->kind != MEMORY_REGISTERED || a->is_portable || a->context == testgpu_current());
    return !side->device && !is_here;
}

static bool is_pinned(const struct side *side)
{
    testgpu_lock();
    const struct allocation *a = side->device ? NULL : allocation_at(side->address);
    const bool is = a != NULL && a->kind != MEMORY_DEVICE && a->kind != MEMORY_MANAGED;
    testgpu_unlock();
    return is;
}

/* Whether that makes a difference to a copy. */
static bool is_told_pageable(const struct copy *copy)
{
    if (settings.pageable == PAGEABLE_UNTOLD)
        return false;
    testgpu_lock();
    const bool has = is_pageable(&copy->from, extent(&copy->from, copy->width, copy->rows)) ||
                     is_pageable(&copy->to, extent(&copy->to, copy->width, copy->rows));
    testgpu_unlock();
    return has;
}

/* Inside the device every byte is read and written. Copies of pageable memory are slower by as much
 * as on an H100 (docs/measurements): 9.3 GB/s up and 15.3 down, in place of 55. */
static void set_speed(struct operation *operation, const struct copy *copy, bool pageable)
{
    size_t bytes = copy->width * copy->rows;
    struct testgpu_cost inside = {.bytes = 2 * (double)bytes};
    const CUdevice device = testgpu_current()->device;
    if (is_between_devices(copy))
        speed_of_peer_copy(device, operation, bytes, true);
    else if (copy->from.device && copy->to.device)
        speed_of_kernel(device, operation, &inside);
    else if (copy->from.device)
        speed_of_copy(device, operation, ENGINE_DOWN, pageable ? bytes * 36 / 10 : bytes);
    else if (copy->to.device)
        speed_of_copy(device, operation, ENGINE_UP, pageable ? bytes * 59 / 10 : bytes);
}

static struct operation *copy_operation(const struct copy *copy, bool pageable)
{
    struct operation *operation = operation_new("copy", run_copy, copy, sizeof *copy);
    if (operation == NULL)
        return NULL;
    operation->counted = true;
    set_speed(operation, copy, pageable);
    const struct side *sides[] = {&copy->from, &copy->to};
    for (int i = 0; i < 2; i++) {
        if (sides[i]->device)
            continue;
        operation->host[i] = sides[i]->address;
        operation->host_end[i] = sides[i]->address + extent(sides[i], copy->width, copy->rows);
    }
    return operation;
}

/* A device may write the target as soon as the copy is put on the stream: it has no contents from
 * then on, unless what came before uses it. With the lock. */
static void spoil_target(const struct copy *copy)
{
    const uintptr_t address = copy->to.address,
                    end = address + extent(&copy->to, copy->width, copy->rows);
    if (!streams_use_host(address, end))
        for (size_t row = 0; row < copy->rows; row++)
            memset((char *)address + row * copy->to.pitch, 0xff, copy->width);
}

/* spoiled: a copy whose target is; NULL: none. */
static CUresult put(struct operation *operation, CUstream handle, bool wait,
                    const struct copy *spoiled)
{
    if (operation == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    testgpu_lock();
    CUresult code;
    CUstream stream = stream_of(handle, &code);
    if (stream == NULL) {
        operation_release(operation);
    } else if (capture_active(stream)) {
        capture_dropped(stream);
        operation_release(operation);
    } else {
        struct operation *kept = NULL;
        if (spoiled != NULL)
            spoil_target(spoiled);
        code = stream_put(stream, operation, wait ? &kept : NULL);
        if (kept != NULL) {
            code = operation_wait(kept, stream->object.context);
            operation_release(kept);
        }
    }
    testgpu_unlock();
    return code;
}

static CUresult put_copy(const struct copy *copy, CUstream stream, bool wait)
{
    CUresult code = check_sides(copy);
    if (code != CUDA_SUCCESS)
        return code;
    struct copy taken = *copy;
    const bool pageable = is_told_pageable(copy);
    if (pageable && !wait && settings.pageable == PAGEABLE_MISUSED)
        testgpu_fault("pageable_memory", "from=%#llx to=%#llx",
                      (unsigned long long)copy->from.address, (unsigned long long)copy->to.address);
    const bool later =
        settings.order && settings.data && !wait && copy->width > 0 && copy->rows > 0;
    taken.has_digest = later && is_pinned(&copy->from);
    taken.digest = taken.has_digest ? digest_of(copy) : 0;
    return put(copy_operation(&taken, pageable), stream, wait || pageable,
               later && is_pinned(&copy->to) ? copy : NULL);
}

static struct side host(const void *address)
{
    return (struct side){.address = (uintptr_t)address};
}

static struct side device(CUdeviceptr address)
{
    return (struct side){.device = true, .address = (uintptr_t)address};
}

/* Unified addressing: what the address is decides. */
static struct side unified(CUdeviceptr address)
{
    struct side side = {.address = (uintptr_t)address};
    testgpu_lock();
    struct allocation *a = allocation_at((uintptr_t)address);
    side.device = testgpu_is_device_address((void *)(uintptr_t)address) ||
                  (a != NULL && a->kind == MEMORY_MANAGED);
    testgpu_unlock();
    return side;
}

static CUresult copy_line(struct side to, struct side from, size_t bytes, CUstream stream,
                          bool wait)
{
    struct copy copy = {.from = from, .to = to, .width = bytes, .rows = 1};
    return put_copy(&copy, stream, wait);
}

enum { NOW = TESTGPU_CONTEXT | TESTGPU_UNSAFE, LATER = TESTGPU_CONTEXT };

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    DRIVER_ENTER(NOW, "to=%#llx from=%p bytes=%zu", to, from, bytes);
    TESTGPU_RETURN(copy_line(device(to), host(from), bytes, NULL, true));
}

CUresult CUDAAPI cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    DRIVER_ENTER(NOW, "to=%p from=%#llx bytes=%zu", to, from, bytes);
    TESTGPU_RETURN(copy_line(host(to), device(from), bytes, NULL, true));
}

/* CUDA: no synchronisation on the host's side between two places on the device. */
CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    DRIVER_ENTER(NOW, "to=%#llx from=%#llx bytes=%zu", to, from, bytes);
    TESTGPU_RETURN(copy_line(device(to), device(from), bytes, NULL, false));
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    DRIVER_ENTER(NOW, "to=%#llx from=%#llx bytes=%zu", to, from, bytes);
    struct side there = unified(to);
    struct side here = unified(from);
    TESTGPU_RETURN(copy_line(there, here, bytes, NULL, !(there.device && here.device)));
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    DRIVER_ENTER(LATER, "to=%#llx from=%p bytes=%zu stream=%p", to, from, bytes, (void *)stream);
    TESTGPU_RETURN(copy_line(device(to), host(from), bytes, stream, false));
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    DRIVER_ENTER(LATER, "to=%p from=%#llx bytes=%zu stream=%p", to, from, bytes, (void *)stream);
    TESTGPU_RETURN(copy_line(host(to), device(from), bytes, stream, false));
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    DRIVER_ENTER(LATER, "to=%#llx from=%#llx bytes=%zu stream=%p", to, from, bytes, (void *)stream);
    TESTGPU_RETURN(copy_line(device(to), device(from), bytes, stream, false));
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    DRIVER_ENTER(LATER, "to=%#llx from=%#llx bytes=%zu stream=%p", to, from, bytes, (void *)stream);
    TESTGPU_RETURN(copy_line(unified(to), unified(from), bytes, stream, false));
}

static CUresult plane_side(struct side *side, CUmemorytype type, const void *host_address,
                           CUdeviceptr device_address, size_t pitch, size_t x, size_t y)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        *side = host(host_address);
        break;
    case CU_MEMORYTYPE_DEVICE:
        *side = device(device_address);
        break;
    case CU_MEMORYTYPE_UNIFIED:
        *side = unified(device_address);
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    side->pitch = pitch;
    if (side->address != 0)
        side->address += y * pitch + x;
    return CUDA_SUCCESS;
}

static CUresult copy_plane(const CUDA_MEMCPY2D *plane, CUstream stream, bool wait)
{
    if (plane == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct copy copy = {.width = plane->WidthInBytes, .rows = plane->Height};
    CUresult code = plane_side(&copy.from, plane->srcMemoryType, plane->srcHost, plane->srcDevice,
                               plane->srcPitch, plane->srcXInBytes, plane->srcY);
    if (code == CUDA_SUCCESS)
        code = plane_side(&copy.to, plane->dstMemoryType, plane->dstHost, plane->dstDevice,
                          plane->dstPitch, plane->dstXInBytes, plane->dstY);
    if (code != CUDA_SUCCESS)
        return code;
    if (plane->srcPitch > PITCH_MAX || plane->dstPitch > PITCH_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (copy.rows > 1 && (plane->srcPitch < plane->srcXInBytes + copy.width ||
                          plane->dstPitch < plane->dstXInBytes + copy.width))
        return CUDA_ERROR_INVALID_VALUE;
    return put_copy(&copy, stream, wait && !(copy.from.device && copy.to.device));
}

#define PLANE_FORMAT "width=%zu height=%zu from_pitch=%zu to_pitch=%zu"
#define PLANE_ARGUMENTS(P)                                                                         \
    (P) != NULL ? (P)->WidthInBytes : 0, (P) != NULL ? (P)->Height : 0,                            \
        (P) != NULL ? (P)->srcPitch : 0, (P) != NULL ? (P)->dstPitch : 0

CUresult CUDAAPI cuMemcpy2D(const CUDA_MEMCPY2D *plane)
{
    DRIVER_ENTER(NOW, PLANE_FORMAT, PLANE_ARGUMENTS(plane));
    TESTGPU_RETURN(copy_plane(plane, NULL, true));
}

CUresult CUDAAPI cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *plane)
{
    DRIVER_ENTER(NOW, PLANE_FORMAT, PLANE_ARGUMENTS(plane));
    TESTGPU_RETURN(copy_plane(plane, NULL, true));
}

CUresult CUDAAPI cuMemcpy2DAsync(const CUDA_MEMCPY2D *plane, CUstream stream)
{
    DRIVER_ENTER(LATER, PLANE_FORMAT " stream=%p", PLANE_ARGUMENTS(plane), (void *)stream);
    TESTGPU_RETURN(copy_plane(plane, stream, false));
}

struct fill {
    CUdeviceptr address;
    size_t bytes;
    unsigned char value;
};

static CUresult run_fill(struct testgpu_run *run, void *argument)
{
    struct fill *fill = argument;
    if (fill->bytes == 0)
        return CUDA_SUCCESS;
    const struct side side = {.device = true, .address = (uintptr_t)fill->address};
    char *to = reach(run, &side, fill->bytes);
    if (to == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    const struct testgpu_place place = {fill->address, fill->bytes, fill->bytes, 1, 0, 1};
    testgpu_touch(run, &place, true);
    if (is_moved(fill->bytes))
        memset(to, fill->value, fill->bytes);
    return CUDA_SUCCESS;
}

static CUresult put_fill(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream)
{
    struct fill fill = {.address = address, .bytes = bytes, .value = value};
    struct operation *operation = operation_new("fill", run_fill, &fill, sizeof fill);
    struct testgpu_cost cost = {.bytes = (double)bytes};
    if (operation != NULL) {
        operation->counted = true;
        speed_of_kernel(testgpu_current()->device, operation, &cost);
    }
    return put(operation, stream, false, NULL);
}

/* CUDA: asynchronous for the host. */
CUresult CUDAAPI cuMemsetD8(CUdeviceptr address, unsigned char value, size_t bytes)
{
    DRIVER_ENTER(NOW, "address=%#llx value=%u bytes=%zu", address, value, bytes);
    TESTGPU_RETURN(put_fill(address, value, bytes, NULL));
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t bytes,
                                 CUstream stream)
{
    DRIVER_ENTER(LATER, "address=%#llx value=%u bytes=%zu stream=%p", address, value, bytes,
                 (void *)stream);
    TESTGPU_RETURN(put_fill(address, value, bytes, stream));
}
