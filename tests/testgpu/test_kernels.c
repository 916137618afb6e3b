/* Kernels of gpu/own/ on the test GPU: each of mistakes.cu's is found, and what is right passes. */
#include <stdint.h>
#include <string.h>
#include "test_testgpu.h"

enum { N = 256, BLOCKS = 4, THREADS = 8 };

static const unsigned image[] = {0xba55ed50, 0};

struct room {
    CUmodule module;
    CUstream stream;
    CUdeviceptr x, counter;
    double host[N];
};

static int make_room(struct room *room)
{
    begin();
    OK(cuModuleLoadData(&room->module, image));
    OK(cuStreamCreate(&room->stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&room->x, sizeof room->host));
    OK(cuMemAlloc(&room->counter, 8));
    OK(cuMemsetD8Async(room->x, 0, sizeof room->host, room->stream));
    OK(cuMemsetD8Async(room->counter, 0, 8, room->stream));
    return 0;
}

static int launch_with(struct room *room, const char *name, bool together, int64_t n)
{
    CUfunction function;
    struct kernel_argument argument = {room->x, n, room->counter};
    void *arguments[] = {&argument};
    OK(cuModuleGetFunction(&function, room->module, name));
    if (together)
        OK(cuLaunchCooperativeKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 8 * THREADS,
                                     room->stream, arguments));
    else
        OK(cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 8 * THREADS, room->stream,
                          arguments, NULL));
    return 0;
}

static int end_room(struct room *room)
{
    OK(cuMemcpyDtoHAsync(room->host, room->x, sizeof room->host, room->stream));
    OK(cuStreamSynchronize(room->stream));
    OK(cuModuleUnload(room->module));
    OK(cuStreamDestroy(room->stream));
    OK(cuMemFree(room->x));
    OK(cuMemFree(room->counter));
    OK(cuDevicePrimaryCtxRelease(0));
    return 0;
}

static int run_right(struct room *room, const char *name, bool together)
{
    CHECK(make_room(room) == 0);
    CHECK(launch_with(room, name, together, N) == 0);
    return end_room(room);
}

static int run_wrong(const char *name, bool together, int64_t n, CUresult code)
{
    struct room room;
    CHECK(make_room(&room) == 0);
    CHECK(launch_with(&room, name, together, n) == 0);
    CHECK(cuStreamSynchronize(room.stream) == code);
    OK(cuDevicePrimaryCtxRelease(0));
    return 0;
}

