/*
 * The GPU's life as the dispatcher sees it: not tried, starting, ready, absent, failed. CUDA takes a second or so to
 * start, which no program shall wait for: it is started on a thread of its own, once the calls seen so far would have gained
 * by it. All functions are thread-safe unless said otherwise.
 */
#ifndef ACCEL_START_H
#define ACCEL_START_H

#include "decide.h"
#include "dispatch/cost/contention.h"
#include "dispatch.h"
#include "full.h"
#include "gpu/gpu.h"
#include "base/ranks.h"

/* Once. Both stay. wait: whoever asks for the GPU waits for it. */
void start_prepare(const struct accel_settings *settings, const struct accel_ranks *ranks,
                   bool wait);

enum accel_gpu_state start_state(void);

/* accel estimate: from here on, calls are decided as if settings->estimate were there. Where no such GPU is known, says so and
 * returns false. Before the first call. */
bool start_pretend(void);

/* Bytes of its memory that this process may use. */
int64_t start_memory(void);

/* The device that has been started; NULL: none. Once there is one, it stays. */
struct gpu_device *start_device(void);

/* The calls on it, of all processes; and whether it is full. */
struct contention *start_contention(void);
struct full *start_full(void);

/* What is known of it; all zero where there is none. */
const struct gpu_info *start_gpu(void);

/* Why there is no device, or why it was given up; before that, why a routine was: one line of memory that stays. */
const char *start_failure(void);
bool start_has_failure(void); /* whether none could be started, or the device has failed */

/* "gpu0", "gpu0+cpu": what the log says of it. */
const char *start_gpu_name(void);
const char *start_gpu_cpu_name(void);

/* A call has been seen that would gain so much (milliseconds). Starts CUDA on its own thread when calls together would gain
 * START_GAIN_MS: less than that is no program that CUDA could serve. */
#define START_GAIN_MS 50.0
void start_note_gain(double gain_ms);

/* Whether the thread that starts CUDA could not be made, and will not be. */
bool start_has_no_thread(void);

/* Starts CUDA on the calling thread, or waits for the thread that does. */
enum start_patience {
    START_SOME_SECONDS, /* it may be waiting for the dynamic linker's lock, which this one may hold */
    START_WITHOUT_END   /* there is no other way */
};
void start_now(enum start_patience patience);

/* Whether a call waits for CUDA (ACCEL_START=wait, MPI), rather than being run on the CPU meanwhile. */
bool start_waits(void);

/* No GPU will be tried: there is none on this machine for certain, or it is not to be used. */
void start_rule_out(void);

/* The GPU has failed: from here on it is left alone. */
void start_give_up(void);

/* After a call on the GPU: where another thread has given it up meanwhile, what this call has left idle is freed. */
void start_tidy(void);

/* Whether this is the process in which CUDA was started, or is starting. */
bool start_is_own_process(void);

/* Whether this is the child of a vfork(2) of that process, with whose memory it runs. */
bool start_is_borrowed(void);

#endif
