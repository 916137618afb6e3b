#define _GNU_SOURCE
#include "workload.h"
#include "solve_bench.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "dispatch/cost/problem.h"
#include "ops/rules/lapack_rules.h"
#include "call/shape.h"
#include "ops/typical.h"
#include "fill.h"
#include "base/thread/clock.h"
#include "ops/blas/pass.h"
#include "shim/arch/entry.h"

/* ---- Memory ---- */

bool workload_memory_open(struct workload_memory *memory, size_t size)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *memory = (struct workload_memory){base == MAP_FAILED ? NULL : base, size, 0};
    return memory->base;
}

void workload_memory_close(struct workload_memory *memory)
{
    munmap(memory->base, memory->size);
    memory->base = NULL;
}

/* Returns memory for `count` elements, of at least a cache line; NULL if too little is left. count
 * may be negative: too many. */
static void *alloc_operand(struct workload_memory *memory, int64_t count, size_t element)
{
    const int64_t line = 64;
    int64_t bytes;
    if (count < 0 || !accel_mul(count, (int64_t)element, &bytes) ||
        bytes > (int64_t)(memory->size - memory->used) - 2 * line)
        return NULL;
    char *at = memory->base + memory->used;
    memory->used += (size_t)((bytes + 2 * line - 1) / line * line);
    return at;
}

/* ---- Workspace ---- */

/* Returns how many elements of 8 bytes a workspace without a length argument needs at least: by the
 * documentation of rwork and iwork in LAPACK's drivers; those of gelsd have logarithms. */
static int64_t fixed_length(const struct accel_call *call)
{
    bool has_m = accel_has_size(call->routine, ACCEL_m);
    int64_t n = call->blas.size[ACCEL_n], m = has_m ? call->blas.size[ACCEL_m] : n,
            nrhs = call->blas.size[ACCEL_nrhs];
    int64_t mn = accel_min(m, n), mx = accel_max(m, n);
    return 200 * mx + 1000 + lapack_least_lengths(call).rwork + (nrhs > 0 ? (mn + 75) * nrhs : 0);
}

/* Returns the length that a workspace query has written to the first element. A float may have been
 * rounded down. */
static int64_t wanted_length(const struct accel_call *call, uint8_t slot, const void *work)
{
    double real;
    float f;
    int32_t narrow;
    int64_t wide;
    memcpy(&f, work, sizeof f);
    memcpy(&real, work, sizeof real);
    memcpy(&narrow, work, sizeof narrow);
    memcpy(&wide, work, sizeof wide);
    if (slot == ACCEL_liwork)
        return call->blas.width == 64 ? wide : narrow;
    if (!accel_is_double(call->routine->dtype))
        real = ceil((double)f * (1 + 0x1p-22));
    return real >= 1 && real < 1e12 ? (int64_t)real : 1;
}

/* Returns the bytes of an element of the workspace whose length is in this slot. */
static size_t element_of(const struct accel_call *call, uint8_t slot)
{
    enum accel_dtype dtype = call->routine->dtype;
    return slot == ACCEL_liwork   ? (size_t)call->blas.width / 8
           : slot == ACCEL_lrwork ? accel_dtype_size(accel_real_dtype(dtype))
                                  : accel_dtype_size(dtype);
}

/* BLAS has none, nor have LAPACK's routines that only move. */
static bool has_info(const struct accel_routine *routine)
{
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_INFO)
            return true;
    return false;
}

/* Calls the library's function. False if it reports an error. */
static bool succeeds(struct workload *workload)
{
    const struct accel_call *call = &workload->call;
    struct accel_words words;
    workload->info = has_info(call->routine) ? -1 : 0;
    const struct accel_passed passed = blas_pass(&words, workload->abi, call->blas.width, call);
    accel_invoke(workload->function, &passed);
    return (call->blas.width == 64 ? workload->info : (int32_t)workload->info) == 0;
}

/* Whether argument i, a workspace, has a length: the next argument. */
static bool has_length(const struct accel_routine *routine, int i)
{
    return i + 1 < routine->args && routine->arg[i + 1].kind == ACCEL_ARG_LWORK;
}

