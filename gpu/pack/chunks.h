/*
 * How copies through pinned buffers are divided into chunks, and what of a triangle crosses the
 * link. Pure functions.
 *
 * A trimmed triangle (struct host_rectangle) goes in chunks of whole columns. A chunk leaves out
 * the rows that none of its columns has, so it is a 2D copy. With P equal chunks, the half of the
 * square crosses the link, and 1 / (2 P) of it besides.
 */
#ifndef ACCEL_CHUNKS_H
#define ACCEL_CHUNKS_H

#include "call/call.h"
#include "pack.h"

/* An address in device memory, wide enough for every kind of device. */
typedef unsigned long long gpu_address;

/* Eight threads of an H100's host pack and send chunks of 1 MB at 40 to 46 GB/s, of 2 MB at 49.8,
 * of 4 MB at 50.3, where the link has 55 (docs/measurements: staged_up_8_threads). */
#define PINNED_BUFFER_BYTES (4 << 20)

/* Into how many chunks a copy is divided; a chunk that would be larger than a buffer is divided
 * further. While one chunk of a matrix is sent, threads pack the next ones. More chunks of a
 * triangle leave out more of the square around it. Chunks of a tile overlap with those of the next
 * tile; the calling thread takes as long for a chunk as the link for 300 KB, so a tile has few. */
enum { CHUNKS_OF_MATRIX = 32, CHUNKS_OF_TILE = 2, CHUNKS_OF_TRIANGLE = 16 };

/* Returns the bytes of a chunk, if a copy has so many of them and each is at least `least`. A
 * column that fits a buffer is not divided. Chunks of a triangle begin with whole 64-byte lines, if
 * so many columns fit a buffer. */
int64_t chunks_bytes(const struct host_rectangle *r, int64_t device_ld, int chunks, int64_t least);

/* The same of copies that are digested, and of trimmed ones: neither other threads nor the device
 * change their chunks. matrix: those of a whole operand; tile: those of a schedule
 * (gpu_copies). */
int64_t chunks_of_matrix(const struct host_rectangle *r, int64_t device_ld);
int64_t chunks_of_tile(const struct host_rectangle *r, int64_t device_ld);

/* Returns whether a triangle of so many rows and columns is to be trimmed. Others are so small that
 * more and shorter copies gain nothing, or have columns that do not fit a buffer. */
bool chunks_trim(int64_t rows, int64_t cols, int64_t size);

/* Return the bytes that cross the link, without what lies between columns: of a whole operand,
 * trimmed or not; of a tile of a schedule; of a tile on a triangle's
 * diagonal, trimmed if it is to be. */
int64_t chunks_matrix_sent(const struct host_rectangle *r, int64_t device_ld);
int64_t chunks_tile_sent(const struct host_rectangle *r, int64_t device_ld);
int64_t chunks_triangle_sent(int64_t order, int64_t size);

/* Returns the leading dimension of a copy on the device: whole 64-byte lines, except for columns
 * shorter than one. */
int64_t gpu_device_ld(int64_t rows, enum accel_dtype dtype);

/* Returns whether a column fits a buffer: then a download writes whole columns only. */
bool pack_column_fits(int64_t device_ld, int64_t size);

#endif
