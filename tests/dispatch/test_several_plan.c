/*
 * Which devices have parts of a call, and what the division is told of them: on devices that the
 * test plays, with rates of its own, and without a division.
 */
#include "base/file/shared_file.h"
#include "tests/lib/played_device.h"
#include "tests/lib/routine.h"

#include <string.h>
#include <time.h>

#include "base/output/message.h"
#include "dispatch/cost/cost.h"
#include "dispatch/cost/factorisation.h"
#include "dispatch/cost/lending.h"
#include "dispatch/cost/split_cache.h"
#include "dispatch/devices.h"
#include "dispatch/several.h"
#include "ops/typical.h"

enum { DEVICES = 4, ORDER = 1000 };

static struct accel_settings settings = {.on = true};
static const struct accel_ranks ranks = {.size = 1, .local_size = 1};
static struct played_device played[DEVICES];
static struct task task;
static struct gang_plan plan;

/* ---- What the program is linked with --wrap for: rates, the division, threads and starts ---- */

static struct schedule_rates rates[DEVICES]; /* a device's curves are a pointer to them */
static double peer_gbps[DEVICES][DEVICES];
static int peers_asked, helpers;

static struct {
    int splits, factorisations, count;
    double gbps;
    struct split_device device[SPLIT_MOST];
    double gain_ms; /* of a division */
    bool is_whole;  /* there is none that gains */
} divided;

static int threads, starts;

struct schedule_rates __wrap_cost_schedule_rates(struct cost_curves *device,
                                                 struct problem *problem,
                                                 enum gpu_precision precision);
double __wrap_gpu_peer_gbps(struct gpu_device *reader, struct gpu_device *owner);
void __wrap_split_cache_make(struct split *split, const struct accel_call *call,
                             const struct split_device *device, int count, double host_gbps);
void __wrap_factorisation_make(struct split *split, struct panels_shared *shared,
                               const struct accel_call *call, const struct split_device *device,
                               int count, double host_gbps);
int __wrap_copy_pool_size(void);
bool __wrap_thread_spawn(void *(*run)(void *context), void *context, size_t stack_bytes);
struct gpu_device *__wrap_gpu_start(const struct gpu_config *with, char why[GPU_FAILURE_BYTES]);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);

struct schedule_rates __wrap_cost_schedule_rates(struct cost_curves *device,
                                                 struct problem *problem,
                                                 enum gpu_precision precision)
{
    assert_ptr_equal(problem, &task.problem);
    assert_int_equal(precision, task.host.precision);
    return *(const struct schedule_rates *)(const void *)device;
}

double __wrap_gpu_peer_gbps(struct gpu_device *reader, struct gpu_device *owner)
{
    peers_asked++;
    return peer_gbps[gpu_info(reader)->index][gpu_info(owner)->index];
}

static void divide(struct split *split, const struct split_device *device, int count, double gbps)
{
    divided.count = count;
    divided.gbps = gbps;
    memcpy(divided.device, device, (size_t)count * sizeof *device);
    *split = (struct split){.count = divided.is_whole && count > 0 ? 1 : count,
                            .whole_ms = 100,
                            .ms = 100 - divided.gain_ms};
}

void __wrap_split_cache_make(struct split *split, const struct accel_call *call,
                             const struct split_device *device, int count, double host_gbps)
{
    assert_non_null(call);
    divided.splits++;
    divide(split, device, count, host_gbps);
}

void __wrap_factorisation_make(struct split *split, struct panels_shared *shared,
                               const struct accel_call *call, const struct split_device *device,
                               int count, double host_gbps)
{
    assert_non_null(call);
    assert_ptr_equal(shared, &plan.shared);
    divided.factorisations++;
    divide(split, device, count, host_gbps);
}

int __wrap_copy_pool_size(void)
{
    return helpers;
}

bool __wrap_thread_spawn(void *(*run)(void *context), void *context, size_t stack_bytes)
{
    (void)run;
    (void)context;
    (void)stack_bytes;
    threads++;
    return true;
}

struct gpu_device *__wrap_gpu_start(const struct gpu_config *with, char why[GPU_FAILURE_BYTES])
{
    (void)with;
    strcpy(why, "told not to be there");
    starts++;
    return NULL;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    *t = (struct timespec){.tv_sec = 1000};
    return 0;
}

/* ---- The call ---- */

static struct accel_call call;

static void make_call(const char *name)
{
    shape_of_order(&call, routine(name), ORDER);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call.span[i].access)
            call.span[i].ptr = (void *)((uintptr_t)(i + 1) << 40); /* nobody reads it */
}

static bool plan_now(void)
{
    threads = starts = peers_asked = 0;
    divided.count = divided.splits = divided.factorisations = 0;
    memset(&plan, 0, sizeof plan);
    problem_of(&task.problem, &call);
    return several_plan(&task, &plan);
}

