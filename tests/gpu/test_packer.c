/*
 * Matrices that another process packs and unpacks (gpu/pack/packer.h), here one of the test's own
 * that is late, or ends: copies to memory of this process and back, diagonals, digests and scans,
 * as of a matrix that is here.
 * What is not its own does not pass through memory that it can write to.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/pack/matrix.h"
#include "gpu/pack/packer.h"
#include "tests/lib/level3.h"

/* A column is longer than what passes at once; the matrix has many chunks. */
enum { ROWS = 140000, COLS = 40, LD = 140100, N = 700 };

struct other {
    struct packer packer;
    char *hidden; /* where the matrices really are */
    struct task {
        struct host_rectangle r;
        struct staged_chunk chunk;
        enum pack_action action;
        int part;
    } task[COPY_POOL_TASKS];
    struct pack_seen seen[COPY_POOL_TASKS];
    int64_t ends_at; /* this task is not done any more */
};

static void post(struct packer *packer, const struct staged_chunk *chunk, enum pack_action action,
                 int part)
{
    struct other *o = (struct other *)packer;
    struct task *task = &o->task[packer->posted % COPY_POOL_TASKS];
    assert_true(packer->posted - packer->done < COPY_POOL_TASKS);
    *task = (struct task){*chunk->host, *chunk, action, part};
    packer->posted++;
}

/* Does half of what there is. */
static void look(struct packer *packer, int64_t wanted)
{
    struct other *o = (struct other *)packer;
    const int64_t some = packer->done + (packer->posted - packer->done + 1) / 2;
    for (; packer->done < some && (wanted > 0 || packer->done % 2); packer->done++) {
        struct task *task = &o->task[packer->done % COPY_POOL_TASKS];
        if (packer->done == o->ends_at) {
            packer->gone = true;
            packer->done = packer->posted;
            return;
        }
        task->r.host = o->hidden + (task->r.host - packer->first);
        task->r.packer = NULL;
        task->chunk.host = &task->r;
        if (task->action == PACK_READ) {
            task->chunk.packed = pack_host(&task->r, &task->chunk.chunk);
            task->chunk.ld = task->r.ld;
        }
        staged_chunk_do(&task->chunk, task->action, task->part,
                        &o->seen[packer->done % COPY_POOL_TASKS]);
    }
}

static void take(const struct packer *packer, int64_t number, struct pack_seen *seen)
{
    *seen = ((const struct other *)packer)->seen[number % COPY_POOL_TASKS];
}

static struct other other;

static int begin(void **state)
{
    const size_t bytes = (size_t)LD * COLS * sizeof(double);
    double *hidden = malloc(bytes);
    void *first = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *memory = aligned_alloc(4096, (size_t)PACKER_BYTES);
    if (start_work(state) != 0 || !hidden || first == MAP_FAILED || !memory)
        return -1;
    for (size_t i = 0; i < bytes / sizeof *hidden; i++)
        hidden[i] = (double)(i * 2654435761u % 1000003);
    other = (struct other){.packer = {.post = post,
                                      .look = look,
                                      .take = take,
                                      .first = first,
                                      .bytes = (int64_t)bytes,
                                      .memory = memory},
                           .hidden = (char *)hidden,
                           .ends_at = -1};
    return 0;
}

static int end(void **state)
{
    gpu_unpin(&device->common, &other.packer);
    munmap((void *)(uintptr_t)other.packer.first, (size_t)other.packer.bytes);
    free(other.packer.memory);
    free(other.hidden);
    return stop_device(state);
}

/* A matrix of the other process, and where it is. */
static struct host_rectangle matrix(int64_t rows, int64_t cols, int64_t ld)
{
    struct host_rectangle r =
        host_whole((char *)(uintptr_t)other.packer.first, rows, cols, ld, sizeof(double));
    r.packer = packer_of(&other.packer, r.host);
    assert_ptr_equal(r.packer, &other.packer);
    return r;
}
static struct host_rectangle here(struct host_rectangle r)
{
    r.host = other.hidden;
    r.packer = NULL;
    return r;
}

