/*
 * Files by which the processes of one user on this machine see each other: in XDG_RUNTIME_DIR, or
 * in /dev/shm. No malloc, no stdio.
 */
#ifndef ACCEL_SHARED_FILE_H
#define ACCEL_SHARED_FILE_H

/* Notes the folder, from the environment. Call it once, at the program's start. */
void shared_file_prepare(void);

/* Returns that folder if it is XDG_RUNTIME_DIR; empty: there is none. */
const char *shared_file_runtime(void);

/* Opens the file of that name, to read and write, and makes it if need be. Returns -1 if that
 * fails, or if the file is not to be trusted: another user's, a link, or one that others may write
 * to. Keeps errno. Thread-safe. */
int shared_file_open(const char *name);

#endif
