/*
 * Is there a GPU? The states of its life, and the questions that are asked of them.
 */
#ifndef ACCEL_GPU_STATE_H
#define ACCEL_GPU_STATE_H

#include <stdbool.h>

enum accel_gpu_state {
    ACCEL_GPU_UNTRIED, /* CUDA has not been started; the figures are those of a fast GPU */
    ACCEL_GPU_STARTING,
    ACCEL_GPU_READY,
    ACCEL_GPU_ABSENT,
    ACCEL_GPU_FAILED, /* left alone for good */
    ACCEL_GPU_FORKED, /* this is the child of a process that used it */
    ACCEL_GPU_ESTIMATED /* accel estimate: calls are decided as if it were there, and run on the CPU */
};

/* It may be there one day. */
static inline bool gpu_state_is_open(enum accel_gpu_state state)
{
    return state == ACCEL_GPU_UNTRIED || state == ACCEL_GPU_STARTING;
}

/* It is there, or was until it failed: CUDA answers questions about memory. */
static inline bool gpu_state_has_memory(enum accel_gpu_state state)
{
    return state == ACCEL_GPU_READY || state == ACCEL_GPU_FAILED;
}

/* Calls are weighed against it. */
static inline bool gpu_state_is_known(enum accel_gpu_state state)
{
    return state == ACCEL_GPU_READY || state == ACCEL_GPU_ESTIMATED;
}

/* CUDA computes here, or starts: a forked child must know. */
static inline bool gpu_state_is_in_use(enum accel_gpu_state state)
{
    return state == ACCEL_GPU_STARTING || state == ACCEL_GPU_READY;
}

/* No call will run on it any more. */
static inline bool gpu_state_is_over(enum accel_gpu_state state)
{
    return state == ACCEL_GPU_ABSENT || state == ACCEL_GPU_FAILED || state == ACCEL_GPU_FORKED;
}

/* CUDA has been touched by this process, or by the one that it was forked from. */
static inline bool gpu_state_has_cuda(enum accel_gpu_state state)
{
    return gpu_state_is_in_use(state) || state == ACCEL_GPU_FAILED || state == ACCEL_GPU_FORKED;
}

#endif
