/*
 * A device as the dispatcher knows it, and its life: not tried, starting, ready, absent, failed. CUDA takes a second or so to
 * start, which no program shall wait for: it is started on a thread of its own, once the calls seen so far would have gained
 * by it. A process may have several devices: one that is given up is nothing to the others. All functions are thread-safe
 * unless said otherwise.
 */
#ifndef ACCEL_DISPATCH_DEVICE_H
#define ACCEL_DISPATCH_DEVICE_H

#include <sys/types.h>

#include "base/ranks.h"
#include "dispatch/cost/contention.h"
#include "dispatch/cost/regret.h"
#include "dispatch/cost/warm.h"
#include "full.h"
#include "gpu/gpu.h"
#include "left_alone.h"
#include "settings.h"

enum device_state {
    DEVICE_UNTRIED, /* CUDA has not been started; the curves are those of a fast GPU */
    DEVICE_STARTING,
    DEVICE_READY,
    DEVICE_ABSENT,
    DEVICE_FAILED,   /* left alone for good */
    DEVICE_FORKED,   /* this is the child of a process that used it */
    DEVICE_ESTIMATED /* accel estimate: calls are decided as if it were there, and run on the CPU */
};

/* It may be there one day. */
static inline bool device_state_is_open(enum device_state state)
{
    return state == DEVICE_UNTRIED || state == DEVICE_STARTING;
}

/* It is there, or was until it failed: CUDA answers questions about memory. */
static inline bool device_state_has_memory(enum device_state state)
{
    return state == DEVICE_READY || state == DEVICE_FAILED;
}

/* Calls are weighed against it. */
static inline bool device_state_is_known(enum device_state state)
{
    return state == DEVICE_READY || state == DEVICE_ESTIMATED;
}

/* CUDA computes here, or starts: a forked child must know. */
static inline bool device_state_is_in_use(enum device_state state)
{
    return state == DEVICE_STARTING || state == DEVICE_READY;
}

/* No call will run on it any more. */
static inline bool device_state_is_over(enum device_state state)
{
    return state == DEVICE_ABSENT || state == DEVICE_FAILED || state == DEVICE_FORKED;
}

/* All zero at first. */
struct dispatch_device {
    _Atomic int state;                  /* enum device_state */
    struct gpu_device *_Atomic gpu;     /* NULL: none has been started. It stays. */
    struct cost_curves *_Atomic curves; /* NULL: those of a fast GPU */
    struct contention contention;
    struct full full;
    struct warm warm;
    struct left_alone left_alone;
    struct regret regret;
    /* Constant once its state is known: */
    char name[16], cpu_name[24]; /* "gpu0", "gpu0+cpu": what the log says of it */
    int64_t memory_bytes;        /* that this process may use */
    int sharers;                 /* processes of this program that use it, at least 1 */
    /* Its start: */
    _Atomic int64_t gain_us;          /* of the calls seen so far */
    atomic_bool threaded;             /* the thread has been made, or there can be none */
    atomic_bool threadless;           /* there can be none */
    _Atomic pid_t starter;            /* the process that starts it */
    char why_none[GPU_FAILURE_BYTES]; /* constant once it is absent */
};

/* Once, for all devices. Both stay. */
void device_prepare(const struct accel_settings *settings, const struct accel_ranks *ranks);

enum device_state device_state(const struct dispatch_device *device);

/* accel estimate: from here on, calls are decided as if settings->estimate were there. Where no such GPU is known, says so and
 * returns false. Before the first call. */
bool device_pretend(struct dispatch_device *device);

/* NULL: it has not been started. */
struct gpu_device *device_gpu(const struct dispatch_device *device);

/* Why it could not be started, or why it was given up; before that, why a routine was: one line of memory that stays. */
const char *device_failure(const struct dispatch_device *device);
/* Whether it could not be started, or has failed. */
bool device_has_failure(const struct dispatch_device *device);

/* A call has been seen that would gain so much (milliseconds). Starts CUDA on its own thread when calls together would gain
 * DEVICE_GAIN_MS: less than that is no program that CUDA could serve. */
#define DEVICE_GAIN_MS 50.0
void device_note_gain(struct dispatch_device *device, double gain_ms);

/* Whether the thread that starts CUDA could not be made, and will not be. */
bool device_has_no_thread(const struct dispatch_device *device);

/* Starts CUDA on the calling thread, or waits for the thread that does. */
enum device_patience {
    DEVICE_SOME_SECONDS, /* it may be waiting for the dynamic linker's lock, which this one may hold */
    DEVICE_WITHOUT_END /* there is no other way */
};
void device_start_now(struct dispatch_device *device, enum device_patience patience);

/* It will not be tried: there is none on this machine for certain, or it is not to be used. */
void device_rule_out(struct dispatch_device *device);

/* It has failed: from here on it is left alone. */
void device_give_up(struct dispatch_device *device);

/* After a call on it: where another thread has given it up meanwhile, what this call has left idle is freed. */
void device_tidy(struct dispatch_device *device);

/* Whether it was started, or is starting, in the process that this one was forked from. */
bool device_is_inherited(const struct dispatch_device *device);

/* Whether this is the child of a vfork(2) of that process, with whose memory it runs. */
bool device_is_borrowed(const struct dispatch_device *device);

/* In the child of a fork, which stays on the CPU if the device was in use, or starting, in the parent. */
void device_fork_child(struct dispatch_device *device);

#endif
