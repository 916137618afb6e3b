#include "pack.h"

#include <string.h>

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- Pieces ---- */

bool pack_next(struct pack_piece *piece, const struct lane_rectangle *r, int64_t packed_ld,
               int64_t slot_bytes)
{
    int64_t fit = slot_bytes / r->size; /* elements */
    bool first = piece->cols == 0;
    bool in_column = piece->cols == 1 && piece->row + piece->rows < r->rows;
    if (r->rows <= 0 || r->cols <= 0)
        return false;
    int64_t left = first ? r->cols : r->backwards ? piece->col : r->cols - piece->col - piece->cols;
    if (in_column) {
        piece->row += piece->rows;
        piece->rows = least(fit, r->rows - piece->row);
        return true;
    }
    if (left == 0)
        return false;
    int64_t cols = packed_ld <= fit ? least(fit / packed_ld, left) : 1;
    piece->col = r->backwards ? left - cols : r->cols - left;
    piece->cols = cols;
    piece->row = 0;
    piece->rows = packed_ld <= fit ? r->rows : least(fit, r->rows);
    return true;
}

int64_t pack_bytes(const struct pack_piece *piece, const struct lane_rectangle *r,
                   int64_t packed_ld)
{
    return ((piece->cols - 1) * packed_ld + piece->rows) * r->size;
}

int64_t pack_offset(const struct pack_piece *piece, const struct lane_rectangle *r,
                    int64_t packed_ld)
{
    return (piece->col * packed_ld + piece->row) * r->size;
}

static char *host_of(const struct lane_rectangle *r, const struct pack_piece *piece, int64_t col)
{
    return r->host + ((piece->col + col) * r->ld + piece->row) * r->size;
}

/* ---- Runs ---- */

/* Up to this, copies without libc, whose call for a short column or an element of a strided vector costs ten times the copy. */
#define SHORT_BYTES 512

#define MOVE(bytes, to, from)                                                                      \
    do {                                                                                           \
        char moved[bytes];                                                                         \
        memcpy(moved, from, bytes);                                                                \
        memcpy(to, moved, bytes);                                                                  \
    } while (0)

/* The last block ends where the run does, so it may overlap the one before it. */
static inline void copy_run(char *to, const char *from, int64_t bytes)
{
    if (bytes > SHORT_BYTES) {
        memcpy(to, from, (size_t)bytes);
    } else if (bytes >= 16) {
        int64_t last = bytes - 16;
        for (int64_t i = 0; i < last; i += 16)
            MOVE(16, to + i, from + i);
        MOVE(16, to + last, from + last);
    } else if (bytes >= 8) {
        MOVE(8, to, from);
        MOVE(8, to + bytes - 8, from + bytes - 8);
    } else if (bytes >= 4) {
        MOVE(4, to, from);
        MOVE(4, to + bytes - 4, from + bytes - 4);
    } else if (bytes >= 2) {
        MOVE(2, to, from);
    }
}

static inline void clear_run(char *to, int64_t bytes)
{
    static const char zeros[16];
    if (bytes > SHORT_BYTES) {
        memset(to, 0, (size_t)bytes);
        return;
    }
    for (int64_t i = 0; i + 16 <= bytes; i += 16)
        MOVE(16, to + i, zeros);
    if (bytes >= 16)
        MOVE(16, to + bytes - 16, zeros);
    else
        for (int64_t i = 0; i < bytes; i += 2) /* the smallest type */
            MOVE(2, to + i, zeros);
}

/* Copies n elements that stand `to_step` and `from_step` bytes apart. */
static void copy_elements(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                          int64_t size)
{
#define ELEMENTS(bytes)                                                                            \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            MOVE(bytes, to + i * to_step, from + i * from_step);                                   \
        break;
    switch (size) {
        ELEMENTS(2)
        ELEMENTS(4)
        ELEMENTS(8)
        ELEMENTS(16)
    }
#undef ELEMENTS
}

