/*
 * Parts that lend each other tiles, in small cases: what the plan says that they take is what they
 * take by a plain simulation of all of them (tests/lib/lent_parts.h), whoever brings the first tile
 * up; and memory that is short while that is found out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "dispatch/cost/lending.h"
#include "dispatch/cost/split.h"
#include "dispatch/cost/together.h"
#include "dispatch/cost/triangle.h"
#include "ops/op.h"
#include "tests/lib/lent_parts.h"
#include "tests/lib/split_cases.h"

/* ---- Memory that is short ---- */

/* The linker sends the allocations of the sources here. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static long until_failure = -1, blocks; /* allocations that succeed; negative: all do */

static bool fails(void)
{
    return until_failure >= 0 && until_failure-- == 0;
}

static void *counted(void *memory)
{
    blocks += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (fails())
        return NULL;
    void *grown = __real_realloc(memory, bytes);
    blocks += !memory && grown;
    return grown;
}

void __wrap_free(void *memory)
{
    blocks -= memory != NULL;
    __real_free(memory);
}

/* ---- Parts ---- */

enum { ORDER = 1024, TILE = 256 };

/* Sets a part's loans, and a schedule of small tiles, the same ones for all parts. */
static void lend(struct split *split, const struct accel_call *call,
                 const struct split_device *device)
{
    struct schedule_params common = {.rows = TILE, .cols = TILE, .depth = TILE, .buffers = 2};
    for (int i = 0; i < split->count; i++) {
        split->part[i].device = i;
        split->part[i].rates = device[i].rates;
    }
    assert_true(lending_find(split->part, split->count, call, 0));
    for (int i = 0; i < split->count; i++) {
        const struct accel_call part = accel_cut_part(call, &split->part[i].region);
        assert_int_equal(lending_ms(&split->part[i], &part, device[i].memory_bytes, &common), 0);
    }
    split->ahead = -1; /* it is set anew */
}

/* A product in two strips, or in a grid of four blocks, of which the last one's device has no way
 * to others; a triangle in a grid of three groups. */
static void cut(struct split *split, struct accel_call *call, int parts)
{
    const int64_t half = ORDER / 2, edge[] = {0, 384, 640, ORDER};
    struct accel_region region[SPLIT_MOST];
    assert_true(split_call_of(call, parts == 3 ? "dsyrk" : "dgemm", ORDER, ORDER, ORDER));
    *split = (struct split){.count = parts};
    if (parts == 3)
        triangle_lay_out(region, parts, edge);
    for (int i = 0; i < parts; i++)
        split->part[i].region = parts == 3
                                    ? region[i]
                                    : (struct accel_region){parts == 4 ? i % 2 * half : 0,
                                                            (parts == 4 ? i / 2 : i) * half,
                                                            parts == 4 ? half : ORDER, half, 0};
}

/* Devices whose links differ: the fastest one, number `fast`, brings the first tile up. */
static void set_devices(struct split_device *device, int parts, int fast)
{
    for (int i = 0; i < parts; i++) {
        device[i] = split_device_of(400 + 100 * (i % 3), i == fast ? 12 : 5 + i);
        device[i].rates.peer = i == 3 ? 0 : 100;
    }
}

static double plain_ms(struct split split, const struct accel_call *call,
                       const struct split_device *device, int ahead)
{
    struct lent_times times;
    split.ahead = ahead;
    assert_true(lent_parts_run(&split, call, device, &times));
    assert_true(times.tiles > 0 && times.lent_bytes > 0);
    return times.ms;
}

static bool is_about(double a, double b)
{
    return fabs(a / b - 1) < 1e-9;
}

/* ---- What they take ---- */

static void as_they_run(void **state)
{
    int told = 0, whole = 0;
    (void)state;
    for (int parts = 2; parts <= 4; parts++)
        for (int fast = 0; fast < parts; fast++) {
            struct split_device device[SPLIT_MOST];
            struct accel_call call;
            struct split split;
            double last = 0;
            cut(&split, &call, parts);
            set_devices(device, parts, fast);
            lend(&split, &call, device);
            assert_true(together_ms(&split, &call, device));
            for (int i = 0; i < parts; i++) {
                assert_true(split.part[i].ms > 0);
                last = fmax(last, split.part[i].ms);
                whole += !split_lends(&split.part[i]);
            }
            assert_true(split.ms == last && split.ahead > 0);
            const double ms = plain_ms(split, &call, device, split.ahead);
            if (!is_about(split.ms, ms))
                fail_msg("%d parts, %d: %.17g ms, the plan says %.17g", parts, fast, ms, split.ms);
            /* It is not the only way, and none of the first two is shorter. */
            for (int way = 2; way <= 3; way++)
                assert_true(plain_ms(split, &call, device, (parts * way + 1) / 2) >=
                            ms * (1 - 1e-9));
            for (int ahead = 1; ahead < 20; ahead++) {
                const double other = plain_ms(split, &call, device, ahead);
                told += other > 0 && !is_about(other, ms);
            }
        }
    assert_true(told > 0 && whole > 0);
}

/* Each allocation fails, one after the other: that is said, and nothing is kept. */
static void without_memory(void **state)
{
    (void)state;
    for (int parts = 2; parts <= 3; parts++) {
        struct split_device device[SPLIT_MOST];
        struct accel_call call;
        struct split split;
        bool made = false;
        long count = 0;
        cut(&split, &call, parts);
        set_devices(device, parts, 1);
        lend(&split, &call, device);
        for (; !made; count++) {
            const long before = blocks;
            until_failure = count;
            made = together_ms(&split, &call, device);
            const bool none_failed = until_failure >= 0;
            until_failure = -1;
            assert_int_equal(blocks, before);
            assert_true(made == none_failed);
        }
        assert_true(count > 10);
        assert_true(is_about(split.ms, plain_ms(split, &call, device, split.ahead)));
    }
}

/* ---- Which calls are divided so ---- */

/* Two devices lend where both have a way to the other's memory. */
static void two_that_lend(void **state)
{
    struct split_device device[2];
    struct accel_call call;
    struct split split, apart;
    (void)state;
    assert_true(split_call_of(&call, "dgemm", 8192, 8192, 8192));
    for (int i = 0; i < 2; i++)
        device[i] = split_device_of(1.5e4, 50);
    split_make(&apart, &call, device, 2, 45);
    assert_true(apart.count == 2 && !split_any_lends(&apart));
    device[0].rates.peer = 300;
    split_make(&split, &call, device, 2, 45);
    assert_true(split.count == 2 && !split_any_lends(&split) && split.ms == apart.ms);
    device[1].rates.peer = 300;
    split_make(&split, &call, device, 2, 45);
    assert_true(split.count == 2 && split_any_lends(&split) && split.ms < apart.ms);
    assert_true(is_about(split.ms, plain_ms(split, &call, device, split.ahead) + 0.05));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_they_run),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(two_that_lend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
