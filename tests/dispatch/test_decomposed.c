/*
 * A call that is decomposed into inner ones, by a decomposition that the test makes itself, on a
 * device that it plays: the estimate, where inner calls run, what is added up, and what the program
 * gets.
 */
#include "base/file/shared_file.h"
#include "tests/lib/played_device.h"
#include "tests/lib/routine.h"
#include "tests/lib/problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output/message.h"
#include "dispatch/decomposed.h"
#include "dispatch/cost/cost.h"
#include "dispatch/verify.h"
#include "ops/decompose.h"
#include "ops/rules/lapack_rules.h"
#include "ops/typical.h"

enum { N = 4, LD = 7, INNER = 3 };

static struct accel_settings settings = {.on = true};
static const struct accel_ranks ranks = {.size = 1, .local_size = 1};
static struct dispatch_device device;
static struct played_device played;
static double matrix[LD * N], values[N];
static struct task task;
static struct accel_record record;
static int originals, events, runs;

/* ---- The decomposition, and the judgement of its results: this program is linked with --wrap for
 * both ---- */

static struct {
    int inner;
    double host_bytes;
    enum gpu_status ends, inner_status; /* unless an inner call fails; that of the last one */
    bool is_right, estimates;
} made;

enum gpu_status __wrap_spectral_decompose(struct decomposition *c, const struct accel_call *call,
                                          struct accel_call *done);
bool __wrap_verify_apart(struct gpu_device *gpu, const struct accel_call *call,
                         const struct accel_call *done);

static struct accel_call inner_call(const char *name, int64_t n)
{
    const int64_t size[ACCEL_DIMENSIONS] = {n, n, n, 1};
    struct accel_call inner;
    shape_typical(&inner, routine(name), size);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (inner.span[i].access)
            inner.span[i].ptr = (void *)((uintptr_t)(i + 1) << 40); /* nobody reads it */
    return inner;
}

static const char *inner_name = "dgemm";
static int64_t inner_size = 512;

enum gpu_status __wrap_spectral_decompose(struct decomposition *c, const struct accel_call *call,
                                          struct accel_call *done)
{
    const struct accel_call inner = inner_call(inner_name, inner_size);
    *done = *call;
    made.estimates = c->estimates;
    c->host_bytes += made.host_bytes;
    made.inner_status = GPU_OK;
    for (int i = 0; i < made.inner && made.inner_status == GPU_OK; i++)
        made.inner_status = c->run(c->context, &inner);
    if (c->estimates)
        return made.inner_status == GPU_OK ? made.ends : made.inner_status;
    double *const result = malloc(N * N * sizeof *result);
    for (int i = 0; i < N * N; i++)
        result[i] = 100 + i;
    done->span[ACCEL_a].ptr = result;
    done->span[ACCEL_a].ld = N;
    return made.inner_status == GPU_OK ? made.ends : made.inner_status;
}

bool __wrap_verify_apart(struct gpu_device *gpu, const struct accel_call *call,
                         const struct accel_call *done)
{
    assert_ptr_equal(gpu, &played.gpu);
    assert_ptr_equal(call->span[ACCEL_a].ptr, matrix);
    assert_ptr_not_equal(done->span[ACCEL_a].ptr, matrix);
    return made.is_right;
}

/* ---- The device and the library ---- */

static enum gpu_status status;
static bool library_fails;

static enum gpu_status run(struct played_device *on, const struct accel_call *call,
                           struct gpu_host *inner)
{
    (void)on;
    runs++;
    inner->up_bytes = 10;
    inner->down_bytes = 20;
    inner->peer_bytes = 30;
    inner->set_up = runs == 2;
    inner->blame = GPU_BLAME_ROUTINE;
    assert_true(inner->rates.up > 0 && inner->precision == GPU_NATIVE && !inner->caches);
    if (inner->event)
        inner->event(inner->context, &(struct gpu_event){.bytes = runs});
    if (gpu_is_finished(status) && status != GPU_OK && !inner->original(inner->context, call))
        return GPU_LOST;
    return status;
}

