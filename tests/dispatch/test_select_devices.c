/*
 * Which device has a call, and when: several that the test plays, busy or idle, cold or warm, with
 * the call's operands or without.
 */
#include "base/file/shared_file.h"
#include "tests/lib/played_device.h"
#include "tests/lib/routine.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory/write_watch.h"
#include "base/output/message.h"
#include "base/thread/forks.h"
#include "dispatch/decomposed.h"
#include "dispatch/cost/cost.h"
#include "dispatch/device.h"
#include "dispatch/devices.h"
#include "dispatch/small.h"
#include "dispatch/select.h"
#include "ops/typical.h"
#include "tests/lib/idle_library.h"

enum { DEVICES = 3 };

static struct accel_settings settings = {.on = true, .memory_share = 0.8};
static const struct accel_ranks ranks = {.size = 1, .local_size = 1};
static struct played_device played[DEVICES];
static char own[DEVICES][4096];

/* ---- What the program is linked with --wrap for: the clock, which stands still, threads, the
 * start of a device, what is cached there, and memory ---- */

int __wrap_clock_gettime(clockid_t id, struct timespec *t);

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    *t = (struct timespec){.tv_sec = 1000};
    return 0;
}

static int threads, starts;
static bool has_threads;
static void *(*thread_run)(void *context);
static void *thread_context;

bool __wrap_thread_spawn(void *(*run)(void *context), void *context, size_t stack_bytes);
struct gpu_device *__wrap_gpu_start(const struct gpu_config *with, char why[GPU_FAILURE_BYTES]);

bool __wrap_thread_spawn(void *(*run)(void *context), void *context, size_t stack_bytes)
{
    (void)stack_bytes;
    threads++;
    thread_run = run;
    thread_context = context;
    return has_threads;
}

struct gpu_device *__wrap_gpu_start(const struct gpu_config *with, char why[GPU_FAILURE_BYTES])
{
    (void)with;
    strcpy(why, "told not to be there");
    starts++;
    return NULL;
}

static struct gpu_cached cached;

struct gpu_cached __wrap_gpu_cached(struct gpu_device *device, const struct accel_call *call);

struct gpu_cached __wrap_gpu_cached(struct gpu_device *device, const struct accel_call *call)
{
    assert_non_null(device);
    assert_non_null(call);
    return cached;
}

/* Memory whose last byte is followed by a page that nobody may touch. */
static enum { MEMORY_USUAL, MEMORY_NONE, MEMORY_GUARDED } memory;
static unsigned char *room; /* all of it, with what is left before its first byte */
static size_t left;

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    if (memory == MEMORY_NONE)
        return MAP_FAILED;
    if (memory == MEMORY_USUAL)
        return __real_mmap(at, bytes, protection, flags, file, offset);
    char *const all = __real_mmap(at, (pages + 2) * page, PROT_NONE, flags, file, offset);
    assert_true(all != MAP_FAILED);
    assert_int_equal(mprotect(all + page, pages * page, protection), 0);
    room = (unsigned char *)all + page;
    left = pages * page - bytes;
    return room + left;
}

/* ---- The caller ---- */

static int pauses;

static bool nothing_loaded(bool (*is)(const char *path))
{
    (void)is;
    return false;
}

/* The start ends meanwhile. */
static void pause_here(void *context, void (*wait)(void *argument), void *argument)
{
    (void)context;
    (void)wait;
    (void)argument;
    pauses++;
    atomic_store(&devices_at(0)->state, DEVICE_READY);
}

static const struct dispatch_caller caller = {.symbol = "dgemm_",
                                              .site = 1,
                                              .library = library_of,
                                              .loads = no_loads,
                                              .loaded = nothing_loaded,
                                              .pause = pause_here};

static struct task task;
static struct accel_call call;

static void make_product(int64_t n)
{
    const int64_t size[ACCEL_DIMENSIONS] = {n, n, n, 0};
    shape_typical(&call, routine("dgemm"), size);
    for (int i = 0; i < 3; i++)
        call.span[i].ptr = (void *)((uintptr_t)(i + 1) << 40); /* nobody reads it */
}

