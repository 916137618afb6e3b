/*
 * Packing for the way to the device, and unpacking: every element comes to its place, nothing else
 * is touched, whatever the shape, the triangle, the alignment; and short columns and strided
 * vectors cost no call of libc each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/host/cpu.h"
#include "gpu/pack/pack.h"
#include "tests/lib/triangle.h"

/* The linker sends the calls of gpu/pack/pack.c here. */
static long libc_calls;
void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__real_memset(void *to, int byte, size_t bytes);
void *__wrap_memset(void *to, int byte, size_t bytes);
void *__real_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    libc_calls++;
    return __real_memcpy(to, from, bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
    libc_calls++;
    return __real_memmove(to, from, bytes);
}

void *__wrap_memset(void *to, int byte, size_t bytes)
{
    libc_calls++;
    return __real_memset(to, byte, bytes);
}

static unsigned char *fill(size_t bytes, unsigned seed)
{
    unsigned char *x = malloc(bytes);
    assert_non_null(x);
    for (size_t i = 0; i < bytes; i++)
        x[i] = (unsigned char)((i * 2654435761u + seed) >> 7);
    return x;
}

/* By bytes, and by the definition. */
static bool packed_is_right(const struct host_rectangle *r, const struct pack_chunk *chunk,
                            const unsigned char *packed, int64_t packed_ld)
{
    for (int64_t j = 0; j < chunk->cols; j++)
        for (int64_t i = 0; i < chunk->rows; i++)
            for (int64_t b = 0; b < r->size; b++) {
                int64_t row = chunk->row + i, col = chunk->col + j;
                bool zero = !is_stored(r, row, col) ||
                            (r->hermitian && row == col + r->diagonal && b >= r->size / 2);
                unsigned char there = (unsigned char)r->host[(col * r->ld + row) * r->size + b];
                if (packed[(j * packed_ld + i) * r->size + b] != (zero ? 0 : there))
                    return false;
            }
    return true;
}

/* Both ways, with memory around the rectangle that must stay. offset: of the host memory, in
 * bytes. */
static void round_trip(int64_t rows, int64_t cols, int64_t ld, int64_t packed_ld, int64_t size,
                       char uplo, int64_t diagonal, bool backwards, int64_t buffer_bytes,
                       int64_t offset)
{
    size_t host_bytes = (size_t)((cols * ld + rows) * size + offset + 64);
    unsigned char *memory = fill(host_bytes, 1), *result = fill(host_bytes, 77),
                  *before = fill(host_bytes, 77);
    unsigned char *buffer = fill((size_t)buffer_bytes + 64, 5), *guard = fill(64, 5 + 1);
    memcpy(buffer + buffer_bytes, guard, 64);
    struct host_rectangle from = host_whole((char *)memory + offset, rows, cols, ld, size);
    from.uplo = uplo;
    from.diagonal = diagonal;
    from.backwards = backwards;
    from.hermitian = uplo == 'L' && size == 16;
    struct host_rectangle to = from;
    to.host = (char *)result + offset;
    to.streamed = offset % 2;
    int64_t elements = 0;
    for (int64_t i = 0; i < pack_count(&from, packed_ld, buffer_bytes); i++) {
        const struct pack_chunk chunk = pack_chunk(&from, packed_ld, buffer_bytes, i);
        assert_true(chunk.rows > 0 && chunk.cols > 0);
        assert_true(pack_bytes(&chunk, &from, packed_ld) <= buffer_bytes);
        pack_from_host((char *)buffer, &from, &chunk, packed_ld);
        assert_true(packed_is_right(&from, &chunk, buffer, packed_ld));
        pack_to_host(&to, &chunk, (char *)buffer, packed_ld);
        elements += chunk.rows * chunk.cols;
    }
    assert_int_equal(elements, rows * cols);
    assert_memory_equal(buffer + buffer_bytes, guard, 64);
    for (size_t at = 0; at < host_bytes; at++) {
        int64_t element = ((int64_t)at - offset) / size;
        int64_t row = element % ld, col = element / ld, byte = ((int64_t)at - offset) % size;
        bool inside = (int64_t)at >= offset && row < rows && col < cols;
        unsigned char expected = before[at];
        if (inside && is_stored(&from, row, col))
            expected = from.hermitian && row == col + diagonal && byte >= size / 2 ? 0 : memory[at];
        if (result[at] != expected)
            fail_msg("%ldx%ld ld=%ld size=%ld uplo=%c: byte %zu", rows, cols, ld, size,
                     uplo ? uplo : '-', at);
    }
    free(memory);
    free(result);
    free(before);
    free(buffer);
    free(guard);
}

static void every_shape_comes_to_its_place(void **state)
{
    static const int64_t sizes[] = {2, 4, 8, 16},
                         rows[] = {1, 2, 3, 5, 7, 8, 31, 63, 64, 65, 200, 1500};
    (void)state;
    for (size_t s = 0; s < 4; s++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int64_t offset = 0; offset < 4; offset++) {
                int64_t m = rows[r], size = sizes[s];
                round_trip(m, 9, m, m, size, 0, 0, false, 1 << 16, offset);
                round_trip(m, 9, m + 3, m, size, 0, 0, false, 1 << 16, offset);
                round_trip(m, 9, m + 1, m + 5, size, 0, 0, true, 2 * (m + 5) * size, offset);
                round_trip(m, 5, m + 2, m, size, 0, 0, false, 16 * size, offset); /* in parts */
            }
}

