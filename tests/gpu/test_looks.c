/*
 * Looks at operands that an earlier call may have left on the device (gpu/cache/device_cache.h):
 * what their rates are said to be, by a clock of the test's own; when a watch is enough, and what
 * it does not miss; and which inputs of LAPACK are looked for, and found with what a scan has seen.
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
#include <time.h>

#include "call/shape.h"
#include "gpu/cache/device_cache.h"
#include "gpu/cache/dirty_tracking.h"
#include "ops/typical.h"
#include "tests/lib/device_work.h"
#include "tests/lib/routine.h"
#include "tests/lib/watches.h"

/* ---- A clock of the test's own ---- */

/* In this thread: what the clock says, and what a digest or a scan takes. While one runs, the clock
 * is the machine's, for the threads that help. */
static _Thread_local bool has_own_clock;
static _Thread_local int64_t own_ns, takes_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
struct gpu_key __real_pack_matrix_digest(const struct host_rectangle *from, int64_t device_ld);
struct gpu_key __wrap_pack_matrix_digest(const struct host_rectangle *from, int64_t device_ld);
bool __real_dirty_tracking_is_unchanged(const struct accel_span *x, uint64_t watch,
                                        const struct gpu_edges *edges);
bool __wrap_dirty_tracking_is_unchanged(const struct accel_span *x, uint64_t watch,
                                        const struct gpu_edges *edges);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!has_own_clock || clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, now);
    *now = (struct timespec){own_ns / 1000000000, own_ns % 1000000000};
    return 0;
}

static int digests, scans;

struct gpu_key __wrap_pack_matrix_digest(const struct host_rectangle *from, int64_t device_ld)
{
    const bool own = has_own_clock;
    has_own_clock = false;
    const struct gpu_key key = __real_pack_matrix_digest(from, device_ld);
    has_own_clock = own;
    own_ns += takes_ns;
    digests++;
    return key;
}

bool __wrap_dirty_tracking_is_unchanged(const struct accel_span *x, uint64_t watch,
                                        const struct gpu_edges *edges)
{
    const bool own = has_own_clock;
    has_own_clock = false;
    const bool unchanged = __real_dirty_tracking_is_unchanged(x, watch, edges);
    has_own_clock = own;
    own_ns += takes_ns;
    scans++;
    return unchanged;
}

/* ---- Operands ---- */

/* 1 MiB of doubles, the least that stays. Each test has rows of its own, so that none has been
 * seen. */
enum { STAYS = 1 << 17, BEFORE = 64 };