static void select_product(int64_t n)
{
    make_product(n);
    task_begin(&task, &call, &caller, devices_first());
    select_call(&task);
}

#define assert_goes(n, on_gpu, reason, number)                                                     \
    do {                                                                                           \
        select_product(n);                                                                         \
        assert_string_equal(accel_why_name(task.decision.why), accel_why_name(reason));            \
        assert_int_equal(task.decision.gpu, on_gpu);                                               \
        assert_ptr_equal(task.device, devices_at(number));                                         \
        task_drop_plan(&task);                                                                     \
    } while (0)

enum { MEDIUM = 512, LARGE = 4096, HUGE_ORDER = 40000 };

static void play(int share)
{
    for (int i = 0; i < share; i++) {
        play_device(&played[i], devices_at(i), i);
        played[i].gpu.info.share = share;
        played[i].own = own[i];
        played[i].own_bytes = sizeof own[i];
        warm_up_note(devices_at(i), routine("dgemm"));
    }
    for (int i = 0; i < share; i++) { /* the others' memory, each in one piece */
        played[i].remote = own[0];
        played[i].remote_bytes = sizeof own;
    }
    threads = starts = pauses = 0;
    has_threads = true;
    cached = (struct gpu_cached){.operands = 0};
}

static int play_all(void **state)
{
    (void)state;
    settings = (struct accel_settings){.on = true, .memory_share = 0.8};
    settings.devices.kind = ACCEL_DEVICES_ALL;
    select_start(&settings, 8, true);
    play(DEVICES);
    return 0;
}

/* ---- One device ---- */

static int play_one(void **state)
{
    play_all(state);
    played[0].gpu.info.share = 1;
    return 0;
}

static void one_device_by_default(void **state)
{
    (void)state;
    settings.devices.kind = ACCEL_DEVICES_AUTO;
    devices_prepare(&settings, &ranks);
    play_device(&played[0], devices_at(0), 0);
    played[0].gpu.info.share = 3;
    assert_int_equal(devices_count(), 1);
    assert_ptr_equal(devices_first(), devices_at(0));
    assert_ptr_equal(devices_of_thread(), devices_at(0));
    settings.devices = (struct accel_devices){.kind = ACCEL_DEVICES_LIST, .count = 1};
    devices_prepare(&settings, &ranks);
    assert_int_equal(devices_count(), 1);
    settings.devices.kind = ACCEL_DEVICES_ALL;
    memory = MEMORY_NONE;
    devices_prepare(&settings, &ranks);
    assert_int_equal(devices_count(), 1);
    memory = MEMORY_GUARDED;
    devices_prepare(&settings, &ranks);
    memory = MEMORY_USUAL;
    assert_int_equal(devices_count(), 3);
    atomic_store(&devices_at(0)->gpu, NULL); /* not known before it has been started */
    assert_int_equal(devices_count(), 1);
    atomic_store(&devices_at(0)->gpu, &played[0].gpu);
    played[0].gpu.info.share = DEVICES_MOST + 4;
    assert_int_equal(devices_count(), DEVICES_MOST);
}

/* Each is in memory of its own. */
static void any_number_of_devices(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES_MOST; i++)
        memset(devices_at(i), i + 1, sizeof *devices_at(i));
    for (int i = 0; i < DEVICES_MOST; i++) {
        const unsigned char *const device = (unsigned char *)devices_at(i);
        assert_int_equal(device[0], i + 1);
        assert_int_equal(device[sizeof *devices_at(i) - 1], i + 1);
    }
    for (size_t i = 0; i < left; i++)
        assert_int_equal(room[i], 0);
    for (int i = 0; i < DEVICES_MOST; i++)
        memset(devices_at(i), 0, sizeof *devices_at(i));
}

