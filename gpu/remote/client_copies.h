/*
 * A client's part of the copies of a call (wire.h): the server's pipeline asks for chunks of the
 * program's matrices, and the copy pool packs them into the ring, or unpacks them from there. A
 * matrix that the call reads and writes comes down beside it, and is written at the end: so the
 * program's own library can do the call if the server cannot.
 */
#ifndef ACCEL_CLIENT_COPIES_H
#define ACCEL_CLIENT_COPIES_H

#include "lane.h"

struct client_copies {
    const struct accel_call *call;
    struct lane *lane;
    struct host_rectangle matrix[ACCEL_SPANS]; /* from which they go up */
    struct host_rectangle result[ACCEL_SPANS]; /* to which they come down; host is NULL: they do
                                                  not */
    struct wire_task task[COPY_POOL_TASKS];    /* by their numbers */
    /* What has come down beside its matrix. */
    struct wire_task *beside;
    int64_t besides, room;
    int64_t opened, done;
    bool begun;    /* the copy pool is at it: */
    int64_t first; /* from this task on */
    struct copy_pool_job job;
};

/* Returns which of a call's matrices go so, as bits 1 << enum accel_matrix: those of Level 3 and
 * LAPACK that have so many bytes at least. */
unsigned client_copies_of(const struct accel_call *call, int64_t least_bytes);

/* Prepares them, in the client's turn. Returns NULL if there is no memory. */
struct client_copies *client_copies_begin(struct lane *lane, const struct accel_call *call);

/* In the server's turn: does what the server asks for. *idle: there was nothing to do. Returns
 * false if it asks for what no server asks for. */
bool client_copies_attend(struct client_copies *copies, bool *idle);

/* The server has asked for nothing for a while: until it does again, the thread gets signals. */
void client_copies_pause(struct client_copies *copies);

/* Ends them; done: the call has been done, and what came down beside its matrix is written. NULL
 * may end, too. */
void client_copies_end(struct client_copies *copies, bool done);

#endif