static int prepare(void **state)
{
    (void)state;
    settings = (struct accel_settings){.on = true};
    settings.devices.kind = ACCEL_DEVICES_ALL;
    several_start(&settings, true);
    make_call("dgemm");
    for (int i = 0; i < DEVICES; i++) {
        play_device(&played[i], devices_at(i), i);
        played[i].gpu.info.share = DEVICES;
        warm_up_note(devices_at(i), call.routine);
        rates[i] = schedule_nominal;
        rates[i].up = 10 + i;
        rates[i].down = 20 + i;
        rates[i].compute = 1000 + i;
        rates[i].peer = 0;
        atomic_store(&devices_at(i)->curves, (struct cost_curves *)(void *)&rates[i]);
        devices_at(i)->memory_bytes = 1000000 * (i + 1);
        for (int j = 0; j < DEVICES; j++)
            peer_gbps[i][j] = 100;
    }
    task = (struct task){.call = &call, .device = devices_at(0), .decision = {.est_own_ms = 5}};
    divided.gain_ms = 10;
    divided.is_whole = false;
    helpers = 3;
    return 0;
}

/* Asserts that these devices have parts, in this order, and that the division is told of each. */
static void assert_parts(int count, const int *numbers)
{
    assert_int_equal(plan_now(), count > 1);
    assert_int_equal(divided.splits, 1);
    assert_int_equal(divided.count, count);
    for (int i = 0; i < count; i++) {
        const int number = numbers[i];
        assert_ptr_equal(plan.device[i], devices_at(number));
        assert_true(divided.device[i].rates.up == rates[number].up);
        assert_true(divided.device[i].rates.down == rates[number].down);
        assert_true(divided.device[i].rates.compute == rates[number].compute);
        assert_int_equal(divided.device[i].memory_bytes, 1000000 * (number + 1));
    }
}

static const int all[] = {0, 1, 2, 3}, without_1[] = {0, 2, 3}, without_0[] = {1, 2, 3};

/* ---- Which devices ---- */

static void all_that_can_be_had(void **state)
{
    (void)state;
    assert_parts(DEVICES, all);
    assert_false(plan.factors);
    assert_int_equal(threads + starts, 0);
    /* Only the calling device is left: the call stays whole. */
    for (int i = 1; i < DEVICES; i++)
        atomic_store(&devices_at(i)->state, DEVICE_FAILED);
    assert_parts(1, all);
}

/* One that is taken from the others for this reason alone. */
static void what_keeps_one_from_a_part(void **state)
{
    enum { STATES = 5 };
    static const enum device_state states[STATES] = {DEVICE_ABSENT, DEVICE_FAILED, DEVICE_FORKED,
                                                     DEVICE_STARTING, DEVICE_ESTIMATED};
    for (int i = 0; i < STATES; i++) {
        prepare(state);
        atomic_store(&devices_at(1)->state, states[i]);
        assert_parts(3, without_1);
    }
    prepare(state);
    quarantine_add(&devices_at(0)->quarantine, call.routine, QUARANTINE_WRONG);
    assert_parts(3, without_0);
    prepare(state);
    quarantine_add(&devices_at(0)->quarantine, call.routine, QUARANTINE_FAILED);
    assert_parts(3, without_0);
    quarantine_add(&devices_at(1)->quarantine, routine("dgetrf"), QUARANTINE_FAILED);
    assert_parts(3, without_0);
    prepare(state);
    atomic_store(&devices_at(1)->curves, NULL);
    assert_parts(3, without_1);
    /* One that would compute in another precision. */
    prepare(state);
    settings.precision[call.routine - accel_routines] = task.host.precision = GPU_EMULATED;
    for (int i = 0; i < DEVICES; i++)
        played[i].gpu.info.precisions[GPU_GEMM] = i == 1 ? 0 : 1u << GPU_EMULATED;
    assert_parts(3, without_1);
}

/* What depends on the course of the program keeps it only where decisions may depend on that. */
static void what_keeps_one_for_the_moment(void **state)
{
    for (int adapts = 0; adapts < 2; adapts++) {
        const int count = adapts ? 3 : 4;
        const int *const numbers = adapts ? without_1 : all;
        prepare(state);
        several_start(&settings, adapts);
        memset(&devices_at(1)->warm_up, 0, sizeof devices_at(1)->warm_up);
        assert_parts(count, numbers);
        assert_int_equal(threads, adapts); /* it is warmed up meanwhile */
        prepare(state);
        several_start(&settings, adapts);
        oom_backoff_note(&devices_at(1)->oom_backoff, &call);
        assert_parts(count, numbers);
        prepare(state);
        several_start(&settings, adapts);
        const int number = contention_enter_gpu(&devices_at(1)->contention, 1000);
        assert_parts(count, numbers);
        contention_leave_gpu(&devices_at(1)->contention, number);
        assert_parts(DEVICES, all);
    }
}

