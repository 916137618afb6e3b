#include "decide.h"

#include "lapack_rules.h"

#include <stdlib.h>
#include <string.h>

static const char *const why_names[ACCEL_WHYS] = {
    [ACCEL_FASTER] = "faster",
    [ACCEL_FORCED] = "forced",
    [ACCEL_DEVICE_DATA] = "device_data",
    [ACCEL_REQUIRED] = "required",
    [ACCEL_SMALL] = "small",
    [ACCEL_SLOWER] = "slower",
    [ACCEL_UNSUPPORTED] = "unsupported",
    [ACCEL_WORKSPACE_QUERY] = "workspace_query",
    [ACCEL_BAD_ARGUMENT] = "bad_argument",
    [ACCEL_EMPTY] = "empty",
    [ACCEL_OFF] = "off",
    [ACCEL_USER] = "user",
    [ACCEL_NO_GPU] = "no_gpu",
    [ACCEL_WARMING] = "warming",
    [ACCEL_NO_MEMORY] = "no_memory",
    [ACCEL_BUSY] = "busy",
    [ACCEL_ERROR] = "error",
    [ACCEL_FORKED] = "forked",
    [ACCEL_VERIFY_FAILED] = "verify_failed",
};

const char *accel_why_name(enum accel_why why)
{
    return why_names[why];
}

void accel_machine_init(struct accel_machine *machine, int cores)
{
    *machine = (struct accel_machine){.gpu = ACCEL_GPU_UNTRIED,
                                      .gpu_memory = INT64_MAX,
                                      .up_gbps = 25,
                                      .down_gbps = 25,
                                      .cpu_gbps = cores < 20 ? 10.0 * cores : 200,
                                      .gpu_gbps = 2000,
                                      .launch_ms = 0.03};
    for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++) {
        bool is_double = accel_is_double((enum accel_dtype)dtype);
        machine->cpu_gflops[dtype] = cores * (is_double ? 25.0 : 50.0);
        machine->gpu_gflops[dtype] = is_double ? 30e3 : 45e3;
    }
}

static bool is_faulty(const struct accel_call *call, int i)
{
    const struct accel_arg *arg = &call->routine->arg[i];
    const struct accel_operand *x = &call->operand[arg->slot];
    switch (arg->kind) {
    case ACCEL_ARG_FLAG:
        return call->flag[arg->slot] == '?';
    case ACCEL_ARG_SIZE:
        return call->size[arg->slot] < 0;
    case ACCEL_ARG_LD:
        return x->ld < 1 || x->ld < x->rows;
    case ACCEL_ARG_INC:
        return x->inc == 0;
    case ACCEL_ARG_BATCH:
        return call->batch < 0;
    case ACCEL_ARG_GROUPS:
        return call->groups < 0;
    default:
        return false;
    }
}

const char *accel_call_fault(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    if (call->layout == ACCEL_NO_LAYOUT)
        return "layout";
    if (accel_is_rows_of_lapack(call))
        return NULL; /* its shapes are not these; it is not ours */
    for (int i = 0; i < routine->args; i++)
        if (is_faulty(call, i))
            return routine->arg[i].name;
    return accel_is_lapack(routine->family) ? lapack_fault(call) : NULL;
}

bool accel_call_empty(const struct accel_call *call)
{
    const struct accel_routine *routine = call->routine;
    if (accel_is_lapack(routine->family))
        return lapack_is_empty(call);
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_SIZE && call->size[routine->arg[i].slot] == 0)
            return true;
    return call->batch == 0 || accel_adds_nothing(call);
}

/* Whether two matrices of one shape, `distance` bytes apart, have an element in common. */
static bool meet(const struct accel_operand *x, uint64_t distance)
{
    uint64_t size = accel_dtype_size(x->dtype), ld = (uint64_t)x->ld;
    if (distance >= (uint64_t)accel_extent(x, 1))
        return false;
    if (distance % size != 0)
        return true;
    uint64_t cols = distance / size / ld, rows = distance / size % ld;
    return rows < (uint64_t)x->rows ||
           (ld - rows < (uint64_t)x->rows && cols + 1 < (uint64_t)x->cols);
}

