/*
 * Device, managed and pinned memory. Device addresses come out of a reservation that nobody can
 * read or write; their bytes lie elsewhere. Addresses are used again as late as possible, so that a
 * stale one points at nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "driver.h"
#include "kernel_run.h"

enum { POISON = 0xff, ALIGNMENT = 512, GUARD = 4096, POISON_FILE = 4 << 20 };

struct allocation *allocations;
static unsigned long long newest_id;

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

void memory_reserve(struct device *device, size_t memory)
{
    size_t least = memory + (memory / 4) + (1u << 20);
    size_t bytes = (size_t)64 << 30;
    while (bytes < 4 * memory)
        bytes *= 2;
    for (;;) {
        void *start =
            mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (start != MAP_FAILED) {
            device->base = device->cursor = (uintptr_t)start;
            device->end = device->base + bytes;
            return;
        }
        bytes /= 2;
        if (bytes < least) {
            fprintf(stderr, "testgpu: cannot reserve %zu bytes of addresses\n", least);
            abort();
        }
    }
}

int memory_device_of(uintptr_t address)
{
    for (int i = 0; i < device_count; i++)
        if (address >= devices[i].base && address < devices[i].end)
            return i;
    return -1;
}

bool testgpu_is_device_address(const void *address)
{
    return memory_device_of((uintptr_t)address) >= 0;
}

/* With the lock. An address at the very end of an allocation is still its own. */
struct allocation *allocation_at(uintptr_t address)
{
    struct allocation *touching = NULL;
    for (struct allocation *a = allocations; a != NULL; a = a->next) {
        if (address < a->address || address > a->address + a->bytes)
            continue;
        if (address < a->address + a->bytes)
            return a;
        touching = a;
    }
    return touching;
}

/*
 * Poisoned memory without touching it: private mappings of one poisoned file, so that a pool of
 * most of the device costs nothing until it is used. Where no data is moved it is not poisoned: the
 * device may then be larger than its poison could be mapped.
 */
static char *map_poisoned(size_t bytes)
{
    static int file = -1;
    char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    if (!settings.data)
        return start;
    if (bytes >= POISON_FILE && file < 0) {
        file = memfd_create("testgpu poison", MFD_CLOEXEC);
        char *poison = malloc(POISON_FILE);
        if (file < 0 || poison == NULL) {
            fprintf(stderr, "testgpu: no memory for poison\n");
            abort();
        }
        memset(poison, POISON, POISON_FILE);
        if (write(file, poison, POISON_FILE) != POISON_FILE)
            abort();
        free(poison);
    }
    size_t done = 0;
    for (; bytes - done >= POISON_FILE; done += POISON_FILE)
        if (mmap(start + done, POISON_FILE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file,
                 0) == MAP_FAILED)
            abort();
    memset(start + done, POISON, bytes - done);
    return start;
}

/* Before and behind an allocation there is memory to be read: kernels of OpenBLAS 0.3.21 (symv of a
 * lower triangle, cgemv_n_PRESCOTT) read some bytes more than the matrix has, and do nothing with
 * them. What a caller gives us that is not its own is told by its address, which is another one. */
enum { PAGE = 4096, MARGIN = PAGE };

static size_t offset_in_page(uintptr_t address)
{
    return address % PAGE;
}

/* All that is mapped for the bytes: margins, and the same offset in a page as the address has. */
static char *mapping_of(const struct allocation *a)
{
    return a->backing - offset_in_page((uintptr_t)a->backing) - MARGIN;
}

/* With the lock. address: of device memory, else 0. */
static struct allocation *allocation_new(enum memory_kind kind, uintptr_t address, size_t bytes)
{
    const size_t offset = offset_in_page(address);
    struct allocation *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->kind = kind;
    a->bytes = bytes;
    if (kind != MEMORY_REGISTERED) {
        a->mapped = round_up(offset + bytes, PAGE) + 2 * MARGIN;
        a->backing = map_poisoned(a->mapped);
        if (a->backing == NULL) {
            free(a);
            return NULL;
        }
        a->backing += MARGIN + offset;
        a->address = kind == MEMORY_DEVICE ? address : (uintptr_t)a->backing;
    }
    a->context = testgpu_current();
    a->id = ++newest_id;
    a->next = allocations;
    allocations = a;
    return a;
}