static void what_stays_on_the_device(void **state)
{
    const bool tracks = !write_watch_why_not();
    (void)state;
    settings.resident = ACCEL_RESIDENT_OFF;
    assert_goes(MEDIUM, true, ACCEL_FASTER, 0);
    assert_false(task.host.caches || task.host.digests || task.host.tracks);
    settings.resident = ACCEL_RESIDENT_HASH;
    assert_goes(MEDIUM, true, ACCEL_FASTER, 0);
    assert_true(task.host.caches && task.host.digests && !task.host.tracks);
    settings.resident = ACCEL_RESIDENT_AUTO;
    assert_goes(MEDIUM, true, ACCEL_FASTER, 0);
    assert_int_equal(task.host.tracks, tracks);
    assert_true(task.host.caches || !tracks);
}

/* What the kernel's record of writes has seen is read, where a call may not trust that. */
static void what_is_kept_there(void **state)
{
    const bool tracks = !write_watch_why_not();
    (void)state;
    for (int hash = 0; hash < 2; hash++) {
        double ms[3];
        settings.resident = hash ? ACCEL_RESIDENT_HASH : ACCEL_RESIDENT_AUTO;
        for (int i = 0; i < 3; i++) {
            const int64_t bytes = 8 * (int64_t)LARGE * LARGE;
            cached = (struct gpu_cached){.operands = i > 0,
                                         .digested_bytes = i == 1 ? bytes : 0,
                                         .watched_bytes = i == 2 ? bytes : 0};
            select_product(LARGE);
            task_drop_plan(&task);
            ms[i] = task.decision.est_own_ms;
        }
        if (hash) {
            assert_true(ms[1] != ms[0] && ms[2] == ms[1]);
        } else if (tracks) {
            assert_true(ms[2] < ms[1]);
        }
    }
    settings.resident = ACCEL_RESIDENT_OFF;
    select_product(LARGE);
    const double none_ms = task.decision.est_own_ms;
    cached = (struct gpu_cached){.operands = 0};
    select_product(LARGE);
    assert_true(task.decision.est_own_ms == none_ms);
}

/* A library was measured with the threads that it has, however few cores there are; calls at the
 * same time share them. */
static void threads_and_cores(void **state)
{
    static const struct {
        int cores, calls;
        double slowdown;
    } expected[] = {{64, 0, 1}, {8, 0, 1}, {8, 1, 1}, {8, 2, 1.5}, {7, 1, 8.0 / 7}, {4, 0, 1},
                    {4, 1, 2},  {4, 3, 4}, {3, 0, 1}, {3, 2, 3},   {1, 0, 1}};
    double alone = 0;
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        for (int adapts = 1; adapts >= 0; adapts--) {
            select_start(&settings, expected[i].cores, adapts);
            for (int n = 0; n < expected[i].calls; n++)
                contention_enter_cpu();
            select_product(MEDIUM);
            for (int n = 0; n < expected[i].calls; n++)
                contention_leave_cpu();
            const double ms = task.decision.est_cpu_ms;
            alone = alone > 0 ? alone : ms;
            assert_true(ms > 0);
            assert_true(fabs(ms / alone / (adapts ? expected[i].slowdown : 1) - 1) < 1e-12);
        }
}

static void select_square(const char *name, int64_t n)
{
    const int64_t size[ACCEL_DIMENSIONS] = {n, n, n, 1};
    shape_typical(&call, routine(name), size);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call.span[i].access)
            call.span[i].ptr = (void *)((uintptr_t)(i + 1) << 40); /* nobody reads it */
    task_begin(&task, &call, &caller, devices_first());
    select_call(&task);
    task_drop_plan(&task);
}