/* Where results of a batch with strides have elements in common, the products depend on each other. */
static bool is_separate(const struct accel_operand *x, int64_t batch)
{
    int64_t extent = accel_extent(x, 1), stride;
    if (x->array || batch <= 1)
        return true;
    if (!accel_mul(x->stride, (int64_t)accel_dtype_size(x->dtype), &stride) || stride < 0)
        return false;
    if (!(x->access & ACCEL_WRITE))
        return true;
    for (int64_t i = 1; i < batch && (i - 1) * stride < extent; i++)
        if (meet(x, (uint64_t)(i * stride)))
            return false;
    return true;
}

static int compare_pointers(const void *a, const void *b)
{
    void *const *x = a, *const *y = b;
    return ((uintptr_t)x[0] > (uintptr_t)y[0]) - ((uintptr_t)x[0] < (uintptr_t)y[0]);
}

/* Matrices that begin within another one's extent and are compared with it: blocks of a large matrix. */
#define NEIGHBOURS_MAX 256

/* Whether matrices in the order of their addresses have elements in common, or that cannot be told. */
static bool ordered_meet(const struct accel_operand *x, void *const *array, int64_t batch)
{
    const uintptr_t extent = (uintptr_t)accel_extent(x, 1);
    for (int64_t i = 0; i < batch; i++)
        for (int64_t j = i + 1; j < batch && (uintptr_t)array[j] - (uintptr_t)array[i] < extent;
             j++)
            if (j - i > NEIGHBOURS_MAX || meet(x, (uintptr_t)array[j] - (uintptr_t)array[i]))
                return true;
    return false;
}

/* The same of matrices in any order. */
static bool results_meet(const struct accel_operand *x, int64_t batch)
{
    int64_t i = 1;
    while (i < batch && (uintptr_t)x->array[i] > (uintptr_t)x->array[i - 1])
        i++;
    if (i >= batch) /* as they mostly are */
        return ordered_meet(x, x->array, batch);
    void **sorted = malloc((size_t)batch * sizeof *sorted);
    if (!sorted)
        return true;
    memcpy(sorted, x->array, (size_t)batch * sizeof *sorted);
    qsort(sorted, (size_t)batch, sizeof *sorted, compare_pointers);
    bool result = ordered_meet(x, sorted, batch);
    free(sorted);
    return result;
}

static bool call_overlaps(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        const struct accel_operand *x = &call->operand[i];
        if (x->array && (x->access & ACCEL_WRITE) && results_meet(x, call->batch))
            return true;
    }
    return false;
}

/* Not: flags that only OpenBLAS knows (conjugated, not transposed), memory that our kernels do not reach, and
 * extents beyond 2^63 bytes. */
static bool is_supported(const struct accel_call *call)
{
    if (accel_is_lapack(call->routine->family) && !lapack_is_supported(call))
        return false;
    /* OpenBLAS's extension: for others it is an error. Row-major calls of Level 2 become the same. */
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (arg->kind == ACCEL_ARG_FLAG && arg->slot != ACCEL_side && call->given[i] == 'R')
            return false;
    }
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        const struct accel_operand *x = &call->operand[i];
        if (x->place == ACCEL_REMOTE || accel_extent(x, x->array ? 1 : call->batch) < 0 ||
            !is_separate(x, call->batch))
            return false;
    }
    return true;
}

/* Each side is bound by its arithmetic or by its memory, whichever takes longer. */
static void estimate(struct accel_decision *decision, const struct accel_call *call,
                     const struct accel_machine *machine)
{
    enum accel_dtype dtype = call->routine->dtype;
    double flops = call->routine->flops(call);
    double up = 0, down = 0, touched = 0;
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        const struct accel_operand *x = &call->operand[i];
        double bytes = (double)x->rows * (double)x->cols * (double)accel_dtype_size(x->dtype) *
                       (double)call->batch;
        touched += bytes;
        if (x->place != ACCEL_HOST)
            continue;
        if (x->access & ACCEL_WRITE)
            down += bytes;
        if (accel_is_read(call, x))
            up += bytes;
    }
    double cpu = flops / machine->cpu_gflops[dtype], cpu_memory = touched / machine->cpu_gbps;
    double share = accel_is_lapack(call->routine->family) ? lapack_gpu_share(call) : 1;
    double gpu = flops / (share * machine->gpu_gflops[dtype]),
           gpu_memory = touched / machine->gpu_gbps;
    decision->est_cpu_ms = (cpu > cpu_memory ? cpu : cpu_memory) * 1e-6;
    decision->est_gpu_ms = machine->launch_ms + (gpu > gpu_memory ? gpu : gpu_memory) * 1e-6 +
                           up / machine->up_gbps * 1e-6 + down / machine->down_gbps * 1e-6;
}

