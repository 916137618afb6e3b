/*
 * Calls over several devices that lend each other what several of their parts need, in virtual
 * time: all parts at the same time take as long as the plan says, each operand crosses the host's
 * memory once, and no call is slower than without loans, nor than on the best device alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cost/split_cache.h"
#include "gpu/plan/scheduled.h"
#include "ops/op.h"
#include "call/shape.h"
#include "tests/lib/lent_parts.h"
#include "tests/lib/long.h"
#include "tests/lib/split_cases.h"

static const char *const names[] = {"sgemm",  "dgemm", "zgemm", "dsyrk", "zherk",
                                    "dsyr2k", "dsymm", "dtrmm", "dtrsm", "dgemmt"};
enum { NAMES = sizeof names / sizeof *names };

/* Returns what the best device takes alone, by a schedule. */
static double alone_ms(const struct accel_call *call, const struct split_device *device, int count)
{
    double best = 0;
    for (int i = 0; i < count; i++) {
        struct scheduled scheduled;
        struct schedule s;
        assert_true(scheduled_describe(call, &scheduled));
        assert_true(schedule_make(&s, &scheduled.call, &device[i].rates, device[i].memory_bytes));
        best = i == 0 || s.ms < best ? s.ms : best;
        schedule_free(&s);
    }
    return best;
}

/* Returns the bytes of all operands that are read. */
static double read_bytes(const struct accel_call *call)
{
    double bytes = 0;
    for (int x = 0; x < ACCEL_SPANS; x++)
        if (call->span[x].ptr && accel_is_read(call, &call->span[x]))
            bytes += (double)accel_bytes(&call->span[x]);
    return bytes;
}

/* What it takes to hand out parts. */
static double hand_ms(const struct split *split)
{
    return 0.05 * (split->count - 1);
}

struct outcome {
    bool lends;
    double ms, plain_ms; /* without loans */
    double host_bytes;   /* up, with loans */
};

/* Divides a call and runs all of its parts. */
static struct outcome judge(const char *machine, const struct accel_call *call,
                            const struct split_device *device, int count, double host_gbps)
{
    struct split_device apart[SPLIT_MOST];
    struct split split, plain;
    struct lent_times times;
    const double alone = alone_ms(call, device, count);
    const char *const name = call->routine->name;
    memcpy(apart, device, (size_t)count * sizeof *apart);
    for (int i = 0; i < count; i++)
        apart[i].rates.peer = 0;
    split_make(&split, call, device, count, host_gbps);
    split_make(&plain, call, apart, count, host_gbps);
    struct outcome o = {.lends = split_any_lends(&split), .ms = alone};
    o.plain_ms = plain.count > 1 ? plain.ms : alone;
    assert_false(split_any_lends(&plain));
    if (split.count > 1)
        o.ms = split.ms;
    if (o.lends) {
        assert_true(lent_parts_run(&split, call, device, &times));
        if (times.ms < 0)
            fail_msg("%s, %s: its parts wait for each other", machine, name);
        o.ms = times.ms + hand_ms(&split);
    }
    if (o.lends && (fabs(o.ms / split.ms - 1) > 0.001 || times.tiles == 0 || times.lent_bytes <= 0))
        fail_msg("%s, %s: %.2f ms, the plan says %.2f", machine, name, o.ms, split.ms);
    o.host_bytes = o.lends ? times.host_bytes : 0;
    if (o.ms > o.plain_ms * 1.001 || o.ms > alone)
        fail_msg("%s, %s: %.2f ms, without loans %.2f, on one device %.2f", machine, name, o.ms,
                 o.plain_ms, alone);
    if (!o.lends && split.count > 1) /* as if there were no peers */
        assert_true(split.ms == plain.ms && split.count == plain.count);
    return o;
}

/* Equal and unequal devices, behind links that the host can keep busy, and behind those that it
 * cannot. */
