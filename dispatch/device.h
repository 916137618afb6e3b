/*
 * A device as the dispatcher knows it, and its life: not tried, starting, ready, absent, failed.
 * CUDA takes a second or so to start. So that no program waits for that, but with a call that would
 * gain seconds, it starts on a thread of its own, once the calls seen so far would have gained
 * enough. A process may have several devices, which fail independently. All functions are
 * thread-safe unless said otherwise.
 */
#ifndef ACCEL_DISPATCH_DEVICE_H
#define ACCEL_DISPATCH_DEVICE_H

#include <sys/types.h>

#include "base/host/ranks.h"
#include "dispatch/cost/contention.h"
#include "dispatch/cost/device_state.h"
#include "dispatch/cost/misprediction.h"
#include "warm_up.h"
#include "oom_backoff.h"
#include "gpu/device/gpu.h"
#include "quarantine.h"
#include "dispatch/settings/settings.h"

struct dispatch_caller;

/* All zero at first. What each program's start and end, and a fork's child, look at comes first: it
 * is in one page. */
struct dispatch_device {
    _Atomic int state;                  /* enum device_state */
    struct gpu_device *_Atomic gpu;     /* NULL: none has been started. It stays. */
    struct cost_curves *_Atomic curves; /* NULL: those of a fast GPU */
    /* Its start: */
    _Atomic int64_t gain_us;   /* that the calls so far have missed */
    atomic_bool threaded;      /* the thread has been made, or could not be made */
    atomic_bool threadless;    /* it could not be made */
    atomic_bool asks_server;   /* it is started by a server, without CUDA */
    atomic_bool has_none_here; /* its server has ended, and this process cannot open a device */
    _Atomic pid_t starter;     /* the process that starts it */
    struct contention contention;
    struct warm_up warm_up;
    struct oom_backoff oom_backoff;
    struct quarantine quarantine;
    struct mispredictions mispredictions;
    /* Constant once device_state_is_known(): */
    char name[16], cpu_name[24];      /* in the log: "gpu0", "gpu0+cpu" */
    int64_t memory_bytes;             /* that this process may use */
    double start_ms;                  /* that its start took */
    int sharers;                      /* processes of this program that use it, at least 1 */
    char why_none[GPU_FAILURE_BYTES]; /* why it is absent; constant then */
};

/* Call it once, for all devices. The arguments stay. */
void device_prepare(const struct accel_settings *settings, const struct accel_ranks *ranks);

/* Returns its state at this moment. Thread-safe; what another thread wrote before it set the state
 * can be read. */
enum device_state device_state(const struct dispatch_device *device);

/* accel estimate: from here on, calls are decided as if the GPU of settings->estimate were there.
 * If none of that name is known, says so and returns false. Call it before the first call of
 * BLAS. */
bool device_pretend(struct dispatch_device *device);

/* Returns NULL if it has not been started. */
struct gpu_device *device_gpu(const struct dispatch_device *device);

/* Returns why it could not be started, or why it or a routine on it was given up: one line, which
 * stays. */
const char *device_failure(const struct dispatch_device *device);
/* Whether it could not be started, or has failed. */
bool device_has_failure(const struct dispatch_device *device);

/* Notes that a call would have gained gain_ms. Starts CUDA on its own thread once the calls
 * together would have gained DEVICE_GAIN_MS: a program with less is not worth a start. */
#define DEVICE_GAIN_MS 50.0
void device_note_gain(struct dispatch_device *device, double gain_ms);

/* Waits for a start on that thread until it has ended, for so many milliseconds at most, or until
 * the process begins to end. Once somebody has waited in vain, nobody waits. The program may leave
 * the wait (caller->pause). */
void device_await(struct dispatch_device *device, double most_ms,
                  const struct dispatch_caller *caller);

/* Whether the thread that starts CUDA could not be made; it is not tried again. */
bool device_has_no_thread(const struct dispatch_device *device);

/* Starts CUDA on the calling thread, or waits for the thread that does. Does nothing in the child
 * of a vfork(2). */
enum device_patience {
    DEVICE_AT_ONCE, /* a server whose device starts is not waited for: the device stays untried */
    DEVICE_SOME_SECONDS, /* that thread may wait for the dynamic linker's lock, which this one may
                            hold */
    DEVICE_WITHOUT_END   /* the CPU cannot run the call */
};
void device_start_now(struct dispatch_device *device, enum device_patience patience);

/* Makes it absent, untried: this machine has none for certain. False: it was not untried any
 * more. */
bool device_rule_out(struct dispatch_device *device);

/* Makes it failed, after a failure: no call uses it any more. instead: for the message, who
 * computes from here on. */
void device_give_up(struct dispatch_device *device, const char *instead);

/* Whether another process owns it. */
bool device_is_remote(const struct dispatch_device *device);

/* A call that would gain needs a device of this process's own: leaves the server for good. */
void device_leave_server(struct dispatch_device *device);

/* The process that owns it has ended: the next call that gains looks for another one, or starts
 * CUDA here. why: for the log; empty: it has a line of that. */
void device_lose_server(struct dispatch_device *device, const char *why);

/* Call it after a call on the device: if that has failed meanwhile, frees the memory that the call
 * has left idle. */
void device_tidy(struct dispatch_device *device);

/* Whether there is a process that owns the GPUs and may have the calls: it need not be started. */
bool device_has_server(void);

/* Whether it was started in the process that this one was forked from, and the handlers of fork(2)
 * have not run. */
bool device_is_inherited(const struct dispatch_device *device);

/* Whether this is the child of a vfork(2) of that process, and runs in its memory. */
bool device_is_borrowed(const struct dispatch_device *device);

/* Returns whether CUDA has been called for it, or is being called. */
bool device_is_begun(const struct dispatch_device *device);

/* Call it in the child of a fork, which stays on the CPU if the parent has begun any device. */
void device_fork_child(struct dispatch_device *device, bool any_begun);

#endif
