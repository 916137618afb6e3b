/*
 * Holds back SIGPIPE (from a closed pipe) and SIGXFSZ (from the limit on file sizes) while libaccel
 * writes to its own files: they would end the program, or run its handler.
 */
#ifndef ACCEL_SIGNAL_MASK_H
#define ACCEL_SIGNAL_MASK_H

#include <signal.h>
#include <stdbool.h>

/* The thread's former mask, and the signals that were pending before. */
struct signal_mask {
    sigset_t before, pending;
};

/* Holds both signals of the calling thread until signals_release(). Both functions keep errno. */
void signals_hold(struct signal_mask *held);

/* The same with all signals, for a moment in which no handler may run: it could leave a lock of
 * ours held, by longjmp. Not where a write may wait. */
void signals_hold_all(struct signal_mask *held);

/* failed: a write failed, so one of the signals may be pending. It is removed, unless it was
 * pending before. */
void signals_release(const struct signal_mask *held, bool failed);

/* Fills a set with all signals except those that a thread gets for its own faults. */
void signals_but_faults(sigset_t *signals);

#endif
