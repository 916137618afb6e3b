/*
 * What threads pack: the parts of chunks, matrices of a batch, digests and scans of what is
 * packed, by their definitions; and the chunks of rectangles.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/pack/chunks.h"
#include "tests/lib/draw.h"
#include "tests/lib/triangle.h"

static const int64_t sizes[] = {2, 4, 8, 16};

/* ---- Parts ---- */

static bool overlap(const struct pack_chunk *x, const struct pack_chunk *y)
{
    return x->col < y->col + y->cols && y->col < x->col + x->cols && x->row < y->row + y->rows &&
           y->row < x->row + x->rows;
}

static bool is_inside(const struct pack_chunk *part, const struct pack_chunk *chunk)
{
    return part->col >= chunk->col && part->col + part->cols <= chunk->col + chunk->cols &&
           part->row >= chunk->row && part->row + part->rows <= chunk->row + chunk->rows;
}

/* Returns how many parts of a chunk have elements. Each of its elements is in one of them. */
static int parts_of(const struct host_rectangle *r, int64_t ld, int64_t chunk_bytes,
                    const struct pack_chunk *chunk)
{
    enum { MOST = 128 };
    const int64_t count = pack_parts(r, ld, chunk_bytes), buffer_ld = pack_buffer_ld(r, chunk, ld);
    struct pack_chunk seen[MOST];
    int64_t elements = 0;
    int parts = 0;
    assert_in_range(count, 1, MOST);
    for (int64_t i = 0; i < count; i++) {
        const struct pack_chunk part = pack_part(r, ld, chunk_bytes, chunk, i);
        assert_true(part.cols >= 0 && part.rows >= 0);
        if (part.cols == 0)
            continue;
        assert_true(part.rows > 0 && is_inside(&part, chunk));
        /* Some whole columns, or a part of one; never twice as many bytes as are meant. */
        assert_true(part.cols == 1 || part.rows == chunk->rows);
        assert_true(part.cols == 1 || part.cols * ld * r->size < 2 * PACK_PART_BYTES);
        assert_true(part.rows * r->size < 2 * PACK_PART_BYTES);
        assert_int_equal(pack_part_offset(r, chunk, &part, buffer_ld),
                         ((part.col - chunk->col) * buffer_ld + (part.row - chunk->row)) * r->size);
        for (int k = 0; k < parts; k++)
            assert_false(overlap(&part, &seen[k]));
        seen[parts++] = part;
        elements += part.rows * part.cols;
    }
    assert_int_equal(elements, chunk->rows * chunk->cols);
    assert_int_equal(pack_part(r, ld, chunk_bytes, chunk, count).cols, 0);
    return parts;
}

static void parts_have_all_of_a_chunk(void **state)
{
    int in_several = 0, in_columns = 0;
    (void)state;
    for (int round = 0; round < 3000; round++) {
        const int64_t size = sizes[below(4)], rows = 1 + below(below(2) ? 3000000 : 3000),
                      cols = 1 + below(200), ld = below(2) ? rows : pack_ld(rows, size);
        struct host_rectangle r = host_whole(NULL, rows, cols, rows + below(3), size);
        const int64_t bytes = below(2) ? PINNED_BUFFER_BYTES : chunks_of_matrix(&r, ld);
        r.uplo = "\0LU"[below(3)];
        r.trimmed = r.uplo && chunks_trim(rows, cols, size) && ld * size <= bytes;
        const int64_t chunks = pack_count(&r, ld, bytes), number = below(chunks);
        for (int last = 0; last < 2; last++) {
            const struct pack_chunk chunk =
                pack_chunk(&r, ld, bytes, last ? chunks - 1 : number / 2);
            const int parts = chunk.rows > 0 ? parts_of(&r, ld, bytes, &chunk) : 0;
            assert_int_equal(pack_bytes(&chunk, &r, ld),
                             ((chunk.cols - 1) * ld + chunk.rows) * size);
            assert_int_equal(pack_offset(&chunk, &r, ld), (chunk.col * ld + chunk.row) * size);
            in_several += parts > 1 && chunk.cols > 1;
            in_columns += parts > 1 && chunk.cols == 1;
        }
        /* The first chunk has as many parts as any. */
        const struct pack_chunk first = pack_chunk(&r, ld, bytes, 0);
        if (!r.trimmed && ld == rows)
            assert_int_equal(parts_of(&r, ld, bytes, &first), pack_parts(&r, ld, bytes));
    }
    assert_true(in_several > 300 && in_columns > 300);
}

