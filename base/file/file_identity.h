/*
 * Tells whether a descriptor still is the file that it was: a program may close descriptors of ours
 * and use their numbers again. Thread-safe.
 */
#ifndef ACCEL_FILE_IDENTITY_H
#define ACCEL_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A file system may reuse the inode number of a deleted file, so the birth time is part of it if
 * the system has one. */
struct file_identity {
    dev_t dev;
    ino_t ino;
    int64_t seconds;
    uint32_t nanoseconds;
};

/* False if the descriptor is not open. */
bool file_identify(int fd, struct file_identity *identity);

/* Returns whether the descriptor is open, and is the wanted file. */
bool file_is(int fd, const struct file_identity *wanted);

/* Moves a descriptor of ours to a high number, and closes the low one, if there is one: programs
 * close and reuse these, and below 3 it would be a program's stdin, stdout or stderr. Returns it;
 * -1 with errno: none. */
int file_move_high(int fd);

#endif