static const struct machine {
    const char *name;
    int count;
    double gflops[8], gbps, peer_gbps, host_gbps;
} machines[] = {
    {"two H100, NVLink, a host of 45 GB/s", 2, {5e4, 5e4}, 50, 300, 45},
    {"four H100, NVLink, a host of 45 GB/s", 4, {5e4, 5e4, 5e4, 5e4}, 50, 300, 45},
    {"eight H100, NVLink, a host of 45 GB/s",
     8,
     {5e4, 5e4, 5e4, 5e4, 5e4, 5e4, 5e4, 5e4},
     50,
     300,
     45},
    {"two H100, NVLink", 2, {5e4, 5e4}, 50, 300, SPLIT_NO_LIMIT},
    {"four H100, NVLink", 4, {5e4, 5e4, 5e4, 5e4}, 50, 300, SPLIT_NO_LIMIT},
    {"eight H100, NVLink", 8, {5e4, 5e4, 5e4, 5e4, 5e4, 5e4, 5e4, 5e4}, 50, 300, SPLIT_NO_LIMIT},
    {"four H100, PCIe peers", 4, {5e4, 5e4, 5e4, 5e4}, 50, 25, 45},
    {"eight H100, PCIe peers", 8, {5e4, 5e4, 5e4, 5e4, 5e4, 5e4, 5e4, 5e4}, 50, 25, 45},
    {"three unequal", 3, {5e4, 3e4, 1e4}, 25, 100, 45},
    {"five unequal", 5, {5e4, 5e4, 2e4, 2e4, 1e4}, 25, 300, 45}};

static int devices_of(struct split_device *device, const struct machine *machine)
{
    for (int i = 0; i < machine->count; i++) {
        device[i] = split_device_of(machine->gflops[i], machine->gbps);
        device[i].rates.peer = machine->peer_gbps;
    }
    return machine->count;
}

/* As the plan says, everywhere; and where the host's memory is what limits a call, loans help. */
static void as_planned(void **state)
{
    int lent = 0, shorter = 0;
    (void)state;
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++)
        for (int64_t n = 8192; n <= 32768; n *= 2)
            for (int r = test_is_long() ? 0 : (int)m % 3; r < NAMES; r += test_is_long() ? 1 : 3) {
                const struct machine *machine = &machines[m];
                struct split_device device[SPLIT_MOST];
                struct accel_call call;
                const int count = devices_of(device, machine);
                assert_true(split_call_of(&call, names[r], n, n, n));
                const struct outcome o =
                    judge(machine->name, &call, device, count, machine->host_gbps);
                /* Unequal devices may have blocks of which few have the same lines. */
                if (machine->gflops[machine->count - 1] == machine->gflops[0] &&
                    o.host_bytes > read_bytes(&call) + 0.5)
                    fail_msg("%s, %s: %.4g bytes up, %.4g are read", machine->name, names[r],
                             o.host_bytes, read_bytes(&call));
                lent += o.lends;
                shorter += o.ms < 0.8 * o.plain_ms;
            }
    assert_true(test_is_long() ? lent > 200 && shorter > 75 : lent > 66 && shorter > 25);
}

/* Eight H100 with NVLink, whose links the host keeps busy: what is reached of the sum of the rates
 * that they reach alone, at least with loans, and at most without them. Nine tenths need order
 * 32768, or more work for each byte; a panel of ?trmm's triangle is too narrow for eight even then.
 * Below that, the first tiles of all come up before anything is computed, and products of small
 * tiles do not fill a device: of dgemm of order 16384, tiles of order 2048 reach 0.94 of its peak,
 * two of them take 1.3 ms to come up and one 0.7 to come down, of 27 ms in all. */
static void reached(void **state)
{
    static const struct {
        const char *name;
        int64_t n;
        double with, without;
    } cases[] = {
        {"dgemm", 16384, 0.87, 0.72}, {"zgemm", 16384, 0.94, 0.95},   {"dsyrk", 16384, 0.82, 0.54},
        {"zherk", 16384, 0.90, 0.91}, {"dsyr2k", 16384, 0.865, 0.54}, {"dsymm", 16384, 0.89, 0.79},
        {"dtrmm", 16384, 0.74, 0.48}, {"dtrsm", 16384, 0.825, 0.46},  {"dgemm", 32768, 0.95, 0.96},
        {"dsyrk", 32768, 0.92, 0.93}, {"dsyr2k", 32768, 0.94, 0.95},  {"dsymm", 32768, 0.96, 0.97},
        {"dtrmm", 32768, 0.88, 0.80}, {"dtrsm", 32768, 0.93, 0.84}};
    const struct machine *eight = &machines[5];
    struct split_device device[SPLIT_MOST];
    const int count = devices_of(device, eight);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct accel_call call;
        assert_true(split_call_of(&call, cases[i].name, cases[i].n, cases[i].n, cases[i].n));
        const struct outcome o = judge(eight->name, &call, device, count, SPLIT_NO_LIMIT);
        const double sum_ms = alone_ms(&call, device, count) / count;
        if (sum_ms / o.ms < cases[i].with || sum_ms / o.plain_ms > cases[i].without)
            fail_msg("%s %d: of the sum of the rates %.3f with loans, %.3f without", cases[i].name,
                     (int)cases[i].n, sum_ms / o.ms, sum_ms / o.plain_ms);
    }
}

