/*
 * The life of a device as the dispatcher knows it: who starts it, who waits for that, what is said,
 * what a child of a fork has of it. The test plays the device, its thread and the clock.
 */
#include "base/file/shared_file.h"
#include "tests/lib/own_clock.h"
#include "tests/lib/played_device.h"
#include "tests/lib/routine.h"
#include "tests/lib/sanitized.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output/message.h"
#include "base/thread/forks.h"
#include "dispatch/cost/cost.h"
#include "dispatch/decision_cache.h"
#include "dispatch/device.h"
#include "dispatch/dispatch.h"
#include "ops/op.h"

static struct accel_settings settings = {.on = true};
static struct accel_ranks ranks = {.size = 1, .local_size = 1};
static struct dispatch_device device;
static struct played_device played;

/* ---- What the program is linked with --wrap for ---- */

static struct gpu_config config; /* of the last start */
static struct gpu_info info;
static int starts, threads, timed, runs;
static bool is_there, is_gone, has_threads, locks, signals_are_held, holds;
static sem_t inside, go_on;
static void *(*thread_run)(void *context);
static void *thread_context;

struct gpu_device *__wrap_gpu_start(const struct gpu_config *with, char why[GPU_FAILURE_BYTES]);
bool __wrap_gpu_is_gone(void);
bool __wrap_thread_spawn(void *(*run)(void *context), void *context, size_t stack_bytes);
bool __wrap_monotonic_timed_lock(pthread_mutex_t *lock, double most_ms);
bool __real_monotonic_timed_lock(pthread_mutex_t *lock, double most_ms);

struct gpu_device *__wrap_gpu_start(const struct gpu_config *with, char why[GPU_FAILURE_BYTES])
{
    sigset_t held;
    config = *with;
    starts++;
    pthread_sigmask(SIG_BLOCK, NULL, &held);
    signals_are_held = sigismember(&held, SIGTERM) == 1;
    if (holds) {
        sem_post(&inside);
        sem_wait(&go_on);
    }
    strcpy(why, is_there ? "" : "told not to be there");
    return is_there ? &played.gpu : NULL;
}

bool __wrap_gpu_is_gone(void)
{
    return is_gone;
}

bool __wrap_thread_spawn(void *(*run)(void *context), void *context, size_t stack_bytes)
{
    (void)stack_bytes;
    threads++;
    thread_run = run;
    thread_context = context;
    errno = EAGAIN;
    return has_threads;
}

bool __wrap_monotonic_timed_lock(pthread_mutex_t *lock, double most_ms)
{
    timed++;
    assert_true(most_ms >= 1000);
    return locks && __real_monotonic_timed_lock(lock, most_ms);
}

/* ---- Around the device ---- */

static int messages;
static char message[1000];

static bool take_message(const char *text)
{
    messages++;
    snprintf(message, sizeof message, "%s", text);
    return true;
}

static enum gpu_status run(struct played_device *on, const struct accel_call *call,
                           struct gpu_host *host)
{
    const struct accel_span *const x = &call->span[ACCEL_c];
    (void)on;
    (void)host;
    runs++;
    /* A call that could be made: each operand is there. Matrices are the identity. */
    for (int i = 0; i < ACCEL_SPANS; i++)
        assert_int_equal(call->span[i].ptr != NULL, call->span[i].access != 0);
    if (call->routine->dtype == ACCEL_FLOAT64 && x->access)
        for (int64_t j = 0; j < x->cols; j++)
            for (int64_t i = 0; i < x->rows; i++)
                assert_true(*(double *)gpu_element(x, i, j) == (i == j));
    return GPU_OK;
}

static int prepare(void **state)
{
    (void)state;
    settings = (struct accel_settings){.on = true, .memory_share = 0.8};
    ranks = (struct accel_ranks){.size = 1, .local_size = 1};
    play_device(&played, &device, 3);
    played.run = run;
    info = played.gpu.info;
    memset(&device, 0, sizeof device);
    starts = threads = timed = runs = messages = 0;
    is_there = has_threads = locks = true;
    is_gone = holds = false;
    thread_run = NULL;
    return 0;
}

