/*
 * What a process that owns GPUs (`accel serve`) and its clients tell each other. Both have the same
 * build: the first message on the socket says so, and there is no other version to be known.
 *
 * A connection is a lane: one call at a time, of one thread. The server's answer to the first
 * message carries a memfd, sealed against shrinking and growing. It begins with a struct wire_lane.
 * From WIRE_AREA on it has small operands, which the client packs there before the call and fetches
 * from there after it; through the ring from WIRE_RING on, the matrices of larger calls go in
 * chunks, which the client packs and unpacks under way, when the server's pipeline asks it to. The
 * two take turns (turns.h). The client may change all of the lane at any time: the server copies a
 * request before it looks at it, and believes nothing else there.
 */
#ifndef ACCEL_WIRE_H
#define ACCEL_WIRE_H

#include "call/call.h"
#include "gpu/device/gpu.h"
#include "gpu/pack/packer.h"
#include "turns.h"

/* WIRE_ASKS in place of WIRE_MAGIC: who connects asks for a struct wire_state, and no lane. */
enum {
    WIRE_MAGIC = 0x61636301,
    WIRE_ASKS,
    WIRE_CLIENTS_MOST = 256,
    WIRE_DEVICES_MOST = 16,
    WIRE_RING = 1 << 16,
    WIRE_AREA = WIRE_RING + PACKER_BYTES,
    WIRE_ALIGN = 256
};

struct wire_hello {
    uint32_t magic;
    uint32_t layout; /* sizeof(struct wire_lane) */
    char build[64];  /* version and commit */
};

struct wire_welcome {
    struct wire_hello server;
    char why[GPU_FAILURE_BYTES]; /* it takes no client: one line; empty: it does */
    bool starting;               /* its device starts: it takes no client yet */
    int64_t area_bytes;          /* for operands */
    int64_t chunked_from; /* bytes of a matrix: such ones and larger ones go through the ring */
    /* Of one of its devices, which are all of a kind; `share`: how many these are, `chosen` means
     * nothing. */
    struct gpu_info info;
};

/* An operand. In the lane's area: packed columns, the elements of a vector one behind the other; of
 * a batch, all matrices likewise, or one that all products share. */
struct wire_operand {
    int64_t at;    /* bytes from WIRE_AREA; a multiple of WIRE_ALIGN; -1: there is none */
    int64_t count; /* matrices; 1, or as many as products */
    /* k + 1: the client packs and unpacks it under way; it is the same matrix as operand k, or
     * operand k itself. 0: it is in the area. */
    uint32_t asked;
};

/* What the server asks the client to do with a part of a chunk (gpu/pack/staged_chunk.h), whose
 * packed form is in the ring. The rectangle is one of the operand, from element (row, col) on. */
struct wire_task {
    int64_t row, col, rows, cols, diagonal;
    int64_t device_ld, chunk_bytes, ld;
    int64_t at; /* bytes from WIRE_RING */
    struct pack_chunk chunk;
    int32_t part, parts;
    int32_t
        ld_more; /* than the operand's leading dimension: 1 of a diagonal, a rectangle of one row */
    uint8_t action, operand;
    uint8_t scans; /* the numbers: their bytes, 4 or 8; 0: it does not */
    char uplo;
    bool hermitian, backwards, trimmed, streamed, digests;
};

/* Tasks of a call, numbered from 0 on; at most COPY_POOL_TASKS are not taken. */
struct wire_copies {
    struct progress news; /* for the client: a task, or the end of the call */
    _Atomic uint32_t posted;
    struct progress done;
    struct wire_task task[COPY_POOL_TASKS];
    struct pack_seen seen[COPY_POOL_TASKS];
};

/* What may be done to find inputs that the device has: gpu_host.digests, .weighs, .caches,
 * .relies. */
enum wire_cache { WIRE_DIGESTS = 1, WIRE_WEIGHS = 2, WIRE_CACHES = 4, WIRE_RELIES = 8 };

/* An input that the client packs under way. To the server, as bits: nobody has written to it since
 * it had this key; it is worth a look; it is worth its way up as a whole; the client has seen it
 * before, and knows how often it changes; the key is that of a larger matrix of which it is a part,
 * which nobody has written to. From the server: it is kept under this key, as the call has found
 * it, or has brought it. */
enum wire_input_bits {
    WIRE_KNOWN = 1,
    WIRE_LOOK = 2,
    WIRE_BRING = 4,
    WIRE_SEEN = 8,
    WIRE_PART = 16
};
enum wire_input_kept { WIRE_NOT_KEPT, WIRE_FOUND, WIRE_BROUGHT };
struct wire_input {
    struct gpu_key key;
    double largest; /* struct gpu_scan, if it was scanned */
    uint8_t state;  /* enum wire_input_bits, or enum wire_input_kept */
    uint8_t scanned, finite;
    char triangle;
    /* Of a part: the larger matrix, and where the part begins */
    int64_t larger_rows, larger_cols, row, col;
};

struct wire_request {
    uint32_t routine; /* its place in accel_routines[] */
    uint32_t precision;
    uint32_t cache;                  /* enum wire_cache, as bits */
    uint32_t prefetches;             /* gpu_host.prefetches */
    double alone_ms;                 /* that it is estimated to take alone there; 0: not known */
    int64_t batch;                   /* products; 1 in a routine without a batch */
    struct blas_arguments arguments; /* the server reads no address in it */
    struct wire_operand operand[ACCEL_SPANS];
    struct wire_input input[ACCEL_SPANS];
};

