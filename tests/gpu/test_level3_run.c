/*
 * Level 3 on the device: each operation as plain loops compute it, to the last bit, as a whole
 * and in blocks; after a failure, the finished blocks and the original's rest are the same
 * result.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/level3.h"
#include "tests/lib/rates.h"
#include "tests/lib/some_copies.h"

static const struct schedule_rates balanced = RATES(2, 2, 120, 16, 1e-4, 1e-4, 1e-4);

static const char *const names[] = {"dgemm_",  "zgemm_",  "sgemmt_", "zgemmt_", "dsymm_",
                                    "csymm_",  "zhemm_",  "dsyrk_",  "zsyrk_",  "cherk_",
                                    "zsyr2k_", "dsyr2k_", "zher2k_", "dtrmm_",  "ztrmm_",
                                    "strmm_",  "dtrsm_",  "ztrsm_",  "ctrsm_",  "strsm_"};
enum { NAMES = sizeof names / sizeof *names, WAYS = 16 };

/* The flags by their bits, where the routine has them. Returns false if others say the same. */
static bool set_flags(struct accel_call *c, int way)
{
    const char *allowed = is_hermitian(c) || way & 1 ? "C" : "T";
    const struct {
        enum accel_flag flag;
        char other;
    } flags[] = {{ACCEL_uplo, 'U'},
                 {c->blas.flag[ACCEL_trans] ? ACCEL_trans : ACCEL_transa,
                  accel_is_complex(c->routine->dtype) && !is_kind(c, "syrk") && !is_kind(c, "syr2k")
                      ? *allowed
                      : 'T'},
                 {c->blas.flag[ACCEL_side] ? ACCEL_side : ACCEL_transb,
                  c->blas.flag[ACCEL_side] ? 'R' : 'T'},
                 {ACCEL_diag, 'U'}};
    bool differs = true;
    for (int i = 0; i < 4; i++)
        if (way >> i & 1) {
            differs = differs && c->blas.flag[flags[i].flag];
            c->blas.flag[flags[i].flag] = flags[i].other;
        }
    return differs;
}

static bool make_way(struct level3 *l, int which, int way, int64_t m, int64_t n, int64_t k)
{
    level3_make(l, names[which], m, n, k);
    if (!set_flags(&l->call, way))
        return false;
    level3_fill(l);
    return true;
}

static void as_plain_loops(void **state)
{
    struct level3 l;
    (void)state;
    for (int which = 0; which < NAMES; which++)
        for (int way = 0; way < WAYS; way++) {
            if (!make_way(&l, which, way, 23, 17, 20))
                continue;
            level3_succeeds(&l);
            if (way == 0 && l.call.span[ACCEL_c].ptr) { /* beta = 0: C is not read */
                l.call.blas.scalar[ACCEL_beta] = (struct accel_complex){0, 0};
                level3_succeeds(&l);
            }
            level3_end(&l);
        }
}

/* The operands are some times the memory. */
enum { M = 72, N = 64, K = 68, BUDGET = 64 << 10 };

static void leave_memory(struct level3 *l)
{
    gpu_trim(&device->common);
    /* a triangle is in tiles where it does not fit */
    device->budget = BUDGET / 8 * (int64_t)accel_dtype_size(l->call.routine->dtype) /
                     (has_triangular_a(&l->call) ? 2 : 1);
    l->host.rates = balanced;
}

static void in_blocks(void **state)
{
    const int64_t budget = device->budget;
    struct level3 l;
    (void)state;
    for (int which = 0; which < NAMES; which++)
        for (int way = 0; way < WAYS; way++) {
            if ((way + which) % 2 != 0 || !make_way(&l, which, way, M, N, K))
                continue;
            leave_memory(&l);
            level3_succeeds(&l);
            level3_end(&l);
        }
    device->budget = budget;
}

/* ---- After a failure ---- */

/* Memory that is short says nothing of the device, which goes on. */
static enum gpu_status run_some(struct level3 *l, int ups, int downs)
{
    allow_copies(ups, downs);
    level3_again(l);
    const enum gpu_status status = level3_run(l);
    cuda_api = real;
    return status;
}

/* Some copies go well, down or up; all, in the end. all: with more numbers of copies. Counts how
 * often the original has done the rest, and how often nothing was done. */
