/*
 * accel calibrate -- PROGRAM and accel doctor -- PROGRAM: everything runs on the CPU, and each CPU
 * library that the program calls is noted with its number of threads. All processes append to one
 * file, ACCEL_CALLED, which the tool makes and reads. Thread-safe except for the start.
 *
 * A record of the file ends with a NUL: two numbers, a name and a path, with spaces between them.
 *   THREADS WIDTH SYMBOL LIBRARY  calls of this library; WIDTH as in census_note()
 *   -1 HELD - PROGRAM             HELD is 1 once CUDA is left to the program, 0 once it is not
 */
#ifndef ACCEL_CENSUS_H
#define ACCEL_CENSUS_H

#include "dispatch.h"
#include "dispatch/settings/settings.h"

/* settings->called is the file, NULL: nothing is noted. */
void census_start(const struct accel_settings *settings);

/* Whether there is such a file. */
bool census_is_on(void);

/* Of the calls of a library that the dispatcher does not know: the original has them, untouched. */
enum { CENSUS_UNKNOWN = -1 };

/* Notes a library with its present number of threads, and the name that was called; once for each
 * such number. width: the bits of its INTEGER, 0: it is no BLAS, or CENSUS_UNKNOWN. */
void census_note(const struct dispatch_library *library, const char *symbol, int width);

/* Notes whether CUDA is left to the program (fork_policy_applies()), if that has changed. */
void census_note_hold(bool held);

#endif
