/*
 * A client's part of the copies of a call (wire.h): the server's pipeline asks for chunks of the
 * program's matrices, and the copy pool packs them into the ring, or unpacks them from there. So
 * the program's own library can do the call if the server cannot, also where it has done a part:
 * - C of a product, each of whose elements depends on its own old value alone, is written at once.
 *   After a failure, the original computes all of it, and what had come down is put back over that.
 * - Another matrix that the call reads and writes comes down beside it, and is written at the end.
 */
#ifndef ACCEL_CLIENT_COPIES_H
#define ACCEL_CLIENT_COPIES_H

#include "client_inputs.h"
#include "lane.h"

struct client_result {
    struct wire_task task;
    int64_t number;
};

struct client_copies {
    const struct accel_call *call;
    struct lane *lane;
    struct client_inputs *inputs;              /* that see the tasks; or NULL */
    struct host_rectangle matrix[ACCEL_SPANS]; /* from which they go up */
    struct host_rectangle result[ACCEL_SPANS]; /* to which they come down; host is NULL: they do
                                                  not */
    /* Of a matrix that the call reads and writes: memory for what comes down, meanwhile, or after a
     * failure; host is NULL: another one */
    struct host_rectangle beside[ACCEL_SPANS];
    struct wire_task task[COPY_POOL_TASKS]; /* by their numbers */
    struct client_result *down;             /* what comes down of those */
    int64_t downs, room;
    int64_t opened, done;
    bool begun;    /* the copy pool is at it: */
    int64_t first; /* from this task on */
    struct copy_pool_job job;
};

/* Returns which of a call's matrices go so, as bits 1 << enum accel_matrix: those that may
 * (wire_may_ask()) and have so many bytes at least. */
unsigned client_copies_of(const struct accel_call *call, int64_t least_bytes);

/* Prepares them, in the client's turn. Returns NULL if there is no memory. */
struct client_copies *client_copies_begin(struct lane *lane, const struct accel_call *call);

/* In the server's turn: does what the server asks for. *idle: there was nothing to do. Returns
 * false if it asks for what no server asks for. */
bool client_copies_attend(struct client_copies *copies, bool *idle);

/* The server has asked for nothing for a while: until it does again, the thread gets signals. */
void client_copies_pause(struct client_copies *copies);

/* Ends them; done: the call has been done, and what came down beside its matrix is written. Returns
 * whether it has not, and results have been written in part: see client_copies_recover(). */
bool client_copies_end(struct client_copies *copies, bool done);

/* Has the original compute what is missing of the results. Returns false if that fails: they are
 * undefined then. */
bool client_copies_recover(const struct client_copies *copies, const struct gpu_host *host);

/* Frees what client_copies_begin() has returned. */
void client_copies_free(struct client_copies *copies);

#endif
