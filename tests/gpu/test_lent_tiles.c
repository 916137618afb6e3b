/*
 * Two devices that compute a product's halves and lend each other the tiles of the factor that both
 * need (gpu/exec/blas/peer_tiles.h), on the test GPU: the product is exact, each tile comes up
 * once, and what each call says of its copies is what was copied. One that goes its own way lends
 * nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "gpu/exec/blas/peer_tiles.h"
#include "ops/cut.h"
#include "ops/typical.h"
#include "tests/lib/devices.h"
#include "tests/lib/rates.h"
#include "tests/lib/routine.h"

enum { N = 192, TILE = 64, MEMBERS = 2, BYTES = N * N * (int)sizeof(double) };

static const struct schedule_rates rates = RATES_WITH(0, 8, 2, 2, 120, 16, 1e-4, 1e-4, 1e-4);

static struct gpu_device *device[MEMBERS];

static int start_both(void **state)
{
    (void)state;
    for (int i = 0; i < MEMBERS; i++) {
        device[i] = start_device(
            tested_gpu(),
            (struct gpu_config){.memory_share = 0.5, .devices = &i, .device_count = 1});
        if (!device[i])
            return -1;
    }
    return 0;
}

static int stop_both(void **state)
{
    (void)state;
    for (int i = 0; i < MEMBERS; i++)
        gpu_stop(device[i]);
    return 0;
}

/* ---- The halves of a product ---- */

/* Bytes that a member has copied, by its events. */
struct copied {
    int64_t up[ACCEL_SPANS], peer[ACCEL_SPANS], down;
};

struct member {
    struct accel_call call;
    struct scheduled scheduled;
    struct gpu_host host;
    struct copied copied;
    enum gpu_status status;
    pthread_t thread;
    int number;
};

static struct member member[MEMBERS];
static double a[N * N], b[N * N], c[N * N];

static bool refuse(void *context, const struct accel_call *part)
{
    (void)context;
    (void)part;
    return false;
}

static void note(void *context, const struct gpu_event *event)
{
    struct copied *copied = &((struct member *)context)->copied;
    if (event->kind == GPU_EVENT_D2H)
        copied->down += event->bytes;
    if (event->kind == GPU_EVENT_H2D || event->kind == GPU_EVENT_PEER)
        (event->kind == GPU_EVENT_H2D ? copied->up : copied->peer)[*event->operand - 'a'] +=
            event->bytes;
}

/* C := A B, of which each member has some columns. */
static struct peer_tiles *make(void)
{
    const struct schedule_params by = {.rows = TILE, .cols = TILE, .depth = TILE, .buffers = 2};
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 0};
    static const char *const name[] = {"a", "b", "c"};
    double *const matrix[] = {a, b, c};
    struct peer_tiles *table = peer_tiles_new(MEMBERS);
    struct accel_call call;
    shape_typical(&call, routine("dgemm"), size);
    call.blas.scalar[ACCEL_beta].re = 0;
    for (int i = 0; i < 3; i++) {
        call.span[ACCEL_a + i].ptr = matrix[i];
        call.span[ACCEL_a + i].name = name[i];
        for (int k = 0; k < N * N; k++)
            matrix[i][k] = i == 2 ? 0 : rand() % 7 - 3;
    }
    for (int i = 0; i < MEMBERS; i++) {
        struct member *m = &member[i];
        struct schedule s;
        const struct accel_region columns = {0, i * N / MEMBERS, N, N / MEMBERS, 0};
        *m = (struct member){.call = accel_cut_part(&call, &columns), .number = i};
        m->host = (struct gpu_host){.original = refuse,
                                    .event = note,
                                    .context = m,
                                    .rates = rates,
                                    .peer_tiles = table,
                                    .member = i};
        assert_true(scheduled_describe(&m->call, &m->scheduled));
        m->scheduled.call.lent[SCHEDULE_A] = 1 - 1.0 / MEMBERS;
        assert_true(schedule_make_by(&s, &by, &m->scheduled.call, &rates, INT64_MAX));
        assert_true(peer_tiles_add(table, i, &m->scheduled, &s, rates.up));
        schedule_free(&s);
    }
    assert_int_equal(peer_tiles_deal(table), N / TILE * (N / TILE));
    return table;
}

