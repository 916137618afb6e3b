/*
 * Where lines go: stderr or ACCEL_LOG_FILE.
 */
#ifndef ACCEL_OUTPUT_H
#define ACCEL_OUTPUT_H

#include <stddef.h>

/* One write(2), without raising SIGPIPE; what cannot be written is dropped. Keeps errno. */
void output_write(int fd, const char *bytes, size_t length);

/* The same to stderr; nothing where the program was started without one, or has put something else in
 * its place. */
void output_stderr(const char *bytes, size_t length);

/* Writes to the log: the file of this pattern (%p pid, %h host, %r MPI or Slurm rank, %% a percent
 * sign; NULL: stderr), opened at the first use, in a child process once more where the pattern has
 * %p, and again where the program has closed it. A file that cannot be opened is named once on
 * stderr, which is then used. Nothing is written to a descriptor whose number the program has reused.
 * Thread-safe. */
void output_log(const char *pattern, const char *bytes, size_t length);

/* The same at exit, where another thread, or this one in a signal handler, may be at it for ever: then
 * nothing is written. */
void output_log_at_exit(const char *pattern, const char *bytes, size_t length);

/* Notes what stderr is, and the rank for %r from the environment. Once, at start. */
void output_start(void);

/* In the child of a fork. */
void output_fork_child(void);

#endif
