/*
 * Files by descriptor: whole reads and writes, and the folder of a path. No malloc, no stdio. Thread-safe.
 */
#ifndef ACCEL_FILE_H
#define ACCEL_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns the bytes read: fewer than `size` only at the file's end. -1 with errno. */
ssize_t file_read(int fd, void *bytes, size_t size);

/* Writes `length` bytes, in one write(2) unless the system takes less. Returns 0 or an errno value; sets *written to the bytes written. */
int file_write(int fd, const void *bytes, size_t length, size_t *written);

/* Copies the path's folder to `folder`, and points *name to the last part of the path. False with ENAMETOOLONG. */
bool file_folder(const char *path, char folder[PATH_MAX], const char **name);

#endif
