/*
 * Where lines go: stderr or ACCEL_LOG_FILE.
 */
#ifndef ACCEL_OUTPUT_H
#define ACCEL_OUTPUT_H

#include <stddef.h>

/* To stderr, without raising SIGPIPE or SIGXFSZ; what cannot be written is dropped. Nothing where the program was started
 * without a stderr, or has put something else in its place. Keeps errno. */
void output_stderr(const char *bytes, size_t length);

/* Writes to the log: the file of this pattern (%p pid, %h host, %r MPI or Slurm rank, %% a percent
 * sign; NULL: stderr), opened at the first use, in a child process once more where the pattern has
 * %p, and again where the program has closed it. A file that cannot be opened is named once on
 * stderr, which is then used; one that cannot be written, too, and what is lost is lost. Nothing is
 * written to a descriptor whose number the program has reused. Keeps errno. Thread-safe. */
void output_log(const char *pattern, const char *bytes, size_t length);

/* The same at exit, where another thread, or this one in a signal handler, may be at it for ever: then
 * nothing is written. */
void output_log_at_exit(const char *pattern, const char *bytes, size_t length);

/* Notes what stderr is, and the rank for %r from the environment. Once, at start. */
void output_start(void);

#endif