static bool must_move(const struct accel_call *call)
{
    return accel_only_moves(call->routine->family) && call->operand[ACCEL_a].place == ACCEL_HOST;
}

static bool on_device(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_MATRICES; i++)
        if (call->operand[i].place == ACCEL_DEVICE)
            return true;
    return false;
}

/* As the entries' gate has it, which must be cheap: how many products a batch has does not count, and of the
 * grouped ones, whose sizes are in arrays, m and n alone do. */
static bool below_gate(const struct accel_call *call, const struct accel_machine *machine)
{
    uint64_t gate = accel_decide_gate(machine);
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        if ((uint64_t)call->size[i] >= gate && !(i == ACCEL_k && call->operand[ACCEL_a].array))
            return false;
    return true;
}

static struct accel_decision on_cpu(struct accel_decision decision, enum accel_why why)
{
    decision.gpu = false;
    decision.why = why;
    return decision;
}

static struct accel_decision on_gpu(struct accel_decision decision, enum accel_why why)
{
    decision.gpu = true;
    decision.why = why;
    return decision;
}

static struct accel_decision decide(const struct accel_call *call,
                                    const struct accel_machine *machine,
                                    const struct accel_settings *settings)
{
    struct accel_decision decision = {0};
    if (!settings->on)
        return on_cpu(decision, ACCEL_OFF);
    if (accel_call_fault(call))
        return on_cpu(decision, ACCEL_BAD_ARGUMENT);
    if (accel_is_lapack(call->routine->family) && lapack_is_query(call))
        return on_cpu(decision, ACCEL_WORKSPACE_QUERY);
    bool device_data = on_device(call);
    if (accel_call_empty(call) && (!device_data || accel_is_lapack(call->routine->family)))
        return on_cpu(decision, ACCEL_EMPTY);
    if (!is_supported(call))
        return on_cpu(decision, ACCEL_UNSUPPORTED);
    estimate(&decision, call, machine);
    if (settings->policy == ACCEL_POLICY_CPU)
        return on_cpu(decision, ACCEL_USER);

    switch (machine->gpu) {
    case ACCEL_GPU_ABSENT:
        return on_cpu(decision, ACCEL_NO_GPU);
    case ACCEL_GPU_FAILED:
        return on_cpu(decision, ACCEL_ERROR);
    case ACCEL_GPU_FORKED:
        return on_cpu(decision, ACCEL_FORKED);
    case ACCEL_GPU_STARTING:
        return on_cpu(decision, ACCEL_WARMING);
    case ACCEL_GPU_UNTRIED:
    case ACCEL_GPU_READY:
        break;
    }
    /* BLAS goes through in tiles, LAPACK does not. */
    if (accel_is_lapack(call->routine->family) && !accel_only_moves(call->routine->family) &&
        lapack_gpu_bytes(call) > (double)machine->gpu_memory)
        return on_cpu(decision, ACCEL_NO_MEMORY);
    if (device_data) /* whatever its size: the CPU could not read it */
        return on_gpu(decision, ACCEL_DEVICE_DATA);
    if (settings->policy == ACCEL_POLICY_GPU)
        return on_gpu(decision, ACCEL_FORCED);
    if (below_gate(call, machine))
        return on_cpu(decision, ACCEL_SMALL);
    if (must_move(call) || decision.est_gpu_ms >= decision.est_cpu_ms)
        return on_cpu(decision, ACCEL_SLOWER);
    /* Anything goes through in tiles, but tiles this small would not pay. */
    if (machine->gpu_memory < 16 << 20)
        return on_cpu(decision, ACCEL_NO_MEMORY);
    return on_gpu(decision, ACCEL_FASTER);
}

struct accel_decision accel_decide(const struct accel_call *call,
                                   const struct accel_machine *machine,
                                   const struct accel_settings *settings)
{
    const struct accel_decision decision = decide(call, machine, settings);
    return decision.gpu && call_overlaps(call) ? on_cpu(decision, ACCEL_UNSUPPORTED) : decision;
}

uint64_t accel_decide_gate(const struct accel_machine *machine)
{
    double flops = machine->launch_ms * 1e6 * machine->cpu_gflops[ACCEL_COMPLEX128];
    uint64_t n = 1;
    while (n < 1024 && 8.0 * (double)(2 * n) * (double)(2 * n) * (double)(2 * n) <= flops)
        n *= 2;
    return n;
}
