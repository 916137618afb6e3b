/* What uses memory on two streams in no order, however it happens to run; and what is in order. */
#include <string.h>
#include <unistd.h>
#include "test_solver.h"

enum { ORDER = 16, BYTES = ORDER * ORDER * sizeof(double), COLUMN = ORDER * sizeof(double) };

struct room {
    CUstream one, other;
    CUevent event;
    CUdeviceptr x;
    char *pinned;
};

static int make_room(struct room *room)
{
    void *pinned;
    begin();
    OK(cuStreamCreate(&room->one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&room->other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&room->event, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAlloc(&room->x, BYTES));
    OK(cuMemHostAlloc(&pinned, BYTES, 0));
    room->pinned = pinned;
    memset(pinned, 0, BYTES);
    return 0;
}

/* Whatever is on the streams is done long ago, and the host does not know. A stream's thread may be
 * late on a busy machine. */
static void let_time_pass(void)
{
    usleep(100000);
}

static int end_room(struct room *room)
{
    OK(cuCtxSynchronize());
    OK(cuStreamDestroy(room->one));
    OK(cuStreamDestroy(room->other));
    OK(cuEventDestroy(room->event));
    OK(cuMemFree(room->x));
    OK(cuMemFreeHost(room->pinned));
    return 0;
}

/* Rows from `row` on of all columns. */
static CUresult copy_rows(const struct room *room, bool up, size_t row, size_t rows,
                          CUstream stream)
{
    const size_t at = row * sizeof(double);
    const CUDA_MEMCPY2D plane = {.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                                 .srcHost = up ? room->pinned + at : NULL,
                                 .srcDevice = up ? 0 : room->x + at,
                                 .srcPitch = COLUMN,
                                 .dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
                                 .dstDevice = up ? room->x + at : 0,
                                 .dstHost = up ? NULL : room->pinned + at,
                                 .dstPitch = COLUMN,
                                 .WidthInBytes = rows * sizeof(double),
                                 .Height = ORDER};
    return cuMemcpy2DAsync(&plane, stream);
}

static int in_order(void)
{
    struct room room;
    CHECK(make_room(&room) == 0);
    OK(cuMemcpyHtoDAsync(room.x, room.pinned, BYTES, room.one));
    OK(cuEventRecord(room.event, room.one));
    OK(cuStreamWaitEvent(room.other, room.event, 0));
    OK(cuMemcpyDtoHAsync(room.pinned, room.x, BYTES, room.other));
    OK(cuEventRecord(room.event, room.other));
    OK(cuEventSynchronize(room.event));
    OK(cuMemsetD8Async(room.x, 1, BYTES, room.one));
    OK(cuStreamSynchronize(room.one));
    OK(cuMemsetD8Async(room.x, 2, BYTES, room.other));
    OK(cuEventRecord(room.event, room.other));
    while (cuEventQuery(room.event) != CUDA_SUCCESS)
        continue;
    OK(cuMemsetD8Async(room.x, 3, BYTES, room.one));
    while (cuStreamQuery(room.one) != CUDA_SUCCESS)
        continue;
    /* Both read. */
    OK(cuMemcpyDtoHAsync(room.pinned, room.x, BYTES / 2, room.one));
    OK(cuMemcpyDtoHAsync(room.pinned + BYTES / 2, room.x, BYTES / 2, room.other));
    return end_room(&room);
}

/* Also an event that is done already puts what follows behind it, and by way of a third stream. */
static int in_order_by_others(void)
{
    struct room room;
    CUstream third;
    CHECK(make_room(&room) == 0);
    OK(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    OK(cuMemsetD8Async(room.x, 1, BYTES, room.one));
    OK(cuEventRecord(room.event, room.one));
    let_time_pass();
    OK(cuStreamWaitEvent(third, room.event, 0));
    OK(cuEventRecord(room.event, third));
    let_time_pass();
    OK(cuStreamWaitEvent(room.other, room.event, 0));
    OK(cuMemsetD8Async(room.x, 2, BYTES, room.other));
    OK(cuStreamDestroy(third));
    return end_room(&room);
}

/* Parts of the same columns. */
static int rows_apart(void)
{
    struct room room;
    CHECK(make_room(&room) == 0);
    OK(copy_rows(&room, true, 0, 5, room.one));
    OK(copy_rows(&room, true, 5, ORDER - 5, room.other));
    return end_room(&room);
}

static int rows_in_common(void)
{
    struct room room;
    CHECK(make_room(&room) == 0);
    OK(copy_rows(&room, true, 0, 6, room.one));
    let_time_pass();
    OK(copy_rows(&room, true, 5, ORDER - 5, room.other));
    return end_room(&room);
}

static int read_too_early(void)
{
    struct room room;
    CHECK(make_room(&room) == 0);
    OK(cuMemsetD8Async(room.x, 1, BYTES, room.one));
    let_time_pass();
    OK(cuMemcpyDtoHAsync(room.pinned, room.x, BYTES, room.other));
    return end_room(&room);
}

static int written_too_early(void)
{
    struct room room;
    CHECK(make_room(&room) == 0);
    OK(cuMemsetD8Async(room.x, 1, BYTES, room.one));
    OK(cuStreamSynchronize(room.one));
    OK(cuMemcpyDtoHAsync(room.pinned, room.x, BYTES, room.one));
    let_time_pass();
    OK(cuMemsetD8Async(room.x, 2, BYTES, room.other));
    return end_room(&room);
}

/* The host's memory, too. */
static int buffer_used_too_early(void)
{
    struct room room;
    CUdeviceptr y;
    CHECK(make_room(&room) == 0);
    OK(cuMemAlloc(&y, BYTES));
    OK(cuMemsetD8Async(room.x, 1, BYTES, room.other));
    OK(cuMemcpyHtoDAsync(y, room.pinned, BYTES, room.one));
    let_time_pass();
    OK(cuMemcpyDtoHAsync(room.pinned, room.x, BYTES, room.other));
    CHECK(end_room(&room) == 0);
    OK(cuMemFree(y));
    return 0;
}

/* The host's pinned memory is not to be written until it is copied. */
static int source_changed(void)
{
    struct room room;
    struct gate gate;
    CHECK(make_room(&room) == 0);
    for (int i = 0; i < 2; i++) {
        OK(gate_close(&gate, room.one));
        OK(copy_rows(&room, true, 2, 3, room.one));
        room.pinned[COLUMN] ^= 1;                          /* beside what is copied */
        room.pinned[COLUMN + 5 * sizeof(double) - 1] ^= i; /* the last byte of a column */
        gate_open(&gate);
        OK(cuStreamSynchronize(room.one));
        room.pinned[COLUMN + 3 * sizeof(double)] ^= 1;
    }
    return end_room(&room);
}

/* What is in the host's pinned memory is gone when a copy to it is asked for, but not from under a
 * copy before that. */
static int target_gone(void)
{
    struct room room;
    struct gate gate;
    CUdeviceptr y;
    CUgraph graph;
    CHECK(make_room(&room) == 0);
    OK(cuMemAlloc(&y, BYTES));
    OK(cuMemsetD8Async(room.x, 3, BYTES, room.one));
    OK(cuStreamSynchronize(room.one));
    memset(room.pinned, 1, BYTES);
    OK(gate_close(&gate, room.one));
    OK(copy_rows(&room, false, 2, 3, room.one));
    CHECK(room.pinned[COLUMN + 2 * sizeof(double)] == (char)0xff);
    CHECK(room.pinned[COLUMN + 5 * sizeof(double)] == 1);
    gate_open(&gate);
    OK(cuStreamSynchronize(room.one));
    CHECK(room.pinned[COLUMN + 2 * sizeof(double)] == 3);
    OK(gate_close(&gate, room.one));
    OK(cuMemcpyHtoDAsync(y, room.pinned, BYTES, room.one));
    OK(cuMemcpyDtoHAsync(room.pinned, room.x, BYTES, room.one));
    CHECK(room.pinned[COLUMN + 5 * sizeof(double)] == 1);
    OK(cuMemcpyDtoHAsync(room.pinned, y, BYTES, room.one));
    gate_open(&gate);
    OK(cuStreamSynchronize(room.one));
    CHECK(room.pinned[COLUMN + 5 * sizeof(double)] == 1);
    /* A copy that is captured does not run. */
    memset(room.pinned, 1, BYTES);
    OK(cuStreamBeginCapture(room.one, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(copy_rows(&room, false, 2, 3, room.one));
    OK(cuStreamEndCapture(room.one, &graph));
    CHECK(room.pinned[COLUMN + 2 * sizeof(double)] == 1);
    OK(cuMemFree(y));
    return end_room(&room);
}

/* The event is before the write. */
static int old_event(void)
{
    struct room room;
    CHECK(make_room(&room) == 0);
    OK(cuEventRecord(room.event, room.one));
    OK(cuMemsetD8Async(room.x, 1, BYTES, room.one));
    OK(cuStreamWaitEvent(room.other, room.event, 0));
    let_time_pass();
    OK(cuMemcpyDtoHAsync(room.pinned, room.x, BYTES, room.other));
    return end_room(&room);
}

static int product_too_early(void)
{
    struct room room;
    struct fixture f;
    const double one = 1, zero = 0;
    CHECK(make_room(&room) == 0 && set_up(&f) == 0);
    OK(cuMemcpyHtoDAsync(f.b, room.pinned, BYTES, room.one));
    let_time_pass();
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, ORDER, ORDER, ORDER, &one,
                        (double *)f.a, ORDER, (double *)f.b, ORDER, &zero, (double *)f.c, ORDER));
    CHECK(end_room(&room) == 0);
    return tear_down(&f);
}

/* A triangle's other half is nobody's. */
static int triangles_apart(void)
{
    struct room room;
    struct fixture f;
    cublasHandle_t other;
    const double one = 1, zero = 0;
    CHECK(make_room(&room) == 0 && set_up(&f) == 0);
    OK(cuMemsetD8Async(f.a, 0, BYTES, f.stream));
    OK(cuStreamSynchronize(f.stream));
    BLAS_OK(cublasCreate(&other));
    BLAS_OK(cublasSetStream(other, room.one));
    BLAS_OK(cublasDsyrk(f.handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, ORDER, ORDER, &one,
                        (double *)f.a, ORDER, &zero, (double *)f.c, ORDER));
    BLAS_OK(cublasDsyrk(other, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, ORDER - 1, ORDER, &one,
                        (double *)f.a, ORDER, &zero, (double *)f.c + ORDER, ORDER));
    OK(cuCtxSynchronize());
    BLAS_OK(cublasDestroy(other));
    CHECK(end_room(&room) == 0);
    return tear_down(&f);
}

static int one_workspace(void)
{
    struct room room;
    struct fixture f;
    cublasHandle_t other;
    CUdeviceptr work;
    const double one = 1, zero = 0;
    double *c;
    CHECK(make_room(&room) == 0 && set_up(&f) == 0);
    c = (double *)f.c;
    OK(cuMemAlloc(&work, 1 << 16));
    BLAS_OK(cublasCreate(&other));
    BLAS_OK(cublasSetStream(other, room.one));
    BLAS_OK(cublasSetWorkspace(f.handle, (void *)work, 1 << 16));
    BLAS_OK(cublasSetWorkspace(other, (void *)work, 1 << 16));
    BLAS_OK(cublasDgemm(f.handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, (double *)f.a, 4,
                        (double *)f.b, 4, &zero, c, 4));
    let_time_pass();
    BLAS_OK(cublasDgemm(other, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, (double *)f.a, 4,
                        (double *)f.b, 4, &zero, c + 16, 4));
    OK(cuCtxSynchronize());
    BLAS_OK(cublasDestroy(other));
    OK(cuMemFree(work));
    CHECK(end_room(&room) == 0);
    return tear_down(&f);
}

/* Operands of cuSOLVER that it changes count as written, others as read. */
static int factored_too_early(void)
{
    struct room room;
    struct solver s = {.type = D};
    CHECK(make_room(&room) == 0 && solver_set_up(&s) == 0);
    OK(cuMemcpyHtoDAsync(s.slot[0], definite, sizeof definite, room.one));
    let_time_pass();
    SOLVER_OK(factor(&s));
    CHECK(end_room(&room) == 0);
    return solver_tear_down(&s);
}

/* A kernel of gpu/own/. */
static int launched_too_early(void)
{
    static const unsigned image[] = {0xba55ed50, 0};
    struct room room;
    CUmodule module;
    CUfunction function;
    struct kernel_argument argument;
    void *arguments[] = {&argument};
    CHECK(make_room(&room) == 0);
    argument = (struct kernel_argument){room.x, ORDER * ORDER, 0};
    OK(cuModuleLoadData(&module, image));
    OK(cuModuleGetFunction(&function, module, "right_places"));
    OK(cuMemcpyDtoHAsync(room.pinned, room.x + BYTES / 2, BYTES / 4, room.other));
    let_time_pass();
    OK(cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, room.one, arguments, NULL));
    OK(cuCtxSynchronize());
    OK(cuModuleUnload(module));
    return end_room(&room);
}

#define WATCHED                                                                                    \
    {                                                                                              \
        "TESTGPU_ORDER=1"                                                                          \
    }

const struct scenario order_scenarios[] = {
    {"in_order", in_order, WATCHED, {0}},
    {"in_order_by_others", in_order_by_others, WATCHED, {0}},
    {"rows_apart", rows_apart, WATCHED, {0}},
    {"target_gone", target_gone, WATCHED, {0}},
    {"triangles_apart", triangles_apart, WATCHED, {0}},
    {"rows_in_common",
     rows_in_common,
     WATCHED,
     {"fault what=unordered where=copy", "faults n=1\n"}},
    {"read_too_early",
     read_too_early,
     WATCHED,
     {"fault what=unordered where=copy", "faults n=1\n"}},
    {"written_too_early",
     written_too_early,
     WATCHED,
     {"fault what=unordered where=fill", "faults n=1\n"}},
    {"buffer_used_too_early",
     buffer_used_too_early,
     WATCHED,
     {"fault what=unordered where=copy", "faults n=1\n"}},
    {"source_changed",
     source_changed,
     WATCHED,
     {"fault what=source_changed where=copy", "faults n=1\n"}},
    {"old_event", old_event, WATCHED, {"fault what=unordered where=copy", "faults n=1\n"}},
    {"product_too_early",
     product_too_early,
     WATCHED,
     {"fault what=unordered where=gemm", "faults n=1\n"}},
    {"one_workspace", one_workspace, WATCHED, {"fault what=unordered where=gemm", "faults n=1\n"}},
    {"factored_too_early",
     factored_too_early,
     WATCHED,
     {"fault what=unordered where=potrf", "faults n=1\n"}},
    {"launched_too_early",
     launched_too_early,
     WATCHED,
     {"fault what=unordered where=right_places", "faults n=1\n"}},
    {0},
};
