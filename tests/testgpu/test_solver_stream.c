/* What the stand-in for cuSOLVER does with streams and memory. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include "test_solver.h"

enum { N = SMALL, BYTES = SMALL_BYTES };

/* Nothing is there before what comes earlier in the stream, nor after what comes later. */
static int in_order(void)
{
    struct solver s;
    struct gate gate;
    double out[N * N];
    CHECK(solver_set_up(&s) == 0);
    OK(gate_close(&gate, s.stream));
    memset(host_work, 0, sizeof host_work);
    OK(cuMemcpyHtoDAsync(s.slot[0], definite, sizeof definite, s.stream));
    SOLVER_OK(factor(&s));
    OK(cuMemcpyDtoDAsync(s.slot[2], s.slot[0], sizeof definite, s.stream));
    OK(cuMemsetD8Async(s.slot[0], 0, sizeof definite, s.stream));
    CHECK(cuStreamQuery(s.stream) == CUDA_ERROR_NOT_READY && host_work[0] == 0);
    gate_open(&gate);
    OK(cuStreamSynchronize(s.stream));
    OK(cuMemcpyDtoH(out, s.slot[2], sizeof out));
    CHECK(out[0] == 2 && out[N + 1] == 2 && isnan(out[N]));
    return solver_tear_down(&s);
}

struct waiter {
    struct gate gate;
    CUcontext context;
};

static void *open_late(void *data)
{
    struct waiter *waiter = data;
    gate_open(&waiter->gate);
    return NULL;
}

/* The number of eigenvalues is there when the call returns. */
static int waits(void)
{
    struct solver s;
    struct waiter waiter;
    pthread_t thread;
    int64_t found = -1;
    CHECK(solver_set_up(&s) == 0);
    OK(gate_close(&waiter.gate, s.stream));
    OK(cuMemcpyHtoDAsync(s.slot[0], definite, sizeof definite, s.stream));
    CHECK(pthread_create(&thread, NULL, open_late, &waiter) == 0);
    SOLVER_OK(cusolverDnXsyevdx(s.handle, s.params, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_I,
                                CUBLAS_FILL_MODE_LOWER, N, CUDA_R_64F, (void *)s.slot[0], N, NULL,
                                NULL, 2, 3, &found, CUDA_R_64F, (void *)s.slot[2], CUDA_R_64F,
                                (void *)s.slot[1], BYTES, host_work, BYTES, (int *)s.info));
    CHECK(found == 2);
    OK(cuStreamQuery(s.stream));
    CHECK(pthread_join(thread, NULL) == 0);
    return solver_tear_down(&s);
}

/* All of it, also where it is more than enough. */
static int workspaces_are_written(void)
{
    struct solver s;
    unsigned char back[BYTES];
    CHECK(solver_set_up(&s) == 0);
    memset(host_work, 0, sizeof host_work);
    OK(cuMemcpyHtoD(s.slot[0], definite, sizeof definite));
    OK(cuMemsetD8Async(s.slot[1], 0, BYTES, s.stream));
    SOLVER_OK(factor(&s));
    OK(cuStreamSynchronize(s.stream));
    OK(cuMemcpyDtoH(back, s.slot[1], BYTES));
    for (int i = 0; i < BYTES; i++)
        CHECK(back[i] == 0xff && host_work[i] == (char)0xff);
    return solver_tear_down(&s);
}

static int overlaps(void)
{
    struct solver s;
    CHECK(solver_set_up(&s) == 0);
    SOLVER_OK(factor_at(&s, s.slot[0], s.slot[0] + N * N * sizeof(double), BYTES / 2));
    OK(cuStreamSynchronize(s.stream));
    SOLVER_OK(factor_at(&s, s.slot[0], s.slot[0] + (N * N - 1) * sizeof(double), BYTES / 2));
    OK(cuStreamSynchronize(s.stream));
    SOLVER_OK(cusolverDnXgetrf(s.handle, s.params, N, N, CUDA_R_64F, (void *)s.slot[0], N,
                               (int64_t *)s.slot[0], CUDA_R_64F, (void *)s.slot[1], BYTES,
                               host_work, BYTES, (int *)s.info));
    OK(cuStreamSynchronize(s.stream));
    return solver_tear_down(&s);
}