struct wire_reply {
    uint32_t status; /* enum gpu_status */
    uint32_t precision;
    uint32_t blame;
    int32_t index; /* of the device that has done it (gpu_info.index) */
    int64_t up_bytes, down_bytes, cached_bytes;
    bool set_up;
    struct wire_input input[ACCEL_SPANS]; /* those that are kept */
    char failure[GPU_FAILURE_BYTES];
};

/* How busy the devices are, for the client's decisions: for a call of WIRE_LARGE_BYTES and more
 * [1], and for a smaller one. The client bounds what it reads. */
struct wire_load {
    struct {
        _Atomic uint32_t wait_us; /* until it has a place */
        _Atomic uint32_t beside;  /* calls that run there then */
    } call[2];
    /* Of the time that calls would have taken alone, by their clients' estimates, they have taken
     * this of late: 100 and more */
    _Atomic uint32_t slower_percent;
};

/* What the server keeps of the user's inputs: the first words of their keys. It looks after this at
 * the end of a call, and some times each second. A client that reads it meanwhile may take one for
 * kept that has gone, or not know of one. */
enum { WIRE_KEPT_MOST = 256 };
struct wire_kept {
    _Atomic uint32_t count;
    _Atomic uint64_t word[WIRE_KEPT_MOST];
};

struct wire_lane {
    struct turns turns;
    _Atomic uint32_t beats; /* the server's, some each second as long as it lives */
    /* The client uses the area; the server gives back the area's memory. Each sets its own, then
     * looks at the other one's. */
    _Atomic uint32_t uses, frees;
    struct wire_load load;
    struct wire_request request;
    struct wire_reply reply;
    struct wire_copies copies;
    struct wire_kept kept;
};
_Static_assert(sizeof(struct wire_lane) <= WIRE_RING, "the ring comes behind the lane");

/* What a server has done so far. Times in milliseconds, since it or the client came. */
struct wire_served {
    int64_t calls, refused; /* done; not done, by whatever status */
    int64_t up_bytes, down_bytes;
    double busy_ms;   /* that calls have taken, one beside the other */
    double waited_ms; /* of that, for a place on the device */
};

/* What a client's call does. */
enum wire_doing { WIRE_NOTHING, WIRE_WAITS, WIRE_RUNS };

struct wire_state {
    struct wire_hello server;
    int32_t pid, clients; /* how many rows there are */
    double up_ms;
    char gpu[64];
    int32_t users;                        /* that have lanes */
    int32_t waiting_small, waiting_large; /* calls that have no place on the device yet */
    int32_t running;                      /* calls that have one */
    int64_t device_bytes, cached_bytes;   /* device memory that calls have left there, or have; kept
                                             inputs in it */
    int32_t devices;                      /* how many rows there are */
    struct wire_device {
        int32_t index, running, processes; /* gpu_info.index; calls; that have their calls there */
        bool has_failed;
        int64_t device_bytes, cached_bytes;
    } device[WIRE_DEVICES_MOST];
    /* Root, and who has the server's account, are told of all clients; others of their own. */
    struct wire_served all; /* of those, too, that have left */
    struct wire_client {
        int32_t pid, doing; /* enum wire_doing */
        uint32_t uid;
        double up_ms;
        struct wire_served served;
    } client[WIRE_CLIENTS_MOST];
};

/* Fills in what this build says of itself. */
void wire_hello(struct wire_hello *hello);

/* Whether that is another build than this one. */
bool wire_is_other(const struct wire_hello *hello);

/* Whether what is decided by one device is right for another, too: both have one name, and their
 * memory differs by 1 % at most. */
bool wire_is_of_kind(const struct gpu_info *one, const struct gpu_info *other);

/* Bounds each wait for a connection, and for a message on it. */
void wire_limit(int socket);

/* Says whose the other end of a connection is (SO_PEERCRED): of a client's, who listens there.
 * Returns false if the kernel does not say, or not exactly. */
bool wire_peer(int socket, uint32_t *uid, int *pid);

/* Whether who listens there is of this user, or of root: a server of others gets no program's data.
 * Of a socket that root has made, and listens at, this is root, whatever account the server has. */
bool wire_trusts(int socket);

/* Whether the other end has closed the connection. After the first messages, nobody sends any. */
bool wire_is_closed(int socket);

/* Whether an operand, a matrix, may be packed and unpacked under way: of Level 3 or LAPACK, or one
 * that a call of Level 2 only reads. */
bool wire_may_ask(const struct accel_call *call, const struct accel_span *x);

/* Returns the bytes of one of an operand's matrices in the area. 0: none. */
int64_t wire_bytes(const struct accel_span *x);

/* Returns how many matrices of an operand a call has there. */
int64_t wire_matrices(const struct accel_call *call, const struct accel_span *x);

/* Whether a call's operands have so many bytes, or more: not all places on a device are for it. */
#define WIRE_LARGE_BYTES ((int64_t)1 << 20)
bool wire_is_large(const struct accel_call *call);

/* Returns what a server tells of its load, as far as it can be so. */
struct gpu_load wire_load_of(struct wire_load *told, bool large);

#endif
