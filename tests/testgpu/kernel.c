/*
 * Runs a kernel of gpu/own/: blocks one after the other in random order, or all by turns if they
 * are launched together; the threads of a block by turns, in random order between barriers, each on
 * a stack of its own. What a device leaves undefined is a fault here: a barrier at which not all
 * threads of a block arrive.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "kernel_run.h"

struct kernel_run *kernel;
struct thread *kernel_thread;
static void *scheduler;      /* its stack pointer */
static struct block *loaded; /* whose __shared__ variables are in place */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Keeps the registers that a function keeps, and goes on where another stack was left. */
void testgpu_switch(void **from, void *to);
#ifdef __aarch64__
/* x19 to x30 and the lower halves of v8 to v15: aapcs64, sections 6.1.1 and 6.1.2. x30 is where it
 * returns to. */
enum { REGISTERS = 20, RETURN_REGISTER = 11 };
__asm__(".text\n"
        ".type testgpu_switch, %function\n"
        "testgpu_switch:\n"
        "    hint 34\n"
        "    sub sp, sp, 160\n"
        "    stp x19, x20, [sp]\n"
        "    stp x21, x22, [sp, 16]\n"
        "    stp x23, x24, [sp, 32]\n"
        "    stp x25, x26, [sp, 48]\n"
        "    stp x27, x28, [sp, 64]\n"
        "    stp x29, x30, [sp, 80]\n"
        "    stp d8, d9, [sp, 96]\n"
        "    stp d10, d11, [sp, 112]\n"
        "    stp d12, d13, [sp, 128]\n"
        "    stp d14, d15, [sp, 144]\n"
        "    mov x2, sp\n"
        "    str x2, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n"
        "    ldp x21, x22, [sp, 16]\n"
        "    ldp x23, x24, [sp, 32]\n"
        "    ldp x25, x26, [sp, 48]\n"
        "    ldp x27, x28, [sp, 64]\n"
        "    ldp x29, x30, [sp, 80]\n"
        "    ldp d8, d9, [sp, 96]\n"
        "    ldp d10, d11, [sp, 112]\n"
        "    ldp d12, d13, [sp, 128]\n"
        "    ldp d14, d15, [sp, 144]\n"
        "    add sp, sp, 160\n"
        "    ret\n"
        ".size testgpu_switch, . - testgpu_switch\n");
#else
/* The return address is above six registers, and above it begin_thread's own. */
enum { REGISTERS = 8, RETURN_REGISTER = 6 };
__asm__(".text\n"
        ".type testgpu_switch, @function\n"
        "testgpu_switch:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size testgpu_switch, . - testgpu_switch\n");
#endif

/* ---- What a thread asks for ---- */

struct testgpu_index testgpu_thread_index(void)
{
    return (struct testgpu_index){kernel_thread->number, 0, 0};
}

struct testgpu_index testgpu_block_index(void)
{
    const unsigned number = kernel_thread->block->number, x = kernel->launch->blocks_x;
    return (struct testgpu_index){number % x, number / x, 0};
}

struct testgpu_index testgpu_block_size(void)
{
    return (struct testgpu_index){kernel->launch->threads, 1, 1};
}

struct testgpu_index testgpu_grid_size(void)
{
    return (struct testgpu_index){kernel->launch->blocks_x, kernel->launch->blocks_y, 1};
}

void *testgpu_shared_bytes(void)
{
    return kernel_thread->block->shared;
}

void kernel_yield(void)
{
    testgpu_switch(&kernel_thread->stack_pointer, scheduler);
}

void kernel_fail(CUresult code)
{
    kernel->failed = code;
    kernel_yield();
    abort();
}

static void wait_at(int state, const char *file, int line)
{
    kernel_thread->state = state;
    kernel_thread->file = file;
    kernel_thread->line = line;
    kernel_yield();
}

void testgpu_barrier(const char *file, int line)
{
    wait_at(THREAD_AT_BARRIER, file, line);
}

/* The real one counts in *arrived, whose value before the launch must be 0. */
void testgpu_grid_barrier(unsigned long long *arrived, const char *file, int line)
{
    if (!kernel->launch->together) {
        testgpu_fault("grid_barrier", "%s:%d: the blocks are not launched together", file, line);
        kernel_fail(CUDA_ERROR_LAUNCH_FAILED);
    }
    testgpu_atomic(arrived, sizeof *arrived);
    if (*arrived != kernel->grid_barriers) {
        testgpu_fault("grid_barrier", "%s:%d: the number was not 0 before the launch", file, line);
        kernel_fail(CUDA_ERROR_LAUNCH_FAILED);
    }
    kernel->arrived = arrived;
    wait_at(THREAD_AT_GRID_BARRIER, file, line);
}

void testgpu_fence(void)
{
    kernel->clock[kernel_thread->block->number].fences++;
}

/* ---- Threads and their stacks ---- */

