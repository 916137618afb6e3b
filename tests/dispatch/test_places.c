/* Places whose calls lose time on the GPU: which runs count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "call/shape.h"
#include "dispatch/cost/misprediction.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

enum { KEY = 77 };

/* A place that has gained for long is sent back soon after the machine has changed for good. */
static void what_lasts_is_seen(void **state)
{
    struct mispredictions *const mispredictions = calloc(1, sizeof *mispredictions);
    int runs = 0;
    (void)state;
    assert_non_null(mispredictions);
    for (int i = 0; i < 1000; i++)
        misprediction_note(mispredictions, KEY, 5, 10);
    while (!misprediction_is_lost(mispredictions, KEY) && runs < 100) {
        misprediction_note(mispredictions, KEY, 1000, 10);
        runs++;
    }
    assert_in_range(runs, 2, 12);
    free(mispredictions);
}

/* Notes runs at one place, of the CPU's time 100 ms. Returns the number of the run that sends it
 * back; 0: none. */
static int runs(const double *gpu_ms, int count)
{
    struct mispredictions *const mispredictions = calloc(1, sizeof *mispredictions);
    int sent_back = 0;
    assert_non_null(mispredictions);
    for (int i = 0; i < count; i++) {
        if (misprediction_note(mispredictions, KEY, gpu_ms[i], 100) == MISPREDICTION_SENT_BACK)
            sent_back = i + 1;
        assert_int_equal(misprediction_is_lost(mispredictions, KEY), sent_back > 0);
    }
    free(mispredictions);
    return sent_back;
}
#define RUNS(...)                                                                                  \
    runs((const double[]){__VA_ARGS__}, sizeof(double[]){__VA_ARGS__} / sizeof(double))

static void one_that_loses_is_sent_back(void **state)
{
    (void)state;
    assert_int_equal(RUNS(500, 150, 150), 3);
    assert_int_equal(RUNS(50, 250), 2); /* the first does not count */
    assert_int_equal(RUNS(3000), 1);    /* but a very long one does */
    assert_int_equal(RUNS(90, 110, 110, 110), 0);
    assert_int_equal(RUNS(500, 90, 110, 90), 0);
}

static void one_run_that_is_stopped_tells_nothing(void **state)
{
    (void)state;
    assert_int_equal(RUNS(50, 50, 50, 50, 4000, 50, 50), 0);
    assert_int_equal(RUNS(50, 50, 4000, 50, 50), 0);
    assert_int_equal(RUNS(50, 50, 4000, 4000), 4);
    assert_int_equal(RUNS(50, 50, 50, 50, 50, 300, 300, 300), 7); /* the machine has changed */
}

/* ---- A plain version ---- */

struct plain {
    int runs, losses;
    bool gained, lost_last, sent_back;
    double gpu_ms, cpu_ms;
};

/* By the rules that misprediction.c begins with. *setup_ms: lost in long first runs so far. */
static enum misprediction_verdict plain_note(struct plain *p, double gpu_ms, double cpu_ms,
                                             double *setup_ms)
{
    const double loss = gpu_ms - cpu_ms;
    const bool first = ++p->runs == 1, setup = first && (loss <= 100 || *setup_ms + loss <= 2000);
    if (setup && loss > 100)
        *setup_ms += loss;
    if (!setup) {
        const bool loses = gpu_ms > 1.25 * cpu_ms;
        if (p->gained && !p->lost_last && gpu_ms > 4 * cpu_ms)
            gpu_ms = 4 * cpu_ms;
        p->losses += loses ? 1 : 0;
        p->gained = p->gained || !loses;
        p->lost_last = loses;
        p->gpu_ms += gpu_ms;
        p->cpu_ms += cpu_ms;
    }
    const bool known = p->runs > 2 || p->gpu_ms - p->cpu_ms > 100;
    if (!p->sent_back && known && p->gpu_ms > 1.25 * p->cpu_ms && p->losses > (p->gained ? 1 : 0)) {
        p->sent_back = true;
        return MISPREDICTION_SENT_BACK;
    }
    return p->runs < 3 ? MISPREDICTION_EARLY : MISPREDICTION_USUAL;
}

