/*
 * Two devices of the dispatcher in one process, on the test GPU: what is learned of one, and what
 * becomes of it, is nothing to the other.
 */
#include "base/file/shared_file.h"
#include "tests/lib/devices.h"
#include "tests/lib/routine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/copy_pool.h"
#include "dispatch/cost/curves.h"
#include "dispatch/cost/split.h"
#include "dispatch/decide.h"
#include "gpu/plan/nominal.h"
#include "dispatch/run.h"
#include "gpu/device/device.h"
#include "gpu/plan/scheduled.h"
#include "ops/lapack/in_panels.h"
#include "ops/typical.h"
#include "tests/lib/idle_library.h"
#include "tests/lib/problem.h"

enum { N = 512 };
static const uintptr_t site = 4711;

static char folder[] = "/tmp/accel-device-XXXXXX";
static struct accel_settings settings = {
    .on = true,
    .memory_share = 0.5,
    .devices = {.kind = ACCEL_DEVICES_LIST, .count = 1},
};
static const struct accel_ranks ranks = {.size = 1, .local_size = 1};
/* Two for each test: a thread of an earlier test may still look at its own. */
enum { TESTS_MOST = 16 };
static struct dispatch_device devices[TESTS_MOST][2], *device;
static double a[N * N], b[N * N], c[N * N];

/* ---- How often a call is looked at: this program is linked with --wrap for each ---- */

static int validities, descriptions, works, decisions;

const char *__real_accel_call_fault(const struct accel_call *call);
bool __real_scheduled_describe(const struct accel_call *call, struct scheduled *scheduled);
void __real_model_work_of(const struct accel_call *call, bool on_device, struct model_work *work);
struct accel_decision __real_accel_decide(struct problem *problem,
                                          const struct accel_machine *machine,
                                          const struct accel_settings *with);
const char *__wrap_accel_call_fault(const struct accel_call *call);
bool __wrap_scheduled_describe(const struct accel_call *call, struct scheduled *scheduled);
void __wrap_model_work_of(const struct accel_call *call, bool on_device, struct model_work *work);
struct accel_decision __wrap_accel_decide(struct problem *problem,
                                          const struct accel_machine *machine,
                                          const struct accel_settings *with);

const char *__wrap_accel_call_fault(const struct accel_call *call)
{
    validities++;
    return __real_accel_call_fault(call);
}

bool __wrap_scheduled_describe(const struct accel_call *call, struct scheduled *scheduled)
{
    descriptions++;
    return __real_scheduled_describe(call, scheduled);
}

void __wrap_model_work_of(const struct accel_call *call, bool on_device, struct model_work *work)
{
    works++;
    __real_model_work_of(call, on_device, work);
}

struct accel_decision __wrap_accel_decide(struct problem *problem,
                                          const struct accel_machine *machine,
                                          const struct accel_settings *with)
{
    decisions++;
    return __real_accel_decide(problem, machine, with);
}

/* ---- A caller, with a library of one thread ---- */

static void succeed(void *context, const struct accel_call *call)
{
    (void)context;
    (void)call;
}

static void pause_here(void *context, void (*wait)(void *argument), void *argument)
{
    (void)context;
    wait(argument);
}

static const struct dispatch_caller caller = {.symbol = "dgemm_",
                                              .site = site,
                                              .library = library_of,
                                              .loads = no_loads,
                                              .succeed = succeed,
                                              .pause = pause_here};

/* ---- A call on a device ---- */

static struct accel_call product(void)
{
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 0};
    struct accel_call call;
    shape_typical(&call, routine("dgemm"), size);
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_b].ptr = b;
    call.span[ACCEL_c].ptr = c;
    call.blas.scalar[ACCEL_alpha] = (struct accel_complex){1, 0};
    call.blas.scalar[ACCEL_beta] = (struct accel_complex){0, 0};
    return call;
}

