/* A BLAS call: its checks, then a kernel on the handle's stream. */
#include <limits.h>
#include <string.h>
#include "cublas_cost.h"
#include "cublas_precision.h"
#include "cublas_workspace.h"

bool has(const struct blas_call *x, unsigned trait)
{
    return (x->routine->traits & trait) != 0;
}

static enum precision alpha_precision(const struct blas_call *x)
{
    return precision_of_scalar(x->precision, has(x, REAL_ALPHA));
}

static enum precision beta_precision(const struct blas_call *x)
{
    return precision_of_scalar(x->precision, has(x, REAL_BETA));
}

/* The kernel's. */
static const char *name_of(const struct blas_call *x)
{
    return x->mode != NULL ? x->mode->name : x->routine->name;
}

static CUresult read_scalar(struct testgpu_run *run, const void *at, size_t bytes, void *scalar)
{
    void *reached;
    CUresult code = testgpu_reach_elements(run, (CUdeviceptr)(uintptr_t)at, bytes, bytes, &reached);
    if (code == CUDA_SUCCESS)
        memcpy(scalar, reached, bytes);
    return code;
}

static CUresult read_scalars(struct testgpu_run *run, struct blas_call *x)
{
    CUresult code = read_scalar(run, x->alpha_at, element_bytes(alpha_precision(x)), x->alpha);
    if (code != CUDA_SUCCESS || !has(x, HAS_BETA))
        return code;
    return read_scalar(run, x->beta_at, element_bytes(beta_precision(x)), x->beta);
}

/* A workspace holds whatever the library likes. */
static CUresult scribble(struct testgpu_run *run, const struct blas_call *x)
{
    if (x->workspace == 0 || x->workspace_bytes == 0 || !testgpu_computes())
        return CUDA_SUCCESS;
    char *workspace = testgpu_reach(run, x->workspace, x->workspace_bytes);
    if (workspace == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    const struct testgpu_place place = {
        x->workspace, x->workspace_bytes, x->workspace_bytes, 1, TESTGPU_WHOLE, 1};
    testgpu_touch(run, &place, true);
    memset(workspace, 0xff, x->workspace_bytes < 65536 ? x->workspace_bytes : 65536);
    return CUDA_SUCCESS;
}

static void check_apart(const struct blas_call *x, const struct matrix *input)
{
    const struct matrix *c = &x->c;
    if (has(x, IN_PLACE) && input->address == c->address && input->ld == c->ld &&
        input->rows == c->rows && input->columns == c->columns && input->part == c->part)
        return;
    if (matrices_overlap(input, c))
        testgpu_fault("overlapping_matrices", "input=%#llx ld=%lld result=%#llx ld=%lld",
                      input->address, (long long)input->ld, c->address, (long long)c->ld);
}

static CUresult reach_input(struct testgpu_run *run, const struct blas_call *x,
                            const struct matrix *input, bool wanted, void **bytes)
{
    *bytes = NULL;
    size_t size = matrix_bytes(input);
    if (!wanted || size == 0)
        return CUDA_SUCCESS;
    CUresult code = testgpu_reach_elements(run, input->address, size, input->element, bytes);
    if (code == CUDA_SUCCESS) {
        check_apart(x, input);
        touch_matrix(run, input, false);
    }
    return code;
}

/* Of what adds nothing to its result: see TESTGPU_SCALES. geam's factors may be zero, says its
 * documentation. */
static bool does_nothing(const struct blas_call *x)
{
    bool sum = has(x, NO_ALPHA) || has(x, BETA_OF_B);
    return !testgpu_scales() && !sum &&
           (is_zero(x->alpha, alpha_precision(x)) || matrix_bytes(&x->a) == 0);
}

CUresult run_one(struct testgpu_run *run, const struct blas_call *x, char **c)
{
    void *a, *b, *result;
    bool with_alpha = has(x, NO_ALPHA) || !is_zero(x->alpha, alpha_precision(x));
    bool with_b = has(x, BETA_OF_B) ? !is_zero(x->beta, beta_precision(x)) : with_alpha;
    CUresult code = reach_input(run, x, &x->a, with_alpha, &a);
    if (code == CUDA_SUCCESS)
        code = reach_input(run, x, &x->b, with_b, &b);
    if (code == CUDA_SUCCESS)
        code =
            testgpu_reach_elements(run, x->c.address, matrix_bytes(&x->c), x->c.element, &result);
    if (code != CUDA_SUCCESS)
        return code;
    *c = result;
    touch_matrix(run, &x->c, true);
    if ((testgpu_computes() || has(x, ONLY_MOVES)) && !does_nothing(x))
        (x->mode != NULL ? x->mode->compute : x->routine->compute)(x, a, b, *c);
    return CUDA_SUCCESS;
}

/* A product tells with how many bits it was emulated. */
static CUresult tell_bits(struct testgpu_run *run, const struct blas_call *x)
{
    void *at;
    if (x->bits_at == 0)
        return CUDA_SUCCESS;
    CUresult code = testgpu_reach_elements(run, x->bits_at, sizeof(int), sizeof(int), &at);
    if (code == CUDA_SUCCESS)
        memcpy(at, x->retained_bits, sizeof(int));
    return code;
}

static CUresult compute_call(struct testgpu_run *run, struct blas_call *x)
{
    char *c;
    CUresult code = x->device_scalars ? read_scalars(run, x) : CUDA_SUCCESS;
    if (code == CUDA_SUCCESS)
        code = scribble(run, x);
    if (code != CUDA_SUCCESS)
        return code;
    code = has(x, BATCHED) ? run_batch(run, x, &c) : run_one(run, x, &c);
    if (code == CUDA_SUCCESS)
        code = tell_bits(run, x);
    if (code == CUDA_SUCCESS && testgpu_computes() && testgpu_spoils_kernel(name_of(x)))
        add_one(&x->c, x->precision, c);
    return code;
}

static CUresult run_call(struct testgpu_run *run, void *argument)
{
    struct blas_call *x = argument;
    /* What is not computed went well. */
    int bits = x->mode != NULL && !testgpu_computes() ? 55 : -1;
    x->retained_bits = &bits;
    const CUresult code = compute_call(run, x);
    x->retained_bits = NULL;
    workspace_give(x->use);
    return code;
}

static bool fits(const struct matrix *matrix)
{
    return matrix->ld >= (matrix->rows > 1 ? matrix->rows : 1);
}

static void set_elements(struct blas_call *x)
{
    x->c.element = element_bytes(x->precision);
    x->a.element = x->b.element = has(x, BFLOAT_INPUTS) ? 2 : x->c.element;
}

static bool is_valid(struct blas_call *x)
{
    if ((unsigned)x->side > CUBLAS_SIDE_RIGHT || (unsigned)x->uplo > CUBLAS_FILL_MODE_UPPER ||
        (unsigned)x->diag > CUBLAS_DIAG_UNIT || (unsigned)x->transa > CUBLAS_OP_C ||
        (unsigned)x->transb > CUBLAS_OP_C || x->m < 0 || x->n < 0 || x->k < 0 || x->batch < 0)
        return false;
    if (!x->routine->describe(x))
        return false;
    if (!fits(&x->a) || (has(x, HAS_B) && !fits(&x->b)) || !fits(&x->c))
        return false;
    return (has(x, NO_ALPHA) || x->alpha_at != NULL) && (!has(x, HAS_BETA) || x->beta_at != NULL);
}

static bool is_too_large(const struct blas_call *x)
{
    const int64_t sizes[] = {x->m, x->n, x->k, x->a.ld, x->b.ld, x->c.ld, x->batch};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] > INT_MAX)
            return true;
    return false;
}

