/* A call of cuSOLVER: its checks, then a kernel on the handle's stream. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "solver_cost.h"

static bool has(const struct solver_call *x, unsigned trait)
{
    return (x->routine->traits & trait) != 0;
}

/* The reason of a refusal that a caller could otherwise not tell from others. */
static cusolverStatus_t refuse(const char *what, const void *address, size_t bytes, size_t needed)
{
    testgpu_fault(what, "address=%p bytes=%zu needed=%zu", address, bytes, needed);
    return CUSOLVER_STATUS_INVALID_VALUE;
}

static struct matrix workspace_of(const struct solver_call *x)
{
    struct matrix work = {.address = x->work, .ld = (int64_t)x->work_bytes, .element = 1};
    set_shape(&work, (int64_t)x->work_bytes, 1, WHOLE);
    return work;
}

static void check_apart(const struct solver_call *x)
{
    struct matrix all[OPERANDS + 1];
    memcpy(all, x->at, sizeof x->at);
    all[OPERANDS] = workspace_of(x);
    for (int i = 0; i <= OPERANDS; i++)
        for (int j = 0; j < i; j++)
            if (matrix_bytes(&all[i]) > 0 && matrix_bytes(&all[j]) > 0 &&
                matrices_overlap(&all[i], &all[j]))
                testgpu_fault("overlapping_operands", "%#llx and %#llx", all[i].address,
                              all[j].address);
}

