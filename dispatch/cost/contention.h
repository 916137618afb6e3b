/*
 * Counts the calls under way: of this process on the CPU, and of all processes of this user on a
 * GPU. Processes see each other in a page of shared memory for each device. All functions are
 * thread-safe.
 */
#ifndef ACCEL_CONTENTION_H
#define ACCEL_CONTENTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A call on a device. Free where no process owns it. */
struct contention_entry {
    _Atomic int32_t owner; /* process */
    /* Its estimated end, on the monotonic clock, which all processes share */
    _Atomic int64_t end_us;
};

enum { CONTENTION_ENTRIES = 64 };

/* The calls on one device, zero at first. */
struct contention {
    struct contention_entry *_Atomic page; /* NULL: there is no shared one */
    struct contention_entry own[CONTENTION_ENTRIES];
};

/* Opens the page of the device of this name (base/file/shared_file.h): from here on, processes that
 * use it see each other. If that fails, this process sees only itself. Call it once for each
 * device. */
void contention_start(struct contention *load, const char *device);

/* Notes that a call begins on the GPU, estimated to take `ms`. Returns its number for
 * contention_leave_gpu(). */
int contention_enter_gpu(struct contention *load, double ms);
void contention_leave_gpu(struct contention *load, int number);

/* Returns the milliseconds that the calls on the device still need, by their estimates. */
double contention_gpu_ms(struct contention *load);

/* Call it in the child of a fork, which uses no device. */
void contention_fork_child(struct contention *load);

/* Count the calls of this process on the CPU. contention_enter_cpu() returns their number with the
 * new one. */
int contention_enter_cpu(void);
void contention_leave_cpu(void);
int contention_cpu_calls(void);

#endif