/* One that no device takes as a whole is done by inner calls, if there are some that it takes. */
static void calls_of_inner_ones(void **state)
{
    (void)state;
    settings.policy = ACCEL_POLICY_GPU;
    select_square("dsyevd", 1000);
    assert_int_equal(task.decision.why, ACCEL_FORCED);
    assert_true(task.decomposed_ms == 0);
    devices_at(0)->memory_bytes = (int64_t)12e6;
    select_square("dsyevd", 1000);
    assert_int_equal(task.decision.why, ACCEL_FORCED);
    assert_true(task.decomposed_ms > 0);
    assert_true(task.decomposed_ms == decomposed_estimate(&task));
    assert_true(task.decision.est_own_ms == task.decomposed_ms);
    select_square("dgesdd", 1000); /* has none */
    assert_int_equal(task.decision.why, ACCEL_NO_MEMORY);
    assert_true(task.decomposed_ms == 0);
    devices_at(0)->memory_bytes = 100;
    select_square("dsyevd", 1000);
    assert_int_equal(task.decision.why, ACCEL_NO_MEMORY);
    assert_true(task.decomposed_ms == 0);
}

static void states_of_one(void **state)
{
    static const struct {
        enum device_state is;
        enum accel_why why;
    } expected[] = {{DEVICE_ABSENT, ACCEL_NO_GPU},
                    {DEVICE_FAILED, ACCEL_ERROR},
                    {DEVICE_FORKED, ACCEL_FORKED},
                    {DEVICE_STARTING, ACCEL_WARMING}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        play_one(state);
        atomic_store(&devices_at(0)->state, expected[i].is);
        assert_goes(MEDIUM, false, expected[i].why, 0);
        assert_false(task.fallback);
        assert_goes(4, false, expected[i].is == DEVICE_STARTING ? ACCEL_SMALL : expected[i].why, 0);
        settings.require_gpu = true;
        if (expected[i].is == DEVICE_STARTING)
            continue;
        assert_goes(MEDIUM, false, expected[i].why, 0);
        assert_true(task.fallback);
        settings.policy = ACCEL_POLICY_CPU;
        select_product(MEDIUM);
        assert_int_equal(task.decision.why, ACCEL_USER);
        assert_false(task.fallback);
    }
    assert_int_equal(threads + starts, 0);
}

/* A call that would gain has the device started on a thread, and runs on the CPU meanwhile. */
static void one_that_is_to_start(void **state)
{
    (void)state;
    atomic_store(&devices_at(0)->state, DEVICE_UNTRIED);
    assert_goes(4, false, ACCEL_SMALL, 0);
    assert_int_equal(threads, 0);
    assert_goes(LARGE, false, ACCEL_WARMING, 0);
    assert_int_equal(threads, 1);
    assert_int_equal(device_state(devices_at(0)), DEVICE_STARTING);
    assert_int_equal(pauses, 0);
    /* One that would gain seconds waits. */
    assert_goes(HUGE_ORDER, true, ACCEL_FASTER, 0);
    assert_int_equal(pauses, 1);
    /* No thread can be made. */
    play_one(state);
    has_threads = false;
    atomic_store(&devices_at(0)->state, DEVICE_UNTRIED);
    assert_goes(LARGE, false, ACCEL_NO_GPU, 0);
    /* It was started by the process that this one was forked from. */
    play_one(state);
    atomic_store(&devices_at(0)->state, DEVICE_STARTING);
    atomic_store(&devices_at(0)->starter, getpid() + 1);
    select_product(LARGE);
    assert_false(task.decision.gpu);
    assert_int_equal(task.decision.why, ACCEL_FORKED);
    /* Who must have it starts it here. */
    for (int i = 0; i < 3; i++) {
        play_one(state);
        settings.policy = i == 0 ? ACCEL_POLICY_GPU : ACCEL_POLICY_AUTO;
        settings.require_gpu = i == 1;
        select_start(&settings, 8, i != 2);
        atomic_store(&devices_at(0)->state, DEVICE_UNTRIED);
        assert_goes(LARGE, false, ACCEL_NO_GPU, 0);
        assert_int_equal(starts, 1);
        assert_int_equal(device_state(devices_at(0)), DEVICE_ABSENT);
        assert_int_equal(threads, 0);
        assert_int_equal(task.fallback, i == 1);
    }
}

