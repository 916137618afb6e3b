/*
 * Who else computes: this process's calls on the CPU, and what the GPU has to do for all threads and processes of this user.
 * Processes see each other by a page of shared memory for each device. All functions are thread-safe.
 */
#ifndef ACCEL_CONTENTION_H
#define ACCEL_CONTENTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A call on a device. Free where no process owns it. */
struct contention_entry {
    _Atomic int32_t owner; /* process */
    _Atomic int64_t
        end_us; /* when it is thought to end, on the monotonic clock, which all processes share */
};

enum { CONTENTION_ENTRIES = 64 };

/* The calls on one device, zero at first. */
struct contention {
    struct contention_entry *_Atomic page; /* NULL: there is no shared one */
    struct contention_entry own[CONTENTION_ENTRIES];
};

/* Notes where the page would be, from the environment: once, at the program's start. */
void contention_prepare(void);

/* From here on, processes that use the device of this name are seen, and see this one. Where the page cannot be had, this
 * process sees itself alone. Once for each device. */
void contention_start(struct contention *load, const char *device);

/* A call begins on the GPU that is thought to take so long; returns its number for contention_leave_gpu(). */
int contention_enter_gpu(struct contention *load, double ms);
void contention_leave_gpu(struct contention *load, int number);

/* Milliseconds that the device needs for the calls on it, if they take as long as they are thought to. */
double contention_gpu_ms(struct contention *load);

/* In the child of a fork, which uses no device. */
void contention_fork_child(struct contention *load);

/* Calls of this process on the CPU that are known of; with this one. */
int contention_enter_cpu(void);
void contention_leave_cpu(void);
int contention_cpu_calls(void);

#endif
