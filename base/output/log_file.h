/*
 * Opens a log file, also in a folder where other users may write.
 */
#ifndef ACCEL_LOG_FILE_H
#define ACCEL_LOG_FILE_H

/* Opens `path` for appending, and creates it if there is none; close-on-exec, never as controlling
 * terminal. Returns the descriptor, or -1 and the reason in *wrong, as constant text. Thread-safe.
 *
 * Follows a symbolic link only if it belongs to root or the user (/dev/stderr is one). In a folder
 * where all may write, it refuses a file of another user, and one with several names: somebody may
 * have linked any file there. Does not wait for the reader of a FIFO. */
int log_file_open(const char *path, const char **wrong);

#endif