static void start_now(void)
{
    device_start_now(&device, DEVICE_SOME_SECONDS);
}

static void be_ready(void)
{
    start_now();
    assert_int_equal(device_state(&device), DEVICE_READY);
    messages = 0;
}

/* ---- One that is not there; before any other one has been used ---- */

static void what_is_said_of_none(void **state)
{
    prepare(state);
    is_there = false;
    start_now();
    assert_int_equal(device_state(&device), DEVICE_ABSENT);
    assert_int_equal(messages, 0);
    assert_true(device_has_failure(&device));
    assert_string_equal(device_failure(&device), "told not to be there");
    assert_null(device_gpu(&device));
    for (int i = 0; i < 3; i++)
        for (int gone = 0; gone < 2; gone++) {
            prepare(state);
            is_there = false;
            is_gone = gone;
            settings.policy = i == 0 ? ACCEL_POLICY_GPU : ACCEL_POLICY_AUTO;
            settings.log = i == 1 ? ACCEL_LOG_DECISIONS : ACCEL_LOG_OFF;
            settings.devices.kind = i == 2 ? ACCEL_DEVICES_LIST : ACCEL_DEVICES_AUTO;
            start_now();
            assert_int_equal(device_state(&device), DEVICE_ABSENT);
            assert_int_equal(messages, !gone);
            assert_true(gone || strcmp(message, "no GPU is used: told not to be there") == 0);
        }
    start_now(); /* it stays absent */
    assert_int_equal(starts, 1);
}

/* After another one has been used, only a log tells. */
static void what_is_said_of_no_further_one(void **state)
{
    be_ready();
    for (int i = 0; i < 4; i++) {
        prepare(state);
        is_there = false;
        is_gone = i == 3;
        settings.policy = i == 1 ? ACCEL_POLICY_GPU : ACCEL_POLICY_AUTO;
        settings.log = i >= 2 ? ACCEL_LOG_DECISIONS : ACCEL_LOG_OFF;
        start_now();
        assert_int_equal(device_state(&device), DEVICE_ABSENT);
        assert_int_equal(messages, i == 2);
    }
    assert_int_equal(messages, 0);
}

/* ---- One that starts ---- */

static void what_a_start_makes_of_it(void **state)
{
    static const int three[] = {1, 2, 3};
    sigset_t held;
    (void)state;
    played.gpu.info.sharers = 2;
    ranks.local_rank = 5;
    ranks.local_size = 6;
    settings.cuda_dir = "/cuda";
    settings.memory_bytes = 4711;
    start_now();
    assert_int_equal(device_state(&device), DEVICE_READY);
    assert_string_equal(device.name, "gpu3");
    assert_string_equal(device.cpu_name, "gpu3+cpu");
    assert_int_equal(device.memory_bytes, info.memory_bytes);
    assert_int_equal(device.sharers, 2);
    assert_ptr_equal(device_gpu(&device), &played.gpu);
    assert_non_null(atomic_load(&device.curves));
    assert_int_equal(device.starter, getpid());
    assert_int_equal(messages, 0);
    assert_int_equal(runs, 0); /* who waits for it does not wait for a warm-up */
    assert_false(device_has_failure(&device));
    assert_string_equal(device_failure(&device), "no reason known");
    assert_true(signals_are_held);
    pthread_sigmask(SIG_BLOCK, NULL, &held);
    assert_int_equal(sigismember(&held, SIGTERM), 0);
    assert_string_equal(config.cuda_dir, "/cuda");
    assert_true(config.memory_share == 0.8 && config.memory_bytes == 4711);
    assert_true(!config.several && !config.devices && config.device_count == 0);
    assert_true(config.local_rank == 5 && config.local_size == 6);
    start_now();
    assert_int_equal(starts, 1);
    /* By the user's list; all. */
    prepare(state);
    settings.devices = (struct accel_devices){.kind = ACCEL_DEVICES_LIST, .count = 1};
    start_now();
    assert_true(!config.several && config.devices == settings.devices.number);
    assert_int_equal(config.device_count, 1);
    prepare(state);
    settings.devices = (struct accel_devices){.kind = ACCEL_DEVICES_LIST, .count = 3};
    memcpy(settings.devices.number, three, sizeof three);
    start_now();
    assert_true(config.several && config.device_count == 3);
    prepare(state);
    settings.devices.kind = ACCEL_DEVICES_ALL;
    start_now();
    assert_true(config.several && !config.devices && config.device_count == 0);
}

