/*
 * Seats: the processes of one user tell each other which devices they use, so that those that
 * nobody has numbered spread over them. A seat is a lock on a byte of a file that they share
 * (base/file/shared_file.h). The kernel gives it back when the process ends, however that is; no
 * process id is compared, so that containers that share the file's folder see each other.
 */
#ifndef ACCEL_SEATS_H
#define ACCEL_SEATS_H

#include <stdbool.h>

/* All zero: none. The child of a fork has none, whatever its copy says. */
struct seat {
    void *page; /* a mapping that keeps the file open, with the lock */
};

/* Of more processes on one device, these are counted. */
enum { SEATS_MOST = 256 };

struct seat_device {
    int device;       /* the caller's number of it */
    const char *name; /* tells it from the others, for all processes */
    int others;       /* processes that have a seat there */
};

/* Sets `others` of each device, sorts them by that, equals as they were, and takes a seat at the
 * first. Processes that choose at the same time do so one after the other; it waits for them
 * SEATS_WAIT_MS at most. Returns false if it has no seat. */
enum { SEATS_WAIT_MS = 100 };
bool seat_choose(struct seat *seat, struct seat_device *devices, int count);

/* Takes a seat at the device of that name; returns false if it cannot be had. */
bool seat_take(struct seat *seat, const char *name);

/* Gives it back. Not in the child of a fork. */
void seat_leave(struct seat *seat);

#endif