/* The call's operand number `which`, of so many rows, in memory that is not at a page's edge. */
static struct accel_span *make(const char *name, int which, int64_t rows, int64_t cols)
{
    const int64_t size[ACCEL_DIMENSIONS] = {rows, cols, cols, 1};
    shape_typical(&call, routine(name), size);
    struct accel_span *x = &call.span[which];
    assert_true(x->rows == rows && x->cols == cols && x->ld == rows);
    char *memory = mmap(NULL, (size_t)accel_bytes(x) + BEFORE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    x->ptr = memory + BEFORE;
    for (int64_t i = 0; i < accel_bytes(x) / (int64_t)sizeof(double); i++)
        ((double *)x->ptr)[i] = (double)(i % 7 + 1);
    host.caches = host.digests = true;
    digests = scans = 0;
    return x;
}

static void unmake(struct accel_span *x)
{
    munmap((char *)x->ptr - BEFORE, (size_t)accel_bytes(x) + BEFORE);
    x->ptr = NULL;
}

/* Brings one up as a look says, and keeps it. */
static void bring(struct cached_operand *r, struct host_rectangle from)
{
    const int64_t ld = pack_ld(from.rows, from.size);
    gpu_address memory;
    from.digest = &r->key;
    assert_int_equal(gpu_memory(&work)->take(&work, ld * from.cols * from.size, &memory), GPU_OK);
    assert_int_equal(gpu_work_upload(&work, (struct dmat){memory, ld}, &from), GPU_OK);
    assert_int_equal(device_cache_insert(&work, memory, r), GPU_OK);
}

/* Looks as a call of Level 3 does; brings it up if it is to stay. Returns whether it is there. */
static bool look(const struct accel_span *x)
{
    const struct accel_span part = device_cache_part(&call, x);
    gpu_address memory;
    assert_true(device_cache_may(&call, x));
    struct cached_operand r = device_cache_look(&work, x, &part, &memory);
    assert_false(r.here && r.digests);
    if (r.digests)
        bring(&r, device_cache_rectangle(&part));
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    return r.here;
}

/* ---- Rates ---- */

/* A look takes so long, by the test's clock. */
static bool look_for(const struct accel_span *x, int64_t ns)
{
    takes_ns = ns;
    has_own_clock = true;
    const bool here = look(x);
    has_own_clock = false;
    return here;
}

static double gbps_of(const struct accel_span *x, int64_t ns)
{
    return (double)accel_bytes(x) / (double)ns;
}

/* By its last times: a shorter one counts at once, a longer one may have had other reasons. One
 * that the clock does not see is no infinite rate. */
static void follow_rate(const struct accel_span *x, double (*rate)(void))
{
    const int64_t fast_ns = 2000, slow_ns = 1000000;
    assert_true(look_for(x, fast_ns));
    assert_float_equal(rate(), gbps_of(x, fast_ns), 1e-3);
    assert_true(look_for(x, slow_ns));
    assert_true(rate() < gbps_of(x, fast_ns) && rate() > gbps_of(x, fast_ns) / 2);
    for (int i = 0; i < 300; i++)
        assert_true(look_for(x, slow_ns));
    assert_float_equal(rate(), gbps_of(x, slow_ns), 1e-3);
    assert_true(look_for(x, 0));
    assert_true(rate() > gbps_of(x, slow_ns) && rate() < 1e5);
}

static void a_digest_has_a_rate(void **state)
{
    struct accel_span *x = make("dgemm", ACCEL_a, 512, STAYS / 512);
    (void)state;
    assert_false(look(x));
    assert_false(look(x));
    assert_int_equal(digests, 0);
    const double scan_gbps = gpu_scan_gbps();
    follow_rate(x, gpu_digest_gbps);
    assert_true(digests > 300 && scans == 0);
    assert_true(gpu_scan_gbps() == scan_gbps);
    unmake(x);
}

/* Short columns with gaps between them say nothing of it. */
static void short_columns_have_no_rate(void **state)
{
    struct accel_span *x = make("dgemm", ACCEL_a, 16, 2 * STAYS / 16);
    const double gbps = gpu_digest_gbps();
    (void)state;
    x->rows = 8;
    x->ld = 16;
    call.blas.size[ACCEL_m] = 8;
    for (int i = 0; i < 4; i++)
        assert_int_equal(look_for(x, 1), i >= 2);
    assert_int_equal(digests, 2);
    assert_true(gpu_digest_gbps() == gbps);
    x->rows = 16;
    unmake(x);
}

/* ---- Watches ---- */

static struct accel_span *make_watched(int64_t rows)
{
    struct accel_span *x = make("dgemm", ACCEL_a, rows, STAYS / rows + 1);
    if (need_watch(dirty_tracking_begin(x)) != 0)
        fail();
    host.tracks = true;
    return x;
}

static void a_scan_has_a_rate(void **state)
{
    struct accel_span *x = make_watched(500);
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(look(x), i >= 2);
    assert_int_equal(digests, 1);
    const double digest_gbps = gpu_digest_gbps();
    follow_rate(x, gpu_scan_gbps);
    assert_true(digests == 1 && scans > 300);
    assert_true(gpu_digest_gbps() == digest_gbps);
    unmake(x);
}

/* Wherever it is written to, in pages of its own or beside others' memory. */
static void a_watch_misses_no_write(void **state)
{
    for (int which = 0; which < 3; which++) {
        struct accel_span *x = make_watched(490 + which);
        volatile double *first = x->ptr, *at = first + (which == 0   ? 0
                                                        : which == 1 ? accel_bytes(x) / 16
                                                                     : accel_bytes(x) / 8 - 1);
        (void)state;
        for (int i = 0; i < 4; i++)
            assert_int_equal(look(x), i >= 2);
        assert_true(digests == 1 && scans == 1);
        *at += 1;
        assert_false(look(x));
        assert_true(look(x));
        unmake(x);
    }
}

/* ---- Inputs of LAPACK ---- */

/* Looks as a call of LAPACK does; brings it up if it is to stay. Returns whether it is there. */
static bool look_at(struct accel_span *x, bool hermitian, struct gpu_scan *scan, bool *digested)
{
    struct host_rectangle from = host_whole(x->ptr, x->rows, x->cols, x->ld, gpu_size_of(x));
    gpu_address memory = 0;
    *scan = gpu_scan_begin(true);
    from.scan = scan;
    from.uplo = hermitian ? 'L' : 0;
    from.hermitian = hermitian;
    struct cached_operand r = device_cache_look_at(&work, x, &from, &memory);
    assert_false(r.here && (r.digests || !memory));
    if (r.digests)
        bring(&r, from);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    *digested = r.digests;
    return r.here;
}

/* Returns whether it is there the third time, and none of it is digested where it is not. */
static bool comes_to_stay(struct accel_span *x, bool hermitian)
{
    struct gpu_scan scan;
    bool digested, here = false;
    for (int i = 0; i < 3; i++) {
        here = look_at(x, hermitian, &scan, &digested);
        assert_true(i == 2 || !here);
        assert_false(digested && i != 1);
    }
    return here;
}

static void an_input_of_lapack_is_found(void **state)
{
    struct accel_span *x = make("dgetrs", ACCEL_a, 363, 363);
    struct gpu_scan scan;
    bool digested;
    (void)state;
    ((double *)x->ptr)[5] = -99;
    assert_true(comes_to_stay(x, false));
    assert_true(look_at(x, false, &scan, &digested));
    assert_true(scan.finite && scan.largest == 99);
    ((double *)x->ptr)[363 * 363 - 1] = INFINITY;
    assert_false(look_at(x, false, &scan, &digested));
    assert_true(digested && !scan.finite);
    host.digests = false;
    assert_false(look_at(x, false, &scan, &digested));
    assert_false(digested);
    unmake(x);
}

/* What its validated watch tells was seen when it was read: it is not read again. */
static void a_watched_input_of_lapack_is_not_read(void **state)
{
    struct accel_span *x = make("dgetrs", ACCEL_a, 364, 364);
    struct gpu_scan scan;
    bool digested;
    (void)state;
    if (need_watch(dirty_tracking_begin(x)) != 0)
        fail();
    host.tracks = true;
    ((double *)x->ptr)[7] = NAN;
    ((double *)x->ptr)[8] = 42;
    assert_true(comes_to_stay(x, false));
    assert_int_equal(digests, 1);
    for (int i = 0; i < 2; i++) {
        assert_true(look_at(x, false, &scan, &digested));
        assert_true(!scan.finite && scan.largest == 42);
    }
    assert_true(digests == 1 && scans == 2);
    unmake(x);
}

/* A scan needs numbers that are aligned; a small one is up before it would be known; a part of one,
 * or what the host cannot read, is not looked for. */
static void some_inputs_of_lapack_do_not_stay(void **state)
{
    enum { ROWS = 1024, COLS = STAYS / ROWS };
    (void)state;
    for (int why = 0; why < 5; why++) {
        struct accel_span *x = make("dgeqrf", ACCEL_a, ROWS, COLS), all = *x;
        x->ptr = (char *)x->ptr + (why == 1 ? 4 : 0);
        x->cols -= why == 1 || why == 2;
        x->place = why == 3 ? ACCEL_DEVICE : ACCEL_HOST;
        if (why == 1) /* so that it is as large as the others */
            x->rows = x->ld = ROWS + 4;
        host.digests = why != 4;
        assert_int_equal(comes_to_stay(x, false), why == 0);
        *x = all;
        unmake(x);
    }
}

/* Zeros go up as the imaginary parts of its diagonal. */
static void a_hermitian_matrix_has_a_real_diagonal(void **state)
{
    enum { ORDER = 260 };
    (void)state;
    for (int where = -1; where <= 1; where++) {
        struct accel_span *x = make("zpotrs", ACCEL_a, ORDER + where, ORDER + where);
        double *at = x->ptr;
        for (int64_t i = 0; i < x->rows; i++)
            at[2 * (i + i * x->ld) + 1] = 0;
        if (where >= 0) /* the first, or the last */
            at[where ? 2 * (x->rows * x->cols - 1) + 1 : 1] = 1;
        assert_int_equal(comes_to_stay(x, true), where < 0);
        unmake(x);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(a_digest_has_a_rate),
        TEST(short_columns_have_no_rate),
        TEST(a_scan_has_a_rate),
        TEST(a_watch_misses_no_write),
        TEST(an_input_of_lapack_is_found),
        TEST(a_watched_input_of_lapack_is_not_read),
        TEST(some_inputs_of_lapack_do_not_stay),
        TEST(a_hermitian_matrix_has_a_real_diagonal),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