static void what_is_said_of_a_start(void **state)
{
    for (int i = 0; i < 3; i++) {
        prepare(state);
        strcpy(played.gpu.info.passed_over, "gpu0 (is busy)");
        settings.log = i == 1 ? ACCEL_LOG_DECISIONS : ACCEL_LOG_OFF;
        settings.devices.kind = i == 2 ? ACCEL_DEVICES_LIST : ACCEL_DEVICES_AUTO;
        start_now();
        assert_int_equal(messages, i > 0);
    }
    assert_string_equal(message, "gpu3 is used; passed over: gpu0 (is busy)");
    /* Operands in place, on a device that does not reach them. */
    static const enum accel_c2c c2c[] = {ACCEL_C2C_AUTO, ACCEL_C2C_COPY, ACCEL_C2C_PLACE,
                                         ACCEL_C2C_MIGRATE};
    for (int i = 0; i < 4; i++)
        for (int tables = 0; tables < 2; tables++)
            for (int rank = 0; rank < 2; rank++) {
                prepare(state);
                settings.c2c = c2c[i];
                played.gpu.info.host_page_tables = tables;
                ranks.local_rank = rank;
                start_now();
                assert_int_equal(messages, i >= 2 && !tables && rank == 0);
                if (messages)
                    assert_non_null(strstr(message, i == 2 ? "=place:" : "=migrate:"));
            }
}

/* A thread is to start it, and has not got to that. */
static void one_that_another_thread_is_to_start(void **state)
{
    (void)state;
    atomic_store(&device.state, DEVICE_STARTING);
    start_now();
    assert_int_equal(device_state(&device), DEVICE_READY);
    assert_int_equal(starts, 1);
}

/* ---- On a thread of its own ---- */

static void gains_that_are_worth_a_start(void **state)
{
    static const double enough[][4] = {
        {DEVICE_GAIN_MS}, {20, 20, 10}, {DEVICE_GAIN_MS - 1, 1}, {1e12}};
    for (size_t i = 0; i < sizeof enough / sizeof *enough; i++) {
        prepare(state);
        for (int j = 0; j < 4 && enough[i][j] > 0; j++) {
            assert_int_equal(threads, 0);
            errno = 77;
            device_note_gain(&device, enough[i][j]);
            assert_int_equal(errno, 77);
        }
        assert_int_equal(threads, 1);
        assert_int_equal(device_state(&device), DEVICE_STARTING);
        device_note_gain(&device, 1000);
        assert_int_equal(threads, 1);
        thread_run(thread_context);
        assert_int_equal(device_state(&device), DEVICE_READY);
        assert_int_equal(starts, 1);
    }
    assert_false(device_has_no_thread(&device));
    device_note_gain(&device, 1000);
    assert_int_equal(threads, 1);
    prepare(state);
    device_note_gain(&device, DEVICE_GAIN_MS - 0.1);
    assert_int_equal(threads, 0);
    /* Who must have it has started it before the thread. */
    device_note_gain(&device, DEVICE_GAIN_MS);
    start_now();
    thread_run(thread_context);
    assert_int_equal(starts, 1);
}

/* That thread runs the first product of each type that is not complex. */
static void products_are_warm(void **state)
{
    int products = 0;
    (void)state;
    device_note_gain(&device, 1000);
    thread_run(thread_context);
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const struct accel_routine *routine = &accel_routines[i];
        const bool product = accel_op_of(routine)->cost->sample == ACCEL_SAMPLE_PRODUCT &&
                             !accel_is_complex(routine->dtype);
        products += product;
        assert_int_equal(warm_up_is_done(&device, routine), product);
    }
    assert_int_equal(runs, products);
    assert_true(products >= 2);
}

