/*
 * Calls inside calls: the calls whose originals a thread runs now, and that may make calls of their
 * own, as LAPACK's do. A program leaves originals in any way: by longjmp(3), by an exception, with
 * the thread, in a handler on another stack. Each thread has its own; threads that an original
 * starts begin at depth 0. Safe in signal handlers.
 */
#ifndef ACCEL_NESTING_H
#define ACCEL_NESTING_H

#include <stdbool.h>

#include "shim/arch/entry.h"

/* Whether `frame` is deeper on this thread's stack than `other`, or belongs to a signal handler on
 * an alternate stack, which runs while `other` waits. */
bool nesting_is_below(const struct accel_frame *frame, const struct accel_frame *other);

/* Returns inside how many calls that are under way this one is made. Calls that the program has
 * left are forgotten, as soon as a call comes from above or other functions have used their
 * stack. */
int nesting_depth(const struct accel_frame *frame);

/* Enclose the run of an original: calls that come in between are one deeper than `depth`, that of
 * its own call. */
void nesting_open(const struct accel_frame *frame, int depth);
void nesting_close(int depth);

#endif