/* A chunk of less than a part is one; one of many parts has about as many as its bytes. */
static void parts_have_about_their_bytes(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows <= 250000; rows = rows * 3 + 1)
        for (int s = 0; s < 4; s++) {
            const int64_t cols = PINNED_BUFFER_BYTES / sizes[s] / rows;
            const struct host_rectangle one = host_whole(NULL, rows, 1, rows, sizes[s]),
                                        all = host_whole(NULL, rows, cols, rows, sizes[s]);
            if (rows * sizes[s] <= PACK_PART_BYTES)
                assert_int_equal(pack_parts(&one, rows, PINNED_BUFFER_BYTES), 1);
            const double parts = (double)pack_parts(&all, rows, PINNED_BUFFER_BYTES);
            const double meant = (double)(rows * cols * sizes[s]) / PACK_PART_BYTES;
            assert_true(parts > 0.5 * meant && parts < 2 * meant + 1);
        }
}

/* ---- Columns on the device ---- */

static void columns_are_whole_lines(void **state)
{
    (void)state;
    for (int s = 0; s < 4; s++)
        for (int64_t rows = 1; rows < 200; rows++) {
            const int64_t size = sizes[s], ld = pack_ld(rows, size);
            if (rows * size < 64)
                assert_int_equal(ld, rows);
            else
                assert_true(ld * size % 64 == 0 && ld >= rows && (ld - rows) * size < 64);
        }
    for (int64_t rows = 1; rows < 100; rows++)
        assert_int_equal(gpu_device_ld(rows, ACCEL_COMPLEX64), pack_ld(rows, 8));
    for (int s = 0; s < 4; s++) {
        assert_true(pack_column_fits(PINNED_BUFFER_BYTES / sizes[s], sizes[s]));
        assert_false(pack_column_fits(PINNED_BUFFER_BYTES / sizes[s] + 1, sizes[s]));
    }
}

/* ---- Batches ---- */

enum { MATRICES = 6, ROWS = 7, COLS = 5, LD = 8, ROOM = 64 };

/* Matrices a stride apart, or at every second pointer, both ways; what is beside them stays. */
static void matrices_of_a_batch(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        double from[MATRICES * ROOM], to[MATRICES * ROOM], before[MATRICES * ROOM];
        double buffer[MATRICES * COLS * LD];
        void *of_from[2 * MATRICES] = {NULL}, *of_to[2 * MATRICES] = {NULL};
        const bool pointers = below(2);
        const int64_t packed_ld = below(2) ? ROWS : LD, step = pointers ? 1 + below(2) : 0;
        const int64_t bytes = (1 + below(COLS * MATRICES)) * packed_ld * 8;
        struct host_rectangle r = host_whole(from, ROWS, MATRICES * COLS, LD, 8);
        r.each = COLS;
        r.stride = ROOM;
        r.step = step;
        r.streamed = below(2);
        for (int i = 0; i < MATRICES * ROOM; i++) {
            from[i] = (double)below(1 << 20);
            to[i] = before[i] = -1 - i;
        }
        for (int i = 0; i < MATRICES; i++) { /* in another order than in memory */
            const int at = pointers ? (i + 2) % MATRICES : i;
            of_from[i * step] = from + at * ROOM;
            of_to[i * step] = to + at * ROOM;
        }
        struct host_rectangle back = r;
        back.host = (char *)to;
        r.array = pointers ? of_from : NULL;
        back.array = pointers ? of_to : NULL;
        for (int64_t n = 0; n < pack_count(&r, packed_ld, bytes); n++) {
            const struct pack_chunk chunk = pack_chunk(&r, packed_ld, bytes, n);
            pack_from_host((char *)buffer, &r, &chunk, packed_ld);
            for (int64_t col = 0; col < chunk.cols; col++) {
                const int64_t all = chunk.col + col, matrix = all / COLS;
                const double *x =
                    from + (pointers ? (matrix + 2) % MATRICES : matrix) * ROOM + all % COLS * LD;
                assert_memory_equal(buffer + col * packed_ld, x, ROWS * 8);
            }
            pack_to_host(&back, &chunk, (char *)buffer, packed_ld);
        }
        for (int i = 0; i < MATRICES * ROOM; i++) {
            const bool is_element = i % ROOM < COLS * LD && i % LD < ROWS;
            assert_true(to[i] == (is_element ? from[i] : before[i]));
        }
    }
}

