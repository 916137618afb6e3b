/* Decisions of calls whose operands the GPU can read in host memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "ops/op.h"
#include "tests/lib/decide_cases.h"

enum { PLACED_A = 1 << ACCEL_a, PLACED_B = 1 << ACCEL_b };

/* Grace: kernels read its memory at 450 GB/s, one thread copies 15 GB/s. */
static struct accel_machine grace(void)
{
    struct accel_machine m = machine(DEVICE_READY);
    m.place_gbps = 450;
    m.up_gbps = m.down_gbps = 15;
    return m;
}

/* A product whose operands are somewhere. */
static struct accel_call product_somewhere(int64_t m, int64_t n, int64_t k)
{
    struct accel_call call = product("dgemm", m, n, k);
    call.blas.scalar[ACCEL_beta].re = 1;
    for (int i = 0; i < 3; i++)
        call.span[i].ptr = (void *)((uintptr_t)(i + 1) << 40);
    return call;
}

static void reads_host_memory_in_place(void **state)
{
    const struct accel_machine host = grace();
    struct accel_settings settings = defaults;
    (void)state;
    /* Each element is read once for each 128 columns or rows of the result: 30 times as often as it
     * is copied, in as much time. */
    struct accel_call call = product_somewhere(2000, 2000, 2000);
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A | PLACED_B);
    call = product_somewhere(8192, 8192, 8192);
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, 0);
    call = product_somewhere(8192, 500, 8192); /* A is read 4 times, B 64 times */
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A);
    call = product_somewhere(500, 8192, 8192);
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_B);
    call = product_somewhere(8192, 8192, 8192);
    settings.c2c = ACCEL_C2C_PLACE;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A | PLACED_B);
    settings.c2c = ACCEL_C2C_MIGRATE;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A | PLACED_B);
    settings.c2c = ACCEL_C2C_COPY;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, 0);
    /* A device without the host's page tables copies, whatever is asked for. */
    const struct accel_machine other = machine(DEVICE_READY);
    settings.c2c = ACCEL_C2C_PLACE;
    assert_int_equal(decide_with(&call, &other, &settings, 4).placed, 0);
}

static void time_of_reading_in_place(void **state)
{
    const struct accel_machine host = grace();
    struct accel_settings copies = defaults, places = defaults, migrates = defaults;
    (void)state;
    copies.c2c = ACCEL_C2C_COPY;
    places.c2c = ACCEL_C2C_PLACE;
    migrates.c2c = ACCEL_C2C_MIGRATE;
    /* A vector times a matrix: its bytes at 450 GB/s in place of 15. */
    struct accel_call call = product_somewhere(4000, 1, 4000);
    const double bytes = 8.0 * (4000.0 * 4000 + 4000), in_place = bytes / 450e6,
                 copied = bytes / 15e6;
    assert_decision(&call, &host, &copies, false, ACCEL_SLOWER);
    assert_decision(&call, &host, &defaults, true, ACCEL_FASTER);
    double gained = decide_with(&call, &host, &copies, 4).est_gpu_ms -
                    decide_with(&call, &host, &defaults, 4).est_gpu_ms;
    /* B is read 4000 / 128 times, which takes longer than a copy. */
    assert_int_equal(decide_with(&call, &host, &defaults, 4).placed, PLACED_A);
    assert_true(gained > 0.99 * (copied - in_place) && gained < copied - in_place);
    /* In place, a large product reads its factors 64 times; moved, once. */
    call = product_somewhere(8192, 8192, 8192);
    const double factors = 2 * 8.0 * 8192 * 8192,
                 base = decide_with(&call, &host, &copies, 4).est_gpu_ms - factors / 15e6;
    const double place_ms = decide_with(&call, &host, &places, 4).est_gpu_ms - base;
    const double migrate_ms = decide_with(&call, &host, &migrates, 4).est_gpu_ms - base;
    assert_true(fabs(place_ms - 64 * factors / 450e6) < 1e-6 * place_ms);
    assert_true(fabs(migrate_ms - factors / 450e6) < 1e-6 * migrate_ms);
    /* In one memory, reading costs nothing more. */
    struct accel_machine spark = grace();
    spark.place_gbps = 273;
    spark.one_memory = true;
    assert_int_equal(decide_with(&call, &spark, &defaults, 4).placed, PLACED_A | PLACED_B);
    assert_true(fabs(decide_with(&call, &spark, &defaults, 4).est_gpu_ms - base) < 1e-6 * base);
}

