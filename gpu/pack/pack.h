/*
 * Packs chunks of the program's matrices into memory in which they travel, and unpacks them. Knows
 * nothing of CUDA.
 */
#ifndef ACCEL_PACK_H
#define ACCEL_PACK_H

#include <stddef.h>

#include "digest.h"
#include "scan.h"

struct packer;

/* A rectangle of the caller's host memory, column-major. */
struct host_rectangle {
    char *host;
    const char *name;       /* the operand's, for who looks at the copy; or NULL */
    int64_t rows, cols, ld; /* elements; ld may be negative where there is one row */
    int64_t size;           /* bytes of one */
    /* 0: all of it; U, L: a triangle alone; u, l: without its diagonal. Packing puts zeros beside
     * it. */
    char uplo;
    bool hermitian; /* packing makes zeros of the imaginary parts of the triangle's diagonal */
    struct gpu_scan *scan; /* looks at the numbers that are packed, or NULL */
    /* Gets the digest of a whole rectangle, or of its triangle, as it is packed; or NULL */
    struct gpu_key *digest;
    /* Of a batch: the columns of each matrix, 0: there is one. Packed, they are one behind the
     * other; in host memory they begin `stride` elements apart, or at every step-th pointer of
     * `array`. */
    int64_t each, stride, step;
    void *const *array;
    int64_t diagonal; /* the row of the triangle's diagonal in the first column */
    bool backwards;   /* the chunks begin with the last column */
    /* Of a triangle, chunks have the rows alone that one of their columns has: what is beside them
     * on the device stays. A column fits a chunk. */
    bool trimmed;
    bool streamed;         /* unpacking writes past the caches, which do not hold so much */
    struct packer *packer; /* who packs and unpacks it (packer.h); NULL: this process */
};

/* Returns a whole rectangle that no scan looks at. */
static inline struct host_rectangle host_whole(void *host, int64_t rows, int64_t cols, int64_t ld,
                                               int64_t size)
{
    return (struct host_rectangle){
        .host = host, .rows = rows, .cols = cols, .ld = ld, .size = size};
}

/* A part of a rectangle that fits a pinned buffer: some whole columns, or a part of one that is
 * longer than a buffer. Packed, a column begins packed_ld elements after the one before it, so a
 * chunk is one run of bytes. */
struct pack_chunk {
    int64_t col, cols, row, rows;
};

/* Return the number of chunks of at most chunk_bytes, and one of them; the last ones end where the
 * rectangle does, or begin it if they go backwards. packed_ld >= rows. */
int64_t pack_count(const struct host_rectangle *r, int64_t packed_ld, int64_t chunk_bytes);
struct pack_chunk pack_chunk(const struct host_rectangle *r, int64_t packed_ld, int64_t chunk_bytes,
                             int64_t number);

/* Returns whether it is a lower triangle, with its diagonal or without. */
static inline bool pack_is_lower(const struct host_rectangle *r)
{
    return r->uplo == 'L' || r->uplo == 'l';
}

/* Returns whether nothing of the chunk's columns is left to other chunks behind it. */
static inline bool pack_ends_columns(const struct host_rectangle *r, const struct pack_chunk *chunk)
{
    return r->trimmed || chunk->row + chunk->rows == r->rows;
}

/* Returns the place of a chunk's first element in host memory. */
static inline char *pack_host(const struct host_rectangle *r, const struct pack_chunk *chunk)
{
    return r->host + (chunk->col * r->ld + chunk->row) * r->size;
}

/* Returns whether the kernel has not given the pages of a chunk yet, as its first element tells:
 * threads that write to one huge page would each have the kernel clear one. False of a batch. errno
 * stays. */
bool pack_is_fresh(const struct host_rectangle *r, const struct pack_chunk *chunk);

/* Returns the leading dimension of a chunk in its buffer, if it is device_ld on the device: a
 * trimmed one's is that of its own rows. */
int64_t pack_buffer_ld(const struct host_rectangle *r, const struct pack_chunk *chunk,
                       int64_t device_ld);

/* Returns the leading dimension of a packed copy on the device, of elements of `size` bytes: whole
 * 64-byte lines, except for columns that are shorter than one. */
int64_t pack_ld(int64_t rows, int64_t size);

/* Returns the bytes of a packed copy on the device; across: it is stored transposed. */
static inline int64_t pack_copy_bytes(int64_t rows, int64_t cols, int64_t size, bool across)
{
    return across ? pack_ld(cols, size) * rows * size : pack_ld(rows, size) * cols * size;
}

/* Return the bytes of a packed chunk, from its first to its last, and the bytes before it in the
 * packed rectangle. */
int64_t pack_bytes(const struct pack_chunk *chunk, const struct host_rectangle *r,
                   int64_t packed_ld);
int64_t pack_offset(const struct pack_chunk *chunk, const struct host_rectangle *r,
                    int64_t packed_ld);

/* A chunk is packed in parts, by several threads: each has some whole columns, or a part of one,
 * and so many bytes. Return the most parts that a chunk has, and one of them, which has no columns
 * where the chunk has fewer; and the bytes before it in the packed chunk, whose columns are
 * buffer_ld apart there. They depend on the shape alone. */
enum { PACK_PART_BYTES = 256 << 10 };
int64_t pack_parts(const struct host_rectangle *r, int64_t packed_ld, int64_t chunk_bytes);
struct pack_chunk pack_part(const struct host_rectangle *r, int64_t packed_ld, int64_t chunk_bytes,
                            const struct pack_chunk *chunk, int64_t number);
int64_t pack_part_offset(const struct host_rectangle *r, const struct pack_chunk *chunk,
                         const struct pack_chunk *part, int64_t buffer_ld);

/* Returns the rows [first, last) of a chunk's column that belong to the triangle, if there is
 * one. */
struct pack_rows {
    int64_t first, last;
};
struct pack_rows pack_rows_of(const struct host_rectangle *r, const struct pack_chunk *chunk,
                              int64_t col);

/* Returns the digest of a chunk that begins at `first`, whose columns begin `ld` elements apart; of
 * a triangle, of what is stored of it. */
struct gpu_key pack_digest(const struct host_rectangle *r, const struct pack_chunk *chunk,
                           const char *first, int64_t ld);

/* Copy a chunk from host memory to `packed`, and back. The host memory may be aligned in any way.
 * pack_to_host() writes only elements of the triangle, if there is one. */
void pack_from_host(char *packed, const struct host_rectangle *r, const struct pack_chunk *chunk,
                    int64_t packed_ld);
void pack_to_host(const struct host_rectangle *r, const struct pack_chunk *chunk,
                  const char *packed, int64_t packed_ld);

#endif