/* All shapes and sides, and devices of any rates: whatever is lent, the parts do not wait for each
 * other for ever, and take as long as planned. */
static void any_shape(void **state)
{
    int lent = 0;
    (void)state;
    srand(11);
    for (int n = 0; n < (test_is_long() ? 200 : 80); n++) {
        struct split_device device[SPLIT_MOST];
        struct accel_call call;
        const int count = 2 + rand() % 7;
        for (int i = 0; i < count; i++) {
            device[i] = split_device_of(1e3 * (1 + rand() % 50), 5 + rand() % 50);
            device[i].rates.peer = rand() % 8 ? 20 + rand() % 300 : 0;
        }
        const int64_t most = 1 << (10 + rand() % 5);
        assert_true(split_call_of(&call, names[n % NAMES], most / 4 + rand() % most,
                                  most / 4 + rand() % most, most / 4 + rand() % most));
        if (call.blas.flag[ACCEL_uplo] && rand() % 2)
            call.blas.flag[ACCEL_uplo] = 'U';
        if (rand() % 3 == 0)
            call.blas.scalar[ACCEL_beta].re = 1;
        lent += judge("any", &call, device, count, 20 + rand() % 400).lends;
    }
    assert_true(lent > (test_is_long() ? 75 : 30));
}

/* Memory in which an operand's tiles do not all have slots: they would have to be brought up again
 * after another device has let go of them. */
static void little_memory(void **state)
{
    struct split_device device[SPLIT_MOST];
    struct accel_call call;
    struct split split;
    const int count = devices_of(device, &machines[1]);
    (void)state;
    assert_true(split_call_of(&call, "dgemm", 16384, 16384, 16384));
    split_make(&split, &call, device, count, 45);
    assert_true(split_any_lends(&split));
    for (int i = 0; i < count; i++)
        device[i].memory_bytes = 512 << 20;
    judge("little memory", &call, device, count, 45);
    split_make(&split, &call, device, count, 45);
    assert_false(split_any_lends(&split));
    for (int i = 0; i < count; i++)
        device[i].memory_bytes = (int64_t)1600 << 20; /* for one factor */
    judge("some memory", &call, device, count, 45);
}

/* A way from device to device that is hardly faster than that from the host is not worth its
 * trouble; nor is one that not all have. */
static void slow_peers(void **state)
{
    struct split_device device[SPLIT_MOST];
    struct accel_call call;
    struct split split, again;
    (void)state;
    assert_true(split_call_of(&call, "dgemm", 16384, 16384, 16384));
    const int count = devices_of(device, &machines[5]);
    for (int i = 0; i < count; i++)
        device[i].rates.peer = 1.2 * device[i].rates.up;
    split_make(&split, &call, device, count, SPLIT_NO_LIMIT);
    assert_true(split.count == 8 && !split_any_lends(&split));
    for (int i = 0; i < count; i++)
        device[i].rates.peer = 0;
    split_cache_make(&again, &call, device, count, SPLIT_NO_LIMIT);
    assert_true(again.ms == split.ms && again.count == split.count);
    for (int i = 0; i < count; i++)
        device[i].rates.peer = 300;
    /* What is remembered is another one */
    split_cache_make(&again, &call, device, count, SPLIT_NO_LIMIT);
    assert_true(split_any_lends(&again));
    split_make(&split, &call, device, count, SPLIT_NO_LIMIT);
    assert_true(again.ms == split.ms && again.ahead == split.ahead);
    assert_true(split_call_of(&call, "dgemm_batch_strided", 512, 512, 512));
    split_make(&split, &call, device, count, SPLIT_NO_LIMIT);
    assert_false(split_any_lends(&split));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_planned), cmocka_unit_test(reached),
                                       cmocka_unit_test(any_shape), cmocka_unit_test(little_memory),
                                       cmocka_unit_test(slow_peers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
