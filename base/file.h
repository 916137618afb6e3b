/*
 * Files by their descriptors: whole reads and writes, and where a path's folder is. No malloc, no stdio. Thread-safe.
 */
#ifndef ACCEL_FILE_H
#define ACCEL_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The bytes read: fewer than `size` only at the file's end. -1 with errno. */
ssize_t file_read(int fd, void *bytes, size_t size);

/* Returns 0, or an errno value where something was not written; *written tells how many bytes were. In one write(2), unless the
 * system takes less. */
int file_write(int fd, const void *bytes, size_t length, size_t *written);

/* Puts a path's folder into `folder`, and where its name begins in the path into *name. False with ENAMETOOLONG. */
bool file_folder(const char *path, char folder[PATH_MAX], const char **name);

#endif
