/*
 * Factorisations that two devices share, each with less memory than the matrix has bytes: what
 * comes out is known, both have a part in it, and when a panel cannot be factored, a number is not
 * finite or one of them fails, both end and nothing has been written.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "gpu/exec/lapack/panel_copies.h"
#include "gpu/exec/lapack/panel_steps.h"
#include "gpu/exec/lapack/solver_panels.h"
#include "gpu/exec/lapack/solver_shared.h"
#include "tests/lib/lapack_calls.h"
#include "tests/lib/watched_memory.h"

enum { MEMORY = 216 << 10 };

static struct gpu_device *devices[2];

static int start_both(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        devices[i] = start_device(
            tested_gpu(),
            (struct gpu_config){.memory_bytes = MEMORY, .devices = &i, .device_count = 1});
    return devices[0] && devices[1] ? 0 : -1;
}

static int stop_both(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        gpu_stop(devices[i]);
    return 0;
}

/* ---- Members ---- */

struct member {
    struct gpu_device *on;
    const struct accel_call *call;
    struct gpu_host host;
    int fails; /* this request of host memory; 0: none */
    enum gpu_status status;
    bool has_failed; /* a request */
    int left;        /* blocks that were not freed */
};

/* As several devices run a call: who has no result stops the others. */
static void *run_member(void *context)
{
    struct member *m = context;
    if (m->fails)
        watch(m->fails);
    m->status = gpu_run(m->on, m->call, &m->host);
    stop_watching();
    m->has_failed = m->fails && requests >= m->fails;
    m->left = m->fails ? live : 0;
    if (m->status != GPU_OK)
        solver_shared_stop(m->host.shared);
    return NULL;
}

/* The same rates, so that each gets a part. */
static void share(const struct lapack *l, struct panels_shared *plan)
{
    const struct accel_span *a = &l->call.span[ACCEL_a];
    const bool cholesky = strncmp(l->call.routine->name + 1, "po", 2) == 0;
    const struct panels_call call = {.kind = cholesky ? PANELS_CHOLESKY : PANELS_LU,
                                     .across = cholesky && l->call.blas.flag[ACCEL_uplo] == 'U',
                                     .m = a->rows,
                                     .n = a->cols,
                                     .size = gpu_size_of(a),
                                     .per_term = lapack_is_complex(l) ? 8 : 2};
    struct panels_device of[2];
    for (int i = 0; i < 2; i++) {
        of[i] = (struct panels_device){schedule_nominal,
                                       MEMORY / 16 * 15 - solver_panels_reserve(&call)};
        of[i].rates.compute = 1;
    }
    assert_true(accel_bytes(a) > MEMORY);
    assert_true(panels_share(plan, &call, of, 2));
}

/* Runs the call on both. fails: what each one's memory does. */
static void run_both(struct lapack *l, const struct panels_shared *plan, struct member member[2],
                     const int fails[2], bool stopped)
{
    struct solver_shared *shared = solver_shared_new(plan);
    pthread_t helper;
    assert_non_null(shared);
    lapack_again(l);
    for (int i = 0; i < 2; i++)
        member[i] = (struct member){
            .on = devices[i],
            .call = &l->call,
            .host = {.rates = schedule_nominal, .shared = shared, .member = i},
            .fails = fails[i],
        };
    if (stopped)
        solver_shared_stop(shared);
    assert_int_equal(pthread_create(&helper, NULL, run_member, &member[1]), 0);
    run_member(&member[0]);
    assert_int_equal(pthread_join(helper, NULL), 0);
    solver_shared_free(shared);
    if (member[0].status == GPU_OK)
        assert_spans(&l->call, l->expected);
    else
        lapack_is_untouched(l);
}

static const int none[2];

/* ---- Cases ---- */

static const struct {
    const char *name;
    char uplo;
    int64_t m, n, nrhs;
} cases[] = {
    {"dgetrf_", 0, 190, 190, 0},   {"sgetrf_", 0, 300, 240, 0},   {"zgetrf_", 0, 110, 160, 0},
    {"dgesv_", 0, 190, 190, 4},    {"dpotrf_", 'L', 190, 190, 0}, {"dpotrf_", 'U', 190, 190, 0},
    {"zpotrf_", 'L', 136, 136, 0}, {"cposv_", 'U', 190, 190, 3},
};
enum { CASES = sizeof cases / sizeof *cases };

static void make_case(struct lapack *l, int i)
{
    lapack_make(l, cases[i].name, cases[i].m, cases[i].n, 0, cases[i].nrhs);
    if (cases[i].uplo)
        l->call.blas.flag[ACCEL_uplo] = cases[i].uplo;
    lapack_take(l);
    if (cases[i].uplo)
        lapack_fill_cholesky(l);
    else
        lapack_fill_lu(l);
}