/* From the last: pivots are read before the matrices that they are of. */
static CUresult reach_operands(struct testgpu_run *run, struct solver_call *x, void **at)
{
    for (int i = OPERANDS - 1; i >= 0; i--) {
        size_t bytes = matrix_bytes(&x->at[i]);
        if (bytes == 0)
            continue;
        CUresult code =
            testgpu_reach_elements(run, x->at[i].address, bytes, x->at[i].element, &at[i]);
        if (code != CUDA_SUCCESS)
            return code;
        if (i == PIVOTS && testgpu_computes() && x->routine->read_pivots != NULL &&
            !x->routine->read_pivots(x, at[i])) {
            testgpu_fault("bad_pivots", "pivots=%#llx", x->at[i].address);
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
    }
    return CUDA_SUCCESS;
}

static void scribble(const struct solver_call *x, void *work)
{
    if (work != NULL)
        memset(work, 0xff, x->work_bytes);
    if (x->host_work != NULL)
        memset(x->host_work, 0xff, x->host_bytes);
}

/* What a caller sees of a success for which nothing was computed. */
static int pretend(const struct solver_call *x, void *const *at)
{
    int64_t found = x->range == CUSOLVER_EIG_RANGE_I ? x->iu - x->il + 1 : x->n;
    if (x->found != NULL)
        *x->found = (int)found;
    if (x->found64 != NULL)
        *x->found64 = found;
    if (x->perturbation != NULL)
        *x->perturbation = 0;
    if (x->routine->pretend != NULL)
        x->routine->pretend(x, at);
    return 0;
}

/* The workspaces hold whatever the library likes, before the results are there and after. */
static int compute(struct solver_call *x, void **at, void *work)
{
    scribble(x, work);
    int info = x->routine->compute(x, at);
    if (testgpu_spoils_kernel(x->routine->name))
        add_one(&x->at[x->routine->result], x->precision, at[x->routine->result]);
    scribble(x, work);
    return info;
}

/* An operand that has changed was written, all of it: of a triangle, the rest is not said to stay.
 * Others were read. */
static void touch_operand(struct testgpu_run *run, const struct matrix *operand, const void *before,
                          const void *after)
{
    struct matrix whole = *operand;
    const bool writes = memcmp(before, after, matrix_bytes(operand)) != 0;
    whole.part = writes ? WHOLE : operand->part;
    touch_matrix(run, &whole, writes);
}

static int compute_and_touch(struct testgpu_run *run, struct solver_call *x, void **at, void *work)
{
    void *before[OPERANDS];
    const struct matrix room = workspace_of(x);
    for (int i = 0; i < OPERANDS; i++) {
        const size_t bytes = matrix_bytes(&x->at[i]);
        before[i] = bytes > 0 ? malloc(bytes) : NULL;
        if (before[i] != NULL)
            memcpy(before[i], at[i], bytes);
    }
    const int info = compute(x, at, work);
    for (int i = 0; i < OPERANDS; i++) {
        if (before[i] != NULL && i != INFO)
            touch_operand(run, &x->at[i], before[i], at[i]);
        free(before[i]);
    }
    if (!has(x, NO_INFO))
        touch_matrix(run, &x->at[INFO], true);
    if (work != NULL)
        touch_matrix(run, &room, true);
    return info;
}

static CUresult run_call(struct testgpu_run *run, void *argument)
{
    struct solver_call *x = argument;
    void *at[OPERANDS] = {NULL};
    void *work = NULL;
    CUresult code = reach_operands(run, x, at);
    if (code != CUDA_SUCCESS)
        return code;
    if (x->work_bytes > 0) {
        work = testgpu_reach(run, x->work, x->work_bytes);
        if (work == NULL)
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    check_apart(x);
    int info = testgpu_computes() ? compute_and_touch(run, x, at, work) : pretend(x, at);
    if (!has(x, NO_INFO))
        memcpy(at[INFO], &info, sizeof info);
    return CUDA_SUCCESS;
}

static bool read_type(struct solver_call *x)
{
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};
    for (int i = SINGLE; i <= DOUBLE_COMPLEX; i++)
        if (x->type == types[i]) {
            x->precision = (enum precision)i;
            return x->compute_type == x->type;
        }
    return false;
}

/* At least 1 also of a matrix that is not looked at, as in LAPACK. */
static bool leading_dimensions_fit(const struct solver_call *x)
{
    for (int i = 0; i < OPERANDS; i++)
        if (x->at[i].element != 0 && x->at[i].ld < larger(1, x->at[i].rows))
            return false;
    return true;
}

static bool is_valid(struct solver_call *x)
{
    return read_type(x) && (unsigned)x->side <= CUBLAS_SIDE_RIGHT &&
           (unsigned)x->uplo <= CUBLAS_FILL_MODE_UPPER && (unsigned)x->diag <= CUBLAS_DIAG_UNIT &&
           (unsigned)x->trans <= CUBLAS_OP_C && (unsigned)x->jobz <= CUSOLVER_EIG_MODE_VECTOR &&
           x->m >= 0 && x->n >= 0 && x->routine->describe(x) && leading_dimensions_fit(x);
}

static bool is_too_large(const struct solver_call *x)
{
    const int64_t sizes[] = {x->m, x->n, x->k, x->at[A].ld, x->at[B].ld, x->at[VT].ld};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] > INT_MAX)
            return true;
    return false;
}

static size_t work_needed(const struct solver_call *x)
{
    return x->routine->room != NULL ? (size_t)x->routine->room(x) * element_bytes(x->precision) : 0;
}

static size_t host_work_needed(const struct solver_call *x)
{
    return has(x, HOST_WORK) ? 64 + 8 * (size_t)(x->m + x->n) : 0;
}

