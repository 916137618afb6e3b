/*
 * The device cache: inputs and results in device memory from one call to the next. They are known
 * by their content: before a copy on the device takes the place of an upload, the program's memory
 * is read and digested in the same call, so whoever has written to it, by whatever way, is noticed.
 * The key of a cached copy is the digest of the very bytes that went up, or came down
 * (host_rectangle.digest). See admission.h for what is cached.
 *
 * One that a digest has found unchanged is no longer read, where the kernel shows that nobody has
 * written to its pages (dirty_tracking.h): they are write-protected before that digest, which
 * validates the watch. The matrix of a product with a vector is protected before it goes up
 * (prefetch.h).
 */
#ifndef ACCEL_DEVICE_CACHE_H
#define ACCEL_DEVICE_CACHE_H

#include "gpu/device/work.h"

/* An input of a call under way. */
struct cached_operand {
    /* What of it may be cached: see device_cache_part(); or all of it, if that is here */
    struct accel_span part;
    /* `memory` of the operand is a copy from an earlier call, which nobody may write to */
    bool here;
    bool digests;  /* it is to be digested on its way, up or down */
    bool digested; /* it has been: */
    struct gpu_key key;
    uint64_t watch; /* that began before it goes up, and is not validated yet; 0: none */
    bool validated; /* that watch, by what went up: */
    struct gpu_edges edges;
};

/* Returns what may be cached of an operand of Level 2 or 3 that is a matrix in host memory, as one
 * matrix: the triangle, if the call reads no more of it (accel_span.triangle); of a batch, its
 * matrices side by side. ptr is NULL if nothing may. */
struct accel_span device_cache_part(const struct accel_call *call, const struct accel_span *x);

/* Returns the rectangle that goes up of such a part; in device memory, zeros are beside a triangle:
 * see gpu_work_upload(). */
struct host_rectangle device_cache_rectangle(const struct accel_span *part);

/* Returns whether an operand is one that could be cached: a part that the call only reads, not a
 * small one. */
bool device_cache_may(const struct accel_call *call, const struct accel_span *x);

/* The same of a part. Returns whether it has a validated watch: it is probably on the device,
 * and a scan is enough to know. */
bool device_cache_is_validated(const struct gpu_work *work, const struct accel_span *part);

/* Returns whether it is a result that is on the device: unless the program has changed it, a look
 * will find it. */
bool device_cache_is_result(const struct gpu_work *work, const struct accel_span *part);

/* Looks for the part of an operand x on the device, as far as that is worth it, if
 * device_cache_may(). Of a product whose result comes down, one with a validated watch is used by
 * speculation: the scan of its pages is left to device_cache_speculation_holds(), beside the
 * kernels. *memory: where it is, with leading dimension gpu_device_ld(). The host's setting decides
 * whether anything is cached. */
struct cached_operand device_cache_look(struct gpu_work *work, const struct accel_span *x,
                                        const struct accel_span *part, gpu_address *memory);

/* Returns whether a watch shows that nobody has written to an operand since the digest that has
 * validated it: by that digest's edges. */
bool device_cache_is_unchanged(const struct accel_span *x, uint64_t watch,
                               const struct gpu_edges *edges);

/* Returns whether what a look has speculated on (gpu_work.speculation) is unchanged, or nothing
 * was. Call this before a result leaves the call's own memory. */
bool device_cache_speculation_holds(struct gpu_work *work);

/* Returns whether a call that has ended with *status has speculated in vain, and is ready to run
 * again: it is known by now that somebody has written to the matrix. cached_bytes:
 * host->cached_bytes before the call. */
bool device_cache_runs_again(struct gpu_work *work, int64_t cached_bytes, enum gpu_status *status);

/* Caches r->part of an operand, digested, which the call has brought to `memory`. The call's work
 * is done, and it has not failed. */
enum gpu_status device_cache_insert(struct gpu_work *work, gpu_address memory,
                                    const struct cached_operand *r);

/* The same look for an operand of LAPACK, which is watched for writes if the call only reads it.
 * `from` says what of it is meant: all of it, or a triangle; if it is here, from->scan has seen it,
 * or what it saw when the watch was validated counts. */
struct cached_operand device_cache_look_at(struct gpu_work *work, const struct accel_span *x,
                                           const struct host_rectangle *from, gpu_address *memory);

/* A result of a call, of which x->triangle alone comes down, if that is not 0: invalidates what
 * had been cached for its place, all or triangles, whose memory the call may need; begins it; and
 * caches it once the call is done. tiles: in which it was digested on its way down. Its copy on the
 * device is what the program has then. */
void device_cache_invalidate(struct gpu_work *work, const struct accel_span *x);
struct cached_operand device_cache_begin_result(struct gpu_work *work, const struct accel_span *x);
enum gpu_status device_cache_insert_result(struct gpu_work *work, const struct accel_span *x,
                                           gpu_address memory, struct gpu_tiles tiles,
                                           const struct cached_operand *r);

#endif