/* The pages of device memory at its own address. */
static void *view_of(const struct allocation *a)
{
    return (void *)(a->address - offset_in_page(a->address));
}

static size_t view_bytes(const struct allocation *a)
{
    return round_up(offset_in_page(a->address) + a->bytes, PAGE);
}

/* With the lock. */
static void allocation_end(struct allocation *a)
{
    if (a->kind == MEMORY_DEVICE && a->pool != NULL)
        a->pool->unused += round_up(a->bytes, ALIGNMENT);
    else if (a->kind == MEMORY_DEVICE)
        devices[a->context->device].used -= round_up(a->bytes, ALIGNMENT);
    struct allocation **link = &allocations;
    while (*link != a)
        link = &(*link)->next;
    *link = a->next;
    if (a->viewed &&
        mmap(view_of(a), view_bytes(a), PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        abort();
    if (a->backing != NULL)
        munmap(mapping_of(a), a->mapped);
    order_forget(a->touches);
    free(a);
}

/* With the lock, which is let go while running operations leave the allocation. */
void memory_end(struct allocation *a)
{
    a->ending = true;
    while (a->pins > 0 && !driver.exiting)
        progress_await();
    if (a->pins == 0)
        allocation_end(a);
}

/* With the lock. */
void memory_end_of_context(CUcontext context)
{
    struct allocation *next;
    for (struct allocation *a = allocations; a != NULL; a = next) {
        next = a->next;
        if (a->context == context && a->pins == 0)
            allocation_end(a);
    }
}

/* With the lock: a free range of device addresses. 0: none. */
static uintptr_t place(struct device *device, size_t bytes)
{
    bool wrapped = false;
    uintptr_t start = device->cursor;
    for (;;) {
        if (start + bytes + GUARD > device->end) {
            if (wrapped)
                return 0;
            wrapped = true;
            start = device->base;
        }
        struct allocation *in_the_way = NULL;
        for (struct allocation *a = allocations; a != NULL && in_the_way == NULL; a = a->next)
            if (a->kind == MEMORY_DEVICE && start < a->address + a->bytes + GUARD &&
                a->address < start + bytes + GUARD)
                in_the_way = a;
        if (in_the_way == NULL)
            break;
        start = round_up(in_the_way->address + in_the_way->bytes + GUARD, ALIGNMENT);
    }
    device->cursor = round_up(start + bytes + GUARD, ALIGNMENT);
    return start;
}

struct allocation *memory_allocate(int number, size_t bytes, CUmemoryPool pool)
{
    struct device *device = &devices[number];
    const size_t memory = card_of(number)->memory, unused = pool != NULL ? pool->unused : 0;
    if (bytes > memory || round_up(bytes, ALIGNMENT) > memory - device->used + unused)
        return NULL;
    uintptr_t start = place(device, bytes);
    struct allocation *a = start != 0 ? allocation_new(MEMORY_DEVICE, start, bytes) : NULL;
    if (a == NULL)
        return NULL;
    device->used += round_up(bytes, ALIGNMENT);
    a->pool = pool;
    if (pool != NULL) {
        const size_t again =
            unused < round_up(bytes, ALIGNMENT) ? unused : round_up(bytes, ALIGNMENT);
        pool->unused -= again;
        device->used -= again;
    }
    return a;
}

static CUresult allocate_device(CUdeviceptr *address, size_t bytes)
{
    const struct allocation *a = memory_allocate(testgpu_current()->device, bytes, NULL);
    if (a == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = a->address;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetInfo(size_t *available, size_t *total)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "-");
    if (available == NULL || total == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    const int number = testgpu_current()->device;
    *total = card_of(number)->memory;
    *available = *total - devices[number].used;
    testgpu_unlock();
    cost_of_info();
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE | TESTGPU_ALLOCATES, "bytes=%zu", bytes);
    if (address == NULL || bytes == 0)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    CUresult code = allocate_device(address, bytes);
    testgpu_unlock();
    cost_of_memory(0);
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE | TESTGPU_ALLOCATES, "bytes=%zu flags=%u", bytes,
                 flags);
    if (address == NULL || bytes == 0 ||
        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    struct allocation *a = allocation_new(MEMORY_MANAGED, 0, bytes);
    if (a != NULL)
        *address = a->address;
    testgpu_unlock();
    cost_of_memory(0);
    TESTGPU_RETURN(a != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

/* Waits for all queued work of the context, as CUDA does. Work that is queued on this memory and
 * has not begun finds it gone. */
CUresult CUDAAPI cuMemFree(CUdeviceptr address)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "address=%#llx", address);
    if (address == 0)
        TESTGPU_RETURN(CUDA_SUCCESS);
    CUresult code = CUDA_SUCCESS;
    testgpu_lock();
    struct allocation *a = allocation_at((uintptr_t)address);
    if (a == NULL || a->address != address || a->ending || a->ends ||
        (a->kind != MEMORY_DEVICE && a->kind != MEMORY_MANAGED)) {
        testgpu_fault("free_of_unknown_pointer", "address=%#llx", address);
        code = CUDA_ERROR_INVALID_VALUE;
    } else if (a->kind == MEMORY_DEVICE && a->context != testgpu_current()) {
        testgpu_fault("pointer_of_another_context", "address=%#llx", address);
        code = CUDA_ERROR_INVALID_VALUE;
    } else {
        a->ending = true;
        streams_await(testgpu_current());
        memory_end(a);
        mempools_release();
    }
    testgpu_unlock();
    cost_of_memory(0);
    TESTGPU_RETURN(code);
}

static CUresult allocate_pinned(void **address, size_t bytes)
{
    if (address == NULL || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    testgpu_lock();
    struct allocation *a = allocation_new(MEMORY_PINNED, 0, bytes);
    if (a != NULL)
        *address = a->backing;
    testgpu_unlock();
    cost_of_memory(bytes);
    return a != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE | TESTGPU_ALLOCATES, "bytes=%zu flags=%u", bytes,
                 flags);
    if (flags & ~(unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
                            CU_MEMHOSTALLOC_WRITECOMBINED))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    TESTGPU_RETURN(allocate_pinned(address, bytes));
}

CUresult CUDAAPI cuMemAllocHost(void **address, size_t bytes)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE | TESTGPU_ALLOCATES, "bytes=%zu", bytes);
    TESTGPU_RETURN(allocate_pinned(address, bytes));
}