static void no_thread_can_be_made(void **state)
{
    for (int logs = 0; logs < 2; logs++) {
        prepare(state);
        has_threads = false;
        settings.log = logs ? ACCEL_LOG_DECISIONS : ACCEL_LOG_OFF;
        errno = 77;
        device_note_gain(&device, 1000);
        assert_int_equal(errno, 77);
        assert_int_equal(device_state(&device), DEVICE_UNTRIED);
        assert_true(device_has_no_thread(&device));
        assert_int_equal(messages, logs);
        device_note_gain(&device, 1000);
        assert_int_equal(threads, 1);
        start_now(); /* a call that must have it still does */
        assert_int_equal(device_state(&device), DEVICE_READY);
    }
}

/* ---- Waits for that thread ---- */

static int pauses, ready_after;
static double nap_takes_ms; /* negative: what it asks for */

static void pause_here(void *context, void (*wait)(void *argument), void *argument)
{
    /* As in device.c: only its last member is read. */
    const struct {
        const _Atomic int *state;
        int while_it_is;
        struct timespec most;
    } *const nap = argument;
    (void)context;
    assert_non_null(wait);
    assert_ptr_equal(nap->state, &device.state);
    assert_int_equal(nap->while_it_is, atomic_load(&device.state));
    pauses++;
    now_ms += nap_takes_ms < 0 ? 1e-6 * (double)nap->most.tv_nsec : nap_takes_ms;
    if (pauses == ready_after)
        atomic_store(&device.state, DEVICE_READY);
    errno = EINTR;
}
static const struct dispatch_caller caller = {.symbol = "dgemm_", .pause = pause_here};

static int pauses_in_wait(double most_ms)
{
    pauses = 0;
    errno = 77;
    device_await(&device, most_ms, &caller);
    assert_int_equal(errno, 77);
    return pauses;
}

static void waits(void **state)
{
    nap_takes_ms = -1;
    ready_after = 3;
    assert_int_equal(pauses_in_wait(1000), 0); /* untried, and nobody starts it */
    device_note_gain(&device, 1000);
    assert_int_equal(pauses_in_wait(1000), 3);
    assert_int_equal(device_state(&device), DEVICE_READY);
    assert_int_equal(pauses_in_wait(1000), 0);
    /* Another thread makes the thread at this moment. */
    prepare(state);
    atomic_store(&device.threaded, true);
    assert_int_equal(pauses_in_wait(1000), 3);
    prepare(state);
    has_threads = false;
    device_note_gain(&device, 1000);
    assert_int_equal(pauses_in_wait(1000), 0);
    /* Naps that take far too long: the process was stopped, and so was the start. */
    prepare(state);
    device_note_gain(&device, 1000);
    nap_takes_ms = 5000;
    assert_int_equal(pauses_in_wait(1000), 3);
    /* Whoever has inherited it has no such thread. */
    prepare(state);
    device_note_gain(&device, 1000);
    atomic_store(&device.starter, getpid() + 1);
    assert_int_equal(pauses_in_wait(1000), 0);
    /* In vain; then nobody waits. */
    prepare(state);
    device_note_gain(&device, 1000);
    ready_after = 1000;
    nap_takes_ms = -1;
    const double before = now_ms;
    assert_int_equal(pauses_in_wait(120), 3);
    assert_true(now_ms > before + 119.99 && now_ms < before + 120.01);
    assert_int_equal(pauses_in_wait(1000), 0);
    assert_int_equal(device_state(&device), DEVICE_STARTING);
}

/* ---- Its end ---- */

static void one_that_is_given_up(void **state)
{
    for (int gone = 0; gone < 2; gone++) {
        prepare(state);
        be_ready();
        device_tidy(&device);
        assert_int_equal(played.trimmed, 0);
        is_gone = gone;
        device_give_up(&device, "the CPU computes");
        assert_int_equal(device_state(&device), DEVICE_FAILED);
        assert_int_equal(messages, !gone);
        assert_int_equal(played.trimmed, !gone);
        device_give_up(&device, "the CPU computes");
        assert_int_equal(messages, !gone);
        assert_int_equal(played.trimmed, gone ? 0 : 2);
        start_now();
        assert_int_equal(starts, 1);
    }
    assert_string_equal(message,
                        "gpu3 is left alone from here on, the CPU computes: no reason known");
}

