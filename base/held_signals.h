/*
 * Writing to files that the program knows nothing of: what that can raise, SIGPIPE by a closed pipe and SIGXFSZ by the
 * limit on the size of files, would end it, or run its handler. Both are held back meanwhile.
 */
#ifndef ACCEL_HELD_SIGNALS_H
#define ACCEL_HELD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* The mask to go back to, and what was pending before. */
struct held_signals {
    sigset_t before, pending;
};

/* Of the calling thread, which calls signals_release() next. Both keep errno. */
void signals_hold(struct held_signals *held);

/* failed: something was not written, so one of them may be pending: it is taken off, unless it was before. */
void signals_release(const struct held_signals *held, bool failed);

#endif
