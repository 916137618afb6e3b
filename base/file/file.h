/*
 * Files: whole reads and writes by descriptor, and paths. No malloc, no stdio. Thread-safe.
 */
#ifndef ACCEL_FILE_H
#define ACCEL_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns the bytes read: fewer than `size` only at the file's end. -1 with errno. */
ssize_t file_read(int fd, void *bytes, size_t size);

/* Writes `length` bytes, in one write(2) unless the system takes less. Returns 0 or an errno value;
 * sets *written to the bytes written. */
int file_write(int fd, const void *bytes, size_t length, size_t *written);

/* Copies the path's folder to `folder`, and points *name to the last part of the path. False with
 * ENAMETOOLONG. */
bool file_folder(const char *path, char folder[PATH_MAX], const char **name);

/* A path "/tmp/accel-NAME-XXXXXX" from the root on, below TMPDIR or /tmp, for mkstemp(3) and
 * mkdtemp(3). False with errno. */
bool file_temporary(char path[PATH_MAX], const char *name);

/* The path of the program that this process runs, as the system has it; false where it does not
 * say. */
bool file_program(char path[PATH_MAX]);

#endif