/* ---- Fresh pages ---- */

static void pages_that_nobody_has_touched(void **state)
{
    enum { PAGE = 4096, PAGES = 64 };
    char *memory =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct host_rectangle r = host_whole(memory, PAGE / 8, PAGES, PAGE / 8, 8);
    struct pack_chunk chunk = {.col = 20, .cols = 4, .rows = PAGE / 8};
    (void)state;
    assert_true(memory != MAP_FAILED && madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE) == 0);
    assert_true(pack_is_fresh(&r, &chunk));
    memory[20 * PAGE] = 1;
    assert_false(pack_is_fresh(&r, &chunk));
    chunk.col = 21;
    assert_true(pack_is_fresh(&r, &chunk));
    r.each = 1;
    assert_false(pack_is_fresh(&r, &chunk)); /* of a batch */
    munmap(memory, PAGES * PAGE);
}

/* ---- Digests and scans ---- */

enum { ORDER = 20 };

/* A chunk's digest tells all of its elements that are stored and no others, wherever its columns
 * are. */
static void digests_of_chunks(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        double x[ORDER * ORDER], y[ORDER * (ORDER + 3)];
        struct host_rectangle r = host_whole(x, ORDER, ORDER, ORDER, 8);
        const struct pack_chunk chunk = {
            .col = below(ORDER / 2), .cols = 1 + below(ORDER / 2), .row = 0, .rows = ORDER};
        r.uplo = "\0ULul"[below(5)];
        r.diagonal = below(2) ? below(5) - 2 : 0;
        for (int i = 0; i < ORDER * ORDER; i++)
            x[i] = (double)below(1000);
        for (int i = 0; i < ORDER * ORDER; i++)
            y[i / ORDER * (ORDER + 3) + i % ORDER] = x[i];
        const char *first = pack_host(&r, &chunk);
        const struct gpu_key digest = pack_digest(&r, &chunk, first, ORDER);
        struct gpu_key other =
            pack_digest(&r, &chunk, (char *)(y + chunk.col * (ORDER + 3)), ORDER + 3);
        assert_true(gpu_key_is(&digest, &other));
        const int64_t row = below(ORDER), col = chunk.col + below(chunk.cols);
        x[col * ORDER + row] += 1;
        other = pack_digest(&r, &chunk, first, ORDER);
        assert_int_equal(gpu_key_is(&digest, &other), !is_stored(&r, row, col));
    }
}