static void on_event(void *context, const struct gpu_event *event)
{
    assert_ptr_equal(context, &events);
    assert_int_equal(event->bytes, runs);
    events++;
}

static int four_threads(const struct dispatch_library *library)
{
    (void)library;
    return 4;
}

static bool run_by_library(const struct dispatch_library *library, const struct accel_call *call)
{
    (void)library;
    (void)call;
    originals++;
    return !library_fails;
}
static const struct dispatch_library library = {
    .name = "library", .threads = four_threads, .run = run_by_library};

static bool take_message(const char *message)
{
    (void)message;
    return true;
}

static int prepare(void **state)
{
    (void)state;
    play_device(&played, &device, 2);
    played.run = run;
    task = (struct task){.device = &device, .library = &library, .threads = 4};
    memset(&made, 0, sizeof made);
    made.inner = INNER;
    made.is_right = true;
    inner_name = "dgemm";
    inner_size = 512;
    status = GPU_OK;
    originals = events = runs = 0;
    library_fails = false;
    for (int i = 0; i < LD * N; i++)
        matrix[i] = -1;
    return 0;
}

static struct accel_call spectral(void)
{
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 1};
    struct accel_call call;
    shape_typical(&call, routine("dsyevd"), size);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call.span[i].access)
            call.span[i].ptr = i == ACCEL_a ? matrix : values;
    call.span[ACCEL_a].ld = LD;
    return call;
}

static enum gpu_status run_spectral(void)
{
    struct accel_call call = spectral();
    task.call = &call;
    problem_of(&task.problem, &call);
    task.host = (struct gpu_host){.event = on_event, .context = &events};
    record = record_of(&call, "dsyevd_", 1, (struct accel_decision){.gpu = true});
    return decomposed_run(&task, &record);
}

/* ---- Tests ---- */

static void what_may_be_decomposed(void **state)
{
    struct accel_call call = spectral();
    (void)state;
    assert_true(decomposed_may_be(&call));
    call.span[ACCEL_a].place = ACCEL_DEVICE;
    assert_false(decomposed_may_be(&call));
    call = inner_call("dpotrf", 10);
    assert_false(decomposed_may_be(&call));
    call = inner_call("dgemm", 10);
    assert_false(decomposed_may_be(&call));
}

/* The inner calls' estimates; passes of one thread over the host's memory, and eight over what is
 * judged, at 2 GB/s. */
static void estimates(void **state)
{
    struct accel_call call = spectral(), inner = inner_call("dgemm", 512);
    struct task alone = task;
    double judged = 0;
    (void)state;
    alone.call = &inner;
    select_inner(&alone);
    task_drop_plan(&alone);
    assert_true(alone.decision.est_own_ms > 0);
    for (int i = 0; i < ACCEL_SPANS; i++)
        judged += call.span[i].ptr ? 8.0 * (double)accel_bytes(&call.span[i]) : 0;
    assert_true(judged > 0);
    task.call = &call;
    for (made.inner = 0; made.inner < 4; made.inner++)
        for (made.host_bytes = 0; made.host_bytes < 3e6; made.host_bytes += 1e6) {
            const double expected =
                made.inner * alone.decision.est_own_ms + (made.host_bytes + judged) / 2e6;
            assert_true(fabs(decomposed_estimate(&task) / expected - 1) < 1e-9);
            assert_true(made.estimates);
        }
    assert_int_equal(runs, 0);
    made.ends = GPU_NO_MEMORY;
    assert_true(decomposed_estimate(&task) == 0);
}