static void any_runs(void **state)
{
    static const double cpu[] = {1, 40, 100, 700};
    static const double times[] = {0.5, 0.9, 1, 1.2, 1.25, 1.3, 2, 3, 3.9, 4.5, 20};
    int sent_back = 0, setups = 0;
    (void)state;
    srand(9);
    for (int round = 0; round < 400; round++) {
        struct mispredictions *const mispredictions = calloc(1, sizeof *mispredictions);
        struct plain plain[8] = {{.runs = 0}};
        double setup_ms = 0;
        assert_non_null(mispredictions);
        const int kinds = 1 + rand() % 11;
        for (int n = 0; n < 60; n++) {
            const int place = rand() % 8;
            const double cpu_ms = cpu[rand() % 4], gpu_ms = times[rand() % kinds] * cpu_ms;
            const enum misprediction_verdict verdict =
                misprediction_note(mispredictions, 1000 + (uint64_t)place, gpu_ms, cpu_ms);
            assert_int_equal(verdict, plain_note(&plain[place], gpu_ms, cpu_ms, &setup_ms));
            sent_back += verdict == MISPREDICTION_SENT_BACK;
            for (int i = 0; i < 8; i++)
                assert_int_equal(misprediction_is_lost(mispredictions, 1000 + (uint64_t)i),
                                 plain[i].sent_back);
        }
        setups += setup_ms > 0;
        assert_true(mispredictions->setup_ms == setup_ms);
        free(mispredictions);
    }
    assert_true(sent_back > 200 && setups > 100);
}

/* At the limits: 2000 ms together are no loss yet, nor are 100 ms, or a quarter more. */
static void limits(void **state)
{
    (void)state;
    assert_int_equal(RUNS(2100), 0);
    assert_int_equal(RUNS(2101), 1);
    assert_int_equal(RUNS(50, 200), 0);
    assert_int_equal(RUNS(50, 201), 2);
    assert_int_equal(RUNS(50, 125, 125, 125, 125), 0);
    assert_int_equal(RUNS(50, 126, 126), 3);
}

/* ---- Keys ---- */

static uint64_t key_of(uintptr_t site, const char *name, int64_t m, int64_t n, int64_t k,
                       int64_t batch)
{
    const int64_t size[ACCEL_DIMENSIONS] = {m, n, k, 0};
    struct accel_call call;
    shape_typical(&call, routine(name), size);
    call.batch = batch;
    return call_site_key(site, &call);
}

/* A place is where a routine is called with sizes between the same powers of two. */
static void keys(void **state)
{
    const uint64_t key = key_of(4711, "dgemm", 64, 100, 127, 1);
    (void)state;
    assert_true(key != 0 && key == key_of(4711, "dgemm", 127, 64, 64, 1));
    const uint64_t others[] = {
        key_of(4712, "dgemm", 64, 100, 127, 1), key_of(4711, "sgemm", 64, 100, 127, 1),
        key_of(4711, "dgemm", 63, 100, 127, 1), key_of(4711, "dgemm", 128, 100, 127, 1),
        key_of(4711, "dgemm", 64, 128, 127, 1), key_of(4711, "dgemm", 64, 63, 127, 1),
        key_of(4711, "dgemm", 64, 100, 128, 1), key_of(4711, "dgemm", 64, 100, 0, 1),
        key_of(4711, "dgemm", 64, 100, 1, 1),   key_of(4711, "dgemm", 64, 100, 127, 2),
        key_of(4711, "dgemm", 64, 128, 64, 1),  key_of(4711, "dgemm", 64, 64, 128, 1)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(others[i] != key);
    assert_true(others[7] != others[8] && others[4] == others[10] && others[6] == others[11]);
}

/* splitmix64's last steps, and back: its factors' inverses modulo 2^64. */
/* A key of 0 would be a free place. */
static void no_key_is_free(void **state)
{
    (void)state;
    for (uintptr_t site = 0; site < 1000; site++)
        assert_true(key_of(site, "dgemm", 64, 64, 64, 1) >> 63);
}

/* Keys of one remainder share eight places; the first ones keep theirs. */
static void the_first_ones_are_known(void **state)
{
    enum { PLACES = 8 };
    struct mispredictions *const mispredictions = calloc(1, sizeof *mispredictions);
    (void)state;
    assert_non_null(mispredictions);
    for (int n = 0; n <= PLACES; n++) {
        const uint64_t key = 4095 + (uint64_t)n * MISPREDICTION_PLACES;
        assert_false(misprediction_is_lost(mispredictions, key));
        assert_int_equal(misprediction_note(mispredictions, key, 9000, 100),
                         n < PLACES ? MISPREDICTION_SENT_BACK : MISPREDICTION_USUAL);
        assert_int_equal(misprediction_is_lost(mispredictions, key), n < PLACES);
    }
    for (int n = 0; n < PLACES; n++)
        assert_true(
            misprediction_is_lost(mispredictions, 4095 + (uint64_t)n * MISPREDICTION_PLACES));
    free(mispredictions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_loses_is_sent_back),
        cmocka_unit_test(one_run_that_is_stopped_tells_nothing),
        cmocka_unit_test(what_lasts_is_seen),
        cmocka_unit_test(any_runs),
        cmocka_unit_test(limits),
        cmocka_unit_test(keys),
        cmocka_unit_test(no_key_is_free),
        cmocka_unit_test(the_first_ones_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
