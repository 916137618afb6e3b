/*
 * The server's part of a call's copies (gpu/remote/wire.h): a packer whose tasks a client does, in
 * memory of its own, through the lane's ring. Nothing that the client writes there is believed.
 */
#ifndef ACCEL_SERVED_COPIES_H
#define ACCEL_SERVED_COPIES_H

#include "gpu/remote/wire.h"

struct served_copies {
    struct packer packer;      /* `pinned` stays from one call to the next */
    struct gpu_device *device; /* by which it was pinned; NULL: by none yet */
    int number;                /* of the device where the call runs */
    struct wire_lane *lane;
    int socket; /* tells whether the client is there */
    const struct accel_call *call;
    uint64_t user;
    double heard_ms;  /* when it last did something */
    double waited_ms; /* for it, in this call */
    double most_ms;
    int64_t used_bytes; /* of the area, since its memory was given back */
    bool used_ring;
};

/* Returns the address that stands for operand number i of a user's call, a matrix; NULL: there are
 * none. The same ones serve all clients of a user. */
char *served_copies_address(int i, uint64_t user);

/* The bytes that an operand may have there. */
#define SERVED_COPIES_MOST ((int64_t)1 << 39)

/* Notes how much of the lane's area a call uses. */
void served_copies_note(struct served_copies *copies, int64_t area_bytes);

/* Says where the call runs: on device number `number` of several. Its operands then have addresses
 * of that one: what the device cache remembers of an operand is of one device. */
void served_copies_go_to(struct served_copies *copies, struct gpu_device *device, int number,
                         struct accel_call *call);

/* Whether a device that has failed may still copy there: no other call may use the memory, and
 * nobody free it. */
bool served_copies_are_lost(const struct served_copies *copies);

/* Gives back the memory of a lane whose client has made no call for a while. */
void served_copies_rest(struct served_copies *copies, int64_t area_bytes);

/* Ends what its memory is pinned for. */
void served_copies_unpin(struct served_copies *copies);

/* Matrices of so many bytes and more are copied under way. Call it before there are clients. */
void served_copies_set_least(int64_t bytes);
int64_t served_copies_least(void);

void served_copies_init(struct served_copies *copies, struct wire_lane *lane, int socket);

/* Makes them ready for the next call. */
void served_copies_begin(struct served_copies *copies, const struct accel_call *call,
                         uint64_t user);

#endif
