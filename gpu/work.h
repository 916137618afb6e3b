/*
 * What the operations' GPU functions (op->run and op->steps, ops/op.h) share: one call under way on a lane of a device. They compose it of steps
 * that gpu/ declares, for any kind of device: staging.h, kernels.h, solver.h, and above them tiles.h. What a function takes it leaves to
 * gpu_run().
 */
#ifndef ACCEL_WORK_H
#define ACCEL_WORK_H

#include "gpu.h"
#include "staging.h"

#define WORK_BLOCKS 24

struct gpu_work {
    const struct accel_call *call;
    struct gpu_host *host;
    struct gpu_device *device;
    struct gpu_lane *lane;
    gpu_address block[WORK_BLOCKS];
    int blocks;
    /* Since what was finished last, a kernel has been put on the stream. */
    bool launched;
};

/* A part of an operand on the device. */
struct gpu_tile {
    gpu_address ptr;
    int64_t ld;
};

/* Whether kernels can use an operand where it is. */
static inline bool gpu_in_place(const struct accel_span *x)
{
    return x->place == ACCEL_DEVICE || x->place == ACCEL_MANAGED;
}

/* Bytes of an operand's element, and its element (row, col). */
static inline int64_t gpu_size_of(const struct accel_span *x)
{
    return (int64_t)accel_dtype_size(x->dtype);
}
static inline void *gpu_element(const struct accel_span *x, int64_t row, int64_t col)
{
    return (char *)x->ptr + (col * x->ld + row) * gpu_size_of(x);
}

/* Leading dimension of a copy on the device: whole 64-byte lines, but for a single short column. */
int64_t gpu_device_ld(int64_t rows, enum accel_dtype dtype);

/* Device memory for the call: GPU_NO_MEMORY where there is not as much, GPU_UNSUPPORTED beyond WORK_BLOCKS blocks. Zeros are put
 * there in stream order. */
enum gpu_status gpu_work_take(struct gpu_work *work, int64_t bytes, gpu_address *memory);
enum gpu_status gpu_work_zero(struct gpu_work *work, gpu_address memory, int64_t bytes);

/* Bytes that could be had; frees what other calls have left. */
int64_t gpu_work_available(const struct gpu_work *work);
void gpu_work_trim(const struct gpu_work *work);

/* Gives back the device memory of a call's part, once its work is done; where nothing uses it, without waiting. */
enum gpu_status gpu_work_give_back(struct gpu_work *work);
void gpu_work_drop(struct gpu_work *work);

/* Waits until what was computed in the program's own memory is there: that part is finished. */
enum gpu_status gpu_work_settle(struct gpu_work *work);

/* Runs a part of the call by the original. */
bool gpu_work_by_original(const struct gpu_work *work, const struct accel_call *part);

void gpu_work_event(struct gpu_work *work, enum gpu_event_kind kind, const struct accel_span *x,
                    int64_t rows, int64_t cols, int64_t bytes);

#endif