/* The first call of a routine has its kernels loaded on a thread; one that gains more than that
 * costs does not wait for them. */
static void cold_kernels(void **state)
{
    (void)state;
    memset(&devices_at(0)->warm_up, 0, sizeof devices_at(0)->warm_up);
    for (int i = 0; i < 2; i++) {
        assert_goes(MEDIUM, false, ACCEL_WARMING, 0);
        assert_int_equal(threads, 1);
    }
    assert_goes(HUGE_ORDER, true, ACCEL_FASTER, 0);
    thread_run(thread_context);
    assert_goes(MEDIUM, true, ACCEL_FASTER, 0);
    assert_int_equal(threads, 1);
    /* Without a thread, it is loaded by the call. */
    play_one(state);
    memset(&devices_at(0)->warm_up, 0, sizeof devices_at(0)->warm_up);
    has_threads = false;
    assert_goes(MEDIUM, true, ACCEL_FASTER, 0);
    /* So where the GPU is required. */
    play_one(state);
    memset(&devices_at(0)->warm_up, 0, sizeof devices_at(0)->warm_up);
    settings.require_gpu = true;
    assert_goes(MEDIUM, true, ACCEL_FASTER, 0);
    assert_int_equal(threads, 0);
    /* Where nothing may depend on a thread, gains that are missed pay for it. */
    play_one(state);
    memset(&devices_at(0)->warm_up, 0, sizeof devices_at(0)->warm_up);
    select_start(&settings, 8, false);
    settings.require_gpu = false;
    const double cost = warm_up_counted_ms(devices_at(0), routine("dgemm"));
    assert_goes(MEDIUM, false, ACCEL_SLOWER, 0);
    const double missed = cost - warm_up_counted_ms(devices_at(0), routine("dgemm"));
    assert_true(cost > 0 && missed > 0);
    int calls = 1;
    do {
        select_product(MEDIUM);
        calls++;
    } while (!task.decision.gpu && calls < 10000);
    assert_int_equal(task.decision.why, ACCEL_FASTER);
    assert_in_range(calls, 3, 10 + (int)(cost / missed));
    assert_int_equal(threads, 0);
}

static void arithmetic_of_the_caller(void **state)
{
    struct dispatch_caller rounding = caller;
    (void)state;
    rounding.arithmetic = "rounds_up";
    make_product(MEDIUM);
    task_begin(&task, &call, &rounding, devices_first());
    select_call(&task);
    assert_int_equal(task.decision.why, ACCEL_UNSUPPORTED);
    assert_string_equal(task.arithmetic, "rounds_up");
    assert_int_equal(task.threads, 4);
    assert_true(task.site != 0);
}

/* ---- Several devices ---- */

/* Threads have devices in turn, and keep them. */
static void *device_of_thread(void *context)
{
    struct dispatch_device **const mine = context;
    mine[0] = devices_of_thread();
    mine[1] = devices_of_thread();
    return NULL;
}

static void devices_of_threads(void **state)
{
    struct dispatch_device *mine[DEVICES][2];
    bool has[DEVICES] = {false};
    (void)state;
    for (int i = 0; i < DEVICES; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, device_of_thread, mine[i]), 0);
        pthread_join(thread, NULL);
        assert_ptr_equal(mine[i][0], mine[i][1]);
        for (int k = 0; k < DEVICES; k++)
            has[k] |= mine[i][0] == devices_at(k);
    }
    assert_true(has[0] && has[1] && has[2]);
    struct dispatch_device *const here = devices_of_thread();
    assert_ptr_equal(devices_of_thread(), here);
    atomic_store(&here->state, DEVICE_FAILED);
    assert_ptr_not_equal(devices_of_thread(), here);
    assert_ptr_equal(devices_of_thread(), devices_first());
    atomic_store(&here->state, DEVICE_READY);
    /* Where nothing may depend on the course of the program, calls go there. */
    select_start(&settings, 8, false);
    select_product(MEDIUM);
    assert_ptr_equal(task.device, here);
    task_drop_plan(&task);
}

