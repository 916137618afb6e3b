/*
 * A client's end of a lane (wire.h): one call at a time, of one thread.
 */
#ifndef ACCEL_LANE_H
#define ACCEL_LANE_H

#include "base/file/file_identity.h"
#include "wire.h"

struct lane {
    int socket; /* -1: it is not open */
    struct file_identity file;
    struct wire_lane *shared;
    char *area;
    int64_t area_bytes;
    int64_t chunked_from; /* struct wire_welcome */
    bool is_silent;       /* the server has given no sign of life */
};

/* Opens a lane to the server whose socket is there. Returns false if there is none, it is of
 * another build, its device starts (welcome->starting), or it refuses; why: one line. Waits for a
 * second or two at most. */
bool lane_open(struct lane *lane, const char *path, struct wire_welcome *welcome,
               char why[GPU_FAILURE_BYTES]);
void lane_close(struct lane *lane);

/* Whether a server takes lanes of this process; why, if not: one line. */
bool lane_answers(const char *path, char why[GPU_FAILURE_BYTES]);

/* Asks a server what it has done. Returns false if there is none of this build; why: one line. */
bool lane_ask(struct wire_state *state, const char *path, char why[GPU_FAILURE_BYTES]);

/* Whether the server has ended, or the program has closed the lane's socket. */
bool lane_is_closed(const struct lane *lane);

/* In a fork's child, which does not have the lane's memory. */
void lane_forget(struct lane *lane);

#endif
