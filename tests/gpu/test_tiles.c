/*
 * The tiles of a matrix, and digests, by their definitions: every element that is stored is in
 * one tile; a digest tells contents, whatever the step between columns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "gpu/pack/tiles.h"
#include "tests/lib/draw.h"

enum { ROUNDS = 3000, MOST = 40 };

/* ---- Tiles ---- */

static bool is_stored(char uplo, int64_t row, int64_t col)
{
    return !uplo || (uplo == 'U' && row <= col) || (uplo == 'u' && row < col) ||
           (uplo == 'L' && row >= col) || (uplo == 'l' && row > col);
}

static struct host_rectangle any_matrix(struct gpu_tiles *by)
{
    static char memory[16];
    const int64_t rows = 1 + below(MOST), cols = 1 + below(MOST), size = 4 << below(3);
    struct host_rectangle all = host_whole(memory, rows, cols, rows + below(5), size);
    *by = (struct gpu_tiles){1 + below(rows + 3), 1 + below(cols + 3)};
    all.uplo = "\0ULul"[below(5)];
    all.trimmed = below(2);
    if (all.uplo) {
        all.cols = rows;
        by->cols = by->rows;
    }
    return all;
}

/* Each tile that has elements, and what is stored of it, counted by the places in memory. */
static void tiles_have_all_elements(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct gpu_tiles by;
        const struct host_rectangle all = any_matrix(&by);
        int seen[MOST][MOST] = {{0}};
        int64_t count = 0;
        for (int64_t col = 0; col < all.cols; col += by.cols)
            for (int64_t row = 0; row < all.rows; row += by.rows) {
                const int64_t number = tiles_number(&all, &by, row, col);
                const struct host_rectangle tile = tiles_at(&all, &by, number);
                const bool diagonal = row == col;
                const bool empty = all.uplo && !diagonal && !is_stored(all.uplo, row, col);
                assert_int_equal(number, count++); /* by columns */
                assert_ptr_equal(tile.host, all.host + (row + col * all.ld) * all.size);
                assert_int_equal(tile.uplo, diagonal ? all.uplo : 0);
                assert_true(tile.ld == all.ld && tile.size == all.size && !tile.trimmed);
                assert_int_equal(tile.rows == 0, empty);
                assert_true(tile.rows <= by.rows && tile.cols <= by.cols);
                for (int64_t j = 0; j < tile.cols; j++)
                    for (int64_t i = 0; i < tile.rows; i++)
                        seen[row + i][col + j] += is_stored(tile.uplo, i, j);
            }
        assert_int_equal(tiles_count(&all, &by), count);
        for (int64_t col = 0; col < all.cols; col++)
            for (int64_t row = 0; row < all.rows; row++)
                assert_int_equal(seen[row][col], is_stored(all.uplo, row, col));
    }
}

static bool same_shape(const struct host_rectangle *a, const struct gpu_tiles *by_a,
                       const struct host_rectangle *b, const struct gpu_tiles *by_b)
{
    const struct gpu_key x = tiles_shape(a, by_a), y = tiles_shape(b, by_b);
    return gpu_key_is(&x, &y);
}

/* Of the shape alone: not of where the matrix is. */
static void each_shape_has_its_digest(void **state)
{
    char memory[16];
    const struct host_rectangle all = host_whole(memory, 30, 20, 35, 8);
    const struct gpu_tiles by = {8, 16};
    struct host_rectangle other[6] = {all, all, all, all, all, all};
    struct gpu_tiles by_other[6] = {by, by, by, by, by, by};
    struct host_rectangle elsewhere = all;
    (void)state;
    elsewhere.host = NULL;
    elsewhere.ld = 30;
    elsewhere.trimmed = true;
    assert_true(same_shape(&all, &by, &elsewhere, &by));
    other[0].rows = 31;
    other[1].cols = 21;
    other[2].size = 4;
    other[3].uplo = 'L';
    by_other[4].rows = 9;
    by_other[5].cols = 15;
    for (int i = 0; i < 6; i++)
        assert_false(same_shape(&all, &by, &other[i], &by_other[i]));
}

/* ---- Digests ---- */

static bool same_digest(struct gpu_key x, struct gpu_key y)
{
    return gpu_key_is(&x, &y);
}

/* Columns are digested as one run of their bytes, and nothing between them. */
static void columns_are_one_run(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        enum { BYTES = 50, COLUMNS = 8, GAP = 10 };
        char memory[COLUMNS * (BYTES + GAP)], run[COLUMNS * BYTES];
        const int64_t bytes = 1 + below(BYTES), columns = 1 + below(COLUMNS);
        const int64_t step = bytes + below(GAP), all = columns * bytes;
        for (size_t i = 0; i < sizeof memory; i++)
            memory[i] = (char)below(256);
        for (int64_t i = 0; i < columns; i++)
            memcpy(run + i * bytes, memory + i * step, (size_t)bytes);
        const struct gpu_key digest = gpu_digest_columns(run, all, 1, all);
        assert_true(same_digest(digest, gpu_digest_columns(memory, bytes, columns, step)));
        const int64_t at = below(all);
        memory[at / bytes * step + at % bytes] ^= 1;
        assert_false(same_digest(digest, gpu_digest_columns(memory, bytes, columns, step)));
    }
}

/* What is joined counts, all of it, and which comes first. */
static void joined_digests(void **state)
{
    const struct gpu_key a = gpu_digest_columns("one", 3, 1, 3);
    const struct gpu_key b = gpu_digest_columns("other", 5, 1, 5);
    const struct gpu_key joined = gpu_digest_join(a, b);
    (void)state;
    assert_true(same_digest(joined, gpu_digest_join(a, b)));
    assert_false(same_digest(joined, gpu_digest_join(b, a)));
    for (int word = 0; word < 2; word++) {
        struct gpu_key before = a, next = b;
        before.word[word] ^= 1;
        next.word[word] ^= 1;
        assert_false(same_digest(a, before));
        assert_false(same_digest(joined, gpu_digest_join(before, b)));
        assert_false(same_digest(joined, gpu_digest_join(a, next)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_have_all_elements),
        cmocka_unit_test(each_shape_has_its_digest),
        cmocka_unit_test(columns_are_one_run),
        cmocka_unit_test(joined_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
