/*
 * What the families' GPU functions share: one call under way on a lane.
 */
#ifndef ACCEL_RUN_H
#define ACCEL_RUN_H

#include "lane.h"
#include "pool.h"

/* A family's function: runs a valid, non-empty call on a lane, and returns when the result is in
 * place. What it takes from the pool it leaves to gpu_run(). */
struct gpu_work;
typedef enum gpu_status gpu_function(struct gpu_work *work);

gpu_function gpu_gemm;   /* gemm */
gpu_function gpu_square; /* symm, hemm, trmm, trsm */
gpu_function gpu_rank_k; /* syrk, herk, syr2k, her2k */

#define WORK_BLOCKS 8

struct gpu_work {
    const struct accel_call *call;
    struct gpu_host *host;
    struct gpu_lane *lane;
    CUdeviceptr block[WORK_BLOCKS];
    int blocks;
    bool launched; /* a kernel of this call has been put on the stream */
};

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

/* Leading dimension of a copy on the device: whole 64-byte lines, but for a single short column. */
int64_t gpu_device_ld(int64_t rows, enum accel_dtype dtype);

/* Device memory for the rest of this call: blocks of these sizes (0: none is wanted), all or, with
 * GPU_NO_MEMORY, none of them. Before anything of the call is on the stream. */
enum gpu_status gpu_work_get(struct gpu_work *work, int count, const int64_t *bytes,
                             CUdeviceptr *const *blocks);

/* The part [row, row + rows) x [col, col + cols) of an operand that is not in place, copied to a
 * tile's memory, or back from it. */
enum gpu_status gpu_work_upload(struct gpu_work *work, const struct accel_operand *x, int64_t row,
                                int64_t col, int64_t rows, int64_t cols, struct gpu_tile tile);
enum gpu_status gpu_work_download(struct gpu_work *work, const struct accel_operand *x, int64_t row,
                                  int64_t col, int64_t rows, int64_t cols, struct gpu_tile tile,
                                  int64_t *done_cols, int64_t *done_rows);

/* The same way back, but all or nothing: what has not arrived whole is not written at all. uplo: 0, or
 * the triangle ('U', 'L') that alone is written; then the first (L) or the last (U) cols rows of the
 * part are those on the diagonal. The part should be small, since it passes through memory of its
 * own. */
enum gpu_status gpu_work_write_back(struct gpu_work *work, const struct accel_operand *x,
                                    int64_t row, int64_t col, int64_t rows, int64_t cols,
                                    struct gpu_tile tile, char uplo);

/* How many columns (or rows) of `length` elements make such a part: at least one. */
int64_t gpu_work_panel(const struct gpu_work *work, int64_t length);

/* Whether the CPU can read all operands. */
bool gpu_work_host_readable(const struct gpu_work *work);

/* An operand's part where it is. */
struct gpu_tile gpu_work_in_place(struct gpu_work *work, const struct accel_operand *x, int64_t row,
                                  int64_t col);

void gpu_work_event(struct gpu_work *work, enum gpu_event_kind kind, const struct accel_operand *x,
                    int64_t rows, int64_t cols, int64_t bytes);

#endif