static bool make_workspace(struct workload *workload, struct workload_memory *memory)
{
    struct accel_call *call = &workload->call;
    const struct accel_routine *routine = call->routine;
    double answer[ACCEL_ARGS_MAX][2] = {{0}};
    bool asks = false;
    for (int i = 0; i < routine->args; i++) {
        if (routine->arg[i].kind == ACCEL_ARG_INFO)
            call->blas.given[i] = (int64_t)(intptr_t)&workload->info;
        if (routine->arg[i].kind == ACCEL_ARG_WORK)
            call->blas.given[i] = (int64_t)(intptr_t)answer[i];
        if (routine->arg[i].kind == ACCEL_ARG_LWORK) {
            call->blas.size[routine->arg[i].slot] = -1;
            asks = true;
        }
    }
    if (asks && !succeeds(workload))
        return false;
    for (int i = 0; i < routine->args; i++) {
        if (routine->arg[i].kind != ACCEL_ARG_WORK)
            continue;
        void *work;
        if (has_length(routine, i)) {
            uint8_t slot = routine->arg[i + 1].slot;
            call->blas.size[slot] = wanted_length(call, slot, answer[i]);
            call->blas.given[i + 1] = call->blas.size[slot];
            work = alloc_operand(memory, call->blas.size[slot], element_of(call, slot));
        } else {
            work = alloc_operand(memory, fixed_length(call), 8);
        }
        if (!work)
            return false;
        call->blas.given[i] = (int64_t)(intptr_t)work;
    }
    return true;
}

/* ---- The call ---- */

bool workload_is_for(const struct accel_routine *routine)
{
    const int64_t size[ACCEL_DIMENSIONS] = {16, 16, 16, 16};
    struct accel_call call;
    shape_typical(&call, routine, size);
    return accel_is_blas(routine) && !accel_only_moves(routine) &&
           (!accel_is_lapack(routine) || lapack_is_supported(&call));
}

bool workload_make(struct workload *workload, struct workload_memory *memory,
                   const struct accel_routine *routine, const int64_t size[ACCEL_DIMENSIONS],
                   const struct library_function *function)
{
    workload->abi = ACCEL_ABI_FORTRAN;
    shape_typical(&workload->call, routine, size);
    return workload_place(workload, memory, function);
}

bool workload_place(struct workload *workload, struct workload_memory *memory,
                    const struct library_function *function)
{
    struct accel_call *call = &workload->call;
    const struct accel_routine *routine = call->routine;
    workload->function = function ? function->address : NULL;
    workload->filled = false;
    workload->rates = (struct schedule_rates){.up = 0};
    memory->used = 0;
    call->blas.width = function ? function->width : 32;
    call->blas.has_work = function;
    shape_operands(call);
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind != ACCEL_ARG_MATRIX && arg->kind != ACCEL_ARG_VECTOR)
            continue;
        struct accel_span *x = &call->span[arg->slot];
        x->name = arg->name;
        x->ptr = alloc_operand(memory, accel_extent(x, 1), 1);
        if (!x->ptr)
            return false;
    }
    return !function || make_workspace(workload, memory);
}

bool timing_add(struct timing *timing, double ms)
{
    if (ms < 0)
        timing->best_ms = ms;
    if (ms < 0 || timing->warm-- > 0)
        return ms >= 0;
    timing->best_ms = timing->runs++ > 0 ? fmin(timing->best_ms, ms) : ms;
    timing->spent_ms += ms;
    return timing->runs < timing->most && (timing->runs < timing->least || timing->enough_ms == 0 ||
                                           timing->spent_ms < timing->enough_ms);
}

/* Fills the operands that a run overwrites. destroyed: fills all, as LAPACK may use a matrix as
 * workspace that the table, which tells what the caller gets back, calls only read. */
static void refill(struct workload *workload, bool destroyed)
{
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &workload->call.span[i];
        if (x->ptr && (!workload->filled || destroyed || (x->access & ACCEL_WRITE)))
            fill_operand(&workload->call, (enum accel_matrix)i);
    }
    workload->filled = true;
}

void workload_fill(struct workload *workload)
{
    refill(workload, true);
}

void workload_fill_inputs(struct workload *workload)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (workload->call.span[i].ptr && workload->call.span[i].access == ACCEL_READ)
            fill_operand(&workload->call, (enum accel_matrix)i);
}

double workload_cpu_ms(struct workload *workload)
{
    refill(workload, accel_is_lapack(workload->call.routine));
    double start = accel_now_ms();
    bool good = succeeds(workload);
    double ms = accel_now_ms() - start;
    return good ? ms : -1;
}

