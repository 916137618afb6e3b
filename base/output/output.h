/*
 * Writes lines to stderr or to ACCEL_LOG_FILE.
 */
#ifndef ACCEL_OUTPUT_H
#define ACCEL_OUTPUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes to stderr, without raising SIGPIPE or SIGXFSZ, and drops bytes that cannot be written.
 * Writes nothing if the program was started without a stderr, or has replaced it by another file.
 * Keeps errno. */
void output_stderr(const char *bytes, size_t length);

/* Writes to the log: the file of this pattern (%p pid, %h host, %r MPI or Slurm rank, %% a percent
 * sign; NULL: stderr). Opens it at the first use, again in a child process if the pattern has %p,
 * and again if the program has closed it. If it cannot be opened, one message says so, and stderr
 * takes its place. If it cannot be written, one message says so, and the lines are lost. Never
 * writes to a descriptor number that the program has reused. Keeps errno. Thread-safe. */
void output_log(const char *pattern, const char *bytes, size_t length);

/* Whether the last line of the log went to stderr. */
bool output_log_is_stderr(void);

/* Seconds that output_log_in_time() waits at most: 1. Tests set more. */
extern atomic_int output_patience;
/* What is written to the log, for what is said if it is lost. */
enum output_kind { OUTPUT_LINES, OUTPUT_SUMMARY, OUTPUT_KINDS };
/* The same as output_log() where it must not wait for long: at exit, or in what output_log() says
 * itself. False: another thread has held the log's lock for output_patience seconds, or this one,
 * further out, holds it; nothing is written. */
bool output_log_in_time(const char *pattern, enum output_kind kind, const char *bytes,
                        size_t length);

/* Writes a pattern's path for this process. False if it does not fit. After output_start(). */
bool output_expand(const char *pattern, char *path, size_t size);

/* Notes which file stderr is, and the rank for %r from the environment. Once, at start. */
void output_start(void);

#endif
