/*
 * potrf, potrs, posv, potri, lauum: read and write one triangle of a symmetric or Hermitian matrix;
 * pptrf, pptrs, ppsv, pptri: the same where that is packed, which they make a square on the device.
 */
#include "cpu_ref/checks.h"
#include "diagonal.h"
#include "gpu/exec/lapack/solver_in_core.h"
#include "in_panels.h"
#include "ops/rules/lapack_rules.h"

static void solve_right_sides(struct solver *s, struct array factored)
{
    struct array x = solver_upload(s, &s->call->span[ACCEL_b], 0);
    solver_library(s)->potrs(s, s->call->blas.flag[ACCEL_uplo], factored, x);
    solver_return(s, &s->call->span[ACCEL_b], x, 0);
}

/* potrf, and posv, which goes on with right-hand sides. */
static void run_potrf(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    char uplo = s->call->blas.flag[ACCEL_uplo];
    const struct panels_call call = lapack_factoring(s->call, PANELS_CHOLESKY);
    struct array factored = solver_factor(s, &call, a, (struct array){0});
    if (accel_has_size(s->call->routine, ACCEL_nrhs))
        solve_right_sides(s, factored);
    solver_return(s, a, factored, uplo);
}

static void run_potrs(struct solver *s)
{
    solve_right_sides(s, solver_upload(s, &s->call->span[ACCEL_a], s->call->blas.flag[ACCEL_uplo]));
}

/* The inverse, from the factor. */
static void run_potri(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    char uplo = s->call->blas.flag[ACCEL_uplo];
    solver_refuse_zero_diagonal(s, a);
    struct array x = solver_upload(s, a, uplo);
    solver_library(s)->potri(s, uplo, x);
    solver_return(s, a, x, uplo);
}

/* The factor's product with its own transpose. */
static void run_lauum(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    char uplo = s->call->blas.flag[ACCEL_uplo];
    struct array x = solver_upload(s, a, uplo);
    solver_library(s)->lauum(s, uplo, x);
    solver_return(s, a, x, uplo);
}

/* ---- Packed triangles ---- */

/* A triangle on the device: as the program has it, and beside zeros in a square. */
struct unpacked {
    struct array packed, square;
};

static struct unpacked upload_packed(struct solver *s)
{
    const int64_t n = s->call->blas.size[ACCEL_n];
    const struct array packed = solver_upload(s, &s->call->span[ACCEL_a], 0),
                       square = solver_zeros(s, n, n);
    GPU_DO(s, gpu_kernels(s->work)->unpack_triangle(s->work, s->call->blas.flag[ACCEL_uplo], n,
                                                    packed.at.ptr, square.at));
    return (struct unpacked){packed, square};
}

static void return_packed(struct solver *s, struct unpacked x)
{
    GPU_DO(s, gpu_kernels(s->work)->pack_triangle(s->work, s->call->blas.flag[ACCEL_uplo],
                                                  x.square.rows, x.square.at, x.packed.at.ptr));
    solver_return(s, &s->call->span[ACCEL_a], x.packed, 0);
}

/* pptrf, and ppsv, which goes on with right-hand sides. */
static void run_pptrf(struct solver *s)
{
    const struct unpacked x = upload_packed(s);
    solver_clear_imaginary(s, x.square);
    solver_library(s)->potrf(s, s->call->blas.flag[ACCEL_uplo], x.square);
    if (accel_has_size(s->call->routine, ACCEL_nrhs))
        solve_right_sides(s, x.square);
    return_packed(s, x);
}

static void run_pptrs(struct solver *s)
{
    solve_right_sides(s, upload_packed(s).square);
}

static void run_pptri(struct solver *s)
{
    solver_refuse_zero_diagonal(s, &s->call->span[ACCEL_a]);
    const struct unpacked x = upload_packed(s);
    solver_library(s)->potri(s, s->call->blas.flag[ACCEL_uplo], x.square);
    return_packed(s, x);
}

static bool can_be_unpacked(const struct accel_call *call)
{
    return call->blas.size[ACCEL_n] <= GPU_PACKED_MOST;
}

