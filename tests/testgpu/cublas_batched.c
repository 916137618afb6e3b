/* gemmBatched and gemmStridedBatched: products in one kernel, in no order. */
#include <stdlib.h>
#include <string.h>
#include "cublas_gemm.h"
#include "cublas_cost.h"

/* Where gemmBatched's arrays of addresses are; they are read when the kernel runs. */
struct arrays {
    const CUdeviceptr *a, *b, *c;
};

static CUresult reach_arrays(struct testgpu_run *run, const struct blas_call *x,
                             struct arrays *arrays)
{
    size_t bytes = (size_t)x->batch * sizeof(CUdeviceptr);
    if (!has(x, POINTER_ARRAYS))
        return CUDA_SUCCESS;
    const CUdeviceptr at[] = {x->a.address, x->b.address, x->c.address};
    const CUdeviceptr **const found[] = {&arrays->a, &arrays->b, &arrays->c};
    CUresult code = CUDA_SUCCESS;
    for (int i = 0; i < 3 && code == CUDA_SUCCESS; i++) {
        void *array;
        code = testgpu_reach_elements(run, at[i], bytes, sizeof(CUdeviceptr), &array);
        *found[i] = array;
    }
    return code;
}

static void place(struct matrix *matrix, const CUdeviceptr *array, int64_t stride, int64_t i)
{
    if (array != NULL)
        matrix->address = array[i];
    else
        matrix->address += (CUdeviceptr)i * (CUdeviceptr)stride * matrix->element;
}

static struct blas_call entry(const struct blas_call *x, const struct arrays *arrays, int64_t i)
{
    struct blas_call one = *x;
    place(&one.a, arrays->a, x->stride_a, i);
    place(&one.b, arrays->b, x->stride_b, i);
    place(&one.c, arrays->c, x->stride_c, i);
    return one;
}

/* A matrix of the batch, from its first byte to its end. */
struct extent {
    struct matrix matrix;
    uint64_t end;
    int64_t entry;
    bool result;
    size_t next_result; /* by address, of those behind this one */
};

static int by_address(const void *one, const void *other)
{
    const struct extent *x = one, *y = other;
    return (x->matrix.address > y->matrix.address) - (x->matrix.address < y->matrix.address);
}

/* Inputs may overlap each other, and all entries may have the same ones: an input is compared with
 * results alone. */
static void check_extents(struct extent *extents, size_t count)
{
    for (size_t i = count, next = count; i-- > 0;) {
        extents[i].next_result = next;
        next = extents[i].result ? i : next;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = extents[i].result ? i + 1 : extents[i].next_result;
             j < count && extents[j].matrix.address < extents[i].end;
             j = extents[i].result ? j + 1 : extents[j].next_result)
            if (matrices_overlap(&extents[i].matrix, &extents[j].matrix)) {
                testgpu_fault("overlapping_matrices", "%#llx of entry %lld, %#llx of entry %lld",
                              extents[i].matrix.address, (long long)extents[i].entry,
                              extents[j].matrix.address, (long long)extents[j].entry);
                return;
            }
}

static bool is_touched(const struct blas_call *x, const struct matrix *matrix)
{
    return (matrix == &x->c || !is_zero(x->alpha, x->precision)) && matrix_bytes(matrix) != 0;
}

/* A result may overlap nothing, of its own entry or another. */
static void check_entries_apart(const struct blas_call *x, const struct arrays *arrays)
{
    size_t count = 0;
    struct extent *extents = calloc(3 * (size_t)x->batch, sizeof *extents);
    if (extents == NULL)
        abort();
    for (int64_t i = 0; i < x->batch; i++) {
        struct blas_call one = entry(x, arrays, i);
        const struct matrix *matrices[] = {&one.a, &one.b, &one.c};
        for (size_t l = 0; l < 3; l++)
            if (is_touched(&one, matrices[l]))
                extents[count++] =
                    (struct extent){*matrices[l], matrices[l]->address + matrix_bytes(matrices[l]),
                                    i, matrices[l] == &one.c, 0};
    }
    qsort(extents, count, sizeof *extents, by_address);
    check_extents(extents, count);
    free(extents);
}

/* Entries are a dimension of the grid, which has no more. What cuBLAS makes of more it does not
 * say. */
bool is_batch_too_long(const struct blas_call *x)
{
    return has(x, BATCHED) && x->batch > 65535;
}

CUresult run_batch(struct testgpu_run *run, const struct blas_call *x, char **c)
{
    struct arrays arrays = {0};
    CUresult code = reach_arrays(run, x, &arrays);
    if (code != CUDA_SUCCESS)
        return code;
    if (has(x, POINTER_ARRAYS) && !testgpu_computes())
        return CUDA_SUCCESS; /* the addresses may not have been moved here */
    for (int64_t i = 0; i < x->batch; i++) {
        struct blas_call one = entry(x, &arrays, i);
        code = run_one(run, &one, c);
        if (code != CUDA_SUCCESS)
            return code;
    }
    check_entries_apart(x, &arrays);
    return CUDA_SUCCESS;
}

static const struct routine gemm_batched = {"gemm_batched",
                                            HAS_B | HAS_BETA | BATCHED | POINTER_ARRAYS,
                                            describe_gemm, compute_gemm, operations_of_gemm};
static const struct routine gemm_strided_batched = {"gemm_strided_batched",
                                                    HAS_B | HAS_BETA | BATCHED, describe_gemm,
                                                    compute_gemm, operations_of_gemm};

#define GEMM_BATCHED(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                             \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, cublasOperation_t transa,              \
                                     cublasOperation_t transb, INTEGER m, INTEGER n, INTEGER k,    \
                                     const ELEMENT *alpha, const ELEMENT *const a[], INTEGER lda,  \
                                     const ELEMENT *const b[], INTEGER ldb, const ELEMENT *beta,   \
                                     ELEMENT *const c[], INTEGER ldc, INTEGER count)               \
    {                                                                                              \
        struct blas_call x = {GEMM_FIELDS(PRECISION, ROUTINE), .batch = count};                    \
        BLAS_CALL(handle, x);                                                                      \
    }

#define GEMM_STRIDED_BATCHED(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                     \
    cublasStatus_t CUBLASWINAPI NAME(                                                              \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INTEGER m,      \
        INTEGER n, INTEGER k, const ELEMENT *alpha, const ELEMENT *a, INTEGER lda,                 \
        long long stride_a, const ELEMENT *b, INTEGER ldb, long long stride_b,                     \
        const ELEMENT *beta, ELEMENT *c, INTEGER ldc, long long stride_c, INTEGER count)           \
    {                                                                                              \
        struct blas_call x = {                                                                     \
            GEMM_FIELDS(PRECISION, ROUTINE),                                                       \
            .stride_a = stride_a,                                                                  \
            .stride_b = stride_b,                                                                  \
            .stride_c = stride_c,                                                                  \
            .batch = count,                                                                        \
        };                                                                                         \
        BLAS_CALL(handle, x);                                                                      \
    }

ALL_TYPES(GEMM_BATCHED, gemmBatched, , gemm_batched)
ALL_TYPES(GEMM_STRIDED_BATCHED, gemmStridedBatched, , gemm_strided_batched)