static void what_is_never_read_in_place(void **state)
{
    struct accel_machine host = grace();
    struct accel_settings settings = defaults;
    struct accel_call call = product_somewhere(300, 300, 300);
    (void)state;
    settings.c2c = ACCEL_C2C_PLACE;
    settings.policy = ACCEL_POLICY_GPU;
    /* Kernels need elements at multiples of their size; a copy does not. */
    call.span[ACCEL_a].ptr = (char *)call.span[ACCEL_a].ptr + 4;
    assert_decision(&call, &host, &settings, true, ACCEL_FORCED);
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_B);
    call.span[ACCEL_b].ld = (int64_t)INT32_MAX + 1; /* beyond what old libraries take */
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, 0);
    /* What the CPU cannot read, and what is on the device, needs nothing. */
    call = product_somewhere(300, 300, 300);
    call.span[ACCEL_a].place = ACCEL_DEVICE;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_B);
    /* A result that is read, too: trmm and trsm overwrite B. */
    call = product_somewhere(300, 300, 300);
    call.routine = routine("dtrsm");
    call.op = accel_op_of(call.routine);
    call.span[ACCEL_b].access = ACCEL_READWRITE;
    call.span[ACCEL_c] = (struct accel_span){.ptr = NULL};
    memcpy(call.blas.flag,
           (char[sizeof call.blas.flag]){
               [ACCEL_side] = 'L', [ACCEL_uplo] = 'U', [ACCEL_transa] = 'N', [ACCEL_diag] = 'N'},
           sizeof call.blas.flag);
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A);
    /* With `auto`, inputs that stay on the device are worth their copy. */
    call = product_somewhere(300, 300, 300);
    host.caches = true;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A | PLACED_B);
    settings.c2c = ACCEL_C2C_AUTO;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, 0);
    /* One that has stayed there is used there. */
    host.caches = false;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A | PLACED_B);
    host.cached.operands = PLACED_B;
    assert_int_equal(decide_with(&call, &host, &settings, 4).placed, PLACED_A);
}

/* The schedule of a call whose kernels read operands in place is that of such a call: one kernel,
 * if all are there. */
static void schedules_in_place(void **state)
{
    struct accel_machine host = grace();
    struct accel_settings places = defaults;
    struct accel_call call = product_somewhere(3000, 3000, 3000);
    (void)state;
    places.c2c = ACCEL_C2C_PLACE;
    host.wants_all = true;
    host.schedule = schedule_nominal;
    host.schedule.up = host.schedule.down = 15;
    host.schedule.compute = 28e3;
    const double placed = decide_with(&call, &host, &places, 4).est_gpu_ms;
    for (int i = 0; i < 2; i++)
        call.span[i].place = ACCEL_PLACED;
    const double there = decide_with(&call, &host, &places, 4).est_gpu_ms;
    const double reads = 2 * 8.0 * 3000 * 3000 * (3000 / 128.0) / 450e6;
    assert_true(fabs(placed - there - reads) < 1e-6 * placed);
}

/* A batch by pointers is read in place if all of its matrices can be. */
static void batches_in_place(void **state)
{
    const struct accel_machine host = grace();
    struct accel_settings settings = defaults;
    struct accel_call call = product_somewhere(30, 30, 30);
    void *matrices[3] = {(void *)(uintptr_t)(1 << 20), (void *)(uintptr_t)(2 << 20),
                         (void *)(uintptr_t)(3 << 20)};
    (void)state;
    settings.c2c = ACCEL_C2C_PLACE;
    settings.policy = ACCEL_POLICY_GPU;
    call.routine = routine("dgemm_batch");
    call.op = accel_op_of(call.routine);
    call.batch = 3;
    call.span[ACCEL_a].array = matrices;
    call.span[ACCEL_b].stride = call.span[ACCEL_c].stride = 900;
    assert_true(decide_with(&call, &host, &settings, 4).placed & PLACED_A);
    matrices[2] = (void *)(uintptr_t)((3 << 20) + 4);
    assert_false(decide_with(&call, &host, &settings, 4).placed & PLACED_A);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_host_memory_in_place),
        cmocka_unit_test(time_of_reading_in_place),
        cmocka_unit_test(what_is_never_read_in_place),
        cmocka_unit_test(schedules_in_place),
        cmocka_unit_test(batches_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
