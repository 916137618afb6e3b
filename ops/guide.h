/*
 * A library that can compute on the GPU by itself: libaccel only tells it which device to use. The original runs every call.
 */
#ifndef ACCEL_GUIDE_H
#define ACCEL_GUIDE_H

#include "call.h"
#include "passing.h"

/* What there is to report of a call. */
enum guide_news {
    GUIDE_NOTHING,     /* no decision was made */
    GUIDE_ON_GPU,      /* the library has been told to use the device */
    GUIDE_NO_DEVICE,   /* device() has answered that there is none */
    GUIDE_UNSUPPORTED, /* the library cannot use a GPU here */
    GUIDE_FAILED,      /* the library has failed on the GPU, and has computed on the CPU instead */
    GUIDE_NO_MEMORY    /* the same, for lack of memory */
};

/* One call on its way. */
struct guide {
    struct accel_call *call; /* its operation's fields are for the log */
    const struct accel_passed *passed;
    /* Returns CUDA's number of the device to use; negative: there is none. Starts it at the first question. */
    int (*device)(struct guide *guide);
    /* Runs the original with the caller's arguments; returns what it leaves in rax. If it is not called, the caller's call still
     * goes to the original. */
    uint64_t (*original)(struct guide *guide);
    char told[32]; /* room for what the library is told */
};

#endif