/* What keeps an inner call from the device, other than its gain. */
static void obstacles(void **state)
{
    static const struct {
        const char *name;
        bool small_memory, is_left;
        enum gpu_status status;
    } expected[] = {{"dgemm", false, false, GPU_OK},
                    {"dpotri", false, false, GPU_OK},
                    {"dpotri", true, false, GPU_NO_MEMORY},
                    {"dgemm", false, true, GPU_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct accel_call call = spectral();
        prepare(state);
        inner_name = expected[i].name;
        if (expected[i].small_memory)
            device.memory_bytes = 1000;
        if (expected[i].is_left)
            quarantine_add(&device.quarantine, routine(inner_name), QUARANTINE_FAILED);
        made.inner = 1;
        task.call = &call;
        decomposed_estimate(&task);
        assert_int_equal(made.inner_status, expected[i].status);
        run_spectral();
        assert_int_equal(made.inner_status, expected[i].status);
        assert_int_equal(runs, expected[i].status == GPU_OK);
        assert_int_equal(is_full_for(&device.oom_backoff, &call),
                         expected[i].status == GPU_NO_MEMORY);
    }
}

static void what_is_delivered(void **state)
{
    (void)state;
    assert_int_equal(run_spectral(), GPU_OK);
    assert_false(made.estimates);
    assert_string_equal(record.ran, "gpu2");
    for (int j = 0; j < N; j++)
        for (int i = 0; i < LD; i++)
            assert_true(matrix[i + j * LD] == (i < N ? 100 + i + j * N : -1));
    assert_int_equal(runs, INNER);
    assert_int_equal(events, INNER);
    assert_int_equal(task.host.up_bytes, 10 * INNER);
    assert_int_equal(task.host.down_bytes, 20 * INNER);
    assert_int_equal(task.host.peer_bytes, 30 * INNER);
    assert_true(task.host.set_up);
    assert_true(warm_up_is_done(&device, routine("dgemm")));
    assert_true(contention_gpu_ms(&device.contention) == 0);
    assert_int_equal(originals, 0);
}

static void assert_nothing_is_written(enum gpu_status expected)
{
    assert_int_equal(run_spectral(), expected);
    for (int i = 0; i < LD * N; i++)
        assert_true(matrix[i] == -1);
    assert_string_equal(record.ran, "cpu");
}

static void what_is_not(void **state)
{
    (void)state;
    made.is_right = false;
    assert_nothing_is_written(GPU_UNSUPPORTED);
    made.is_right = true;
    made.inner = 0; /* it needs no device */
    assert_nothing_is_written(GPU_UNSUPPORTED);
    made.inner = INNER;
    made.ends = GPU_ERROR;
    assert_nothing_is_written(GPU_ERROR);
    const struct accel_call call = spectral();
    assert_false(is_full_for(&device.oom_backoff, &call));
    made.ends = GPU_OK;
    status = GPU_ERROR;
    runs = 0;
    assert_nothing_is_written(GPU_ERROR);
    assert_int_equal(runs, 1);
    assert_true(quarantine_has(&device.quarantine, routine("dgemm"), QUARANTINE_FAILED));
    /* What is lost is memory of our own. */
    prepare(state);
    status = GPU_LOST;
    assert_nothing_is_written(GPU_ERROR);
}

static void what_the_library_does(void **state)
{
    (void)state;
    status = GPU_SHORT_ELSE;
    assert_int_equal(run_spectral(), GPU_OK);
    assert_int_equal(originals, INNER);
    assert_string_equal(record.ran, "gpu2+cpu");
    assert_false(warm_up_is_done(&device, routine("dgemm")));
    prepare(state);
    status = GPU_SHORT_ELSE;
    library_fails = true;
    assert_nothing_is_written(GPU_ERROR);
}

static int start(void **state)
{
    (void)state;
    message_to(take_message);
    device_prepare(&settings, &ranks);
    shared_file_prepare();
    cost_start(&settings, 8, true, true);
    select_start(&settings, 8, true);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define PREPARED(test) cmocka_unit_test_setup(test, prepare)
        PREPARED(what_may_be_decomposed), PREPARED(estimates),   PREPARED(obstacles),
        PREPARED(what_is_delivered),      PREPARED(what_is_not), PREPARED(what_the_library_does),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
