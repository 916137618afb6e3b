/*
 * What the operations' GPU functions (op->run, ops/op.h) share: one call under way on a lane. What a function takes from the pool it
 * leaves to gpu_run().
 */
#ifndef ACCEL_RUN_H
#define ACCEL_RUN_H

#include "device.h"
#include "staging.h"

#define WORK_BLOCKS 24

struct gpu_work {
    const struct accel_call *call;
    struct gpu_host *host;
    struct gpu_lane *lane;
    CUdeviceptr block[WORK_BLOCKS];
    int blocks;
    /* Since what was finished last, a kernel has been put on the stream. */
    bool launched;
};

/* The device that runs it. */
static inline struct gpu_device *gpu_work_device(const struct gpu_work *work)
{
    return &work->lane->device->common;
}

/* A part of an operand on the device. */
struct gpu_tile {
    CUdeviceptr ptr;
    int64_t ld;
};

/* Whether kernels can use an operand where it is. */
static inline bool gpu_in_place(const struct accel_operand *x)
{
    return x->place == ACCEL_DEVICE || x->place == ACCEL_MANAGED;
}

/* Bytes of an operand's element, and its element (row, col). */
static inline int64_t gpu_size_of(const struct accel_operand *x)
{
    return (int64_t)accel_dtype_size(x->dtype);
}
static inline void *gpu_element(const struct accel_operand *x, int64_t row, int64_t col)
{
    return (char *)x->ptr + (col * x->ld + row) * gpu_size_of(x);
}

/* Leading dimension of a copy on the device: whole 64-byte lines, but for a single short column. */
int64_t gpu_device_ld(int64_t rows, enum accel_dtype dtype);

/* What a call takes of device memory, for gpu_work_prepare(). */
struct gpu_need {
    int64_t bytes; /* 0: none is wanted */
    CUdeviceptr *memory;
};

/* Chooses what is taken at once so that all of it is at most `available` bytes, as much as possible with
 * INT64_MAX, and fills in the needs; returns their number, or -1 where it cannot be made small enough. */
typedef int gpu_plan(void *plan, int64_t available, struct gpu_need need[WORK_BLOCKS]);

/* Device memory for the rest of this call, after a plan that is made smaller until it fits; GPU_NO_MEMORY where
 * it does not. Before anything of the call is on the stream. */
enum gpu_status gpu_work_prepare(struct gpu_work *work, gpu_plan *make, void *plan);

/* Device bytes for a copy of a part of an operand; 0 where it is used in place. */
int64_t gpu_tile_bytes(const struct accel_operand *x, int64_t rows, int64_t cols);

/* How a part of an operand comes to the device. */
enum gpu_tile_state {
    GPU_TILE_COPIED, /* uploaded, unless it is used in place */
    GPU_TILE_KEPT,   /* it is in the memory already */
    GPU_TILE_UNREAD  /* only to be written */
};

/* The part [row, row + rows) x [col, col + cols) of an operand on the device: where it is, or in
 * `memory`. */
enum gpu_status gpu_work_tile(struct gpu_work *work, const struct accel_operand *x, int64_t row,
                              int64_t col, int64_t rows, int64_t cols, CUdeviceptr memory,
                              enum gpu_tile_state state, struct gpu_tile *tile);

/* The part [row, row + rows) x [col, col + cols) of an operand that is not in place, copied to a
 * tile's memory, or back from it. */
enum gpu_status gpu_work_upload(struct gpu_work *work, const struct accel_operand *x, int64_t row,
                                int64_t col, int64_t rows, int64_t cols, struct gpu_tile tile);
enum gpu_status gpu_work_download(struct gpu_work *work, const struct accel_operand *x, int64_t row,
                                  int64_t col, int64_t rows, int64_t cols, struct gpu_tile tile,
                                  int64_t *done_cols, int64_t *done_rows);

/* The same way back, in whole columns: after a failure *done_cols of them are in place, the first ones, or with uplo 'U'
 * the last, and nothing else has been touched. uplo: 0, or the triangle ('U', 'L') that alone is written; then the first
 * (L) or the last (U) cols rows of the part are those on the diagonal. */
enum gpu_status gpu_work_write_columns(struct gpu_work *work, const struct accel_operand *x,
                                       int64_t row, int64_t col, int64_t rows, int64_t cols,
                                       struct gpu_tile tile, char uplo, int64_t *done_cols);

/* The same, all or nothing, for a part whose columns depend on each other. It should be small: see gpu_work_panel(). */
enum gpu_status gpu_work_write_whole(struct gpu_work *work, const struct accel_operand *x,
                                     int64_t row, int64_t col, int64_t rows, int64_t cols,
                                     struct gpu_tile tile);

/* A vector that is not in place, to device memory with inc = 1 and back; back all or nothing, too. */
enum gpu_status gpu_work_upload_vector(struct gpu_work *work, const struct accel_operand *x,
                                       CUdeviceptr device);
enum gpu_status gpu_work_write_vector(struct gpu_work *work, const struct accel_operand *x,
                                      CUdeviceptr device);

/* Waits until what was computed in the program's own memory is there: that part is finished. */
enum gpu_status gpu_work_settle(struct gpu_work *work);

/* Runs a part of the call by the original. */
bool gpu_work_by_original(const struct gpu_work *work, const struct accel_call *part);

/* Gives back the device memory of a call's part, once its work is done. */
enum gpu_status gpu_work_give_back(struct gpu_work *work);

/* How many columns (or rows) of `length` elements of `size` bytes make such a part: at least one. */
int64_t gpu_work_panel(int64_t length, int64_t size);

/* An operand's part where it is. */
struct gpu_tile gpu_in_place_tile(const struct accel_operand *x, int64_t row, int64_t col);

void gpu_work_event(struct gpu_work *work, enum gpu_event_kind kind, const struct accel_operand *x,
                    int64_t rows, int64_t cols, int64_t bytes);

#endif