#define WRONG(name, together, n, code)                                                             \
    static int name(void)                                                                          \
    {                                                                                              \
        return run_wrong(#name, together, n, code);                                                \
    }
static double on_host;
WRONG(writes_behind, false, N, CUDA_ERROR_ILLEGAL_ADDRESS)
WRONG(reads_before, false, N, CUDA_ERROR_ILLEGAL_ADDRESS)
WRONG(reads_misaligned, false, N, CUDA_ERROR_MISALIGNED_ADDRESS)
WRONG(reads_host_memory, false, (int64_t)(intptr_t)&on_host, CUDA_ERROR_ILLEGAL_ADDRESS)
WRONG(leaves_array, false, N, CUDA_ERROR_ILLEGAL_ADDRESS)
WRONG(sum_without_barrier, false, N, CUDA_ERROR_LAUNCH_FAILED)
WRONG(round_without_barrier, false, N, CUDA_ERROR_LAUNCH_FAILED)
WRONG(reads_unwritten, false, N, CUDA_ERROR_LAUNCH_FAILED)
WRONG(ends_before_barrier, false, N, CUDA_ERROR_LAUNCH_FAILED)
WRONG(waits_elsewhere, false, N, CUDA_ERROR_LAUNCH_FAILED)
WRONG(one_grid_barrier_too_few, true, N, CUDA_ERROR_LAUNCH_FAILED)
WRONG(block_ends_before_grid_barrier, true, N, CUDA_ERROR_LAUNCH_FAILED)
WRONG(right_grid_barrier, false, N, CUDA_ERROR_LAUNCH_FAILED)
WRONG(blocks_write_the_same, false, N, CUDA_ERROR_LAUNCH_FAILED)
WRONG(last_block_without_fence, false, N, CUDA_ERROR_LAUNCH_FAILED)

static int right_places(void)
{
    struct room room;
    CHECK(run_right(&room, "right_places", false) == 0);
    for (int i = 0; i < N; i++)
        CHECK(room.host[i] == i);
    return 0;
}

static int right_sum(void)
{
    struct room room;
    CHECK(run_right(&room, "right_sum", false) == 0);
    for (int i = 0; i < BLOCKS; i++)
        CHECK(room.host[i] == N * THREADS + THREADS * (THREADS - 1) / 2);
    return 0;
}

static int right_blocks(void)
{
    struct room room;
    CHECK(run_right(&room, "right_blocks", true) == 0);
    for (int i = 0; i < BLOCKS * THREADS; i++)
        CHECK(room.host[i] == i / THREADS);
    return 0;
}

static int right_together(void)
{
    struct room room;
    CHECK(run_right(&room, "right_grid_barrier", true) == 0);
    for (int i = 0; i < BLOCKS * THREADS; i++)
        CHECK(room.host[i] == 32. * 32 * 32);
    return 0;
}

static int right_atomics(void)
{
    struct room room;
    unsigned long long counted;
    int most_and_least[2];
    CHECK(run_right(&room, "right_atomics", false) == 0);
    memcpy(&counted, &room.host[1], sizeof counted);
    memcpy(most_and_least, &room.host[2], sizeof most_and_least);
    CHECK(room.host[0] == BLOCKS * THREADS && counted == BLOCKS * THREADS);
    CHECK(most_and_least[0] == THREADS - 1 && most_and_least[1] == 0);
    return 0;
}

static int right_last_block(void)
{
    struct room room;
    CHECK(run_right(&room, "right_last_block", false) == 0);
    CHECK(room.host[0] == BLOCKS * (BLOCKS - 1) / 2);
    return 0;
}

/* The number of the grid's barrier is not 0. */
static int used_counter(void)
{
    struct room room;
    CHECK(make_room(&room) == 0);
    CHECK(launch_with(&room, "right_grid_barrier", true, N) == 0);
    CHECK(launch_with(&room, "right_grid_barrier", true, N) == 0);
    CHECK(cuStreamSynchronize(room.stream) == CUDA_ERROR_LAUNCH_FAILED);
    return 0;
}

/* Kernels and copies of a stream are in order, and its work begins when it is allowed to. */
static int in_stream_order(void)
{
    struct room room;
    struct gate gate;
    double first[N];
    CHECK(make_room(&room) == 0);
    OK(cuStreamSynchronize(room.stream));
    OK(gate_close(&gate, room.stream));
    CHECK(launch_with(&room, "right_places", false, N) == 0);
    OK(cuMemcpyDtoHAsync(first, room.x, sizeof first, room.stream));
    CHECK(launch_with(&room, "right_sum", false, N) == 0);
    CHECK(cuStreamQuery(room.stream) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    CHECK(end_room(&room) == 0);
    for (int i = 0; i < N; i++)
        CHECK(first[i] == i);
    CHECK(room.host[0] != 0 && room.host[BLOCKS] == BLOCKS);
    return 0;
}

static int module_rules(void)
{
    struct room room;
    CUmodule module;
    CUfunction function;
    int value = 0;
    const unsigned other = 0x464c457f;
    void *arguments[1] = {NULL};
    CHECK(make_room(&room) == 0);
    CHECK(cuModuleLoadData(&module, &other) == CUDA_ERROR_INVALID_IMAGE);
    CHECK(cuModuleGetFunction(&function, room.module, "nobody") == CUDA_ERROR_NOT_FOUND);
    OK(cuModuleGetFunction(&function, room.module, "right_sum"));
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    CHECK(value == 16);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 16, 0));
    CHECK(value == 1);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 17, 0));
    CHECK(value == 0);
    CHECK(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, room.stream, arguments, NULL) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 17, 1, 1, 0, room.stream, arguments, NULL) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 50000, room.stream, arguments, NULL) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(cuLaunchCooperativeKernel(function, 133, 1, 1, 1, 1, 1, 0, room.stream, arguments) ==
          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    return end_room(&room);
}

/* A kernel's own most is the device's, too. */
static int too_many_threads(void)
{
    struct room room;
    CUfunction function;
    int value = 0;
    struct kernel_argument argument;
    void *arguments[] = {&argument};
    CHECK(make_room(&room) == 0);
    argument = (struct kernel_argument){room.x, N, room.counter};
    OK(cuModuleGetFunction(&function, room.module, "right_few_threads"));
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    CHECK(value == 4);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 5, 0));
    CHECK(value == 0);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 5, 1, 1, 0, room.stream, arguments, NULL) ==
          CUDA_ERROR_INVALID_VALUE);
    OK(cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, room.stream, arguments, NULL));
    CHECK(end_room(&room) == 0);
    CHECK(room.host[3] == N && room.host[4] == 0);
    return 0;
}

static int stale_function(void)
{
    struct room room;
    CUfunction function;
    void *arguments[1] = {NULL};
    CHECK(make_room(&room) == 0);
    OK(cuModuleGetFunction(&function, room.module, "right_sum"));
    OK(cuModuleUnload(room.module));
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, room.stream, arguments, NULL) ==
          CUDA_ERROR_INVALID_HANDLE);
    return 0;
}

