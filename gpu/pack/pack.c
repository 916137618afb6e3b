#include "pack.h"

#include <string.h>

#include "base/host/cpu.h"
#include "base/memory/host_memory.h"
#include "call/call.h"

/* ---- Chunks ---- */

int64_t pack_count(const struct host_rectangle *r, int64_t packed_ld, int64_t chunk_bytes)
{
    const int64_t fit = chunk_bytes / r->size; /* elements */
    if (r->rows <= 0 || r->cols <= 0)
        return 0;
    if (packed_ld > fit)
        return r->cols * ((r->rows + fit - 1) / fit);
    return (r->cols + fit / packed_ld - 1) / (fit / packed_ld);
}

/* Leaves out rows that no column has. */
static struct pack_chunk trim_rows(const struct host_rectangle *r, struct pack_chunk chunk)
{
    const int64_t first = chunk.col + r->diagonal, last = first + chunk.cols;
    if (pack_is_lower(r)) {
        chunk.row = first < 0 ? 0 : accel_min(first, r->rows);
        chunk.rows = r->rows - chunk.row;
    } else {
        chunk.rows = last < 0 ? 0 : accel_min(last, r->rows);
    }
    return chunk;
}

struct pack_chunk pack_chunk(const struct host_rectangle *r, int64_t packed_ld, int64_t chunk_bytes,
                             int64_t number)
{
    const int64_t fit = chunk_bytes / r->size;
    const bool whole = packed_ld <= fit; /* columns */
    const int64_t parts = whole ? 1 : (r->rows + fit - 1) / fit, most = whole ? fit / packed_ld : 1;
    const int64_t before = number / parts * most, row = number % parts * fit;
    const int64_t cols = accel_min(most, r->cols - before);
    const struct pack_chunk chunk = {.col = r->backwards ? r->cols - before - cols : before,
                                     .cols = cols,
                                     .row = row,
                                     .rows = whole ? r->rows : accel_min(fit, r->rows - row)};
    return r->trimmed ? trim_rows(r, chunk) : chunk;
}

int64_t pack_ld(int64_t rows, int64_t size)
{
    const int64_t line = 64 / size;
    return rows < line ? rows : (rows + line - 1) / line * line;
}

bool pack_is_fresh(const struct host_rectangle *r, const struct pack_chunk *chunk)
{
    return r->each == 0 && !host_memory_is_there(pack_host(r, chunk));
}

int64_t pack_buffer_ld(const struct host_rectangle *r, const struct pack_chunk *chunk,
                       int64_t device_ld)
{
    return r->trimmed ? accel_min(pack_ld(chunk->rows, r->size), device_ld) : device_ld;
}

int64_t pack_bytes(const struct pack_chunk *chunk, const struct host_rectangle *r,
                   int64_t packed_ld)
{
    return ((chunk->cols - 1) * packed_ld + chunk->rows) * r->size;
}

int64_t pack_offset(const struct pack_chunk *chunk, const struct host_rectangle *r,
                    int64_t packed_ld)
{
    return (chunk->col * packed_ld + chunk->row) * r->size;
}

/* ---- Parts ---- */

static int64_t rounded_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* How a chunk is divided: into `cols` whole columns each, or, 0, each column into `split`. */
struct division {
    int64_t cols, split, rows;
};

static struct division division_of(const struct host_rectangle *r, int64_t packed_ld,
                                   int64_t chunk_bytes)
{
    const int64_t column = accel_min(packed_ld, chunk_bytes / r->size),
                  rows = PACK_PART_BYTES / r->size;
    if (column < 1)
        return (struct division){.cols = 1};
    if (column <= rows) {
        const int64_t most = accel_min(r->cols < 1 ? 1 : r->cols, chunk_bytes / r->size / column),
                      whole = most * column, parts = (whole + rows / 2) / rows;
        return (struct division){.cols = rounded_up(most, parts < 1 ? 1 : parts)};
    }
    return (struct division){.split = rounded_up(column, rows), .rows = rows};
}

