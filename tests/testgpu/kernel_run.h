/* A kernel of gpu/own/ while it runs: one at a time in the process. Inside the stand-in for
 * libcuda.so.1. */
#ifndef TESTGPU_KERNEL_RUN_H
#define TESTGPU_KERNEL_RUN_H

#include "driver.h"
#include "kernel.h"

struct launch {
    const struct testgpu_kernel *kernel;
    unsigned blocks_x, blocks_y, threads, shared_bytes;
    bool together;
    _Alignas(16) char arguments[]; /* one behind the other, each at a multiple of 16 bytes */
};

/* What orders the accesses of a block's threads: barriers, those of the grid, fences. */
struct block_clock {
    uint32_t barriers, fences;
};

struct thread {
    void *stack_pointer;
    char *stack;
    struct block *block;
    unsigned number; /* in its block */
    enum { THREAD_RUNS, THREAD_AT_BARRIER, THREAD_AT_GRID_BARRIER, THREAD_ENDED } state;
    const char *file; /* of the barrier */
    int line;
};

struct block {
    unsigned number;
    struct thread *thread;
    unsigned ended;
    char *shared;    /* of OWN_SHARED */
    char *put_aside; /* the __shared__ variables while other blocks run; NULL: alone */
    bool has_ended;
};

struct kernel_run {
    struct testgpu_run *run;
    const struct launch *launch;
    void **arguments;
    struct block_clock *clock; /* of each block of the grid */
    uint32_t grid_barriers;
    unsigned long long *arrived; /* of the grid's barrier */
    /* Which of all kernels' __shared__ variables its blocks have used: from, to */
    size_t shared_from, shared_to;
    uint64_t random;
    double moved; /* bytes */
    CUresult failed;
};

/* kernel.c */
enum { THREAD_STACK = 64 << 10 };
extern struct kernel_run *kernel;    /* that runs */
extern struct thread *kernel_thread; /* that runs; NULL: none */
CUresult kernel_run(struct testgpu_run *run, void *launch);
/* From a thread: others go on; it never comes back. */
void kernel_yield(void);
void kernel_fail(CUresult code) __attribute__((noreturn));
/* The __shared__ variables of all kernels. */
extern char __start_own_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_own_shared[] __attribute__((weak, visibility("hidden")));

/* kernel_memory.c */
void kernel_memory_begin(void);
void kernel_memory_end(void);
/* A new block's shared memory has no contents. */
void kernel_forget_shared(void);

/* memory.c: an allocation as kernels see it, at its own address as long as the operation runs. */
struct view {
    uintptr_t address, end;
};
/* False: the range is not wholly inside one live allocation; the fault is recorded. */
bool memory_open_view(struct testgpu_run *run, uintptr_t address, size_t bytes, struct view *view);
void memory_close_view(const struct view *view);

/* module.c */
extern const struct testgpu_kernel __start_own_kernels[]
    __attribute__((weak, visibility("hidden")));
extern const struct testgpu_kernel __stop_own_kernels[] __attribute__((weak, visibility("hidden")));

#endif