CUresult CUDAAPI cuMemFreeHost(void *address)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "address=%p", address);
    if (address == NULL)
        TESTGPU_RETURN(CUDA_SUCCESS);
    CUresult code = CUDA_SUCCESS;
    testgpu_lock();
    struct allocation *a = allocation_at((uintptr_t)address);
    if (a == NULL || a->address != (uintptr_t)address || a->kind != MEMORY_PINNED || a->ending) {
        testgpu_fault("free_of_unknown_pointer", "address=%p", address);
        code = CUDA_ERROR_INVALID_VALUE;
    } else {
        a->ending = true;
        if (streams_await_host(a->address, a->address + a->bytes))
            testgpu_fault("host_memory_freed_in_use", "address=%p: a queued copy uses it", address);
        memory_end(a);
    }
    testgpu_unlock();
    cost_of_memory(0);
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuMemHostRegister(void *address, size_t bytes, unsigned int flags)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE | TESTGPU_ALLOCATES,
                 "address=%p bytes=%zu flags=%u", address, bytes, flags);
    if (address == NULL || bytes == 0)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    CUresult code = CUDA_SUCCESS;
    uintptr_t start = (uintptr_t)address;
    testgpu_lock();
    for (struct allocation *a = allocations; a != NULL; a = a->next)
        if (start < a->address + a->bytes && a->address < start + bytes)
            code = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (code == CUDA_SUCCESS) {
        struct allocation *a = allocation_new(MEMORY_REGISTERED, 0, bytes);
        if (a != NULL) {
            a->address = start;
            a->is_portable = flags & CU_MEMHOSTREGISTER_PORTABLE;
        } else
            code = CUDA_ERROR_OUT_OF_MEMORY;
    }
    testgpu_unlock();
    cost_of_memory(bytes);
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuMemHostUnregister(void *address)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "address=%p", address);
    CUresult code = CUDA_SUCCESS;
    testgpu_lock();
    struct allocation *a = allocation_at((uintptr_t)address);
    if (a == NULL || a->address != (uintptr_t)address || a->kind != MEMORY_REGISTERED) {
        testgpu_fault("unregister_of_unknown_pointer", "address=%p", address);
        code = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    } else {
        a->ending = true;
        if (streams_await_host(a->address, a->address + a->bytes))
            testgpu_fault("host_memory_freed_in_use", "address=%p: a queued copy uses it", address);
        memory_end(a);
    }
    testgpu_unlock();
    cost_of_memory(0);
    TESTGPU_RETURN(code);
}