int64_t pack_parts(const struct host_rectangle *r, int64_t packed_ld, int64_t chunk_bytes)
{
    const struct division d = division_of(r, packed_ld, chunk_bytes);
    const int64_t fit = chunk_bytes / r->size / packed_ld,
                  cols = fit < 1 ? 1 : accel_min(fit, r->cols);
    return d.cols ? rounded_up(cols, d.cols) : cols * d.split;
}

struct pack_chunk pack_part(const struct host_rectangle *r, int64_t packed_ld, int64_t chunk_bytes,
                            const struct pack_chunk *chunk, int64_t number)
{
    const struct division d = division_of(r, packed_ld, chunk_bytes);
    const int64_t col = d.cols ? number * d.cols : number / d.split,
                  row = d.cols ? 0 : number % d.split * d.rows,
                  cols = accel_min(d.cols ? d.cols : 1, chunk->cols - col),
                  rows = d.cols ? chunk->rows : accel_min(d.rows, chunk->rows - row);
    if (cols <= 0 || rows <= 0)
        return (struct pack_chunk){chunk->col, 0, chunk->row, 0};
    return (struct pack_chunk){chunk->col + col, cols, chunk->row + row, rows};
}

int64_t pack_part_offset(const struct host_rectangle *r, const struct pack_chunk *chunk,
                         const struct pack_chunk *part, int64_t buffer_ld)
{
    return ((part->col - chunk->col) * buffer_ld + part->row - chunk->row) * r->size;
}

/* ---- Runs ---- */

/* Up to this, copies without libc, whose call for a short column or an element of a strided vector
 * costs ten times the copy. */
#define SHORT_BYTES 512

#define MOVE(bytes, to, from)                                                                      \
    do {                                                                                           \
        char moved[bytes];                                                                         \
        memcpy(moved, from, bytes);                                                                \
        memcpy(to, moved, bytes);                                                                  \
    } while (0)

/* Returns whether a target begins less than 32 bytes farther on in its page than the source, as the
 * memory that malloc() gives for a large matrix does beside a buffer. There glibc's memcpy() takes
 * five to ten times as long on AMD's processors: it copies runs of 4 KB to about 1 MB by REP
 * MOVSB. */
static inline bool is_a_little_ahead(const char *to, const char *from)
{
    enum { PAGE = 4096, LITTLE = 32 };
    const uintptr_t ahead = ((uintptr_t)to - (uintptr_t)from) % PAGE;
    return ahead > 0 && ahead < LITTLE;
}

/* Of at least a block. The last one ends where the run does. */
static void copy_blocks(char *to, const char *from, int64_t bytes)
{
    enum { BLOCK = 64 };
    const int64_t last = bytes - BLOCK;
    for (int64_t i = 0; i < last; i += BLOCK)
        MOVE(BLOCK, to + i, from + i);
    MOVE(BLOCK, to + last, from + last);
}

