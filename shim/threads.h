/*
 * The functions by which CPU libraries say how many threads they compute with. Constant data.
 */
#ifndef ACCEL_THREADS_H
#define ACCEL_THREADS_H

/* Names, ending with NULL, in the order in which they are to be looked for in a library and what it is linked to: its own
 * ones first, then what OpenMP says, where it is built on that. All return an integer of 32 bits, or one of 64 whose lower half
 * is it; not above 0 where nothing is set. */
extern const char *const accel_thread_functions[];

#endif