/* Whether the device reaches the host's memory by the host's page tables. */
static bool has_hosts_tables(CUdevice device)
{
    return device_attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
                            device) > 0;
}

/* Whether the address is in the host's memory; `a` is what allocation_at() says of it. */
static bool is_hosts(uintptr_t address, const struct allocation *a)
{
    return !testgpu_is_device_address((void *)address) &&
           (a == NULL || a->kind == MEMORY_REGISTERED || address == a->address + a->bytes);
}

bool memory_is_hosts(const struct testgpu_run *run, uintptr_t address)
{
    testgpu_lock();
    const bool hosts =
        is_hosts(address, allocation_at(address)) && has_hosts_tables(run->context->device);
    testgpu_unlock();
    return hosts;
}

/* Whether the host has pages there, as its page tables would say. */
static bool has_pages(uintptr_t address, size_t bytes)
{
    const uintptr_t last = address + (bytes > 0 ? bytes - 1 : 0);
    char byte;
    for (uintptr_t at = address; at <= last; at = round_up(at + 1, PAGE)) {
        struct iovec here = {&byte, 1}, there = {(void *)at, 1};
        if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1)
            return false;
    }
    return true;
}

/* The first version, which CUDA 13's headers do not declare under its name. Its pages move to the
 * device, here in the report alone: of managed memory, and of the host's where the device uses the
 * host's page tables. */