static struct accel_decision decide_on(int i)
{
    struct task task;
    struct accel_call call = product();
    task_begin(&task, &call, &caller, &device[i]);
    select_call(&task);
    return task.decision;
}

static void assert_decision(int i, bool gpu, enum accel_why why)
{
    const struct accel_decision decision = decide_on(i);
    assert_string_equal(accel_why_name(decision.why), accel_why_name(why));
    assert_int_equal(decision.gpu, gpu);
}

static bool run_on(int i, struct accel_record *record)
{
    struct task task;
    struct accel_call call = product();
    task_begin(&task, &call, &caller, &device[i]);
    select_call(&task);
    *record = record_of(&call, caller.symbol, caller.site, task.decision);
    memset(c, 0, sizeof c);
    return run_on_gpu(&task, record);
}

static void assert_computes(int i)
{
    struct accel_record record;
    assert_decision(i, true, ACCEL_FASTER);
    assert_true(run_on(i, &record));
    assert_string_equal(record.ran, device[i].name);
    for (int j = 0; j < N * N; j++)
        assert_true(c[j] == 2.0 * N);
}

/* What the next call on a device comes to; of GPU_ERROR, this is to blame. */
static const struct gpu_device_functions *functions;
static enum gpu_status next_status;
static enum gpu_blame next_blame;

static enum gpu_status run_badly(struct gpu_device *on, const struct accel_call *call,
                                 struct gpu_host *host)
{
    (void)call;
    on->functions = functions;
    host->blame = next_blame;
    strcpy(host->failure, "told to fail");
    return next_status;
}

static void fail_on(int i, enum gpu_status status, enum gpu_blame blame)
{
    static struct gpu_device_functions bad;
    struct gpu_device *gpu = device_gpu(&device[i]);
    struct accel_record record;
    functions = gpu->functions;
    bad = *functions;
    bad.run = run_badly;
    gpu->functions = &bad;
    next_status = status;
    next_blame = blame;
    assert_false(run_on(i, &record));
    assert_ptr_equal(gpu->functions, functions);
    assert_string_equal(record.ran, "cpu");
}

/* ---- Both are fresh, and the routine is warm on them ---- */

static int prepare(void **state)
{
    (void)state;
    settings.cuda_dir = tested_gpu();
    for (int i = 0; i < N * N; i++) {
        a[i] = 1;
        b[i] = 2;
    }
    setenv("XDG_RUNTIME_DIR", mkdtemp(folder), 1);
    shared_file_prepare();
    cost_start(&settings, 1, true, false);
    device_prepare(&settings, &ranks);
    select_start(&settings, 1, true);
    run_start(&settings, true);
    return 0;
}

static int start_both(void **state)
{
    static int next;
    (void)state;
    assert_in_range(next, 0, TESTS_MOST - 1);
    device = devices[next++];
    for (int i = 0; i < 2; i++) {
        settings.devices.number[0] = i;
        device_start_now(&device[i], DEVICE_WITHOUT_END);
        if (device_state(&device[i]) != DEVICE_READY)
            return -1;
        warm_up_note(&device[i], routine("dgemm"));
    }
    return 0;
}

static int stop_both(void **state)
{
    char path[128];
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/accel-%d-%s", folder, (int)geteuid(),
                 gpu_info(device_gpu(&device[i]))->id);
        unlink(path);
        gpu_stop(device_gpu(&device[i]));
    }
    return 0;
}

static int remove_folder(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/accel-%d-seats", folder, (int)geteuid());
    unlink(path);
    return rmdir(folder);
}

/* ---- Each has its own ---- */

static void each_is_named_and_computes(void **state)
{
    (void)state;
    assert_string_equal(device[0].name, "gpu0");
    assert_string_equal(device[1].name, "gpu1");
    assert_string_equal(device[1].cpu_name, "gpu1+cpu");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(device[i].memory_bytes, 512 << 20);
        assert_computes(i);
    }
}