static void begin_thread(void)
{
    kernel->launch->kernel->run(kernel->arguments);
    kernel_thread->state = THREAD_ENDED;
    kernel_yield();
    abort();
}

/* Stacks are kept from one kernel to the next. */
static char **stacks;
static size_t stacks_made, stacks_used;

static char *take_stack(void)
{
    if (stacks_used == stacks_made) {
        char *stack = mmap(NULL, THREAD_STACK, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        char **grown = realloc(stacks, (stacks_made + 1) * sizeof *stacks);
        if (stack == MAP_FAILED || grown == NULL)
            abort();
        stacks = grown;
        stacks[stacks_made++] = stack;
    }
    return stacks[stacks_used++];
}

static void make_thread(struct thread *thread, struct block *block, unsigned number)
{
    *thread = (struct thread){.block = block, .number = number, .stack = take_stack()};
    void **top = (void **)(thread->stack + THREAD_STACK);
    top -= REGISTERS;
    memset(top, 0, REGISTERS * sizeof *top);
    top[RETURN_REGISTER] = (void *)(uintptr_t)begin_thread;
    thread->stack_pointer = top;
}

static size_t shared_size(void)
{
    return (size_t)(__stop_own_shared - __start_own_shared);
}

enum { POISON = 0xff };

static size_t shared_used(void)
{
    return kernel->shared_to > kernel->shared_from ? kernel->shared_to - kernel->shared_from : 0;
}

/* What no kernel uses is poisoned. */
static void poison_shared(void)
{
    memset(__start_own_shared + kernel->shared_from, POISON, shared_used());
}

static void make_block(struct block *block, unsigned number, bool alone)
{
    const struct launch *launch = kernel->launch;
    *block = (struct block){.number = number,
                            .thread = calloc(launch->threads, sizeof *block->thread),
                            .shared = malloc(launch->shared_bytes + 16),
                            .put_aside = alone ? NULL : malloc(shared_size() + 1)};
    if (block->thread == NULL || block->shared == NULL || (!alone && block->put_aside == NULL))
        abort();
    memset(block->shared, POISON, launch->shared_bytes);
    if (alone)
        poison_shared();
    else
        memset(block->put_aside, POISON, shared_size());
    for (unsigned i = 0; i < launch->threads; i++)
        make_thread(&block->thread[i], block, i);
}

static void end_block(struct block *block)
{
    free(block->thread);
    free(block->shared);
    free(block->put_aside);
}

static void load_block(struct block *block)
{
    if (block->put_aside == NULL || block == loaded)
        return;
    const size_t from = kernel->shared_from, bytes = shared_used();
    if (loaded != NULL)
        memcpy(loaded->put_aside + from, __start_own_shared + from, bytes);
    memcpy(__start_own_shared + from, block->put_aside + from, bytes);
    loaded = block;
}

/* ---- Turns ---- */

static unsigned below(unsigned count)
{
    return (unsigned)((random_next(&kernel->random) >> 16) % count);
}

static struct thread *choose_thread(const struct block *block)
{
    const unsigned threads = kernel->launch->threads, first = below(threads);
    for (unsigned i = 0; i < threads; i++) {
        struct thread *thread = &block->thread[(first + i) % threads];
        if (thread->state == THREAD_RUNS)
            return thread;
    }
    return NULL;
}

/* All threads that have not ended wait. Returns whether they wait for the same. */
static bool agree(const struct block *block)
{
    const struct thread *one = NULL;
    unsigned ended = 0;
    for (unsigned i = 0; i < kernel->launch->threads; i++) {
        const struct thread *thread = &block->thread[i];
        if (thread->state == THREAD_ENDED) {
            ended++;
        } else if (one == NULL) {
            one = thread;
        } else if (thread->line != one->line || strcmp(thread->file, one->file) != 0) {
            testgpu_fault("divergent_barrier",
                          "block %u: thread %u waits at %s:%d, thread %u at line %d", block->number,
                          one->number, one->file, one->line, thread->number, thread->line);
            return false;
        }
    }
    if (one == NULL || ended == 0)
        return true;
    testgpu_fault("missing_barrier",
                  "block %u: thread %u waits at %s:%d, and %u threads have ended", block->number,
                  one->number, one->file, one->line, ended);
    return false;
}

static void release(struct block *block)
{
    for (unsigned i = 0; i < kernel->launch->threads; i++)
        block->thread[i].state = THREAD_RUNS;
    kernel->clock[block->number].barriers++;
}

/* Runs a block until it has ended, waits for others, or its turn is over. */
static void run_block(struct block *block)
{
    load_block(block);
    for (;;) {
        struct thread *thread = choose_thread(block);
        if (thread != NULL) {
            kernel_thread = thread;
            testgpu_switch(&scheduler, thread->stack_pointer);
            kernel_thread = NULL;
            if (kernel->failed != CUDA_SUCCESS)
                return;
        } else if (!agree(block)) {
            kernel->failed = CUDA_ERROR_LAUNCH_FAILED;
            return;
        } else if (block->thread[0].state == THREAD_AT_BARRIER) {
            release(block);
        } else {
            block->has_ended = block->thread[0].state == THREAD_ENDED;
            return;
        }
        if (block->put_aside != NULL && below(16) == 0)
            return;
    }
}

static bool waits_for_grid(const struct block *block)
{
    for (unsigned i = 0; i < kernel->launch->threads; i++)
        if (block->thread[i].state != THREAD_AT_GRID_BARRIER)
            return false;
    return true;
}

/* Returns a block that can go on, from a random one on, NULL if there is none. */
static struct block *choose_block(struct block *block, unsigned count)
{
    const unsigned first = below(count);
    for (unsigned i = 0; i < count; i++) {
        struct block *one = &block[(first + i) % count];
        if (!one->has_ended && !waits_for_grid(one))
            return one;
    }
    return NULL;
}

/* No block can go on: all have ended, or all wait. Returns whether there is more to run. */
static bool release_grid(struct block *block, unsigned count)
{
    unsigned ended = 0;
    for (unsigned i = 0; i < count; i++)
        ended += block[i].has_ended;
    if (ended == count)
        return false;
    if (ended > 0) {
        testgpu_fault("missing_barrier", "%u blocks of %u have ended, others wait for them", ended,
                      count);
        kernel->failed = CUDA_ERROR_LAUNCH_FAILED;
        return false;
    }
    *kernel->arrived = ++kernel->grid_barriers;
    for (unsigned i = 0; i < count; i++)
        release(&block[i]);
    return true;
}

static void run_together(const unsigned *order, unsigned count)
{
    struct block *block = calloc(count, sizeof *block);
    if (block == NULL)
        abort();
    loaded = NULL;
    stacks_used = 0;
    kernel_forget_shared();
    for (unsigned i = 0; i < count; i++)
        make_block(&block[i], order[i], count == 1);
    while (kernel->failed == CUDA_SUCCESS) {
        struct block *next = choose_block(block, count);
        if (next != NULL)
            run_block(next);
        else if (!release_grid(block, count))
            break;
    }
    for (unsigned i = 0; i < count; i++)
        end_block(&block[i]);
    free(block);
}

static unsigned *random_order(unsigned count)
{
    unsigned *order = malloc(count * sizeof *order);
    if (order == NULL)
        abort();
    for (unsigned i = 0; i < count; i++) {
        const unsigned at = below(i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    return order;
}

static void run_grid(void)
{
    const struct launch *launch = kernel->launch;
    const unsigned blocks = launch->blocks_x * launch->blocks_y;
    unsigned *order = random_order(blocks);
    if (launch->together)
        run_together(order, blocks);
    else
        for (unsigned i = 0; i < blocks && kernel->failed == CUDA_SUCCESS; i++)
            run_together(&order[i], 1);
    free(order);
}

/* Adds 1 to the double that the last argument points to, if TESTGPU_WRONG asks for it. */
static void spoil(const struct kernel_run *this)
{
    const struct testgpu_kernel *what = this->launch->kernel;
    struct view view;
    if (this->failed != CUDA_SUCCESS || !spoils_own_kernel(what->name))
        return;
    double *result = *(double **)this->arguments[what->count - 1];
    if (!memory_open_view(this->run, (uintptr_t)result, sizeof *result, &view))
        return;
    *result += 1;
    memory_close_view(&view);
}

CUresult kernel_run(struct testgpu_run *run, void *argument)
{
    static uint64_t random;
    struct launch *launch = argument;
    const struct testgpu_kernel *what = launch->kernel;
    struct kernel_run this = {.run = run, .launch = launch, .shared_from = shared_size()};
    if (!testgpu_computes())
        return CUDA_SUCCESS;
    this.arguments = calloc(what->count + 1, sizeof *this.arguments);
    this.clock = calloc((size_t)launch->blocks_x * launch->blocks_y, sizeof *this.clock);
    if (this.arguments == NULL || this.clock == NULL)
        abort();
    for (size_t i = 0, at = 0; i < what->count; at += (what->bytes[i++] + 15) / 16 * 16)
        this.arguments[i] = launch->arguments + at;
    pthread_mutex_lock(&turn);
    if (random == 0) {
        random = settings.seed | 1;
        memset(__start_own_shared, POISON, shared_size());
    }
    this.random = random;
    kernel = &this;
    kernel_memory_begin();
    run_grid();
    poison_shared();
    kernel_memory_end();
    spoil(&this);
    random = this.random;
    kernel = NULL;
    pthread_mutex_unlock(&turn);
    run->moved = this.moved;
    free(this.arguments);
    free(this.clock);
    return this.failed;
}