/* CPU libraries compute with one column of a packed triangle at a time, so that the triangle is
 * read again for each: of them, steps are the megabytes that are read, an element for each product
 * and sum. One thread of OpenBLAS 0.3.21 reads 25 to 40 GB/s of a triangle within a cache, and 10
 * beyond. */
static struct accel_effort packed_effort(const struct accel_call *call, bool device)
{
    const enum accel_dtype dtype = call->span[ACCEL_a].dtype;
    const double flops = accel_flops(call), elements = flops / (accel_is_complex(dtype) ? 8 : 2),
                 read = elements * (double)accel_dtype_size(dtype);
    return (struct accel_effort){flops, device ? shape_steps(call) : read * 1e-6};
}

static const struct accel_cost packed_cost = {.nominal = {.cpu_share = 1,
                                                          .cpu_step_ms = 0.025,
                                                          .gpu_share = 0.6,
                                                          .gpu_step_ms = 0.003},
                                              .effort = packed_effort},
                               packed_solves_cost = {.nominal = {.cpu_share = 1,
                                                                 .cpu_step_ms = 0.025,
                                                                 .gpu_share = 0.7,
                                                                 .gpu_step_ms = 0.001},
                                                     .effort = packed_effort};

#define DEFINITE .hermitian = true, .definite = 1 << ACCEL_a
#define TRIANGLE DEFINITE, .triangles = 1 << ACCEL_a

static const struct accel_gpu factoring = {.is_hopeless = lapack_hopeless_by_definiteness,
                                           .steps = run_potrf,
                                           .in_panels = &lapack_potrf_in_panels};

const struct accel_op op_potrf = {LAPACK_BLOCKS(TRIANGLE), OP_RULES(.check = check_potrf),
                                  .gpu = &factoring};
const struct accel_op op_posv = {LAPACK_BLOCKS(TRIANGLE),
                                 OP_RULES(.is_empty = lapack_has_no_matrix, .check = check_posv),
                                 .gpu = &factoring};
const struct accel_op op_potrs = {LAPACK_SOLVES(DEFINITE), OP_RULES(.check = check_potrs),
                                  OP_GPU(.steps = run_potrs, .in_panels = &lapack_potrs_in_panels)};
const struct accel_op op_potri = {LAPACK_BLOCKS(TRIANGLE), OP_RULES(.check = check_potri),
                                  OP_GPU(.is_hopeless = lapack_hopeless_by_zeros,
                                         .steps = run_potri, .in_panels = &lapack_potri_in_panels)};
const struct accel_op op_lauum = {LAPACK_BLOCKS(TRIANGLE), OP_RULES(.check = check_lauum),
                                  OP_GPU(.steps = run_lauum, .in_panels = &lapack_lauum_in_panels)};

#define PACKED LAPACK_TRAITS(DEFINITE, .packed = true)

static const struct accel_gpu factoring_packed = {.is_hopeless = lapack_hopeless_by_definiteness,
                                                  .is_supported = can_be_unpacked,
                                                  .steps = run_pptrf,
                                                  .whole = LAPACK_UNPACKS};

const struct accel_op op_pptrf = {PACKED, .cost = &packed_cost, OP_RULES(.check = check_pptrf),
                                  .gpu = &factoring_packed};
const struct accel_op op_ppsv = {PACKED, .cost = &packed_cost,
                                 OP_RULES(.is_empty = lapack_has_no_matrix, .check = check_ppsv),
                                 .gpu = &factoring_packed};
const struct accel_op op_pptrs = {
    PACKED, .cost = &packed_solves_cost, OP_RULES(.check = check_pptrs),
    OP_GPU(.is_supported = can_be_unpacked, .steps = run_pptrs, .whole = LAPACK_UNPACKS)};
const struct accel_op op_pptri = {PACKED, .cost = &packed_cost, OP_RULES(.check = check_pptri),
                                  OP_GPU(.is_hopeless = lapack_hopeless_by_zeros,
                                         .is_supported = can_be_unpacked, .steps = run_pptri,
                                         .whole = LAPACK_UNPACKS)};