/* By the decision, the run and what is learned of its time. */
static void a_call_is_looked_at_once(void **state)
{
    struct accel_record record;
    (void)state;
    for (int i = 0; i < 3; i++) {
        validities = descriptions = works = decisions = 0;
        assert_true(run_on(0, &record));
        assert_string_equal(record.ran, device[0].name);
        assert_int_equal(validities, 1);
        assert_int_equal(descriptions, 1);
        assert_int_equal(works, 1);
        assert_int_equal(decisions, 1);
    }
}

/* Calls that pay only if all threads copy must start a device. */
static void an_untried_device_copies_by_all_threads(void **state)
{
    const double threads_gbps = split_host_gbps(1 + copy_pool_size());
    const struct cost_curves *const untried = curves_of_device(NULL);
    (void)state;
    assert_true(untried->up_gbps >= fmin(threads_gbps, NOMINAL_LINK_GBPS));
    assert_true(untried->down_gbps == untried->up_gbps);
}

static void each_has_its_own_curves(void **state)
{
    const struct accel_call call = product();
    (void)state;
    const double before = decide_on(0).est_gpu_ms;
    assert_true(decide_on(1).est_gpu_ms == before);
    assert_ptr_not_equal(atomic_load(&device[0].curves), atomic_load(&device[1].curves));
    for (int i = 0; i < 50; i++)
        learn_gpu(atomic_load(&device[1].curves), &call, device[1].memory_bytes, 1000);
    assert_true(decide_on(0).est_gpu_ms == before);
    assert_decision(0, true, ACCEL_FASTER);
    assert_true(decide_on(1).est_gpu_ms > 10 * before);
    assert_decision(1, false, ACCEL_SLOWER);
}

/* The estimate for a device, whether the call goes there or not. */
static double estimate_on(struct dispatch_device *on, const struct accel_call *call)
{
    struct cost_curves *const curves = atomic_load(&on->curves);
    struct accel_machine machine;
    accel_machine_init(&machine, NULL, NULL);
    machine.gpu = DEVICE_READY;
    machine.gpu_memory = on->memory_bytes;
    machine.wants_all = true;
    struct problem problem;
    problem_of(&problem, call);
    machine.schedule = cost_schedule_rates(curves, &problem, GPU_NATIVE);
    cost_borrow(&machine, curves, call->routine, library_of(NULL), 1);
    const double ms = accel_decide(&problem, &machine, &settings).est_own_ms;
    cost_give_back();
    return ms;
}

/* A call of 6 MB is divided by a schedule: copies and kernels overlap. Its estimate becomes what
 * its calls take, be that less than the copies are thought to take, or more than all together. */
static void schedules_learn_their_times(void **state)
{
    static const double times[] = {0.2, 1, 7, 3};
    const struct accel_call call = product();
    struct scheduled scheduled;
    (void)state;
    assert_true(scheduled_describe(&call, &scheduled) && scheduled_is_divided(&scheduled));
    struct cost_curves *const curves = atomic_load(&device[0].curves);
    const double before = decide_on(0).est_own_ms;
    const struct schedule_rates rates = rates_for(curves, &call, GPU_NATIVE);
    assert_true(fabs(scheduled_ms(&scheduled, &rates, device[0].memory_bytes, 0) + MODEL_LAUNCH_MS -
                     before) < 1e-9);
    for (int i = 0; i < 4; i++) {
        for (int call_number = 0; call_number < 60; call_number++)
            learn_gpu(curves, &call, device[0].memory_bytes, times[i] * before);
        assert_true(fabs(estimate_on(&device[0], &call) / (times[i] * before) - 1) < 0.02);
    }
    /* The blocks are those of before, and so are the results. */
    const struct schedule_rates after = rates_for(curves, &call, GPU_NATIVE);
    assert_memory_equal(&rates, &after, sizeof rates);
}

