#include "chunks.h"

/* A copy engine begins anew with each column of a 2D copy: where columns are shorter than this, or
 * a triangle has fewer chunks, more may be lost so than is saved. An H200 copies columns of 2 KB at
 * 98 % of its rate, of 512 bytes at 90 %. */
enum { TRIMMED_COLUMN = 2048, TRIMMED_CHUNKS = 4 };

/* The least bytes of a chunk that is digested or trimmed, and the most of one of a triangle. */
enum { LEAST_CHUNK = 256 << 10, MOST_OF_TRIANGLE = 1 << 20 };

static int64_t bytes_of_chunk(const struct host_rectangle *r, int64_t device_ld, int chunks,
                              int64_t least, int64_t most)
{
    const int64_t column = device_ld * r->size, line = accel_max(64 / r->size, 1) * column;
    const int64_t wanted = accel_min(most, accel_max(least, column * r->cols / chunks));
    const int64_t bytes = accel_min(accel_max(column, wanted), PINNED_BUFFER_BYTES);
    if (r->uplo)
        return bytes >= line ? bytes / line * line : bytes;
    if (column < 1 || bytes < column || r->cols < 1)
        return bytes;
    const int64_t count = (r->cols + bytes / column - 1) / (bytes / column);
    return (r->cols + count - 1) / count * column; /* all of about the same length */
}

int64_t chunks_bytes(const struct host_rectangle *r, int64_t device_ld, int chunks, int64_t least)
{
    return bytes_of_chunk(r, device_ld, chunks, least, PINNED_BUFFER_BYTES);
}

int64_t chunks_of_matrix(const struct host_rectangle *r, int64_t device_ld)
{
    return bytes_of_chunk(r, device_ld, CHUNKS_OF_MATRIX, LEAST_CHUNK, PINNED_BUFFER_BYTES);
}

int64_t chunks_of_tile(const struct host_rectangle *r, int64_t device_ld)
{
    return r->uplo /* not r->trimmed, on which a digest must not depend */
               ? bytes_of_chunk(r, device_ld, CHUNKS_OF_TRIANGLE, LEAST_CHUNK, MOST_OF_TRIANGLE)
               : bytes_of_chunk(r, device_ld, CHUNKS_OF_TILE, LEAST_CHUNK, PINNED_BUFFER_BYTES);
}

bool chunks_trim(int64_t rows, int64_t cols, int64_t size)
{
    const int64_t column = pack_ld(rows, size) * size;
    return column >= TRIMMED_COLUMN && column <= PINNED_BUFFER_BYTES &&
           column * cols >= TRIMMED_CHUNKS * LEAST_CHUNK;
}

static int64_t sent(const struct host_rectangle *r, int64_t device_ld, int64_t chunk_bytes)
{
    int64_t elements = 0;
    if (!r->trimmed)
        return r->rows * r->cols * r->size;
    for (int64_t i = 0; i < pack_count(r, device_ld, chunk_bytes); i++) {
        const struct pack_chunk chunk = pack_chunk(r, device_ld, chunk_bytes, i);
        elements += chunk.rows * chunk.cols;
    }
    return elements * r->size;
}

int64_t chunks_matrix_sent(const struct host_rectangle *r, int64_t device_ld)
{
    return sent(r, device_ld, chunks_of_matrix(r, device_ld));
}

int64_t chunks_tile_sent(const struct host_rectangle *r, int64_t device_ld)
{
    return sent(r, device_ld, chunks_of_tile(r, device_ld));
}

/* The searches for schedules ask often: without a loop over the chunks. */
int64_t chunks_triangle_sent(int64_t order, int64_t size)
{
    struct host_rectangle r = host_whole(NULL, order, order, order, size);
    if (!chunks_trim(order, order, size))
        return order * order * size;
    r.uplo = 'L';
    const int64_t ld = pack_ld(order, size), cols = chunks_of_tile(&r, ld) / size / ld,
                  whole = order / cols, rest = order % cols;
    return (cols * cols * (whole * (whole + 1) / 2) + rest * order) * size;
}

int64_t gpu_device_ld(int64_t rows, enum accel_dtype dtype)
{
    return pack_ld(rows, (int64_t)accel_dtype_size(dtype));
}

bool pack_column_fits(int64_t device_ld, int64_t size)
{
    return device_ld <= PINNED_BUFFER_BYTES / size;
}
