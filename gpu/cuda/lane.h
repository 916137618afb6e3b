/*
 * A lane: what one calling thread needs to use the device. A stream, a cuBLAS handle, and a ring of
 * pinned slots through which host memory goes up and down (staging.h). Lanes are few and go from call to call. Each device has its own.
 */
#ifndef ACCEL_LANE_H
#define ACCEL_LANE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cuda_api.h"
#include "gpu/staging.h"

struct cuda_device;

#define LANE_SLOTS      4
#define LANE_SLOT_BYTES (1 << 20) /* stays within the last-level cache with the others */
#define LANE_RING_BYTES (LANE_SLOTS * LANE_SLOT_BYTES)
/* What has to arrive at once and is larger than the ring: a panel (see tiles_panel()) in whole lines. */
#define LANE_LANDING_BYTES (18 << 20)

enum lane_slot_state {
    LANE_SLOT_FREE,
    LANE_SLOT_SENT,  /* a copy from or to it is on the stream */
    LANE_SLOT_MARKED /* the same, with an event behind it */
};

struct gpu_lane {
    struct cuda_device *device;
    CUstream stream; /* non-blocking: the program's default stream does not wait for it */
    cublasHandle_t cublas;
    cusolverDnHandle_t cusolver; /* NULL until needed */
    cusolverDnParams_t params;
    CUevent joined; /* the program's default stream, where operands lie on the device */
    char *staging;  /* LANE_SLOTS slots, one behind the other; NULL until needed */
    char *landing;  /* LANE_LANDING_BYTES of pinned memory, NULL until needed */
    struct lane_slot {
        CUevent done;
        enum lane_slot_state state;
    } slot[LANE_SLOTS];
    int next;
    bool made;    /* handles, since it was taken */
    int unmarked; /* since the last wait for the stream: copies without an event of their own */
    bool quiet;   /* nothing has been put on the stream since it was waited for */
};

/* More threads than this wait: a stream each would only share the copy engines and the device. */
enum { LANES_MAX = 8 };

/* lane.c's alone. */
struct lanes {
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct gpu_lane lane[LANES_MAX];
    /* LANE_CHANGING: being made or destroyed, by a thread that does not hold the lock meanwhile. */
    enum lane_state { LANE_NONE, LANE_CHANGING, LANE_IDLE, LANE_USED } state[LANES_MAX];
    atomic_bool cusolver_is_broken; /* it does not start, though there is memory */
};

/* None yet, of a device that is zero elsewhere; and the end, with none left: by one thread, in no context. */
void lanes_begin(struct cuda_device *device);
void lanes_end(struct cuda_device *device);

/* Waits for a free lane of a device where there are as many as there may be, or where no further one can be made, for whatever reason; and
 * never for another thread's to be made where one is free. The device's context must be current. */
enum gpu_status lane_acquire(struct cuda_device *device, struct gpu_lane **lane);

/* broken: the device failed meanwhile; what the lane holds is left to the driver. */
void lane_release(struct gpu_lane *lane, bool broken);

/* The stream and the handles, for those who put something on the stream. */
static inline CUstream lane_stream(struct gpu_lane *lane)
{
    lane->quiet = false;
    return lane->stream;
}
static inline cublasHandle_t lane_cublas(struct gpu_lane *lane)
{
    lane->quiet = false;
    return lane->cublas;
}
static inline cusolverDnHandle_t lane_cusolver(struct gpu_lane *lane)
{
    lane->quiet = false;
    return lane->cusolver;
}

/* Whether the current context's default stream can be given nothing, because another stream captures. */
bool lane_default_stream_is_closed(void);

/* Lets the lane's stream wait for what the program has put on its default stream so far. */
enum gpu_status lane_join_default_stream(struct gpu_lane *lane);

/* Destroys the device's lanes that nobody uses. Its context must be current. */
void lane_free_idle(struct cuda_device *device);

#endif
