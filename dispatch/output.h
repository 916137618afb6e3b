/*
 * Where lines go: stderr or ACCEL_LOG_FILE.
 */
#ifndef ACCEL_OUTPUT_H
#define ACCEL_OUTPUT_H

#include <stddef.h>

/* One write(2), without raising SIGPIPE; what cannot be written is dropped. Keeps errno. */
void output_write(int fd, const char *bytes, size_t length);

/* Writes to the log: the file of this pattern (%p pid, %h host, %r MPI or Slurm rank, %% a percent
 * sign; NULL: stderr), opened at the first use, in a child process once more where the pattern has
 * %p. A file that cannot be opened is named once on stderr, which is then used. Nothing is written
 * where the program has closed the descriptor and reused its number. Thread-safe. */
void output_log(const char *pattern, const char *bytes, size_t length);

/* The rank for %r: reads the environment, so from dispatch_start(). */
void output_find_rank(void);

/* Around fork(). */
void output_fork_prepare(void);
void output_fork_done(void);

#endif
