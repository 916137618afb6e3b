/*
 * The admission policy of the device cache: an input that calls have read twice, by address, shape
 * and triangle (accel_span.triangle), is digested and inserted. A wrong hint costs time and nothing
 * else: what is on the device is known by its content (device_cache.h). One whose pages are
 * watched for writes (dirty_tracking.h) needs no digest any more. Thread-safe.
 */
#ifndef ACCEL_ADMISSION_H
#define ACCEL_ADMISSION_H

#include "gpu/pack/tiles.h"
#include "call/call.h"

enum admission {
    ADMIT_NONE,   /* nothing is known of it, or it changes too often: it goes up as ever */
    ADMIT_INSERT, /* it has been seen: digest it on its way up, and cache it */
    ADMIT_LOOKUP  /* it has been cached: digest it, and look for it on the device */
};

/* Notes that a call on the device reads an operand, a matrix, and returns how to bring it there. */
enum admission admission_see(const struct accel_span *x);

/* The same in a process whose device another one owns. *first: it has not been seen before. */
enum admission admission_see_served(const struct accel_span *x, bool *first);

/* The same of one that other processes may have brought, in a matrix of the same shape: it is
 * looked for the first time, too. */
enum admission admission_see_shared(const struct accel_span *x);

/* Returns whether a result is worth a digest on its way down, to be cached: not for a while, if
 * results have been cached and not been read by later calls. */
bool admission_want_results(void);

/* Notes that a call writes an operand, as its result. Returns whether what it had is cached, under
 * *old. */
bool admission_write(const struct accel_span *x, struct gpu_key *old);

/* Note that it is cached, under this key: an input, digested as one chunk; a result, which came
 * down in these tiles. */
void admission_cached(const struct accel_span *x, const struct gpu_key *key);
void admission_cached_result(const struct accel_span *x, const struct gpu_key *key,
                             struct gpu_tiles tiles);

/* Returns whether it is cached, as far as is known; *key: under which key. */
bool admission_digest(const struct accel_span *x, struct gpu_key *key);

/* Returns by which tiles a digest of it is to be compared with what is cached, none if nothing is:
 * see struct gpu_tiles. */
struct gpu_tiles admission_tiles(const struct accel_span *x);

/* Returns whether what a call has written is cached of it, under *key; not if it has changed of
 * late. */
bool admission_expect_result(const struct accel_span *x, struct gpu_key *key);

/* Notes whether its contents were on the device, after ADMIT_LOOKUP. If they were not, returns
 * ADMIT_INSERT the first time; if that happens often, ADMIT_NONE, and it is not digested for a
 * while. */
enum admission admission_looked(const struct accel_span *x, bool found);

/* Returns whether the next call would look for it, and had better find it: it has not changed since
 * it was cached, as far as is known, or its watch is validated. *key: what it was cached under. */
bool admission_expect(const struct accel_span *x, struct gpu_key *key);

/* How an operand is watched. */
struct admission_watch {
    uint64_t watch; /* 0: it is not */
    /* It had contents `key`, and at its edges `edges`, when it was digested behind the watch's
     * begin */
    bool validated;
    struct gpu_key key;
    struct gpu_edges edges;
    bool scanned;         /* by a call of LAPACK, when it was validated: */
    struct gpu_scan seen; /* in those contents */
};

/* Returns how it is watched; *may: whether it may be, if it is not. */
struct admission_watch admission_watch(const struct accel_span *x, bool *may);

/* Looks for a larger operand that has this one as a part, and whose watch is validated:
 * *larger. *row, *col: the part's first element in it. Returns a watch of 0 if there is none. */
struct admission_watch admission_around(const struct accel_span *x, struct accel_span *larger,
                                        int64_t *row, int64_t *col);

/* Notes that it is watched, or that its watch has been validated since. Ends the watch if the
 * operand is not known any more, or has another. */
void admission_watched(const struct accel_span *x, const struct admission_watch *w);

/* Notes that the watch has shown it unchanged; or that it has been written to, which ends the
 * watch. Where writes are not much rarer than reuses, it is not watched again: to protect its
 * pages, and the faults of those who write to them, cost more than digests. */
void admission_unchanged(const struct accel_span *x, uint64_t watch);
void admission_written(const struct accel_span *x, uint64_t watch);

/* Notes that contents have been evicted from the device: watches of operands that have them end. */
void admission_evicted(const struct gpu_key *key);

/* What calls do that run on the CPU, and would have run faster on a device if an operand had been
 * there: by what they have missed so, since the step before. */
enum admission_step {
    ADMISSION_WAIT,
    ADMISSION_PROTECT, /* as much as it costs to begin a watch: admission_watched(), or
                          admission_not_watched(), comes next */
    ADMISSION_VALIDATE /* as much as it costs to bring the operand: if the watch has shown it
                          unchanged since it began, it is worth that */
};

/* Notes that a call has missed gain_ms, and returns what to do. The first call that sees the
 * operand has missed nothing. upload_ms, protect_ms: the costs; an operand whose watches have ended
 * early must have missed more and more. *watch: its watch, 0 if it has none. */
enum admission_step admission_miss(const struct accel_span *x, double gain_ms, double protect_ms,
                                   double upload_ms, uint64_t *watch);

/* Notes that it cannot be watched now. */
void admission_not_watched(const struct accel_span *x);

/* Notes that a call is about to bring it: what was missed before does not count any more. */
void admission_prefetch(const struct accel_span *x);

/* Returns whether an operand is known to be unchanged by a validated watch. Cheap. */
bool admission_any_validated(void);

/* Forgets all operands that begin in memory which is about to be unmapped: whoever has those
 * addresses next is somebody else. Ends their watches. */
void admission_forget(const void *from, int64_t bytes);

/* For forks, and for tests: forgets all operands. Ends no watch. No other thread may be at it. */
void admission_reset(void);

#endif