/* The original of a part. */
static bool refuse_part(void *context, const struct accel_call *part)
{
    (void)context;
    (void)part;
    return false;
}

double workload_run_ms(struct gpu_device *device, const struct accel_call *call,
                       struct gpu_host *host, enum gpu_status *status)
{
    host->original = refuse_part;
    const double start = accel_now_ms();
    *status = gpu_run(device, call, host);
    const double ms = accel_now_ms() - start;
    return *status == GPU_OK ? ms : -1;
}

double workload_gpu_ms(struct workload *workload, struct gpu_device *device, struct gpu_host *host,
                       enum gpu_status *status)
{
    *host = (struct gpu_host){.rates = workload->rates};
    refill(workload, false);
    return workload_run_ms(device, &workload->call, host, status);
}

/* Adds what kernels have taken; context is the sum. */
static void add_kernels(void *context, const struct gpu_steps *steps)
{
    double *sum = context;
    for (int i = 0; i < steps->count; i++)
        if (steps->step[i].kind == GPU_STEP_COMPUTE)
            *sum += steps->step[i].end_ms - steps->step[i].start_ms;
}

/* Runs the call; returns the milliseconds of its kernels, negative if it fails or has none. */
static double kernels_ms(struct workload *workload, struct gpu_device *device,
                         struct gpu_host *host)
{
    double sum = 0;
    host->original = refuse_part;
    host->steps = add_kernels;
    host->context = &sum;
    refill(workload, false);
    return gpu_run(device, &workload->call, host) == GPU_OK && sum > 0 ? sum : -1;
}

double workload_in_place_ms(struct workload *workload, struct gpu_device *device)
{
    struct gpu_host host = {.placed = 0};
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (workload->call.span[i].ptr && workload->call.span[i].access == ACCEL_READ)
            host.placed |= 1u << i;
    return kernels_ms(workload, device, &host);
}

double workload_compute_ms(struct workload *workload, struct gpu_device *device,
                           enum gpu_precision precision)
{
    struct gpu_host host = {.precision = precision, .rates = schedule_nominal};
    host.rates.copy_ms = host.rates.kernel_ms = 1e6; /* to divide the call costs too much */
    const double ms = kernels_ms(workload, device, &host);
    return host.precision == precision ? ms : -1;
}

static struct schedule_rates rates_of(const struct problem *problem,
                                      const struct workload_device *measured, double kernel_ms)
{
    const struct accel_routine *routine = problem->call->routine;
    struct schedule_rates rates = schedule_nominal;
    const struct solve_bench *solves = measured->solves;
    const struct gpu_copy_rates *copies = measured->copies;
    if (solves && problem->call->op->cost->sample == ACCEL_SAMPLE_SOLVE)
        schedule_set_solving(&rates, solves->by[routine->dtype], solves->own_nrhs[routine->dtype]);
    rates.up = copies->up_gbps;
    rates.down = copies->down_gbps;
    rates.short_up = copies->short_up;
    rates.short_down = copies->short_down;
    if (measured->paces)
        rates.paces = measured->paces[routine->dtype];
    rates.compute = schedule_compute(&problem->scheduled.call, &rates, kernel_ms);
    return rates;
}

double workload_kernel_ms(struct workload *workload, struct gpu_device *device,
                          const struct workload_device *measured, int runs)
{
    struct problem problem;
    struct timing timing = {.most = runs};
    double ms;
    problem_of(&problem, &workload->call);
    if (!problem.is_divided)
        return 0;
    do
        ms = workload_compute_ms(workload, device, GPU_NATIVE);
    while (timing_add(&timing, ms < 0 ? INFINITY : ms));
    if (isinf(timing.best_ms))
        return 0;
    workload->rates = rates_of(&problem, measured, timing.best_ms);
    return timing.best_ms;
}

double workload_schedule_ms(const struct accel_call *call, struct gpu_device *device,
                            const struct workload_device *measured, double kernel_ms)
{
    struct problem problem;
    problem_of(&problem, call);
    if (!problem.is_divided || !(kernel_ms > 0))
        return 0;
    const struct schedule_rates rates = rates_of(&problem, measured, kernel_ms);
    const double ms = scheduled_ms(&problem.scheduled, &rates, gpu_info(device)->memory_bytes, 0);
    return ms > 0 ? ms : 0;
}
