/*
 * Squared distances on the device (gpu/exec/ml/distances.h): those of plain loops to the last bit,
 * in both layouts and in any number of blocks; how much memory a block takes; numbers that are none
 * and memory that is short; what is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "gpu/exec/ml/distances.h"
#include "gpu/own/distances.h"
#include "tests/lib/device_work.h"

/* ---- Points ---- */

static double *some_values(int64_t count)
{
    double *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)rand() / RAND_MAX - 0.3;
    return values;
}

static double feature_of(const struct point_set *x, int64_t features, int64_t i, int64_t f)
{
    return x->values[x->by_feature ? i + f * x->count : i * features + f];
}

static double distance_of(const struct distances *d, int64_t query, int64_t point)
{
    volatile double sum = 0; /* so that no compiler fuses a product with a sum */
    for (int64_t f = 0; f < d->features; f++) {
        const double difference = feature_of(&d->queries, d->features, query, f) -
                                  feature_of(&d->train, d->features, point, f);
        const volatile double square = difference * difference;
        sum += square;
    }
    return sum;
}

static struct distances make(int64_t points, int64_t queries, int64_t features, bool by_feature)
{
    return (struct distances){
        .work = &work,
        .train = {some_values(points * features), points, by_feature},
        .queries = {some_values(queries * features), queries, by_feature},
        .features = features,
    };
}

static void end(struct distances *d)
{
    distances_end(d);
    free((void *)(uintptr_t)d->train.values);
    free((void *)(uintptr_t)d->queries.values);
}

/* Computes all, a block after the other, and compares. Returns the number of blocks. */
static int compute_all(struct distances *d)
{
    int blocks = 0;
    distances_begin(d);
    assert_int_equal(d->status, GPU_OK);
    assert_in_range(d->most, 1, d->queries.count);
    for (int64_t first = 0; first < d->queries.count; first += d->most, blocks++) {
        const int64_t count = accel_min(d->most, d->queries.count - first);
        distances_compute(d, first);
        distances_fetch(d, count);
        assert_int_equal(d->status, GPU_OK);
        for (int64_t q = 0; q < count; q++)
            for (int64_t i = 0; i < d->train.count; i++)
                if (d->down[q * d->train.count + i] != distance_of(d, first + q, i))
                    fail_msg("query %d, point %d", (int)(first + q), (int)i);
    }
    return blocks;
}

static int copies_up, copies_down;

static void count_copies(void *context, const struct gpu_event *event)
{
    (void)context;
    copies_up += event->kind == GPU_EVENT_H2D;
    copies_down += event->kind == GPU_EVENT_D2H;
}

static void as_plain_loops(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1},
                                        {DISTANCES_THREADS + 1, DISTANCES_QUERIES, 3},
                                        {40, DISTANCES_QUERIES + 1, DISTANCES_FEATURES},
                                        {37, 3 * DISTANCES_QUERIES - 1, DISTANCES_FEATURES + 1}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int by_feature = 0; by_feature < 2; by_feature++) {
            struct distances d = make(shapes[i][0], shapes[i][1], shapes[i][2], by_feature);
            host.up_bytes = host.down_bytes = copies_up = copies_down = 0;
            host.event = count_copies;
            assert_int_equal(compute_all(&d), 1);
            assert_int_equal(host.up_bytes, 8 * (shapes[i][0] + shapes[i][1]) * shapes[i][2]);
            assert_int_equal(host.down_bytes, 8 * shapes[i][0] * shapes[i][1]);
            assert_true(copies_up == 2 && copies_down == 1);
            end(&d);
        }
}

/* ---- Memory ---- */

/* A block takes at most half of the free memory, and has a whole number of the kernel's groups of
 * queries. */
static void a_block_leaves_memory_to_others(void **state)
{
    const int64_t budget = device->budget, points = 500;
    (void)state;
    for (int by_feature = 0; by_feature < 2; by_feature++) {
        struct distances d = make(points, 100, 5, by_feature);
        gpu_trim(&device->common);
        device->budget = 256 << 10;
        const int64_t free_bytes = gpu_memory(&work)->available(&work), each = (points + 5) * 8;
        assert_in_range(compute_all(&d), 4, 100 / DISTANCES_QUERIES + 1);
        assert_int_equal(d.most % DISTANCES_QUERIES, 0);
        assert_true(d.most * each <= free_bytes / 2);
        assert_true((d.most + DISTANCES_QUERIES) * each > free_bytes / 4);
        end(&d);
        assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    }
    device->budget = budget;
}

/* A block has no more bytes than about what the host's caches hold. */
static void a_block_has_a_limit(void **state)
{
    struct distances d = make(10000, 2000, 1, false);
    (void)state;
    distances_begin(&d);
    assert_int_equal(d.status, GPU_OK);
    assert_in_range(d.most * 10001 * 8, (32 << 20) - DISTANCES_QUERIES * 10001 * 8, 32 << 20);
    end(&d);
}

/* One point has many distances: at least so many queries go at once, if there is memory at all. */
static void memory_that_is_short_is_told(void **state)
{
    const int64_t budget = device->budget;
    int failed = 0;
    (void)state;
    for (int64_t most = 4 << 10; most <= 256 << 10; most *= 2) {
        struct distances d = make(1000, 20, 2, false);
        gpu_trim(&device->common);
        device->budget = most;
        distances_begin(&d);
        assert_true(d.status == GPU_OK || d.status == GPU_NO_MEMORY);
        failed += d.status == GPU_NO_MEMORY;
        distances_compute(&d, 0); /* does nothing after a failure */
        distances_fetch(&d, accel_min(d.most, d.queries.count));
        assert_true(d.status == GPU_OK || failed > 0);
        end(&d);
        assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    }
    device->budget = budget;
    assert_in_range(failed, 2, 6);
}

static void more_bytes_than_there_are_numbers(void **state)
{
    (void)state;
    for (int shift = 60; shift <= 62; shift++) {
        struct distances d = make(1, 1, 1, false);
        d.train.count = (int64_t)1 << shift;
        d.features = shift == 62 ? 4 : 1;
        distances_begin(&d);
        assert_int_equal(d.status, GPU_NO_MEMORY);
        end(&d);
    }
}

/* ---- Numbers that are none ---- */

/* The program's own code knows what becomes of them; no distance comes down. */
static void what_is_not_finite_is_refused(void **state)
{
    static const double values[] = {NAN, INFINITY};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct distances d = make(9, 11, 2, false);
        struct point_set *x = i % 2 ? &d.queries : &d.train;
        host.down_bytes = 0;
        ((double *)(uintptr_t)x->values)[2 * x->count - 1] = values[i / 2];
        distances_begin(&d);
        assert_int_equal(d.status, i % 2 ? GPU_OK : GPU_UNSUPPORTED);
        distances_compute(&d, 0);
        assert_int_equal(d.status, GPU_UNSUPPORTED);
        distances_fetch(&d, 1);
        assert_int_equal(d.status, GPU_UNSUPPORTED);
        assert_int_equal(host.down_bytes, 0);
        assert_false(distances_note(&d, GPU_ERROR)); /* the first failure stays */
        assert_int_equal(d.status, GPU_UNSUPPORTED);
        end(&d);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(as_plain_loops),
        TEST(a_block_leaves_memory_to_others),
        TEST(a_block_has_a_limit),
        TEST(memory_that_is_short_is_told),
        TEST(more_bytes_than_there_are_numbers),
        TEST(what_is_not_finite_is_refused),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