static void fail_in_turn(struct level3 *l, bool down, bool all, int *finished, int *begun)
{
    enum { ALL = 1 << 20 };
    struct accel_call expected;
    enum gpu_status status = GPU_ERROR;
    level3_expect(l, &expected);
    for (int copies = 0; status != GPU_OK; copies += 1 + copies / (all ? 3 : 1)) {
        status = run_some(l, down ? ALL : copies, down ? copies : ALL);
        assert_true(status == GPU_OK || status == GPU_NO_MEMORY || status == GPU_SHORT_ELSE);
        assert_true((l->originals > 0) == (status == GPU_SHORT_ELSE));
        if (status == GPU_NO_MEMORY)
            level3_assert_untouched(l);
        else
            level3_assert(l, &expected);
        *finished += status == GPU_SHORT_ELSE;
        *begun += status == GPU_NO_MEMORY;
    }
    level3_end_expected(&expected);
}

static void the_original_does_the_rest(void **state)
{
    const int64_t budget = device->budget;
    int finished = 0, begun = 0;
    struct level3 l;
    (void)state;
    for (int which = 0; which < NAMES; which++)
        for (int way = 0; way < WAYS; way++) {
            if ((way + which) % 2 != 0 || !make_way(&l, which, way, M, N, K))
                continue;
            leave_memory(&l);
            fail_in_turn(&l, way % 4 != 1, false, &finished, &begun);
            level3_end(&l);
        }
    device->budget = budget;
    assert_true(finished > 30 && begun > 10);
}

/* Tiles of some megabytes, which come down in chunks: a part of one has come. */
static void a_part_of_a_block_has_come(void **state)
{
    static const struct {
        const char *name;
        char side, uplo, trans;
        int64_t m, n, k;
    } cases[] = {{"dtrmm_", 'R', 'L', 'N', 36000, 16, 0}, {"dtrsm_", 'R', 'U', 'N', 36000, 16, 0},
                 {"dtrmm_", 'L', 'U', 'T', 16, 36000, 0}, {"dtrsm_", 'L', 'L', 'N', 16, 36000, 0},
                 {"dgemm_", 0, 0, 0, 9000, 64, 4},        {"dsyrk_", 0, 'L', 'N', 0, 1000, 4},
                 {"dsyrk_", 0, 'U', 'T', 0, 1000, 4}};
    int finished = 0, begun = 0;
    struct level3 l;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        level3_make(&l, cases[i].name, cases[i].m, cases[i].n, cases[i].k);
        if (cases[i].side)
            l.call.blas.flag[ACCEL_side] = cases[i].side;
        if (cases[i].uplo)
            l.call.blas.flag[ACCEL_uplo] = cases[i].uplo;
        if (cases[i].trans)
            l.call.blas.flag[ACCEL_trans] = cases[i].trans;
        level3_fill(&l);
        l.host.rates = balanced;
        fail_in_turn(&l, true, true, &finished, &begun);
        level3_end(&l);
    }
    assert_true(finished > 20);
}

/* The same where all of it is one panel: the first, of which some columns are there. It has more
 * chunks than can be on their way. */
static void a_part_of_the_first_panel_has_come(void **state)
{
    static const struct schedule_rates slow_to_begin = RATES(2, 2, 120, 16, 100, 100, 100);
    static const char *const panels[] = {"dtrmm_", "dtrsm_"};
    (void)state;
    gpu_set_chunk(&device->common, gpu_chunk_sizes[0]);
    for (int i = 0; i < 2; i++) {
        int finished = 0, begun = 0;
        struct level3 l;
        level3_make(&l, panels[i], 16, 105000, 0);
        level3_fill(&l);
        l.host.rates = slow_to_begin;
        fail_in_turn(&l, true, true, &finished, &begun);
        level3_end(&l);
        assert_true(finished > 0);
    }
    gpu_set_chunk(&device->common, GPU_CHUNK_USUAL);
}

int main(void)
{
    setenv("TESTGPU_DELAY_US", "10", 0); /* the library, which is not loaded yet, reads it */
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(as_plain_loops),
        TEST(in_blocks),
        TEST(the_original_does_the_rest),
        TEST(a_part_of_a_block_has_come),
        TEST(a_part_of_the_first_panel_has_come),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