#undef cuMemPrefetchAsync
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr from, size_t bytes, CUdevice to, CUstream stream);
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr from, size_t bytes, CUdevice to, CUstream stream)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "from=%#llx bytes=%zu to=%d", from, bytes, to);
    CUresult code = CUDA_SUCCESS;
    if (from == 0 || bytes == 0 || !device_is(to) || stream == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    const struct allocation *a = allocation_at((uintptr_t)from);
    if (is_hosts((uintptr_t)from, a) ? !has_hosts_tables(to) || !has_pages((uintptr_t)from, bytes)
                                     : a == NULL || a->kind != MEMORY_MANAGED)
        code = CUDA_ERROR_INVALID_VALUE;
    else
        copied.migrated += bytes;
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

/* With the lock. */
static void pin(struct testgpu_run *run, struct allocation *a)
{
    if (run->pins == run->room) {
        run->room = 2 * run->room + 16;
        run->pinned = realloc(run->pinned, run->room * sizeof *run->pinned);
        if (run->pinned == NULL)
            abort();
    }
    a->pins++;
    run->pinned[run->pins++] = a;
}

bool testgpu_computes(void)
{
    return settings.data;
}

int testgpu_cublas_minor(int otherwise)
{
    return settings.cublas_minor > 0 ? settings.cublas_minor : otherwise;
}

bool testgpu_scales(void)
{
    return settings.scales;
}

unsigned testgpu_last_pivot(void)
{
    return settings.last_pivot;
}

/* Why what runs in a context may not use the memory; NULL: it may. With the lock. */
static const char *forbidden(const struct allocation *a, CUcontext context)
{
    if (a->kind != MEMORY_DEVICE)
        return NULL;
    if (a->pool != NULL)
        return !a->is_there                         ? "pool_memory_too_early"
               : !a->pool->open_to[context->device] ? "pool_memory_without_access"
                                                    : NULL;
    return a->context == context                   ? NULL
           : a->context->device != context->device ? "pointer_of_another_device"
                                                   : "pointer_of_another_context";
}

void *testgpu_reach(struct testgpu_run *run, CUdeviceptr address, size_t bytes)
{
    char *reached = NULL;
    uintptr_t start = (uintptr_t)address;
    testgpu_lock();
    struct allocation *a = allocation_at(start);
    if (is_hosts(start, a) && has_hosts_tables(run->context->device)) {
        if (has_pages(start, bytes))
            reached = (char *)start;
        else
            testgpu_fault("illegal_address", "address=%#llx bytes=%zu: no page of the host's",
                          address, bytes);
    } else if (a == NULL || (a->ending && a->pins == 0)) {
        testgpu_fault("illegal_address", "address=%#llx bytes=%zu: in no live allocation", address,
                      bytes);
    } else if (bytes > a->address + a->bytes - start) {
        testgpu_fault("illegal_address",
                      "address=%#llx bytes=%zu: leaves its allocation of %zu bytes at %#llx",
                      address, bytes, a->bytes, (unsigned long long)a->address);
    } else if (forbidden(a, run->context) != NULL) {
        testgpu_fault(forbidden(a, run->context), "address=%#llx", address);
    } else {
        pin(run, a);
        reached = a->kind == MEMORY_DEVICE ? a->backing + (start - a->address) : (char *)start;
    }
    testgpu_unlock();
    return reached;
}

CUresult testgpu_reach_elements(struct testgpu_run *run, CUdeviceptr address, size_t bytes,
                                size_t element, void **reached)
{
    *reached = testgpu_reach(run, address, bytes);
    if (*reached == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (address % element == 0)
        return CUDA_SUCCESS;
    testgpu_fault("misaligned_address", "address=%#llx element=%zu", address, element);
    return CUDA_ERROR_MISALIGNED_ADDRESS;
}

/* ---- Kernels of gpu/own/ ---- */

/* With the lock. Puts the bytes in memory that can be seen at a second place, the address that the
 * program knows, where nobody may read or write them as long as no kernel does. */
static void make_view(struct allocation *a)
{
    int file = memfd_create("testgpu memory", MFD_CLOEXEC);
    void *copy = file >= 0 && ftruncate(file, (off_t)a->mapped) == 0
                     ? mmap(NULL, a->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                     : MAP_FAILED;
    if (copy == MAP_FAILED)
        abort();
    memcpy(copy, mapping_of(a), a->mapped);
    if (mremap(copy, a->mapped, a->mapped, MREMAP_MAYMOVE | MREMAP_FIXED, mapping_of(a)) ==
            MAP_FAILED ||
        mmap(view_of(a), view_bytes(a), PROT_NONE, MAP_SHARED | MAP_FIXED, file, MARGIN) ==
            MAP_FAILED)
        abort();
    close(file);
    a->viewed = true;
}

bool memory_open_view(struct testgpu_run *run, uintptr_t address, size_t bytes, struct view *view)
{
    if (testgpu_reach(run, address, bytes) == NULL)
        return false;
    testgpu_lock();
    struct allocation *a = allocation_at(address);
    if (a == NULL) { /* the host's: it has no end that is known */
        *view = (struct view){address, address + bytes};
        testgpu_unlock();
        return true;
    }
    while (a->kind == MEMORY_DEVICE && !a->viewed && a->pins > 1 && !driver.exiting)
        progress_await(); /* other operations use the bytes where they are */
    if (a->kind == MEMORY_DEVICE) {
        if (!a->viewed)
            make_view(a);
        if (mprotect(view_of(a), view_bytes(a), PROT_READ | PROT_WRITE) != 0)
            abort();
    }
    *view = (struct view){a->address, a->address + a->bytes};
    testgpu_unlock();
    return true;
}

void memory_close_view(const struct view *view)
{
    testgpu_lock();
    const struct allocation *a = allocation_at(view->address);
    if (a != NULL && a->kind == MEMORY_DEVICE &&
        mprotect(view_of(a), view_bytes(a), PROT_NONE) != 0)
        abort();
    testgpu_unlock();
}