/* ---- What the division is told ---- */

/* Processes that share a device have their shares of it. */
static void shares_of_a_device(void **state)
{
    (void)state;
    devices_at(2)->sharers = 4;
    assert_true(plan_now());
    assert_true(divided.device[2].rates.up == rates[2].up / 4);
    assert_true(divided.device[2].rates.down == rates[2].down / 4);
    assert_true(divided.device[2].rates.compute == rates[2].compute / 4);
    assert_true(divided.device[1].rates.up == rates[1].up);
}

/* Devices have the same number if they have the same port, and none that does not know its own. */
static void ports(void **state)
{
    static const struct {
        const char *port[DEVICES];
        bool same[DEVICES][DEVICES];
    } cases[] = {{{"", "", "", ""}, {{false}}},
                 {{"a", "a", "b", "b"}, {[0][1] = true, [2][3] = true}},
                 {{"a", "b", "a", ""}, {[0][2] = true}},
                 {{"", "a", "", "a"}, {[1][3] = true}},
                 {{"a", "b", "c", "d"}, {{false}}}};
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        for (int i = 0; i < DEVICES; i++)
            strcpy(played[i].gpu.info.port, cases[n].port[i]);
        assert_true(plan_now());
        for (int i = 0; i < DEVICES; i++) {
            assert_int_equal(divided.device[i].port > 0, cases[n].port[i][0] != 0);
            for (int j = i + 1; j < DEVICES; j++)
                assert_int_equal(divided.device[i].port > 0 &&
                                     divided.device[i].port == divided.device[j].port,
                                 cases[n].same[i][j]);
        }
    }
}

/* What the host packs: by the threads that may help and those that call; but no less than the
 * fastest device takes. */
static void rate_of_the_host(void **state)
{
    (void)state;
    for (helpers = 0; helpers < 14; helpers++) {
        assert_true(plan_now());
        const double packs = split_host_gbps(helpers + DEVICES), fastest = rates[DEVICES - 1].up;
        assert_true(divided.gbps == (packs > fastest ? packs : fastest));
    }
    helpers = 0;
    for (int i = 0; i < DEVICES; i++) { /* the fastest one is any of them */
        rates[i].up = 5000;
        assert_true(plan_now());
        assert_true(divided.gbps == 5000);
        rates[i].up = 10;
    }
}

/* ---- Operands that devices lend each other ---- */

static void assert_no_peers(void)
{
    assert_true(plan_now());
    for (int i = 0; i < DEVICES; i++)
        assert_true(divided.device[i].rates.peer == 0);
}

static void what_devices_lend(void **state)
{
    (void)state;
    task.decision.est_own_ms = 10;
    for (int i = 0; i < DEVICES; i++)
        for (int j = 0; j < DEVICES; j++)
            peer_gbps[i][j] = 200 + 10 * i + (j + i) % DEVICES;
    assert_true(plan_now());
    for (int i = 0; i < DEVICES; i++) {
        double slowest = 1e9;
        for (int j = 0; j < DEVICES; j++)
            slowest = j != i && peer_gbps[i][j] < slowest ? peer_gbps[i][j] : slowest;
        assert_true(divided.device[i].rates.peer == slowest);
    }
    assert_int_equal(peers_asked, DEVICES * (DEVICES - 1));
    task.decision.est_own_ms = 9.9; /* too short for the measurement */
    assert_no_peers();
    assert_int_equal(peers_asked, 0);
}

/* Each must copy from each of the others faster than from the host, by LENDING_GAIN, where all copy
 * from that at the same time. */
static void what_is_not_worth_lending(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++)
        for (int i = 0; i < DEVICES; i++)
            for (int j = 0; j < DEVICES; j++) {
                prepare(state);
                task.decision.est_own_ms = 10;
                for (int k = 0; k < DEVICES; k++) {
                    rates[k].up = shared ? 1000 : 1 + k; /* the host does not pack as much */
                    for (int l = 0; l < DEVICES; l++)
                        peer_gbps[k][l] = 1e6;
                }
                const double up = shared ? 1000.0 / DEVICES : rates[i].up;
                peer_gbps[i][j] = LENDING_GAIN * up;
                if (i == j) {
                    assert_true(plan_now());
                    assert_true(divided.device[i].rates.peer > LENDING_GAIN * up);
                } else {
                    assert_no_peers();
                    assert_true(peers_asked < DEVICES * (DEVICES - 1) || i == DEVICES - 1);
                    peer_gbps[i][j] *= 1.01;
                    assert_true(plan_now());
                    assert_true(divided.device[i].rates.peer == peer_gbps[i][j]);
                }
            }
}