static void both_factor(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct lapack l;
        struct panels_shared plan;
        struct member member[2];
        make_case(&l, i);
        share(&l, &plan);
        const int64_t a = accel_bytes(&l.call.span[ACCEL_a]);
        int64_t owned[2] = {0}, most[2] = {0};
        for (int j = 0; j < plan.count; j++) {
            const int64_t rows = cases[i].uplo ? cases[i].n - plan.first[j] : cases[i].m;
            owned[plan.owner[j]] +=
                rows * (plan.first[j + 1] - plan.first[j]) * gpu_size_of(&l.call.span[ACCEL_a]);
            most[plan.owner[j]] = j;
        }
        assert_true(owned[0] > 0 && owned[1] > 0);
        run_both(&l, &plan, member, none, false);
        assert_int_equal(member[0].status, GPU_OK);
        assert_int_equal(member[1].status, GPU_OK);
        /* Each brings its own panels up and down; before the last one come those of the other. */
        for (int d = 0; d < 2; d++)
            assert_true(member[d].host.up_bytes > owned[d]);
        int64_t pivots = 0;
        for (int j = 0; j < plan.count && !cases[i].uplo; j++)
            if (plan.owner[j] == 1)
                pivots += 8 * accel_max(0, accel_min(plan.first[j + 1], cases[i].m) -
                                               accel_min(plan.first[j], cases[i].m));
        assert_int_equal(member[1].host.down_bytes, owned[1] + pivots);
        assert_true(member[0].host.down_bytes + member[1].host.down_bytes >= a / 2);
        assert_true(most[0] != most[1]);
        lapack_end(&l);
    }
}

/* In a panel of each: the matrix cannot be factored, or a number is none. */
static void not_to_factor(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i += 4)
        for (int trouble = 0; trouble < 2; trouble++) {
            struct lapack l;
            struct panels_shared plan;
            struct member member[2];
            make_case(&l, i);
            share(&l, &plan);
            struct accel_span *a = &l.first[ACCEL_a], kept = copy_of_span(a);
            for (int j = 0; j < plan.count; j += 3) {
                const int64_t col = plan.first[j + 1] - 1;
                if (trouble == 0)
                    set(a, a->rows - 1, col, NAN);
                else if (cases[i].uplo)
                    set(a, col, col, -1);
                else
                    for (int64_t r = 0; r < a->rows; r++)
                        set(a, r, col, 0);
                run_both(&l, &plan, member, none, false);
                assert_int_equal(member[0].status, GPU_UNSUPPORTED);
                assert_true(member[1].status == GPU_UNSUPPORTED || member[1].status == GPU_OK);
                memcpy(a->ptr, kept.ptr, lapack_bytes(a));
            }
            free(kept.ptr);
            lapack_end(&l);
        }
}

static void stopped_before(void **state)
{
    struct lapack l;
    struct panels_shared plan;
    struct member member[2];
    (void)state;
    make_case(&l, 0);
    share(&l, &plan);
    run_both(&l, &plan, member, none, true);
    for (int d = 0; d < 2; d++) {
        assert_int_equal(member[d].status, GPU_UNSUPPORTED);
        assert_int_equal(member[d].host.down_bytes, 0);
    }
    lapack_end(&l);
}

/* Each request of one's memory fails in turn: the other ends, too, and nothing is left. The leader
 * may have all that it needs of a helper before that fails. */
static void without_host_memory(void **state)
{
    struct lapack l;
    struct panels_shared plan;
    struct member member[2];
    (void)state;
    make_case(&l, 3);
    share(&l, &plan);
    run_both(&l, &plan, member, none, false);
    for (int d = 0; d < 2; d++) {
        int failures = 0;
        for (int n = 1; n == 1 || member[d].has_failed; n++) {
            run_both(&l, &plan, member, (int[]){d ? 0 : n, d ? n : 0}, false);
            assert_int_equal(member[d].left, 0);
            if (member[d].status == GPU_OK)
                continue;
            assert_int_equal(member[d].status, GPU_NO_MEMORY);
            assert_true(d == 1 || member[0].status != GPU_OK);
            failures++;
        }
        assert_true(failures > 0);
    }
    lapack_end(&l);
}

int main(void)
{
    setenv("TESTGPU_DEVICES", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_factor),
        cmocka_unit_test(not_to_factor),
        cmocka_unit_test(stopped_before),
        cmocka_unit_test(without_host_memory),
    };
    return cmocka_run_group_tests(tests, start_both, stop_both);
}