/* Scans the elements that are packed, however they come, and no others. */
static void scans_of_what_is_packed(void **state)
{
    int infinite = 0;
    (void)state;
    for (int round = 0; round < 3000; round++) {
        enum { LD_OF_BUFFER = ORDER + 2 };
        double x[ORDER * ORDER], buffer[ORDER * LD_OF_BUFFER], largest = 0;
        float single[ORDER * ORDER];
        const bool is_double = below(2);
        struct gpu_scan scan = gpu_scan_begin(is_double);
        struct host_rectangle r =
            host_whole(is_double ? (void *)x : single, ORDER - 1, ORDER, ORDER, is_double ? 8 : 4);
        const struct pack_chunk chunk = {.cols = 1 + below(ORDER), .rows = ORDER - 1};
        bool finite = true;
        r.uplo = "\0\0ULul"[below(6)];
        r.scan = &scan;
        for (int i = 0; i < ORDER * ORDER; i++) {
            const int64_t special = below(600);
            x[i] = special == 0   ? NAN
                   : special == 1 ? INFINITY
                   : special == 2 ? -INFINITY
                                  : (double)(below(2000) - 1000);
            single[i] = (float)x[i];
            if (i % ORDER == ORDER - 1 || i / ORDER >= chunk.cols ||
                !is_stored(&r, i % ORDER, i / ORDER))
                continue;
            finite = finite && isfinite(x[i]);
            largest = isfinite(x[i]) ? fmax(largest, fabs(x[i])) : largest;
        }
        pack_from_host((char *)buffer, &r, &chunk, below(2) ? ORDER - 1 : LD_OF_BUFFER);
        assert_int_equal(scan.finite, finite);
        assert_true(!finite || scan.largest == largest);
        infinite += !finite;
    }
    assert_in_range(infinite, 300, 2700);
}

/* ---- Chunks of rectangles ---- */

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* As many chunks as are asked for, each of whole columns and of at least so many bytes if the
 * copy has these, of about the same length. */
static void chunks_of_rectangles(void **state)
{
    (void)state;
    for (int round = 0; round < 3000; round++) {
        const int64_t size = sizes[below(4)], rows = 1 + below(below(2) ? 100000 : 300),
                      cols = 1 + below(2000), ld = pack_ld(rows, size), least = 1 + below(1 << 20);
        const int wanted = 1 + (int)below(40);
        const struct host_rectangle r = host_whole(NULL, rows, cols, rows, size);
        const int64_t bytes = chunks_bytes(&r, ld, wanted, least), column = ld * size;
        const int64_t count = pack_count(&r, ld, bytes), each = bytes / column;
        assert_true(bytes <= PINNED_BUFFER_BYTES && bytes % column == 0);
        /* No chunk could have been left out, and none is shorter than the others by a column for
         * each of them. */
        const int64_t fit =
            least_of(PINNED_BUFFER_BYTES,
                     least > column * cols / wanted ? least : column * cols / wanted) /
            column;
        assert_int_equal(count, (cols + (fit > 0 ? fit : 1) - 1) / (fit > 0 ? fit : 1));
        assert_true((cols - (count - 1) * each) > each - count);
        for (int64_t i = 0; i < count; i++)
            assert_int_equal(pack_chunk(&r, ld, bytes, i).cols, least_of(each, cols - i * each));
    }
}

/* Triangles' chunks begin with whole lines of columns, where these fit. */
static void chunks_of_triangles(void **state)
{
    (void)state;
    for (int64_t order = 100; order < 200000; order += order / 3)
        for (int64_t size = 4; size <= 16; size *= 2) {
            struct host_rectangle r = host_whole(NULL, order, order, order, size);
            const int64_t ld = pack_ld(order, size), line = 64 / size * ld * size;
            r.uplo = 'L';
            const int64_t bytes = chunks_of_tile(&r, ld);
            assert_true(bytes <= PINNED_BUFFER_BYTES &&
                        bytes >= least_of(ld * size, PINNED_BUFFER_BYTES));
            assert_true(bytes % line == 0 || bytes < line);
            r.trimmed = true;
            assert_int_equal(chunks_of_tile(&r, ld), bytes);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_all_of_a_chunk),
        cmocka_unit_test(parts_have_about_their_bytes),
        cmocka_unit_test(columns_are_whole_lines),
        cmocka_unit_test(matrices_of_a_batch),
        cmocka_unit_test(pages_that_nobody_has_touched),
        cmocka_unit_test(digests_of_chunks),
        cmocka_unit_test(scans_of_what_is_packed),
        cmocka_unit_test(chunks_of_rectangles),
        cmocka_unit_test(chunks_of_triangles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