static void copy_columns(char *to, int64_t to_ld, const char *from, int64_t from_ld,
                         const struct pack_piece *piece, int64_t size)
{
    if (piece->rows == to_ld && piece->rows == from_ld) {
        memcpy(to, from, (size_t)(piece->cols * piece->rows * size));
    } else if (piece->rows == 1) {
        copy_elements(to, to_ld * size, from, from_ld * size, piece->cols, size);
    } else {
        for (int64_t col = 0; col < piece->cols; col++)
            copy_run(to + col * to_ld * size, from + col * from_ld * size, piece->rows * size);
    }
}

/* ---- Triangles ---- */

/* Rows of a piece, of one column, that belong to the triangle. */
struct rows {
    int64_t first, last;
};

static int64_t diagonal_of(const struct lane_rectangle *r, const struct pack_piece *piece,
                           int64_t col)
{
    return piece->col + col + r->diagonal - piece->row;
}

static struct rows rows_of(const struct lane_rectangle *r, const struct pack_piece *piece,
                           int64_t col)
{
    int64_t diagonal = diagonal_of(r, piece, col);
    struct rows rows = {0, piece->rows};
    if (r->uplo == 'U' || r->uplo == 'u')
        rows.last = diagonal + (r->uplo == 'U');
    if (r->uplo == 'L' || r->uplo == 'l')
        rows.first = diagonal + (r->uplo == 'l');
    rows.first = rows.first < 0 ? 0 : least(rows.first, piece->rows);
    rows.last = rows.last < rows.first ? rows.first : least(rows.last, piece->rows);
    return rows;
}

static void pack_triangle(char *packed, const struct lane_rectangle *r,
                          const struct pack_piece *piece, int64_t packed_ld)
{
    for (int64_t col = 0; col < piece->cols; col++) {
        const struct rows rows = rows_of(r, piece, col);
        char *to = packed + col * packed_ld * r->size;
        int64_t bytes = (rows.last - rows.first) * r->size;
        clear_run(to, rows.first * r->size);
        copy_run(to + rows.first * r->size, host_of(r, piece, col) + rows.first * r->size, bytes);
        clear_run(to + rows.last * r->size, (piece->rows - rows.last) * r->size);
        int64_t diagonal = diagonal_of(r, piece, col);
        if (r->hermitian && diagonal >= rows.first && diagonal < rows.last)
            clear_run(to + diagonal * r->size + r->size / 2, r->size / 2);
        if (r->scan)
            gpu_scan_numbers(r->scan, to + rows.first * r->size, bytes);
    }
}

/* ---- Both ways ---- */

void pack_from_host(char *packed, const struct lane_rectangle *r, const struct pack_piece *piece,
                    int64_t packed_ld)
{
    if (r->uplo) {
        pack_triangle(packed, r, piece, packed_ld);
        return;
    }
    copy_columns(packed, packed_ld, host_of(r, piece, 0), r->ld, piece, r->size);
    if (!r->scan)
        return;
    if (piece->rows == packed_ld)
        gpu_scan_numbers(r->scan, packed, piece->cols * piece->rows * r->size);
    else
        for (int64_t col = 0; col < piece->cols; col++)
            gpu_scan_numbers(r->scan, packed + col * packed_ld * r->size, piece->rows * r->size);
}

void pack_to_host(const struct lane_rectangle *r, const struct pack_piece *piece,
                  const char *packed, int64_t packed_ld)
{
    if (!r->uplo) {
        copy_columns(host_of(r, piece, 0), r->ld, packed, packed_ld, piece, r->size);
        return;
    }
    for (int64_t col = 0; col < piece->cols; col++) {
        const struct rows rows = rows_of(r, piece, col);
        copy_run(host_of(r, piece, col) + rows.first * r->size,
                 packed + (col * packed_ld + rows.first) * r->size,
                 (rows.last - rows.first) * r->size);
    }
}