/* What one kernel of the whole call takes is what the device's curve says, which has measured
 * calls, whatever the pace of its rows. Only native precision has paces. */
static void a_whole_kernel_takes_what_was_measured(void **state)
{
    const struct accel_call call = product();
    struct cost_curves *const curves = atomic_load(&device[0].curves);
    struct scheduled scheduled;
    double ms[2], emulated[2];
    (void)state;
    assert_true(scheduled_describe(&call, &scheduled));
    for (int paced = 0; paced < 2; paced++) {
        for (int i = 0; i < PACES; i++)
            curves->paces[ACCEL_FLOAT64].of[i] = paced ? 0.8F : 0;
        block_paces_settle(&curves->paces[ACCEL_FLOAT64]);
        struct schedule_rates rates = rates_for(curves, &call, GPU_NATIVE);
        assert_true(block_pace(&rates.paces, 100) == (paced ? (double)0.8F : 1));
        ms[paced] = schedule_compute(&scheduled.call, &rates, rates.compute);
        rates = rates_for(curves, &call, GPU_EMULATED);
        assert_true(block_pace(&rates.paces, 100) == 1);
        emulated[paced] = schedule_compute(&scheduled.call, &rates, rates.compute);
    }
    curves->paces[ACCEL_FLOAT64] = (struct block_paces){.highest = 0};
    assert_true(ms[0] > 0 && fabs(ms[1] / ms[0] - 1) < 1e-6 && emulated[1] == emulated[0]);
}

/* So are those of LAPACK in panels: of a matrix that fits and comes up while it is factored, and of
 * one above the memory. */
static void panels_learn_their_times(void **state)
{
    static const char *const names[] = {"dpotrf", "dgetrf", "dgeqrf", "dgesv"};
    static const double times[] = {0.5, 4, 2};
    const int64_t size[ACCEL_DIMENSIONS] = {8192, 8192, 8192, 1};
    (void)state;
    for (size_t r = 0; r < sizeof names / sizeof *names; r++)
        for (int above = 0; above < 2; above++) {
            struct dispatch_device *const on = &device[above]; /* each learns for itself */
            struct cost_curves *const its = atomic_load(&on->curves);
            struct accel_call call;
            shape_typical(&call, routine(names[r]), size);
            for (int i = 0; i < ACCEL_SPANS; i++)
                if (call.span[i].access)
                    call.span[i].ptr = (void *)(uintptr_t)(0x1000000000 * (i + 1));
            on->memory_bytes = (int64_t)(above ? 256 : 2048) << 20; /* the matrix has 512 MB */
            const double before = estimate_on(on, &call);
            const struct schedule_rates rates = rates_for(its, &call, GPU_NATIVE);
            const double simulated = lapack_panels_ms(&call, &rates, on->memory_bytes);
            assert_true(simulated > 0 && fabs(simulated / before - 1) < 0.01);
            for (int i = 0; i < 3; i++) {
                for (int call_number = 0; call_number < 60; call_number++)
                    learn_gpu(its, &call, on->memory_bytes, times[i] * before);
                assert_true(fabs(estimate_on(on, &call) / (times[i] * before) - 1) < 0.02);
            }
            const struct schedule_rates after = rates_for(its, &call, GPU_NATIVE);
            assert_memory_equal(&rates, &after, sizeof rates);
        }
}

static void each_has_its_own_warm_routines(void **state)
{
    const struct timespec pause = {0, 10000000};
    const struct accel_routine *dgemm = routine("dgemm");
    (void)state;
    memset(&device[1].warm_up, 0, sizeof device[1].warm_up);
    assert_true(warm_up_cost_ms(&device[0], dgemm) == 0);
    assert_true(warm_up_cost_ms(&device[1], dgemm) > 0);
    assert_decision(0, true, ACCEL_FASTER);
    decide_on(1); /* has it warmed up on a thread */
    for (int i = 0; i < 10000 && (!warm_up_is_done(&device[1], dgemm) || device[1].warm_up.working);
         i++)
        nanosleep(&pause, NULL);
    assert_true(warm_up_is_done(&device[1], dgemm) && !device[1].warm_up.working);
    assert_decision(1, true, ACCEL_FASTER);
}

