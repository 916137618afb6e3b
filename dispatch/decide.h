/*
 * The decision: a pure function of the call, the machine and the settings.
 */
#ifndef ACCEL_DECIDE_H
#define ACCEL_DECIDE_H

#include "gpu/call.h"
#include "settings.h"

/* A closed set: what the log's `why` may say. */
enum accel_why {
    /* on the GPU */
    ACCEL_FASTER,
    ACCEL_FORCED,
    ACCEL_DEVICE_DATA,
    ACCEL_REQUIRED,
    /* on the CPU */
    ACCEL_SMALL,
    ACCEL_SLOWER,
    ACCEL_UNSUPPORTED,
    ACCEL_WORKSPACE_QUERY,
    ACCEL_BAD_ARGUMENT,
    ACCEL_EMPTY,
    ACCEL_OFF,
    ACCEL_USER,
    ACCEL_NO_GPU,
    ACCEL_WARMING,
    ACCEL_NO_MEMORY,
    ACCEL_BUSY,
    ACCEL_ERROR,
    ACCEL_FORKED,
    ACCEL_VERIFY_FAILED,
    ACCEL_WHYS
};

const char *accel_why_name(enum accel_why why);

enum accel_gpu_state {
    ACCEL_GPU_UNTRIED, /* CUDA has not been started; the figures are those of a fast GPU */
    ACCEL_GPU_STARTING,
    ACCEL_GPU_READY,
    ACCEL_GPU_ABSENT,
    ACCEL_GPU_FAILED, /* left alone for good */
    ACCEL_GPU_FORKED  /* this is the child of a process that used it */
};

/* What the decision knows of the machine. Rates are of the whole process. */
struct accel_machine {
    enum accel_gpu_state gpu;
    int64_t gpu_memory;              /* bytes that may be had on the device */
    double cpu_gflops[ACCEL_DTYPES]; /* 10^9 real operations a second */
    double gpu_gflops[ACCEL_DTYPES];
    double up_gbps, down_gbps; /* 10^9 bytes a second, host to device and back */
    double cpu_gbps, gpu_gbps; /* of their own memories */
    double launch_ms;          /* the least that a call on the GPU costs */
};

struct accel_decision {
    bool gpu;
    enum accel_why why;
    double est_cpu_ms, est_gpu_ms; /* 0 where they were not needed */
};

/* CPU rates are nominal: 25 Gflop/s a core in double precision, 50 in single (a core of about 3 GHz
 * with 256-bit vectors at half its peak), 10 GB/s a core up to 200. Until CUDA is up, the GPU's are those of
 * a fast one. */
void accel_machine_init(struct accel_machine *machine, int cores);

struct accel_decision accel_decide(const struct accel_call *call,
                                   const struct accel_machine *machine,
                                   const struct accel_settings *settings);

/* The size below which no call of any routine can pay: where a cube of complex numbers takes the
 * CPU as long as a launch takes the GPU. */
uint64_t accel_decide_gate(const struct accel_machine *machine);

/* What is wrong with a call's arguments by the rules of the reference BLAS, or NULL. */
const char *accel_call_fault(const struct accel_call *call);

/* Whether nothing is to be computed beyond scaling C: a size is 0, or alpha is. */
bool accel_call_empty(const struct accel_call *call);

#endif