/* The last block ends where the run does, so it may overlap the one before it. */
static inline void copy_run(char *to, const char *from, int64_t bytes)
{
    if (bytes > SHORT_BYTES) {
        if (is_a_little_ahead(to, from) && cpu_is_amd())
            copy_blocks(to, from, bytes);
        else
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

/* Writes past the caches: a line that a run covers is not read first. For shorter runs that does
 * not pay. */
#define STREAMED_BYTES 1024

/* Moves a line, to its address in memory, and says when all such lines are written before what
 * comes next. */
#ifdef __aarch64__
static inline void stream_line(char *to, const char *from)
{
    for (int j = 0; j < 64; j += 32)
        __asm__("ldp q0, q1, [%1]\n\tstnp q0, q1, [%0]"
                :
                : "r"(to + j), "r"(from + j)
                : "v0", "v1", "memory");
}

/* stnp is a store like others: an atomic store is behind it. */
static inline void end_stream(void) {}
static inline void stream_part(char *to, const char *from, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        to[i] = from[i];
}
#else
#    include <emmintrin.h> /* SSE2 is part of x86-64 */
static inline void stream_line(char *to, const char *from)
{
    for (int j = 0; j < 64; j += 16)
        _mm_stream_si128((__m128i *)(to + j), _mm_loadu_si128((const __m128i *)(from + j)));
}

static inline void end_stream(void)
{
    _mm_sfence();
}

/* A part of a line. Other stores would have the line read first; and one in a line beside which
 * another store has gone past the caches, would have that line wait for memory: with either, runs
 * of 2 KB take two to three times as long. */
static inline void stream_part(char *to, const char *from, int64_t bytes)
{
    int64_t i = 0;
    for (int word; ((uintptr_t)to & 3) == 0 && i + 4 <= bytes; i += 4) {
        memcpy(&word, from + i, sizeof word);
        _mm_stream_si32((int *)(void *)(to + i), word);
    }
    for (; i < bytes; i++)
        to[i] = from[i];
}
#endif

/* Of at least a line. */
static void stream_run(char *to, const char *from, int64_t bytes)
{
    int64_t i = (int64_t)(-(uintptr_t)to & 63);
    stream_part(to, from, i);
    for (; i + 64 <= bytes; i += 64)
        stream_line(to + i, from + i);
    stream_part(to + i, from + i, bytes - i);
}

static inline void unpack_run(char *to, const char *from, int64_t bytes, bool streamed)
{
    if (streamed && bytes >= STREAMED_BYTES)
        stream_run(to, from, bytes);
    else
        copy_run(to, from, bytes);
}

static inline void clear_run(char *to, int64_t bytes)
{
    static const char zero_bytes[16];
    if (bytes > SHORT_BYTES) {
        memset(to, 0, (size_t)bytes);
        return;
    }
    const char *zeros = zero_bytes;
    __asm__("" : "+r"(zeros)); /* or clang calls memset() for the loop */
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
                         const struct pack_chunk *chunk, int64_t size, bool streamed)
{
    if (chunk->rows == to_ld && chunk->rows == from_ld) {
        unpack_run(to, from, chunk->cols * chunk->rows * size, streamed);
    } else if (chunk->rows == 1) {
        copy_elements(to, to_ld * size, from, from_ld * size, chunk->cols, size);
    } else {
        for (int64_t col = 0; col < chunk->cols; col++)
            unpack_run(to + col * to_ld * size, from + col * from_ld * size, chunk->rows * size,
                       streamed);
    }
}

/* ---- Batches ---- */

/* Copies the part of each matrix that a chunk has. */
static void copy_matrices(const struct host_rectangle *r, const struct pack_chunk *chunk,
                          char *packed, int64_t packed_ld, bool unpack)
{
    int64_t matrix = chunk->col / r->each, col = chunk->col % r->each;
    for (int64_t left = chunk->cols, cols; left > 0; left -= cols, col = 0, matrix++) {
        cols = accel_min(r->each - col, left);
        const struct pack_chunk part = {.cols = cols, .rows = chunk->rows};
        char *host = r->array ? r->array[matrix * r->step] : r->host + matrix * r->stride * r->size;
        host += (col * r->ld + chunk->row) * r->size;
        if (unpack)
            copy_columns(host, r->ld, packed, packed_ld, &part, r->size, r->streamed);
        else
            copy_columns(packed, packed_ld, host, r->ld, &part, r->size, false);
        packed += cols * packed_ld * r->size;
    }
}

/* ---- Triangles ---- */

static int64_t diagonal_of(const struct host_rectangle *r, const struct pack_chunk *chunk,
                           int64_t col)
{
    return chunk->col + col + r->diagonal - chunk->row;
}

struct pack_rows pack_rows_of(const struct host_rectangle *r, const struct pack_chunk *chunk,
                              int64_t col)
{
    int64_t diagonal = diagonal_of(r, chunk, col);
    struct pack_rows rows = {0, chunk->rows};
    if (r->uplo == 'U' || r->uplo == 'u')
        rows.last = diagonal + (r->uplo == 'U');
    if (pack_is_lower(r))
        rows.first = diagonal + (r->uplo == 'l');
    rows.first = rows.first < 0 ? 0 : accel_min(rows.first, chunk->rows);
    rows.last = rows.last < rows.first ? rows.first : accel_min(rows.last, chunk->rows);
    return rows;
}

struct gpu_key pack_digest(const struct host_rectangle *r, const struct pack_chunk *chunk,
                           const char *first, int64_t ld)
{
    struct gpu_key digest = {{0, 0}};
    if (!r->uplo)
        return gpu_digest_columns(first, chunk->rows * r->size, chunk->cols, ld * r->size);
    for (int64_t col = 0; col < chunk->cols; col++) {
        const struct pack_rows rows = pack_rows_of(r, chunk, col);
        const int64_t bytes = (rows.last - rows.first) * r->size;
        const char *at = first + (col * ld + rows.first) * r->size;
        digest = gpu_digest_join(digest, gpu_digest_columns(at, bytes, 1, bytes));
    }
    return digest;
}

static void pack_triangle(char *packed, const struct host_rectangle *r,
                          const struct pack_chunk *chunk, int64_t packed_ld)
{
    for (int64_t col = 0; col < chunk->cols; col++) {
        const struct pack_rows rows = pack_rows_of(r, chunk, col);
        char *to = packed + col * packed_ld * r->size;
        int64_t bytes = (rows.last - rows.first) * r->size;
        clear_run(to, rows.first * r->size);
        copy_run(to + rows.first * r->size,
                 pack_host(r, chunk) + (col * r->ld + rows.first) * r->size, bytes);
        clear_run(to + rows.last * r->size, (chunk->rows - rows.last) * r->size);
        int64_t diagonal = diagonal_of(r, chunk, col);
        if (r->hermitian && diagonal >= rows.first && diagonal < rows.last)
            clear_run(to + diagonal * r->size + r->size / 2, r->size / 2);
        if (r->scan)
            gpu_scan_numbers(r->scan, to + rows.first * r->size, bytes);
    }
}

/* ---- Both ways ---- */

void pack_from_host(char *packed, const struct host_rectangle *r, const struct pack_chunk *chunk,
                    int64_t packed_ld)
{
    if (r->uplo) {
        pack_triangle(packed, r, chunk, packed_ld);
        return;
    }
    if (r->each > 0) {
        copy_matrices(r, chunk, packed, packed_ld, false);
        return;
    }
    copy_columns(packed, packed_ld, pack_host(r, chunk), r->ld, chunk, r->size, false);
    if (!r->scan)
        return;
    if (chunk->rows == packed_ld)
        gpu_scan_numbers(r->scan, packed, chunk->cols * chunk->rows * r->size);
    else
        for (int64_t col = 0; col < chunk->cols; col++)
            gpu_scan_numbers(r->scan, packed + col * packed_ld * r->size, chunk->rows * r->size);
}

static void unpack_triangle(const struct host_rectangle *r, const struct pack_chunk *chunk,
                            const char *packed, int64_t packed_ld)
{
    for (int64_t col = 0; col < chunk->cols; col++) {
        const struct pack_rows rows = pack_rows_of(r, chunk, col);
        unpack_run(pack_host(r, chunk) + (col * r->ld + rows.first) * r->size,
                   packed + (col * packed_ld + rows.first) * r->size,
                   (rows.last - rows.first) * r->size, r->streamed);
    }
}

void pack_to_host(const struct host_rectangle *r, const struct pack_chunk *chunk,
                  const char *packed, int64_t packed_ld)
{
    if (r->uplo)
        unpack_triangle(r, chunk, packed, packed_ld);
    else if (r->each > 0)
        copy_matrices(r, chunk, (char *)(uintptr_t)packed, packed_ld, true);
    else
        copy_columns(pack_host(r, chunk), r->ld, packed, packed_ld, chunk, r->size, r->streamed);
    if (r->streamed)
        end_stream(); /* before another thread is told that it is written */
}
