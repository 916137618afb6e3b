/*
 * Rectangles of the program's matrices, and packed memory in which they travel: pieces of them, packed and unpacked. Knows
 * nothing of CUDA.
 */
#ifndef ACCEL_PACK_H
#define ACCEL_PACK_H

#include <stddef.h>

#include "scan.h"

/* A rectangle of the caller's host memory, column-major. */
struct lane_rectangle {
    char *host;
    int64_t rows, cols, ld; /* elements; ld may be negative where there is one row */
    int64_t size;           /* bytes of one */
    /* A triangle alone: U, L; u, l: without its diagonal. Packing puts zeros beside it. 0: all. */
    char uplo;
    bool hermitian; /* packing makes zeros of the imaginary parts of the triangle's diagonal */
    struct gpu_scan *scan; /* looks at the numbers that are packed; NULL: none does */
    int64_t diagonal;      /* the row of the triangle's diagonal in the first column */
    bool backwards;        /* the pieces come from the last column on */
};

/* All of it, not looked at. */
static inline struct lane_rectangle lane_whole(void *host, int64_t rows, int64_t cols, int64_t ld,
                                               int64_t size)
{
    return (struct lane_rectangle){host, rows, cols, ld, size, 0, false, NULL, 0, false};
}

/* A rectangle goes in pieces that fit a slot: some whole columns, or a part of one that is longer than a slot. Packed,
 * a column begins packed_ld elements after the one before it, so a piece is one run of bytes. */
struct pack_piece {
    int64_t col, cols, row, rows;
};

/* The piece after this one, which is all zeros before the first. False where there is none. packed_ld >= rows. */
bool pack_next(struct pack_piece *piece, const struct lane_rectangle *r, int64_t packed_ld,
               int64_t slot_bytes);

/* Bytes from the first to the last of a piece, packed, and those before it where the whole rectangle is packed. */
int64_t pack_bytes(const struct pack_piece *piece, const struct lane_rectangle *r,
                   int64_t packed_ld);
int64_t pack_offset(const struct pack_piece *piece, const struct lane_rectangle *r,
                    int64_t packed_ld);

/* A piece from host memory to `packed`, and back. The host memory may be aligned in any way; back, only the elements
 * that are meant are written. */
void pack_from_host(char *packed, const struct lane_rectangle *r, const struct pack_piece *piece,
                    int64_t packed_ld);
void pack_to_host(const struct lane_rectangle *r, const struct pack_piece *piece,
                  const char *packed, int64_t packed_ld);

#endif