static void devices_that_are_left(void **state)
{
    const struct accel_routine *const dgemm = routine("dgemm");
    (void)state;
    assert_ptr_equal(devices_another(devices_at(0), dgemm), devices_at(1));
    assert_ptr_equal(devices_another(devices_at(1), dgemm), devices_at(0));
    quarantine_add(&devices_at(1)->quarantine, dgemm, QUARANTINE_FAILED);
    assert_ptr_equal(devices_another(devices_at(0), dgemm), devices_at(2));
    assert_ptr_equal(devices_another(devices_at(0), NULL), devices_at(1));
    assert_false(devices_may_grow(devices_at(0)));
    atomic_store(&devices_at(2)->state, DEVICE_UNTRIED);
    assert_null(devices_another(devices_at(0), dgemm));
    assert_true(devices_may_grow(devices_at(0)));
    assert_false(devices_may_grow(devices_at(2)));
    assert_ptr_equal(devices_first(), devices_at(0));
    atomic_store(&devices_at(0)->state, DEVICE_FAILED);
    assert_ptr_equal(devices_first(), devices_at(1));
    atomic_store(&devices_at(1)->state, DEVICE_FAILED);
    atomic_store(&devices_at(2)->state, DEVICE_ABSENT);
    assert_ptr_equal(devices_first(), devices_at(0));
    /* As the child of a vfork(2) sees them: one that another process has started, in this
     * memory. */
    assert_false(devices_are_inherited() || devices_are_borrowed());
    for (int i = 0; i < 2; i++) {
        atomic_store(&devices_at(i)->starter, getpid() + 1);
        assert_true(devices_are_inherited() && devices_are_borrowed());
        atomic_store(&devices_at(i)->starter, getpid());
    }
}