static void one_that_is_ruled_out(void **state)
{
    (void)state;
    assert_true(device_rule_out(&device));
    assert_int_equal(device_state(&device), DEVICE_ABSENT);
    assert_false(device_rule_out(&device));
    assert_false(device_has_failure(&device)); /* it has not been tried */
    prepare(state);
    be_ready();
    assert_false(device_rule_out(&device));
    assert_int_equal(device_state(&device), DEVICE_READY);
}

/* ---- Children ---- */

static int of_child(const pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void children(void **state)
{
    (void)state;
    SKIP_UNDER_TSAN("vfork(2), which forks there");
    assert_false(device_is_inherited(&device));
    assert_false(device_is_begun(&device));
    be_ready();
    assert_false(device_is_inherited(&device) || device_is_borrowed(&device));
    assert_true(device_is_begun(&device));
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(device_is_inherited(&device) + 2 * device_is_borrowed(&device));
        assert_int_equal(of_child(child), 1);
        child = vfork();
        if (child == 0)
            _exit(device_is_inherited(&device) + 2 * device_is_borrowed(&device));
        assert_int_equal(of_child(child), 3);
        device_give_up(&device, "the CPU computes"); /* a child has a failed one, too */
    }
}

/* It would leave the lock held in the memory of both. */
static void a_child_in_shared_memory_starts_nothing(void **state)
{
    (void)state;
    const pid_t child = vfork();
    if (child == 0) {
        start_now();
        _exit(0);
    }
    assert_int_equal(of_child(child), 0);
    assert_int_equal(starts, 0);
    assert_int_equal(device_state(&device), DEVICE_UNTRIED);
    be_ready();
}

static void what_a_child_has(void **state)
{
    static const struct {
        enum device_state was;
        bool begun;
        enum device_state is;
    } expected[] = {{DEVICE_UNTRIED, true, DEVICE_FORKED},  {DEVICE_UNTRIED, false, DEVICE_UNTRIED},
                    {DEVICE_STARTING, true, DEVICE_FORKED}, {DEVICE_READY, true, DEVICE_FORKED},
                    {DEVICE_FAILED, true, DEVICE_FORKED},   {DEVICE_FORKED, true, DEVICE_FORKED},
                    {DEVICE_ABSENT, true, DEVICE_ABSENT},   {DEVICE_ABSENT, false, DEVICE_ABSENT}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        prepare(state);
        const pid_t child = fork();
        if (child == 0) {
            atomic_store(&device.state, expected[i].was);
            atomic_store(&device.threaded, true);
            atomic_store(&device.threadless, true);
            atomic_store(&device.warm_up.working, expected[i].begun); /* by a device */
            device_fork_child(&device, expected[i].begun);
            _exit(device_state(&device) != expected[i].is || device.threaded ||
                  device_has_no_thread(&device) || device.warm_up.working);
        }
        assert_int_equal(of_child(child), 0);
    }
}

/* A server's device is asked for without CUDA, by a thread that the child has not. */
static void what_a_child_has_of_a_server(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        atomic_store(&device.state, DEVICE_STARTING);
        atomic_store(&device.asks_server, true);
        const bool begun = device_is_begun(&device);
        device_fork_child(&device, false);
        _exit(begun || device_state(&device) != DEVICE_UNTRIED || device.asks_server);
    }
    assert_int_equal(of_child(child), 0);
}

/* ---- An estimate's ---- */