static cusolverStatus_t check(struct solver_call *x)
{
    if (has(x, HAS_PARAMS)) {
        cusolverStatus_t status = solver_check_params(x->params);
        if (status != CUSOLVER_STATUS_SUCCESS)
            return status;
    }
    if (!is_valid(x))
        return CUSOLVER_STATUS_INVALID_VALUE;
    if (is_too_large(x) || work_needed(x) / element_bytes(x->precision) > INT_MAX) {
        testgpu_fault("beyond_the_test_gpu", "a size beyond 32 bits");
        return CUSOLVER_STATUS_NOT_SUPPORTED;
    }
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t check_work(const struct solver_call *x)
{
    size_t needed = work_needed(x);
    if (x->work_bytes < needed || (x->work_bytes > 0 && x->work == 0))
        return refuse("workspace_too_small", (void *)x->work, x->work_bytes, needed);
    needed = host_work_needed(x);
    if (x->host_bytes < needed || (x->host_bytes > 0 && x->host_work == NULL))
        return refuse("workspace_too_small", x->host_work, x->host_bytes, needed);
    if (testgpu_is_device_address(x->host_work))
        return refuse("device_pointer_as_host", x->host_work, x->host_bytes, needed);
    const void *on_host[] = {x->found, x->found64, x->perturbation};
    for (size_t i = 0; i < sizeof on_host / sizeof *on_host; i++)
        if (testgpu_is_device_address(on_host[i]))
            return refuse("device_pointer_as_host", on_host[i], 0, 0);
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t check_addresses(const struct solver_call *x)
{
    for (int i = 0; i < OPERANDS; i++)
        if (matrix_bytes(&x->at[i]) > 0 && x->at[i].address == 0) {
            if (i != PIVOTS)
                return CUSOLVER_STATUS_INVALID_VALUE;
            testgpu_fault("beyond_the_test_gpu", "no pivots: a factorization without pivoting");
            return CUSOLVER_STATUS_NOT_SUPPORTED;
        }
    return CUSOLVER_STATUS_SUCCESS;
}

static bool is_empty(const struct solver_call *x)
{
    return matrix_bytes(&x->at[x->routine->result]) == 0;
}

static cusolverStatus_t put_call(cusolverDnHandle_t handle, struct solver_call *x)
{
    cusolverStatus_t status = check(x);
    if (status != CUSOLVER_STATUS_SUCCESS || is_empty(x))
        return status;
    if (!has(x, NO_INFO))
        set_list(x, INFO, 1, sizeof(int));
    status = check_work(x);
    if (status == CUSOLVER_STATUS_SUCCESS)
        status = check_addresses(x);
    if (status != CUSOLVER_STATUS_SUCCESS)
        return status;
    if (has(x, READS_PIVOTS_AT_ONCE) && !testgpu_is_settled(handle->stream)) {
        testgpu_fault("pivots_not_settled", "pivots=%#llx", x->at[PIVOTS].address);
        return CUSOLVER_STATUS_INTERNAL_ERROR;
    }
    struct testgpu_cost cost = cost_of(x);
    if (testgpu_enqueue(handle->stream, x->routine->name, &cost, run_call, x, sizeof *x) !=
        CUDA_SUCCESS)
        return CUSOLVER_STATUS_EXECUTION_FAILED;
    if (waits(x) && testgpu_await(handle->stream) != CUDA_SUCCESS)
        return CUSOLVER_STATUS_EXECUTION_FAILED;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t solver_call(cusolverDnHandle_t handle, struct solver_call *call)
{
    cusolverStatus_t status = solver_take(handle);
    if (status != CUSOLVER_STATUS_SUCCESS)
        return status;
    status = put_call(handle, call);
    solver_give(handle);
    return status;
}

cusolverStatus_t solver_sizes(cusolverDnHandle_t handle, struct solver_call *call, size_t *device,
                              size_t *host)
{
    if (device == NULL || host == NULL)
        return CUSOLVER_STATUS_INVALID_VALUE;
    cusolverStatus_t status = solver_take(handle);
    if (status != CUSOLVER_STATUS_SUCCESS)
        return status;
    status = check(call);
    solver_give(handle);
    if (status != CUSOLVER_STATUS_SUCCESS)
        return status;
    *device = work_needed(call);
    *host = host_work_needed(call);
    return status;
}

cusolverStatus_t solver_size(cusolverDnHandle_t handle, struct solver_call *call, int *elements)
{
    size_t device, host;
    if (elements == NULL)
        return CUSOLVER_STATUS_INVALID_VALUE;
    cusolverStatus_t status = solver_sizes(handle, call, &device, &host);
    if (status == CUSOLVER_STATUS_SUCCESS)
        *elements = (int)(device / element_bytes(call->precision));
    return status;
}
