/*
 * How a log's file is opened: by a path that may be in a folder where others may write, too.
 */
#ifndef ACCEL_LOG_FILE_H
#define ACCEL_LOG_FILE_H

/* Opens for appending, and makes the file where there is none; close-on-exec, never a controlling terminal. Returns the
 * descriptor, or -1 and in *wrong why not, as constant text.
 *
 * A symbolic link is followed where it is root's or the user's own (/dev/stderr is one). In a folder where all may write, a
 * file of another user is refused, and one that has further names: it would be any file that somebody has linked there.
 * A FIFO that nobody reads is not waited for. Any thread. */
int log_file_open(const char *path, const char **wrong);

#endif