static int unloaded_twice(void)
{
    struct room room;
    CHECK(make_room(&room) == 0);
    OK(cuModuleUnload(room.module));
    CHECK(cuModuleUnload(room.module) == CUDA_ERROR_INVALID_HANDLE);
    return 0;
}

static int operand_freed_before_launch(void)
{
    struct room room;
    struct gate gate;
    CUdeviceptr kept;
    CHECK(make_room(&room) == 0);
    OK(cuStreamSynchronize(room.stream));
    kept = room.x;
    OK(cuMemFree(kept));
    OK(gate_close(&gate, room.stream));
    CHECK(launch_with(&room, "right_places", false, N) == 0);
    gate_open(&gate);
    CHECK(cuStreamSynchronize(room.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int planted(void)
{
    struct room room = {0};
    CUfunction function;
    int value;
    void *arguments[1] = {NULL};
    begin();
    CHECK(cuModuleLoadData(&room.module, image) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(make_room(&room) == 0);
    CHECK(cuModuleGetFunction(&function, room.module, "right_sum") == CUDA_ERROR_NOT_FOUND);
    OK(cuModuleGetFunction(&function, room.module, "right_sum"));
    CHECK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function) ==
          CUDA_ERROR_UNKNOWN);
    CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 1, 0) ==
          CUDA_ERROR_UNKNOWN);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 8, room.stream, arguments, NULL) ==
          CUDA_ERROR_UNKNOWN);
    CHECK(cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 8, room.stream, arguments) ==
          CUDA_ERROR_LAUNCH_FAILED);
    return 0;
}

static int lasts(void)
{
    struct room room;
    CHECK(make_room(&room) == 0);
    OK(cuStreamSynchronize(room.stream));
    const double start = milliseconds();
    CHECK(launch_with(&room, "right_places", false, N) == 0);
    OK(cuStreamSynchronize(room.stream));
    CHECK(milliseconds() - start >= N * 8 * 4 / 1e-3 * 1e-6);
    return end_room(&room);
}

#define RIGHT(name)                                                                                \
    {                                                                                              \
#        name, name, {NULL },                                                                      \
        {                                                                                          \
            "modules=0"                                                                            \
        }                                                                                          \
    }
#define FAULT(name, what)                                                                          \
    {                                                                                              \
#        name, name, {NULL },                                                                      \
        {                                                                                          \
            "fault what=" what " where=" #name                                                     \
        }                                                                                          \
    }

const struct scenario kernel_scenarios[] = {
    RIGHT(right_places),
    RIGHT(right_sum),
    RIGHT(right_blocks),
    RIGHT(right_together),
    RIGHT(right_atomics),
    RIGHT(right_last_block),
    RIGHT(in_stream_order),
    RIGHT(module_rules),
    RIGHT(too_many_threads),
    FAULT(writes_behind, "illegal_address"),
    FAULT(reads_before, "illegal_address"),
    FAULT(reads_misaligned, "misaligned_address"),
    FAULT(reads_host_memory, "illegal_address"),
    FAULT(leaves_array, "index_out_of_bounds"),
    FAULT(sum_without_barrier, "race"),
    FAULT(round_without_barrier, "race"),
    FAULT(reads_unwritten, "uninitialised_shared"),
    FAULT(ends_before_barrier, "missing_barrier"),
    FAULT(waits_elsewhere, "divergent_barrier"),
    FAULT(one_grid_barrier_too_few, "race"),
    FAULT(block_ends_before_grid_barrier, "missing_barrier"),
    FAULT(right_grid_barrier, "grid_barrier"),
    FAULT(blocks_write_the_same, "race"),
    FAULT(last_block_without_fence, "race"),
    {"used_counter", used_counter, {NULL}, {"fault what=grid_barrier where=right_grid_barrier"}},
    {"stale_function",
     stale_function,
     {NULL},
     {"fault what=destroyed_module where=cuLaunchKernel"}},
    {"unloaded_twice",
     unloaded_twice,
     {NULL},
     {"fault what=destroyed_module where=cuModuleUnload"}},
    {"operand_freed_before_launch",
     operand_freed_before_launch,
     {NULL},
     {"fault what=illegal_address where=right_places"}},
    {"planted_in_launches",
     planted,
     {"TESTGPU_FAIL=cuModuleLoadData:1,cuModuleGetFunction:1=CUDA_ERROR_NOT_FOUND,"
      "cuFuncGetAttribute:1,cuOccupancyMaxActiveBlocksPerMultiprocessor:1,cuLaunchKernel:1,"
      "cuLaunchCooperativeKernel:1=CUDA_ERROR_LAUNCH_FAILED"},
     {NULL}},
    {"launched_work_lasts", lasts, {"TESTGPU_GFLOPS=0.001"}, {"modules=0"}},
    {NULL, NULL, {NULL}, {NULL}}};
