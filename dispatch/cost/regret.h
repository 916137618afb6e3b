/*
 * Places in the program that call a routine with matrices of about one shape, and how their calls fared on the GPU. A place
 * whose calls lose there is sent back to the CPU for good: a wrong estimate then costs a few calls, not the program's time.
 * Thread-safe.
 */
#ifndef ACCEL_REGRET_H
#define ACCEL_REGRET_H

#include <stdatomic.h>

#include "model.h"

/* A program has a few; where there are more, the first ones are known. */
enum { REGRET_PLACES = 4096 };

/* Of one device. Zero at first. */
struct regret {
    struct regret_place {
        _Atomic uint64_t key; /* 0: free */
        atomic_bool lost;
        int runs;
        double gpu_ms, cpu_ms; /* of the runs that count */
    } places[REGRET_PLACES];
    double setup_ms; /* lost in first runs */
};

/* The number of a place: its return address, the routine, and the class of the shape (each size by its power of two). */
uint64_t regret_key(uintptr_t site, const struct accel_call *call);

/* Whether the place has been sent back. */
bool regret_lost(struct regret *regret, uint64_t key);

/* A call from there took so long on the GPU (milliseconds), and would have taken the CPU so long. */
enum regret_verdict {
    REGRET_EARLY, /* one of the first runs, which set up what others use: they say little */
    REGRET_USUAL,
    REGRET_SENT_BACK /* by this one */
};
enum regret_verdict regret_note(struct regret *regret, uint64_t key, double gpu_ms, double cpu_ms);

#endif