static void *run_member(void *context)
{
    struct member *m = context;
    m->status = gpu_run(device[m->number], &m->call, &m->host);
    return NULL;
}

/* Runs the members from the first one on. */
static void run_from(int first)
{
    for (int i = first; i < MEMBERS; i++)
        assert_int_equal(pthread_create(&member[i].thread, NULL, run_member, &member[i]), 0);
    for (int i = first; i < MEMBERS; i++) {
        pthread_join(member[i].thread, NULL);
        assert_int_equal(member[i].status, GPU_OK);
    }
}

static void assert_product(int first_col)
{
    for (int j = first_col; j < N; j++)
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i + k * N] * b[k + j * N];
            assert_true(c[i + j * N] == sum);
        }
}

/* What a call says in the end is what its events have said. */
static void assert_told(const struct member *m)
{
    int64_t up = 0, peer = 0;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        up += m->copied.up[i];
        peer += m->copied.peer[i];
    }
    assert_true(m->host.up_bytes == up && m->host.peer_bytes == peer);
    assert_true(m->host.down_bytes == m->copied.down && m->copied.down == BYTES / MEMBERS);
    assert_int_equal(m->copied.up[1], BYTES / MEMBERS);
    assert_true(m->copied.peer[1] == 0 && m->copied.up[2] == 0 && m->copied.peer[2] == 0);
}

/* The memory of those that have ended is their own again. */
static void assert_nothing_is_lent(struct peer_tiles *table)
{
    for (int i = 0; i < MEMBERS; i++)
        for (int n = 0; n < N / TILE * (N / TILE); n++) {
            double *first = a + n % (N / TILE) * TILE + n / (N / TILE) * TILE * N;
            const struct matrix tile = {(char *)first, TILE, TILE, N, ACCEL_FLOAT64};
            int owner;
            assert_in_range(peer_tiles_number(table, &tile, &owner), 0, N / TILE * (N / TILE) - 1);
            assert_true(peer_tiles_find(table, i, &tile) == 0);
        }
}

static void each_tile_comes_up_once(void **state)
{
    struct peer_tiles *table = make();
    (void)state;
    for (int i = 0; i < MEMBERS; i++)
        assert_true(gpu_peer_gbps(device[i], device[!i]) > 0);
    run_from(0);
    assert_product(0);
    assert_nothing_is_lent(table);
    for (int i = 0; i < MEMBERS; i++) {
        assert_told(&member[i]);
        assert_int_equal(member[i].copied.up[0] + member[i].copied.peer[0], BYTES);
        assert_true(member[i].copied.peer[0] > 0);
    }
    assert_int_equal(member[0].copied.up[0] + member[1].copied.up[0], BYTES);
    peer_tiles_free(table);
}

static void one_alone_brings_all(void **state)
{
    struct peer_tiles *table = make();
    (void)state;
    peer_tiles_leave(table, 0, false);
    run_from(1);
    assert_product(N / MEMBERS);
    assert_told(&member[1]);
    assert_int_equal(member[1].copied.up[0], BYTES);
    assert_int_equal(member[1].host.peer_bytes, 0);
    peer_tiles_free(table);
}

int main(void)
{
    /* The library, which is not loaded yet, reads them as it comes */
    setenv("TESTGPU_DEVICES", "2", 1);
    setenv("TESTGPU_PEER_GBPS", "8", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tile_comes_up_once),
        cmocka_unit_test(one_alone_brings_all),
    };
    return cmocka_run_group_tests(tests, start_both, stop_both);
}
