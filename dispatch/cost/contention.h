/*
 * Who else computes: this process's calls on the CPU, and what the GPU has to do for all threads and processes of this user.
 * Processes see each other by a page of shared memory for each device. All functions are thread-safe.
 */
#ifndef ACCEL_LOAD_H
#define ACCEL_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A call on a device. Free where no process owns it. */
struct load_entry {
    _Atomic int32_t owner; /* process */
    _Atomic int64_t
        end_us; /* when it is thought to end, on the monotonic clock, which all processes share */
};

enum { LOAD_ENTRIES = 64 };

/* The calls on one device, zero at first. */
struct load {
    struct load_entry *_Atomic page; /* NULL: there is no shared one */
    struct load_entry own[LOAD_ENTRIES];
};

/* Notes where the page would be, from the environment: once, at the program's start. */
void load_prepare(void);

/* From here on, processes that use the device of this name are seen, and see this one. Where the page cannot be had, this
 * process sees itself alone. Once for each device. */
void load_start(struct load *load, const char *device);

/* A call begins on the GPU that is thought to take so long; returns its number for load_leave_gpu(). */
int load_enter_gpu(struct load *load, double ms);
void load_leave_gpu(struct load *load, int number);

/* Milliseconds that the device needs for the calls on it, if they take as long as they are thought to. */
double load_gpu_ms(struct load *load);

/* In the child of a fork, which uses no device. */
void load_fork_child(struct load *load);

/* Calls of this process on the CPU that are known of; with this one. */
int load_enter_cpu(void);
void load_leave_cpu(void);
int load_cpu_calls(void);

#endif
