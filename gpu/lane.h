/*
 * A lane: what one calling thread needs to use the device. A stream, a cuBLAS handle, and a ring of
 * pinned slots through which host memory goes up and down. Lanes are few and go from call to call.
 *
 * The device never reads or writes the caller's host memory by itself: a thread of the program
 * packs columns into a slot, or unpacks them from one that has arrived. So a copy that fails has
 * not half overwritten anything, and nothing of ours is pending on the caller's memory after the
 * call.
 */
#ifndef ACCEL_LANE_H
#define ACCEL_LANE_H

#include <cusolverDn.h>

#include "device.h"
#include "scan.h"

#define LANE_SLOTS      4
#define LANE_SLOT_BYTES (1 << 20) /* stays within the last-level cache with the others */

struct gpu_lane {
    CUstream stream; /* non-blocking: the program's default stream does not wait for it */
    cublasHandle_t cublas;
    cusolverDnHandle_t cusolver; /* NULL until needed */
    cusolverDnParams_t params;
    CUevent joined; /* the program's default stream, where operands lie on the device */
    char *staging;  /* LANE_SLOTS slots, NULL until needed */
    struct lane_slot {
        CUevent done; /* the copy from or to this slot */
        bool pending;
    } slot[LANE_SLOTS];
    int next;
};

/* Waits for a free lane where there are as many as there may be, and never for another thread's to be made. Our context must be
 * current. */
enum gpu_status lane_acquire(struct gpu_lane **lane);

/* broken: the device failed meanwhile; what the lane holds is left to the driver. */
void lane_release(struct gpu_lane *lane, bool broken);

/* cuSOLVER's handle of a lane; GPU_UNSUPPORTED where there is no cuSOLVER. */
enum gpu_status lane_use_cusolver(struct gpu_lane *lane);

/* A rectangle of the caller's host memory, column-major. */
struct lane_rectangle {
    char *host;
    int64_t rows, cols, ld; /* elements */
    int64_t size;           /* bytes of one */
    /* Of a triangle that begins at the first element alone: U, L; u, l: without its diagonal. Up, zeros go beside
     * it. 0: all. */
    char uplo;
    bool hermitian;        /* up, with zeros for the imaginary parts of the triangle's diagonal */
    struct gpu_scan *scan; /* takes a look at what goes up; NULL: none */
};

/* All of it, not looked at. */
static inline struct lane_rectangle lane_whole(void *host, int64_t rows, int64_t cols, int64_t ld,
                                               int64_t size)
{
    return (struct lane_rectangle){host, rows, cols, ld, size, 0, false, NULL};
}

/* Copies a rectangle to device memory with leading dimension device_ld, in stream order. Returns
 * when the host memory has been read. */
enum gpu_status lane_upload(struct gpu_lane *lane, CUdeviceptr device, int64_t device_ld,
                            const struct lane_rectangle *from);

/* Copies device memory to a rectangle, after what is on the stream. Returns when it is written. On
 * a failure, *done_rows and *done_cols tell what has been written: done_cols whole columns and
 * done_rows of the next; nothing else has been touched. */
enum gpu_status lane_download(struct gpu_lane *lane, const struct lane_rectangle *to,
                              CUdeviceptr device, int64_t device_ld, int64_t *done_cols,
                              int64_t *done_rows);

/* Whether the current context's default stream can be given nothing, because another stream captures. */
bool lane_default_stream_is_closed(void);

/* Lets the lane's stream wait for what the program has put on its default stream so far. */
enum gpu_status lane_join_default_stream(struct gpu_lane *lane);

/* Destroys the lanes that nobody uses. */
void lane_free_idle(void);

#endif
