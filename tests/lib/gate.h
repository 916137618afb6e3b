/*
 * A gate in a function that replaces one of the driver's: the test sees that a thread has come there, and lets it go on.
 */
#ifndef ACCEL_TEST_GATE_H
#define ACCEL_TEST_GATE_H

#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

struct gate {
    sem_t reached, open;
    atomic_bool passed;
};

static inline void gate_init(struct gate *gate)
{
    sem_init(&gate->reached, 0, 0);
    sem_init(&gate->open, 0, 0);
    atomic_store(&gate->passed, false);
}

/* Waits until the test opens the gate; at most some seconds, so that a failing test ends. */
static inline void gate_pass(struct gate *gate)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 5;
    sem_post(&gate->reached);
    sem_clockwait(&gate->open, CLOCK_MONOTONIC, &until);
    atomic_store(&gate->passed, true);
}

#endif
