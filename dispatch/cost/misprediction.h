/*
 * How calls fared on the GPU, by place: a call site that calls a routine with matrices of about one
 * shape. A place whose calls lose time on the GPU stays on the CPU from then on: a wrong estimate
 * costs a few calls, not the program's time. Thread-safe.
 */
#ifndef ACCEL_MISPREDICTION_H
#define ACCEL_MISPREDICTION_H

#include <stdatomic.h>

#include "model.h"

/* A program has a few places; of more than fit, the first ones are known. */
enum { MISPREDICTION_PLACES = 4096 };

/* Of one device. Zero at first. */
struct mispredictions {
    struct mispredicted_site {
        _Atomic uint64_t key; /* 0: free */
        atomic_bool lost;
        int runs, losses;      /* losses: those that took far longer than on the CPU */
        bool gained, losing;   /* one has not; the last one has */
        double gpu_ms, cpu_ms; /* of the runs that count */
    } places[MISPREDICTION_PLACES];
    double setup_ms; /* lost in long first runs, which do not count */
};

/* Returns the key of a place: a hash of return address, routine, and the class of the shape (each
 * size by its power of two). */
uint64_t call_site_key(uintptr_t site, const struct accel_call *call);

/* Whether the place has been sent back. */
bool misprediction_is_lost(struct mispredictions *mispredictions, uint64_t key);

/* Notes that a call from there took gpu_ms on the GPU, and would have taken cpu_ms on the CPU. */
enum misprediction_verdict {
    MISPREDICTION_EARLY, /* one of the first runs, whose times include setting up */
    MISPREDICTION_USUAL,
    MISPREDICTION_SENT_BACK /* this call has lost too much */
};
enum misprediction_verdict misprediction_note(struct mispredictions *mispredictions, uint64_t key,
                                              double gpu_ms, double cpu_ms);

#endif
