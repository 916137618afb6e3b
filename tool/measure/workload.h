/*
 * A call to be measured: a routine at given sizes, with the options that programs mostly use
 * (shape_typical), and memory and contents for its operands. A library's function runs it, or the
 * GPU.
 */
#ifndef ACCEL_TOOL_WORKLOAD_H
#define ACCEL_TOOL_WORKLOAD_H

#include "gpu/device/gpu.h"
#include "libraries.h"

struct solve_bench;

/* The memory of one workload at a time. */
struct workload_memory {
    char *base;
    size_t size, used;
};

bool workload_memory_open(struct workload_memory *memory, size_t size);
void workload_memory_close(struct workload_memory *memory);

struct workload {
    struct accel_call call;
    void *function;     /* NULL: for the GPU alone */
    enum accel_abi abi; /* the function's */
    /* The function writes it; the call has its address, so a workload must not be copied */
    int64_t info;
    bool filled;
    /* Of its schedule on a GPU; up = 0, as workload_make() leaves it: not known */
    struct schedule_rates rates;
};

/* The one timing loop:
 *
 *     struct timing timing = {.most = 4};
 *     while (timing_add(&timing, workload_cpu_ms(&workload)))
 *         ;
 *
 * The least time counts: other work makes a time longer, never shorter. */
struct timing {
    int warm;         /* so many runs come first, and do not count */
    int least, most;  /* runs that count */
    double enough_ms; /* after the least, runs end when they have taken so long; 0: with the most */
    int runs;         /* that have counted */
    double best_ms;   /* negative: a run has failed */
    double spent_ms;
};

/* Adds a run that took so long; negative: it failed, and so have all. Returns whether another run
 * is due. */
bool timing_add(struct timing *timing, double ms);

/* Whether the GPU can run such calls, and can gain by them. */
bool workload_is_for(const struct accel_routine *routine);

/* Makes a call of these sizes (m n k nrhs). function: the library's; NULL: for the GPU alone. False
 * if the operands do not fit into the memory, or the function does not say what workspace it
 * needs. */
bool workload_make(struct workload *workload, struct workload_memory *memory,
                   const struct accel_routine *routine, const int64_t size[ACCEL_DIMENSIONS],
                   const struct library_function *function);

/* Does the same for the workload's call, which has its arguments, and of each operand the shape and
 * the leading dimension. */
bool workload_place(struct workload *workload, struct workload_memory *memory,
                    const struct library_function *function);

/* Fills all operands that the call reads; those that it only reads. */
void workload_fill(struct workload *workload);
void workload_fill_inputs(struct workload *workload);

/* Returns the milliseconds of one run; negative if it fails. First restores the inputs that a run
 * overwrites. */
double workload_cpu_ms(struct workload *workload);

/* Runs a call on a GPU, copies included, and sets host's numbers of bytes. Returns the
 * milliseconds; negative if it fails: no part goes to the CPU, whose time is not to count. */
double workload_run_ms(struct gpu_device *device, const struct accel_call *call,
                       struct gpu_host *host, enum gpu_status *status);

/* The same for a workload, by its rates. First restores the inputs that a run overwrites. */
double workload_gpu_ms(struct workload *workload, struct gpu_device *device, struct gpu_host *host,
                       enum gpu_status *status);

/* Returns the milliseconds of the kernels alone, which read the call's inputs in host memory;
 * negative if the call fails, or has no kernel. The device must be one with host_page_tables, the
 * call one of BLAS. */
double workload_in_place_ms(struct workload *workload, struct gpu_device *device);

/* Returns the milliseconds of the kernels alone, in this precision; negative if the call fails,
 * has no kernel, or was computed in another precision. A call of Level 3 is one kernel then, if
 * memory allows. */
double workload_compute_ms(struct workload *workload, struct gpu_device *device,
                           enum gpu_precision precision);

/* What was measured of a device; NULL: not that. */
struct workload_device {
    const struct gpu_copy_rates *copies;
    const struct solve_bench *solves;
    const struct block_paces *paces; /* by type */
};

/* Of a call that a schedule divides, copies and kernels overlap: returns the least milliseconds of
 * its kernel alone in some runs, and sets the workload's rates by it, so that its further runs have
 * the schedule that programs' calls have. Returns 0 for other calls, and if it fails. */
double workload_kernel_ms(struct workload *workload, struct gpu_device *device,
                          const struct workload_device *measured, int runs);

/* Returns the milliseconds that the schedule of a call says if its kernel takes kernel_ms; 0 for
 * calls that no schedule divides. */
double workload_schedule_ms(const struct accel_call *call, struct gpu_device *device,
                            const struct workload_device *measured, double kernel_ms);

#endif
