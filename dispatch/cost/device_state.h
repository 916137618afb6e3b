/*
 * How far a device is, from the process's start on. Pure functions.
 */
#ifndef ACCEL_DEVICE_STATE_H
#define ACCEL_DEVICE_STATE_H

#include <stdbool.h>

enum device_state {
    DEVICE_UNTRIED, /* CUDA has not been started; the curves are those of a fast GPU */
    DEVICE_STARTING,
    DEVICE_READY,
    DEVICE_ABSENT,
    DEVICE_FAILED,   /* left alone for good */
    DEVICE_FORKED,   /* this is the child of a process that used it */
    DEVICE_ESTIMATED /* accel estimate: calls are decided as if it were there, and run on the CPU */
};

/* It may become ready. */
static inline bool device_state_is_open(enum device_state state)
{
    return state == DEVICE_UNTRIED || state == DEVICE_STARTING;
}

/* It is ready, or was until it failed: CUDA knows where memory is. */
static inline bool device_state_has_memory(enum device_state state)
{
    return state == DEVICE_READY || state == DEVICE_FAILED;
}

/* Its memory and sharers are known. */
static inline bool device_state_is_known(enum device_state state)
{
    return state == DEVICE_READY || state == DEVICE_ESTIMATED;
}

/* CUDA runs here, or starts: a forked child cannot use it. */
static inline bool device_state_is_in_use(enum device_state state)
{
    return state == DEVICE_STARTING || state == DEVICE_READY;
}

/* No call will run on it any more. */
static inline bool device_state_is_over(enum device_state state)
{
    return state == DEVICE_ABSENT || state == DEVICE_FAILED || state == DEVICE_FORKED;
}

#endif
