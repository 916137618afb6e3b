/*
 * A result that is cached on the device for later calls (device_cache.h): one matrix there of
 * leading dimension gpu_device_ld(), with zeros beside a triangle. If it comes down in tiles, or
 * the kernels leave something else beside its triangle, what is finished is copied to such a
 * matrix.
 */
#ifndef ACCEL_RESULT_CAPTURE_H
#define ACCEL_RESULT_CAPTURE_H

#include "device_cache.h"

struct result_capture {
    struct accel_span x; /* its triangle is the one that comes down */
    struct host_rectangle all;
    struct cached_operand cached; /* digests: it is to be cached */
    struct gpu_tiles tiles;       /* in which it comes down; 0: as one chunk */
    gpu_address memory;
    bool gathers;         /* finished tiles are to be copied there */
    gpu_address packed;   /* room for the triangle of a tile on the diagonal */
    struct gpu_key *tile; /* digests of tiles */
};

/* Begins a result x, of which a triangle may be all that comes down (uplo, else 0). tiles: in which
 * it comes down. there: where all of it will be as one matrix when it is finished; 0: nowhere.
 * Without memory to spare it is not cached. */
enum gpu_status result_capture_begin(struct result_capture *capture, struct gpu_work *work,
                                     const struct accel_span *x, char uplo, struct gpu_tiles tiles,
                                     gpu_address there);

/* Returns what gets the digest of the tile that begins with an element (row, col); NULL: nothing
 * does. */
struct gpu_key *result_capture_digest(struct result_capture *capture, int64_t row, int64_t col);

/* Copies a finished tile, in stream order, if it is to be copied. */
enum gpu_status result_capture_add(const struct result_capture *capture, struct gpu_work *work,
                                   int64_t row, int64_t col, struct dmat from);

/* Caches the result, all of which has come down. A failure to do so is the device's, and
 * the next call's. */
void result_capture_insert(struct result_capture *capture, struct gpu_work *work);

/* Ends a result that was begun, or is all zeros. */
void result_capture_end(struct result_capture *capture);

#endif