static void one_that_is_pretended(void **state)
{
    (void)state;
    settings.estimate = "no such GPU";
    assert_false(device_pretend(&device));
    assert_int_equal(device_state(&device), DEVICE_UNTRIED);
    assert_int_equal(messages, 1);
    settings.estimate = "A100";
    assert_true(device_pretend(&device));
    assert_int_equal(device_state(&device), DEVICE_ESTIMATED);
    assert_non_null(atomic_load(&device.curves));
    assert_int_equal(device.sharers, 1);
    int64_t bytes = 0;
    assert_non_null(cost_curves_named("A100", &bytes));
    assert_true(device.memory_bytes == (bytes ? (int64_t)(0.8 * (double)bytes) : INT64_MAX));
    settings.memory_bytes = 4711;
    assert_true(device_pretend(&device));
    assert_int_equal(device.memory_bytes, 4711);
    start_now();
    assert_int_equal(starts, 0);
    assert_int_equal(messages, 1);
}

/* ---- The lock, last: what has been waited for in vain is not waited for again ---- */

static void *start_other(void *other)
{
    device_start_now(other, DEVICE_WITHOUT_END);
    return NULL;
}

static void how_long_a_start_is_waited_for(void **state)
{
    static struct dispatch_device other;
    pthread_t thread;
    device_start_now(&device, DEVICE_WITHOUT_END);
    assert_int_equal(device_state(&device), DEVICE_READY);
    assert_int_equal(timed, 0);
    prepare(state);
    start_now();
    assert_int_equal(timed, 1);
    prepare(state);
    locks = false;
    start_now();
    assert_int_equal(timed, 1);
    assert_int_equal(device_state(&device), DEVICE_UNTRIED);
    locks = true;
    timed = 0;
    holds = true;
    assert_int_equal(pthread_create(&thread, NULL, start_other, &other), 0);
    sem_wait(&inside);
    start_now(); /* while another one starts */
    assert_int_equal(device_state(&device), DEVICE_UNTRIED);
    holds = false;
    sem_post(&go_on);
    pthread_join(thread, NULL);
    assert_int_equal(device_state(&other), DEVICE_READY);
    start_now(); /* after it */
    assert_int_equal(device_state(&device), DEVICE_READY);
    assert_int_equal(timed, 0);
}

/* For the page in which processes see each other's calls. */
static char folder[] = "/tmp/accel-life-XXXXXX";

static int remove_folder(void **state)
{
    char path[100];
    (void)state;
    snprintf(path, sizeof path, "%s/accel-%d-played", folder, (int)geteuid());
    unlink(path);
    return rmdir(folder);
}

static int start(void **state)
{
    (void)state;
    setenv("XDG_RUNTIME_DIR", mkdtemp(folder), 1);
    sem_init(&inside, 0, 0);
    sem_init(&go_on, 0, 0);
    message_to(take_message);
    forks_begin();
    device_prepare(&settings, &ranks);
    shared_file_prepare();
    cost_start(&settings, 1, true, true);
    return 0;
}

/* A decision of before says nothing of the calls that come now. */
static void no_decision_stands_over_the_start(void **state)
{
    const uint64_t call = UINT64_C(0x123456789ABCDEF);
    prepare(state);
    for (int i = 0; i < 20; i++)
        decision_cache_note(call, true, 0);
    assert_true(decision_cache_holds(call, 0));
    start_now();
    assert_false(decision_cache_holds(call, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define PREPARED(test) cmocka_unit_test_setup(test, prepare)
        PREPARED(what_is_said_of_none),
        PREPARED(what_is_said_of_no_further_one),
        PREPARED(what_a_start_makes_of_it),
        PREPARED(what_is_said_of_a_start),
        PREPARED(one_that_another_thread_is_to_start),
        PREPARED(gains_that_are_worth_a_start),
        PREPARED(no_decision_stands_over_the_start),
        PREPARED(products_are_warm),
        PREPARED(no_thread_can_be_made),
        PREPARED(waits),
        PREPARED(one_that_is_given_up),
        PREPARED(one_that_is_ruled_out),
        PREPARED(children),
        PREPARED(a_child_in_shared_memory_starts_nothing),
        PREPARED(what_a_child_has),
        PREPARED(what_a_child_has_of_a_server),
        PREPARED(one_that_is_pretended),
        PREPARED(how_long_a_start_is_waited_for),
    };
    return cmocka_run_group_tests(tests, start, remove_folder);
}
