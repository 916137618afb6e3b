/* Executions: their checks, then a kernel on the plan's stream. */
#include <math.h>
#include "cufft_compute.h"

static const char *kernel_of(cufftType type)
{
    return is_complex_type(type) ? "fft_c2c" : goes_to_real(type) ? "fft_c2r" : "fft_r2c";
}

/* ---- As the kernel runs ---- */

/* In place, an array's result lies where the array was; out of place, apart from it. */
static void check_sides(const struct execution *x)
{
    const struct side *in = &x->in, *out = &x->out;
    if (in->address != out->address) {
        if (sides_overlap(in, out))
            testgpu_fault("overlapping_operands", "%#llx and %#llx", in->address, out->address);
    } else if (!rows_agree(in, out)) {
        testgpu_fault("layouts_in_place", "address=%#llx: the two differ", in->address);
    }
}

/* All of it, and none of the operands lies in it. */
static CUresult reach_area(struct testgpu_run *run, const struct execution *x, void **area)
{
    const struct side whole = {x->area, {1, 1, 1, (int64_t)x->area_bytes}, {1, 1, 1, 1}, 1};
    *area = testgpu_reach(run, x->area, x->area_bytes);
    if (*area == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (x->area % sizeof(cufftDoubleComplex) != 0) {
        testgpu_fault("misaligned_address", "address=%#llx", x->area);
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    }
    if (sides_overlap(&whole, &x->in) || sides_overlap(&whole, &x->out))
        testgpu_fault("overlapping_operands", "%#llx is the work area", x->area);
    touch_side(run, &whole, true);
    return CUDA_SUCCESS;
}

/* Real elements too have the alignment of complex ones: cuFFT moves two at once. */
static CUresult reach_side(struct testgpu_run *run, const struct execution *x,
                           const struct side *side, void **at)
{
    return testgpu_reach_elements(run, side->address, side_extent(side),
                                  x->is_single ? sizeof(cufftComplex) : sizeof(cufftDoubleComplex),
                                  at);
}

static CUresult run_execution(struct testgpu_run *run, void *argument)
{
    const struct execution *x = argument;
    void *in = NULL, *out = NULL, *area = NULL;
    CUresult code = reach_side(run, x, &x->in, &in);
    if (code == CUDA_SUCCESS)
        code = reach_side(run, x, &x->out, &out);
    if (code == CUDA_SUCCESS)
        code = reach_area(run, x, &area);
    if (code != CUDA_SUCCESS)
        return code;
    check_sides(x);
    touch_side(run, &x->in, x->kind == TO_REAL);
    touch_side(run, &x->out, true);
    if (testgpu_computes()) {
        compute_execution(x, in, out, area);
        if (testgpu_spoils_kernel(x->kernel))
            add_one_to(x, out);
    }
    return CUDA_SUCCESS;
}

/* ---- The call ---- */

/* Of n points 5 n log2 n operations, of real ones half of them. Each dimension is a pass over the
 * input and the output. */
static struct testgpu_cost cost_of(const struct execution *x)
{
    const double points = (double)x->n[0] * (double)x->n[1] * (double)x->n[2];
    const int longer = (x->n[0] > 1) + (x->n[1] > 1) + (x->n[2] > 1);
    const int passes = longer > 1 ? longer : 1;
    return (struct testgpu_cost){
        .operations =
            (x->kind == COMPLEX ? 5 : 2.5) * (double)x->in.count[0] * points * log2(points),
        .bytes = passes * (side_bytes(&x->in) + side_bytes(&x->out)),
        .launches = passes,
        .single = x->is_single,
    };
}

static cufftResult put(const struct plan *plan, cufftType type, const void *in, const void *out,
                       int direction)
{
    const struct description *what = &plan->what;
    if (!plan->made)
        return CUFFT_INVALID_PLAN;
    if (what->type != type)
        return CUFFT_INVALID_TYPE;
    if (in == NULL || out == NULL || (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE))
        return CUFFT_INVALID_VALUE;
    if (plan->area == 0)
        return CUFFT_NO_WORKSPACE;
    struct execution x = {.kernel = kernel_of(type),
                          .kind = is_complex_type(type) ? COMPLEX
                                  : goes_to_real(type)  ? TO_REAL
                                                        : FROM_REAL,
                          .is_single = is_single_type(type),
                          .sign = direction,
                          .n = {what->n[0], what->n[1], what->n[2]},
                          .in = input_of(what, in == out),
                          .out = output_of(what, in == out),
                          .area = plan->area,
                          .area_bytes = plan->area_bytes};
    x.in.address = (CUdeviceptr)(uintptr_t)in;
    x.out.address = (CUdeviceptr)(uintptr_t)out;
    const struct testgpu_cost cost = cost_of(&x);
    return testgpu_enqueue(plan->stream, x.kernel, &cost, run_execution, &x, sizeof x) ==
                   CUDA_SUCCESS
               ? CUFFT_SUCCESS
               : CUFFT_EXEC_FAILED;
}

static cufftResult execute(cufftHandle handle, cufftType type, const void *in, const void *out,
                           int direction)
{
    struct plan *plan;
    cufftResult status = plan_take(handle, &plan);
    if (status != CUFFT_SUCCESS)
        return status;
    status = put(plan, type, in, out, direction);
    plan_give(plan);
    return status;
}

#define COMPLEX_EXECUTION(NAME, T)                                                                 \
    cufftResult CUFFTAPI cufftExec##NAME(cufftHandle handle, T *in, T *out, int direction)         \
    {                                                                                              \
        CUFFT_ENTER(TESTGPU_CONTEXT, "plan=%d in=%p out=%p direction=%d", handle, (void *)in,      \
                    (void *)out, direction);                                                       \
        TESTGPU_RETURN(execute(handle, CUFFT_##NAME, in, out, direction));                         \
    }
#define REAL_EXECUTION(NAME, T, U, DIRECTION)                                                      \
    cufftResult CUFFTAPI cufftExec##NAME(cufftHandle handle, T *in, U *out)                        \
    {                                                                                              \
        CUFFT_ENTER(TESTGPU_CONTEXT, "plan=%d in=%p out=%p", handle, (void *)in, (void *)out);     \
        TESTGPU_RETURN(execute(handle, CUFFT_##NAME, in, out, DIRECTION));                         \
    }

COMPLEX_EXECUTION(C2C, cufftComplex)
COMPLEX_EXECUTION(Z2Z, cufftDoubleComplex)
REAL_EXECUTION(R2C, cufftReal, cufftComplex, CUFFT_FORWARD)
REAL_EXECUTION(D2Z, cufftDoubleReal, cufftDoubleComplex, CUFFT_FORWARD)
REAL_EXECUTION(C2R, cufftComplex, cufftReal, CUFFT_INVERSE)
REAL_EXECUTION(Z2D, cufftDoubleComplex, cufftDoubleReal, CUFFT_INVERSE)