static void calls_that_lend_nothing(void **state)
{
    (void)state;
    task.decision.est_own_ms = 1000;
    make_call("dgemm_batch_strided");
    call.batch = 7;
    for (int i = 0; i < DEVICES; i++)
        warm_up_note(devices_at(i), call.routine);
    assert_no_peers();
    prepare(state);
    task.decision.est_own_ms = 1000;
    make_call("dpotrf");
    for (int i = 0; i < DEVICES; i++)
        warm_up_note(devices_at(i), call.routine);
    assert_no_peers();
    assert_int_equal(divided.factorisations, 1);
    assert_int_equal(divided.splits, 0);
    assert_true(plan.factors);
    /* One device alone */
    prepare(state);
    task.decision.est_own_ms = 1000;
    for (int i = 1; i < DEVICES; i++)
        atomic_store(&devices_at(i)->state, DEVICE_FAILED);
    assert_false(plan_now());
    assert_int_equal(peers_asked, 0);
    assert_true(divided.device[0].rates.peer == 0);
}

/* ---- Devices that are to start ---- */

/* Those that would gain; as if they were like the device that has the call. */
static void further_devices_are_started(void **state)
{
    for (int adapts = 0; adapts < 2; adapts++) {
        prepare(state);
        several_start(&settings, adapts);
        task.decision.est_own_ms = 1000;
        divided.gain_ms = DEVICE_GAIN_MS;
        atomic_store(&devices_at(1)->state, DEVICE_UNTRIED);
        atomic_store(&devices_at(2)->state, DEVICE_FAILED);
        atomic_store(&devices_at(3)->state, DEVICE_UNTRIED);
        assert_false(plan_now());
        assert_int_equal(divided.splits, 2); /* with them, and without them */
        assert_int_equal(divided.count, 1);
        assert_int_equal(threads, adapts ? 2 : 0);
        assert_int_equal(starts, adapts ? 0 : 2);
        for (int i = 0; i < DEVICES; i++)
            assert_true(atomic_load(&devices_at(i)->gain_us) ==
                        (adapts && i % 2 ? (int64_t)(1e3 * DEVICE_GAIN_MS) : 0));
        assert_int_equal(device_state(devices_at(1)), adapts ? DEVICE_STARTING : DEVICE_ABSENT);
        assert_int_equal(device_state(devices_at(2)), DEVICE_FAILED);
        assert_int_equal(peers_asked, 0); /* nothing is known of those */
    }
    /* No division gains; no device is there that could be divided with. */
    for (int none = 0; none < 2; none++) {
        prepare(state);
        several_start(&settings, false);
        divided.is_whole = true;
        atomic_store(&devices_at(0)->state, none ? DEVICE_FAILED : DEVICE_READY);
        for (int i = 1; i < DEVICES; i++)
            atomic_store(&devices_at(i)->state, i == 1 ? DEVICE_UNTRIED : DEVICE_FAILED);
        assert_false(plan_now());
        assert_int_equal(starts, 0);
        assert_int_equal(device_state(devices_at(1)), DEVICE_UNTRIED);
    }
}

/* ---- Which calls ---- */

static void calls_that_may_be_shared(void **state)
{
    static const struct {
        const char *name;
        int64_t memory;
        bool may;
    } expected[] = {{"dgemm", 100, true},         {"dgemm", INT64_MAX, true},
                    {"dgemv", INT64_MAX, false},  {"dgetrf", 1000000, true},
                    {"dgetrf", INT64_MAX, false}, {"dpotrf", 1000000, true},
                    {"dpotrf", INT64_MAX, false}, {"dsyevd", 1000000, false}};
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        make_call(expected[i].name);
        devices_at(0)->memory_bytes = expected[i].memory;
        assert_int_equal(several_may_share(&task), expected[i].may);
    }
}

static bool take_message(const char *message)
{
    (void)message;
    return true;
}

static int start(void **state)
{
    message_to(take_message);
    shared_file_prepare();
    settings.devices.kind = ACCEL_DEVICES_ALL;
    devices_prepare(&settings, &ranks);
    return prepare(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define PREPARED(test) cmocka_unit_test_setup(test, prepare)
        PREPARED(all_that_can_be_had),
        PREPARED(what_keeps_one_from_a_part),
        PREPARED(what_keeps_one_for_the_moment),
        PREPARED(shares_of_a_device),
        PREPARED(ports),
        PREPARED(rate_of_the_host),
        PREPARED(what_devices_lend),
        PREPARED(what_is_not_worth_lending),
        PREPARED(calls_that_lend_nothing),
        PREPARED(further_devices_are_started),
        PREPARED(calls_that_may_be_shared),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
