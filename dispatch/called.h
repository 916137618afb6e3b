/*
 * accel calibrate -- PROGRAM: everything runs on the CPU, and each CPU library that the program calls is noted with its number of
 * threads. All processes append to one file, ACCEL_CALLED, which the tool makes and reads. Thread-safe except for the start.
 */
#ifndef ACCEL_CALLED_H
#define ACCEL_CALLED_H

#include "dispatch.h"
#include "settings.h"

/* settings->called is the file, NULL: nothing is noted. */
void called_start(const struct accel_settings *settings);

/* Whether there is such a file. */
bool called_is_on(void);

/* Notes a library with its present number of threads, and the name that was called; once for each such number. A record of the file
 * is the number, a space, the name, a space, the library's path, a NUL. */
void called_note(const struct dispatch_library *library, int width, const char *symbol);

#endif