static void triangles_come_to_their_place(void **state)
{
    static const char uplos[] = "ULul";
    (void)state;
    for (int64_t n = 1; n < 80; n += n < 9 ? 1 : 35)
        for (int u = 0; u < 4; u++)
            for (int64_t size = 4; size <= 16; size *= 2)
                for (int way = 0; way < 2; way++) {
                    round_trip(n, n, n + 1, n, size, uplos[u], 0, way, 5 * n * size, 1);
                    round_trip(n + 3, n, n + 4, n + 3, size, uplos[u], 0, way, 1 << 17, 0);
                    round_trip(n + 3, n, n + 4, n + 3, size, uplos[u], 3, way, 1 << 17, 0);
                    round_trip(n, n, n, n, size, uplos[u], 0, way, (n + 1) / 2 * size, 2);
                }
}

/* From the last element on, where the increment is negative. */
static void a_vector_from_its_end(void **state)
{
    double x[20], packed[7];
    (void)state;
    for (int i = 0; i < 20; i++)
        x[i] = i;
    struct host_rectangle r = host_whole(&x[18], 1, 7, -3, sizeof(double));
    assert_int_equal(pack_count(&r, 1, 4096), 1);
    const struct pack_chunk chunk = pack_chunk(&r, 1, 4096, 0);
    pack_from_host((char *)packed, &r, &chunk, 1);
    for (int i = 0; i < 7; i++) {
        assert_true(packed[i] == 18 - 3 * i);
        packed[i] = 100 + i;
    }
    pack_to_host(&r, &chunk, (char *)packed, 1);
    for (int i = 0; i < 20; i++)
        assert_true(x[i] == (i % 3 == 0 ? 106 - i / 3 : i));
}

/* The chunks of a download that runs backwards end with the first column: what is left is always
 * the first ones. */
static void backwards_leaves_the_first_columns(void **state)
{
    struct host_rectangle r = host_whole(NULL, 10, 25, 10, 8);
    int64_t left = 25;
    (void)state;
    r.backwards = true;
    for (int64_t i = 0; i < pack_count(&r, 10, 560); i++) {
        const struct pack_chunk chunk = pack_chunk(&r, 10, 560, i);
        assert_int_equal(chunk.col + chunk.cols, left);
        left = chunk.col;
    }
    assert_int_equal(left, 0);
}

static long calls_of(int64_t rows, int64_t cols, int64_t ld, char uplo)
{
    /* The first columns are at the same place in a page. */
    enum { PAGE = 4096 };
    const size_t bytes = (size_t)(cols * ld * 8 + PAGE - 1) / PAGE * PAGE;
    char *host = aligned_alloc(PAGE, bytes), *packed = aligned_alloc(PAGE, bytes);
    assert_true(host && packed);
    memset(host, 3, bytes);
    struct host_rectangle r = host_whole(host, rows, cols, ld, 8);
    const struct pack_chunk all = {0, cols, 0, rows};
    r.uplo = uplo;
    libc_calls = 0;
    pack_from_host(packed, &r, &all, rows);
    pack_to_host(&r, &all, packed, rows);
    long calls = libc_calls;
    free(host);
    free(packed);
    return calls;
}

/* Targets at any place in a page beside the source's: every byte comes there, and none beside it is
 * touched. Where libc would be slow on this processor, it is not called. */
static void targets_at_all_places_in_a_page(void **state)
{
    static const int64_t lengths[] = {520, 576, 640, 4096, 5008, 70000};
    enum { PAGE = 4096, ROOM = 80 << 10, MARK = 0x5a };
    char *packed = aligned_alloc(PAGE, ROOM), *host = aligned_alloc(PAGE, ROOM);
    unsigned char *pattern = fill(ROOM, 7);
    (void)state;
    assert_true(packed && host);
    memcpy(packed, pattern, ROOM);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int64_t ahead = -64; ahead <= 72; ahead += 8) {
            char *to = host + 2 * PAGE / 4 + ahead, *from = packed + 2 * PAGE / 4;
            const int64_t rows = lengths[i] / 8;
            struct host_rectangle r = host_whole(to, rows, 1, rows, 8);
            const struct pack_chunk all = {0, 1, 0, rows};
            memset(host, MARK, ROOM);
            libc_calls = 0;
            pack_to_host(&r, &all, from, rows);
            assert_int_equal(libc_calls, !(cpu_is_amd() && ahead > 0 && ahead < 32));
            assert_memory_equal(to, from, (size_t)lengths[i]);
            for (const char *x = host; x < host + ROOM; x++)
                if (x < to || x >= to + lengths[i])
                    assert_int_equal(*x, MARK);
        }
    free(pattern);
    free(packed);
    free(host);
}

static void strided_vectors_and_short_columns_call_no_libc(void **state)
{
    (void)state;
    assert_int_equal(calls_of(1, 10000, 2, 0), 0);
    assert_int_equal(calls_of(1, 10000, 57, 0), 0);
    for (int64_t rows = 2; rows <= 64; rows++)
        assert_int_equal(calls_of(rows, 500, rows + 1, 0), 0);
    assert_int_equal(calls_of(64, 64, 65, 'U'), 0);
    assert_int_equal(calls_of(64, 64, 64, 'l'), 0);
    assert_int_equal(calls_of(64, 500, 64, 0), 2);    /* all in one, each way */
    assert_int_equal(calls_of(300, 50, 304, 0), 100); /* libc copies each long column, each way */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_comes_to_its_place),
        cmocka_unit_test(triangles_come_to_their_place),
        cmocka_unit_test(a_vector_from_its_end),
        cmocka_unit_test(backwards_leaves_the_first_columns),
        cmocka_unit_test(targets_at_all_places_in_a_page),
        cmocka_unit_test(strided_vectors_and_short_columns_call_no_libc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