static void copies_come_and_go(void **state)
{
    const struct host_rectangle r = matrix(ROWS, COLS, LD);
    const size_t bytes = (size_t)ROWS * COLS * sizeof(double);
    double *packed = malloc(bytes), *expected = malloc(bytes);
    const struct host_rectangle own = here(r);
    (void)state;
    assert_true(packed && expected);
    pack_matrix_pack(expected, &own, ROWS);
    assert_true(packer_read(&other.packer, &r, packed));
    assert_memory_equal(packed, expected, bytes);
    for (size_t i = 0; i < bytes / sizeof *packed; i++)
        packed[i] += 1;
    assert_true(packer_write(&other.packer, &r, packed));
    pack_matrix_pack(expected, &own, ROWS);
    assert_memory_equal(packed, expected, bytes);
    free(packed);
    free(expected);
}

static void a_diagonal_is_a_row(void **state)
{
    const struct host_rectangle r = matrix(1, N, N + 1);
    double diagonal[N];
    (void)state;
    assert_true(packer_read(&other.packer, &r, diagonal));
    for (int64_t i = 0; i < N; i++)
        assert_true(diagonal[i] == ((const double *)other.hidden)[i * (N + 1)]);
}

static void a_triangle_alone_is_written(void **state)
{
    struct host_rectangle r = matrix(N, N, N);
    double *packed = calloc((size_t)N * N, sizeof *packed), before[2];
    (void)state;
    assert_non_null(packed);
    memcpy(before, other.hidden + N * sizeof(double), sizeof before);
    r.uplo = 'L';
    assert_true(packer_write(&other.packer, &r, packed));
    assert_true(((const double *)other.hidden)[N] == before[0]);
    assert_true(((const double *)other.hidden)[N + 1] == 0);
    free(packed);
}

static void digests_are_those_of_a_matrix_here(void **state)
{
    static const char triangles[] = {0, 'L', 'U'};
    (void)state;
    for (size_t i = 0; i < sizeof triangles; i++) {
        struct host_rectangle r = matrix(N, N, N + 3);
        struct gpu_scan scan = gpu_scan_begin(true), expected = scan;
        r.uplo = triangles[i];
        r.scan = &scan;
        struct host_rectangle own = here(r);
        own.scan = &expected;
        const struct gpu_key key = pack_matrix_digest(&r, pack_ld(N, sizeof(double))),
                             same = pack_matrix_digest(&own, pack_ld(N, sizeof(double)));
        assert_true(gpu_key_is(&key, &same));
        assert_true(scan.finite && scan.largest == expected.largest && scan.largest > 0);
    }
    struct host_rectangle r = matrix(ROWS, COLS, LD);
    const struct host_rectangle own = here(r);
    const struct gpu_key key = pack_matrix_digest(&r, ROWS), same = pack_matrix_digest(&own, ROWS);
    assert_true(gpu_key_is(&key, &same));
}

static void one_that_ends_is_not_waited_for(void **state)
{
    const struct host_rectangle r = matrix(ROWS, COLS, LD);
    double *packed = malloc((size_t)ROWS * COLS * sizeof *packed);
    (void)state;
    assert_non_null(packed);
    for (int64_t after = 0; after < 60; after += 7) {
        other.ends_at = other.packer.posted + after;
        assert_false(packer_read(&other.packer, &r, packed));
        other.packer.gone = false;
        other.ends_at = other.packer.posted + after / 3;
        pack_matrix_digest(&r, ROWS);
        assert_true(other.packer.gone);
        assert_int_equal(other.packer.done, other.packer.posted);
        other.packer.gone = false;
    }
    other.ends_at = -1;
    free(packed);
}

/* Operands of this process, in a call that has a packer, too. */
static void others_pass_elsewhere(void **state)
{
    struct level3 l;
    char *memory = other.packer.memory;
    (void)state;
    memset(memory, 0x5a, (size_t)PACKER_BYTES);
    level3_make(&l, "dgemm_", 260, 250, 240);
    level3_fill(&l);
    l.host.packer = &other.packer;
    level3_succeeds(&l);
    assert_true(other.packer.pinned);
    assert_memory_equal(memory, memory + 1, (size_t)PACKER_BYTES - 1);
    level3_end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_come_and_go),
        cmocka_unit_test(a_diagonal_is_a_row),
        cmocka_unit_test(a_triangle_alone_is_written),
        cmocka_unit_test(digests_are_those_of_a_matrix_here),
        cmocka_unit_test(one_that_ends_is_not_waited_for),
        cmocka_unit_test_setup_teardown(others_pass_elsewhere, begin_work, end_work),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