/* A matrix may end where its memory does, and no further. */
static int out_of_bounds(void)
{
    struct solver s;
    CUdeviceptr small;
    CHECK(solver_set_up(&s) == 0);
    OK(cuMemAlloc(&small, sizeof definite));
    SOLVER_OK(factor_at(&s, small, s.slot[1], BYTES));
    OK(cuStreamSynchronize(s.stream));
    SOLVER_OK(factor_at(&s, small + sizeof(double), s.slot[1], BYTES));
    CHECK(cuStreamSynchronize(s.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(factor(&s) == CUSOLVER_STATUS_EXECUTION_FAILED);
    return 0;
}

static int misaligned(void)
{
    struct solver s;
    CHECK(solver_set_up(&s) == 0);
    SOLVER_OK(factor_at(&s, s.slot[0] + sizeof(float), s.slot[1], BYTES));
    CHECK(cuStreamSynchronize(s.stream) == CUDA_ERROR_MISALIGNED_ADDRESS);
    CHECK(factor(&s) == CUSOLVER_STATUS_EXECUTION_FAILED);
    return 0;
}

static int workspace_out_of_bounds(void)
{
    struct solver s;
    CHECK(solver_set_up(&s) == 0);
    SOLVER_OK(factor_at(&s, s.slot[0], s.slot[1] + 1, BYTES));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int of_host_memory(void)
{
    struct solver s;
    double host[N * N] = {0};
    CHECK(solver_set_up(&s) == 0);
    SOLVER_OK(factor_at(&s, (CUdeviceptr)(uintptr_t)host, s.slot[1], BYTES));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

/* Work before it on the stream may be what brings the pivots. */
static int unsettled_pivots(void)
{
    struct solver s;
    const int64_t pivots[N] = {1, 2, 3, 4};
    CHECK(solver_set_up(&s) == 0);
    s.type = D;
    OK(cuMemcpyHtoDAsync(s.slot[1], pivots, sizeof pivots, s.stream));
    CHECK(sytrs(&s, CUBLAS_FILL_MODE_LOWER, N, 1, 0, N, 1, 2, N) == REFUSED);
    s.type = Z;
    OK(cuMemcpyHtoDAsync(s.slot[1], pivots, sizeof pivots, s.stream));
    CHECK(hetrs(&s, CUBLAS_FILL_MODE_LOWER, N, 1, 0, N, 1, 2, N) == REFUSED);
    return 0;
}

static int bad_pivots(void)
{
    struct solver s;
    const int64_t pivots[N] = {1, 2, 3, 5};
    CHECK(solver_set_up(&s) == 0);
    OK(cuMemcpyHtoD(s.slot[1], pivots, sizeof pivots));
    SOLVER_OK(cusolverDnXgetrs(s.handle, s.params, CUBLAS_OP_N, N, 1, CUDA_R_64F, (void *)s.slot[0],
                               N, (int64_t *)s.slot[1], CUDA_R_64F, (void *)s.slot[2], N,
                               (int *)s.info));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int not_in_a_capture(void)
{
    struct solver s;
    CUgraph graph;
    int found;
    CHECK(solver_set_up(&s) == 0);
    OK(cuStreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cusolverDnDsygvdx(s.handle, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_MODE_VECTOR,
                            CUSOLVER_EIG_RANGE_ALL, CUBLAS_FILL_MODE_LOWER, N, (double *)s.slot[0],
                            N, (double *)s.slot[1], N, 0, 0, 1, N, &found, (double *)s.slot[2],
                            (double *)s.slot[3], BYTES / 8,
                            (int *)s.info) == CUSOLVER_STATUS_EXECUTION_FAILED);
    CHECK(cuStreamEndCapture(s.stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    return solver_tear_down(&s);
}

const struct scenario solver_stream_scenarios[] = {
    {"solver_in_order", in_order, {0}, {"kernels gemm=0 potrf=1\n", "handles=0 contexts=0"}},
    {"solver_waits", waits, {0}, {"!name=cuStreamSynchronize"}},
    {"solver_workspaces_are_written", workspaces_are_written, {0}, {0}},
    {"solver_overlaps",
     overlaps,
     {0},
     {"fault what=overlapping_operands where=potrf", "fault what=overlapping_operands where=getrf",
      "faults n=2\n"}},
    {"solver_out_of_bounds",
     out_of_bounds,
     {0},
     {"fault what=illegal_address where=potrf", "faults n=1\n"}},
    {"solver_misaligned",
     misaligned,
     {0},
     {"fault what=misaligned_address where=potrf", "faults n=1\n"}},
    {"solver_workspace_out_of_bounds",
     workspace_out_of_bounds,
     {0},
     {"fault what=illegal_address where=potrf", "faults n=1\n"}},
    {"solver_of_host_memory", of_host_memory, {0}, {"fault what=illegal_address where=potrf"}},
    {"solver_unsettled_pivots",
     unsettled_pivots,
     {0},
     {"fault what=pivots_not_settled", "faults n=2\n"}},
    {"solver_bad_pivots", bad_pivots, {0}, {"fault what=bad_pivots where=getrs", "faults n=1\n"}},
    {"solver_not_in_a_capture",
     not_in_a_capture,
     {0},
     {"fault what=unsafe_in_capture where=cusolverDnDsygvdx", "faults n=1\n"}},
    {0},
};