static void each_has_its_own_contention(void **state)
{
    (void)state;
    int number = contention_enter_gpu(&device[0].contention, 60000);
    assert_decision(0, false, ACCEL_BUSY);
    assert_decision(1, true, ACCEL_FASTER);
    contention_leave_gpu(&device[0].contention, number);
    assert_decision(0, true, ACCEL_FASTER);
}

static void each_has_its_own_lost_call_sites(void **state)
{
    const struct accel_call call = product();
    const uint64_t key = call_site_key(site, &call);
    (void)state;
    for (int i = 0; i < 3; i++)
        misprediction_note(&device[0].mispredictions, key, 1000, 1);
    assert_decision(0, false, ACCEL_SLOWER);
    assert_decision(1, true, ACCEL_FASTER);
}

static void each_is_full_for_itself(void **state)
{
    (void)state;
    fail_on(0, GPU_NO_MEMORY, GPU_BLAME_DEVICE);
    assert_decision(0, false, ACCEL_NO_MEMORY);
    assert_computes(1);
}

static void each_leaves_its_own_routines_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        fail_on(i, GPU_ERROR, GPU_BLAME_ROUTINE);
        assert_decision(i, false, ACCEL_ERROR);
        assert_int_equal(device_state(&device[i]), DEVICE_READY);
        if (i == 0)
            assert_computes(1);
    }
}

static void one_that_is_given_up_leaves_the_other(void **state)
{
    (void)state;
    fail_on(0, GPU_ERROR, GPU_BLAME_DEVICE);
    assert_int_equal(device_state(&device[0]), DEVICE_FAILED);
    assert_decision(0, false, ACCEL_ERROR);
    assert_int_equal(device_state(&device[1]), DEVICE_READY);
    assert_false(device_has_failure(&device[1]));
    assert_computes(1);
}

/* There is no device of this number. */
static void one_that_is_absent_leaves_the_other(void **state)
{
    static struct dispatch_device absent;
    (void)state;
    settings.devices.number[0] = 7;
    device_start_now(&absent, DEVICE_WITHOUT_END);
    assert_int_equal(device_state(&absent), DEVICE_ABSENT);
    assert_true(device_has_failure(&absent));
    assert_string_not_equal(device_failure(&absent), "no reason known");
    assert_string_equal(device_failure(&device[0]), "no reason known");
    assert_computes(0);
}

int main(void)
{
    /* The library, which is not loaded yet, reads it as it comes. */
    setenv("TESTGPU_DEVICES", "2", 1);
    const struct CMUnitTest tests[] = {
#define ON_BOTH(test) cmocka_unit_test_setup_teardown(test, start_both, stop_both)
        ON_BOTH(each_is_named_and_computes),
        ON_BOTH(a_call_is_looked_at_once),
        cmocka_unit_test(an_untried_device_copies_by_all_threads),
        ON_BOTH(each_has_its_own_curves),
        ON_BOTH(schedules_learn_their_times),
        ON_BOTH(a_whole_kernel_takes_what_was_measured),
        ON_BOTH(panels_learn_their_times),
        ON_BOTH(each_has_its_own_warm_routines),
        ON_BOTH(each_has_its_own_contention),
        ON_BOTH(each_has_its_own_lost_call_sites),
        ON_BOTH(each_is_full_for_itself),
        ON_BOTH(each_leaves_its_own_routines_alone),
        ON_BOTH(one_that_is_given_up_leaves_the_other),
        ON_BOTH(one_that_is_absent_leaves_the_other),
    };
    return cmocka_run_group_tests(tests, prepare, remove_folder);
}