/* A child has no device if any was begun. */
static void children_of_several(void **state)
{
    for (int begun = 0; begun < 2; begun++) {
        int status;
        play_all(state);
        atomic_store(&devices_at(0)->state, DEVICE_ABSENT);
        atomic_store(&devices_at(1)->state, DEVICE_UNTRIED);
        atomic_store(&devices_at(2)->state, begun ? DEVICE_READY : DEVICE_UNTRIED);
        const pid_t child = fork();
        if (child == 0) {
            forks_child();
            _exit(device_state(devices_at(0)) != DEVICE_ABSENT ||
                  device_state(devices_at(1)) != (begun ? DEVICE_FORKED : DEVICE_UNTRIED) ||
                  device_state(devices_at(2)) != device_state(devices_at(1)));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void *first_call_of_thread(void *unused)
{
    select_product(MEDIUM);
    return unused;
}

/* A call goes where it would be done first; of equal ones, where its thread's last call was. */
static void the_first_one_to_be_done(void **state)
{
    pthread_t thread;
    (void)state;
    assert_goes(MEDIUM, true, ACCEL_FASTER, 0);
    int number = contention_enter_gpu(&devices_at(0)->contention, 60000);
    assert_goes(MEDIUM, true, ACCEL_FASTER, 1);
    contention_leave_gpu(&devices_at(0)->contention, number);
    assert_goes(MEDIUM, true, ACCEL_FASTER, 1);
    assert_int_equal(pthread_create(&thread, NULL, first_call_of_thread, NULL), 0);
    pthread_join(thread, NULL);
    assert_ptr_equal(task.device, devices_at(0)); /* it has had none */
    number = contention_enter_gpu(&devices_at(1)->contention, 60000);
    assert_goes(MEDIUM, true, ACCEL_FASTER, 0);
    const int other = contention_enter_gpu(&devices_at(0)->contention, 60000);
    assert_goes(MEDIUM, true, ACCEL_FASTER, 2);
    atomic_store(&devices_at(2)->state, DEVICE_FAILED);
    assert_goes(MEDIUM, false, ACCEL_BUSY, 0);
    contention_leave_gpu(&devices_at(0)->contention, other);
    contention_leave_gpu(&devices_at(1)->contention, number);
    assert_goes(4, false, ACCEL_SMALL, 0);
    /* One that the first device may not do. */
    quarantine_add(&devices_at(0)->quarantine, routine("dgemm"), QUARANTINE_FAILED);
    assert_goes(MEDIUM, true, ACCEL_FASTER, 1);
    quarantine_add(&devices_at(1)->quarantine, routine("dgemm"), QUARANTINE_WRONG);
    select_product(MEDIUM);
    assert_false(task.decision.gpu);
}

/* One that is cold is warmed up, while another one has the call. */
static void a_cold_one_meanwhile(void **state)
{
    struct dispatch_device *const cold = devices_at(1);
    (void)state;
    atomic_store(&devices_at(2)->state, DEVICE_FAILED);
    memset(&cold->warm_up, 0, sizeof cold->warm_up);
    select_product(MEDIUM);
    const double gain_ms = task.decision.est_cpu_ms - task.decision.est_own_ms;
    const int number = contention_enter_gpu(&devices_at(0)->contention, gain_ms / 2);
    assert_goes(MEDIUM, true, ACCEL_FASTER, 0);
    contention_leave_gpu(&devices_at(0)->contention, number);
    assert_int_equal(threads, 1);
    assert_ptr_equal(thread_context, cold);
    thread_run(thread_context);
    const int next = contention_enter_gpu(&devices_at(0)->contention, 60000);
    assert_goes(MEDIUM, true, ACCEL_FASTER, 1);
    contention_leave_gpu(&devices_at(0)->contention, next);
}

/* What calls wait for those that are there is noted as what one more would gain. */
static void waits_start_one_more(void **state)
{
    (void)state;
    atomic_store(&devices_at(1)->state, DEVICE_FAILED);
    atomic_store(&devices_at(2)->state, DEVICE_UNTRIED);
    select_product(MEDIUM);
    assert_int_equal(devices_at(2)->gain_us, 0);
    const int number = contention_enter_gpu(&devices_at(0)->contention, 60000);
    select_product(MEDIUM);
    contention_leave_gpu(&devices_at(0)->contention, number);
    assert_in_range(devices_at(2)->gain_us, 50000000, 60000000);
    assert_int_equal(threads, 1);
    assert_int_equal(device_state(devices_at(2)), DEVICE_STARTING);
    assert_int_equal(devices_at(0)->gain_us, 0);
}

/* ---- Where operands are; these come last, since what they show stays known ---- */

static void who_sees_which_calls(void **state)
{
    struct dispatch_device *const device = devices_at(0);
    (void)state;
    select_product(MEDIUM); /* all in host memory */
    struct dispatch_filter filter = select_filter(device);
    assert_int_equal(filter.level, DISPATCH_SEE_LARGE);
    assert_int_equal(filter.gate, small_gate());
    assert_int_equal(filter.matrices, !write_watch_why_not());
    settings.resident = ACCEL_RESIDENT_HASH;
    assert_false(select_filter(device).matrices);
    settings.resident = ACCEL_RESIDENT_AUTO;
    select_start(&settings, 8, false);
    assert_false(select_filter(device).matrices);
    settings.policy = ACCEL_POLICY_CPU;
    assert_int_equal(select_filter(device).level, DISPATCH_SEE_NOTHING);
    settings.broken_promise = true;
    assert_int_equal(select_filter(device).level, DISPATCH_SEE_ALL);
    settings.broken_promise = false;
    settings.policy = ACCEL_POLICY_GPU;
    assert_int_equal(select_filter(device).level, DISPATCH_SEE_ALL);
    settings.policy = ACCEL_POLICY_AUTO;
    settings.gpu_routines.text = "dgemm";
    assert_int_equal(select_filter(device).level, DISPATCH_SEE_ALL);
    settings.gpu_routines.text = NULL;
    for (int failed = 0; failed < 2; failed++) {
        atomic_store(&device->state, failed ? DEVICE_FAILED : DEVICE_ABSENT);
        assert_int_equal(select_filter(device).level, DISPATCH_SEE_NOTHING);
        settings.require_gpu = true;
        assert_int_equal(select_filter(device).level, DISPATCH_SEE_LARGE);
        settings.require_gpu = false;
    }
}

static void operands_on_any_device(void **state)
{
    for (int i = 0; i < DEVICES; i++) {
        play_all(state);
        make_product(4);
        call.span[ACCEL_b].ptr = own[i];
        task_begin(&task, &call, &caller, devices_first());
        select_call(&task);
        assert_ptr_equal(task.device, devices_at(i));
        assert_true(task.decision.gpu);
        assert_int_equal(task.decision.why, ACCEL_DEVICE_DATA);
        assert_int_equal(call.span[ACCEL_b].place, ACCEL_DEVICE);
        assert_int_equal(call.span[ACCEL_a].place, ACCEL_HOST);
    }
    /* The device that has it has failed: it can be copied alone. */
    play_all(state);
    atomic_store(&devices_at(1)->state, DEVICE_FAILED);
    make_product(4);
    call.span[ACCEL_b].ptr = own[1];
    task_begin(&task, &call, &caller, devices_first());
    select_call(&task);
    assert_int_equal(call.span[ACCEL_b].place, ACCEL_REMOTE);
    assert_int_equal(task.decision.why, ACCEL_UNSUPPORTED);
    assert_int_equal(starts, 0);
    /* One that has not been tried may have it. */
    play_all(state);
    atomic_store(&devices_at(1)->state, DEVICE_UNTRIED);
    make_product(4);
    call.span[ACCEL_b].ptr = own[1];
    task_begin(&task, &call, &caller, devices_first());
    select_call(&task);
    assert_int_equal(starts, 1);
    assert_int_equal(device_state(devices_at(1)), DEVICE_ABSENT);
    assert_int_equal(task.decision.why, ACCEL_UNSUPPORTED);
    /* From here on, any call may have such operands, and the program may write to pinned memory. */
    assert_int_equal(select_filter(devices_at(0)).level, DISPATCH_SEE_ALL);
    atomic_store(&devices_at(0)->state, DEVICE_FAILED);
    assert_int_equal(select_filter(devices_at(0)).level, DISPATCH_SEE_ALL);
    atomic_store(&devices_at(0)->state, DEVICE_ABSENT);
    assert_int_equal(select_filter(devices_at(0)).level, DISPATCH_SEE_NOTHING);
    play_one(state);
    select_product(MEDIUM);
    assert_false(task.host.tracks);
}

static bool take_message(const char *message)
{
    (void)message;
    return true;
}

static int start(void **state)
{
    (void)state;
    message_to(take_message);
    forks_begin();
    shared_file_prepare();
    cost_start(&settings, 8, true, true);
    devices_prepare(&settings, &ranks);
    select_start(&settings, 8, true);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define ONE(test)     cmocka_unit_test_setup(test, play_one)
#define SEVERAL(test) cmocka_unit_test_setup(test, play_all)
        cmocka_unit_test(one_device_by_default),
        cmocka_unit_test(any_number_of_devices),
        ONE(what_stays_on_the_device),
        ONE(what_is_kept_there),
        ONE(threads_and_cores),
        ONE(calls_of_inner_ones),
        ONE(states_of_one),
        ONE(one_that_is_to_start),
        ONE(cold_kernels),
        ONE(arithmetic_of_the_caller),
        SEVERAL(devices_of_threads),
        SEVERAL(devices_that_are_left), /* behind one that has begun a device */
        SEVERAL(children_of_several),
        SEVERAL(the_first_one_to_be_done),
        SEVERAL(a_cold_one_meanwhile),
        SEVERAL(waits_start_one_more),
        ONE(who_sees_which_calls),
        SEVERAL(operands_on_any_device),
    };
    library_threads = 4;
    return cmocka_run_group_tests(tests, start, NULL);
}