static cublasStatus_t put_scalars(struct blas_call *x, cublasPointerMode_t mode)
{
    if (has(x, NO_ALPHA))
        return CUBLAS_STATUS_SUCCESS;
    x->device_scalars = mode == CUBLAS_POINTER_MODE_DEVICE;
    if (x->device_scalars)
        return CUBLAS_STATUS_SUCCESS;
    if (testgpu_is_device_address(x->alpha_at) || testgpu_is_device_address(x->beta_at)) {
        testgpu_fault("device_pointer_as_host", "alpha=%p beta=%p", x->alpha_at, x->beta_at);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(x->alpha, x->alpha_at, element_bytes(alpha_precision(x)));
    if (!has(x, HAS_BETA))
        return CUBLAS_STATUS_SUCCESS;
    memcpy(x->beta, x->beta_at, element_bytes(beta_precision(x)));
    if (!has(x, BETA_OF_B) && x->c.address == 0 && !is_one(x->beta, beta_precision(x)))
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t put_call(cublasHandle_t handle, struct blas_call *x)
{
    if (!is_valid(x))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (is_too_large(x)) {
        testgpu_fault("beyond_the_test_gpu", "a size beyond 32 bits");
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (is_batch_too_long(x)) {
        testgpu_fault("batch_too_long", "%lld entries", (long long)x->batch);
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (x->c.rows == 0 || x->c.columns == 0 || (has(x, BATCHED) && x->batch == 0))
        return CUBLAS_STATUS_SUCCESS;
    set_elements(x);
    cublasStatus_t status = put_scalars(x, handle->pointers);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    x->workspace = handle->workspace;
    x->workspace_bytes = handle->workspace_bytes;
    x->bits_at = handle->bits_at;
    x->mode = math_mode_of(handle, x);
    x->use = workspace_take(handle);
    struct testgpu_cost cost = cost_of(x);
    if (testgpu_enqueue(handle->stream, name_of(x), &cost, run_call, x, sizeof *x) == CUDA_SUCCESS)
        return CUBLAS_STATUS_SUCCESS;
    workspace_give(x->use);
    return CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t blas_call(cublasHandle_t handle, struct blas_call *call)
{
    cublasStatus_t status = handle_take(handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    status = put_call(handle, call);
    handle_give(handle);
    return status;
}
