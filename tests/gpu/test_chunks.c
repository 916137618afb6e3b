/*
 * The chunks of copies: those of a trimmed triangle have each of its elements once, fit buffers,
 * begin where those of the whole square do, and cross the link with little besides; and what the
 * schedules count is what is sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "gpu/pack/chunks.h"

static struct host_rectangle triangle_of(int64_t rows, int64_t cols, int64_t size, char uplo,
                                         int64_t diagonal)
{
    struct host_rectangle r = host_whole(NULL, rows, cols, rows + 3, size);
    r.uplo = uplo;
    r.diagonal = diagonal;
    r.trimmed = chunks_trim(rows, cols, size);
    return r;
}

/* The first and the last row of a trimmed chunk are those of one of its columns; of a triangle
 * without its diagonal, perhaps those of that. */
static void is_close(const struct host_rectangle *r, const struct pack_chunk *chunk)
{
    const struct pack_rows first = pack_rows_of(r, chunk, 0),
                           last = pack_rows_of(r, chunk, chunk->cols - 1);
    const bool strict = r->uplo == 'l' || r->uplo == 'u';
    if (pack_is_lower(r))
        assert_true(first.first <= strict && chunk->row + chunk->rows == r->rows);
    else
        assert_true(chunk->row == 0 && last.last >= chunk->rows - strict);
}

/* Follows the chunks and returns the elements that they have. */
static int64_t follow(const struct host_rectangle *r, int64_t ld, int64_t chunk_bytes)
{
    struct host_rectangle square = *r;
    int64_t elements = 0, next = 0;
    square.trimmed = false;
    for (int64_t i = 0; i < pack_count(r, ld, chunk_bytes); i++) {
        const struct pack_chunk chunk = pack_chunk(r, ld, chunk_bytes, i),
                                whole = pack_chunk(&square, ld, chunk_bytes, i);
        assert_true(chunk.col == whole.col && chunk.cols == whole.cols);
        assert_int_equal(chunk.col, next);
        next += chunk.cols;
        const int64_t buffer_ld = pack_buffer_ld(r, &chunk, ld);
        assert_true(buffer_ld >= chunk.rows && buffer_ld <= ld);
        assert_true(chunk.rows == 0 || pack_bytes(&chunk, r, buffer_ld) <= PINNED_BUFFER_BYTES);
        assert_true(pack_ends_columns(r, &chunk));
        if (r->trimmed)
            is_close(r, &chunk);
        for (int64_t col = 0; col < chunk.cols; col++) {
            const struct pack_rows in = pack_rows_of(r, &chunk, col),
                                   all = pack_rows_of(&square, &whole, col);
            assert_true(in.first == in.last
                            ? all.first == all.last
                            : chunk.row + in.first == all.first && chunk.row + in.last == all.last);
        }
        elements += chunk.rows * chunk.cols;
    }
    assert_int_equal(next, r->cols);
    return elements;
}

/* Triangles of any shape, as LAPACK has them; both ways, with their diagonal or without, which
 * begins in any row. */
static void chunks_have_the_triangle(void **state)
{
    static const int64_t sizes[] = {4, 8, 16};
    int trimmed = 0;
    (void)state;
    srand(3);
    for (int n = 0; n < 300; n++) {
        const int64_t size = sizes[n % 3], rows = 1 + rand() % 2000, cols = 1 + rand() % 2000;
        const int64_t diagonal = n % 2 ? rand() % (2 * rows) - cols : 0;
        const struct host_rectangle r = triangle_of(rows, cols, size, "ULul"[rand() % 4], diagonal);
        const int64_t ld = pack_ld(rows, size);
        assert_int_equal(follow(&r, ld, chunks_of_matrix(&r, ld)) * size,
                         chunks_matrix_sent(&r, ld));
        assert_int_equal(follow(&r, ld, chunks_of_tile(&r, ld)) * size, chunks_tile_sent(&r, ld));
        trimmed += r.trimmed;
    }
    assert_true(trimmed > 100 && trimmed < 290);
}

static void schedules_count_what_is_sent(void **state)
{
    static const int64_t orders[] = {1,    7,    255,   256,   361,    362,   511,
                                     512,  513,  700,   704,   1024,   1408,  1409,
                                     2048, 5000, 16384, 65536, 131073, 300000};
    (void)state;
    for (size_t n = 0; n < sizeof orders / sizeof *orders; n++)
        for (int64_t size = 4; size <= 16; size *= 2) {
            const int64_t order = orders[n], ld = pack_ld(order, size),
                          sent = chunks_triangle_sent(order, size);
            const struct host_rectangle lower = triangle_of(order, order, size, 'L', 0),
                                        upper = triangle_of(order, order, size, 'U', 0);
            assert_int_equal(chunks_tile_sent(&lower, ld), sent);
            assert_int_equal(chunks_tile_sent(&upper, ld), sent);
            const double share = (double)sent / size / (double)order / (double)order;
            assert_true(lower.trimmed ? share > 0.5 && share <= 0.625 + 1e-9 : share > 1 - 1e-9);
            assert_true(order < 1024 || ld * size > PINNED_BUFFER_BYTES || share < 0.55);
            assert_true(!lower.trimmed || order * order * size < 4 << 20 || share <= 0.54);
            assert_true(lower.trimmed == (ld * size >= 2048 && ld * order * size >= 1 << 20 &&
                                          ld * size <= PINNED_BUFFER_BYTES));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_have_the_triangle),
        cmocka_unit_test(schedules_count_what_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
