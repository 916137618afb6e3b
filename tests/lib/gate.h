/*
 * A gate in a function that replaces one of the driver's: the test sees that a thread has come
 * there, and lets it go on.
 */
#ifndef ACCEL_TEST_GATE_H
#define ACCEL_TEST_GATE_H

#include <semaphore.h>
#include <stdatomic.h>

#include "pause.h"

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

/* Waits until the test opens the gate; at most some seconds, so that a failing test ends. Looks
 * again and again: ThreadSanitizer does not know sem_clockwait(3). */
static inline void gate_pass(struct gate *gate)
{
    sem_post(&gate->reached);
    for (int i = 0; i < 5000 && sem_trywait(&gate->open) != 0; i++)
        pause_ms(1);
    atomic_store(&gate->passed, true);
}

#endif
