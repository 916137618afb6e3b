/*
 * Whole matrices in host memory: digested as a device's copies would digest them, and unpacked. The
 * copy pool (base/thread/copy_pool.h) helps.
 */
#ifndef ACCEL_PACK_MATRIX_H
#define ACCEL_PACK_MATRIX_H

#include "tiles.h"
#include "pack.h"

/* Returns the bytes of the packed form, from the first element to the last. */
int64_t pack_matrix_bytes(const struct host_rectangle *r, int64_t packed_ld);

/* Returns the digest that a device's upload gives for a whole rectangle with these elements, or for
 * its triangle: from->digest. Reads them once, or with from->scan, which wants them aligned,
 * twice. A packer reads its own. */
struct gpu_key pack_matrix_digest(const struct host_rectangle *from, int64_t device_ld);

/* The same for a matrix that has come down in tiles, each digested by the device's pipeline
 * (tile_copy.host.digest, 0 at first): their digests, by their numbers, joined to tiles_shape(). */
struct gpu_key pack_matrix_digest_tiles(const struct host_rectangle *from,
                                        const struct gpu_tiles *tiles);

/* Writes a rectangle's packed form, a triangle's with zeros beside it. */
void pack_matrix_pack(void *packed, const struct host_rectangle *from, int64_t packed_ld);

/* Writes a rectangle from its packed form in host memory. */
void pack_matrix_unpack(const struct host_rectangle *to, const void *packed, int64_t packed_ld);

#endif
