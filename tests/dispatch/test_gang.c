/*
 * A call on several devices that the test plays: what has become of the parts decides who computes
 * what, what the status is, and what is reported. Random outcomes, compared with what gang.h says
 * of them.
 */
#include "base/file/shared_file.h"
#include "tests/lib/played_device.h"
#include "tests/lib/routine.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/output/message.h"
#include "dispatch/gang.h"
#include "ops/typical.h"
#include "report/report.h"

enum { MOST = 4, ROWS = 3, COLS = 12, EVENTS = 40, ORDER = 6 };

static struct accel_settings settings = {.on = true};
static const struct accel_ranks ranks = {.size = 1, .local_size = 1};

/* ---- Memory that is short: this program is linked with --wrap for both ---- */

static int until_none = -1; /* calls of either that succeed; negative: all do */

void *__wrap_malloc(size_t size);
void *__real_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_calloc(size_t count, size_t size);

static bool is_short_now(void)
{
    return until_none >= 0 && until_none-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return is_short_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_short_now() ? NULL : __real_calloc(count, size);
}

/* ---- The call: its result is how often each element was computed ---- */

static double a[ORDER * 2], b[2 * COLS], c[ROWS * COLS];
_Static_assert(ORDER > ROWS && ORDER * ORDER == ROWS * COLS, "a triangle fits, too");

static struct accel_call product(void)
{
    const int64_t size[ACCEL_DIMENSIONS] = {ROWS, COLS, 2, 0};
    struct accel_call call;
    shape_typical(&call, routine("dgemm"), size);
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_b].ptr = b;
    call.span[ACCEL_c].ptr = c;
    return call;
}

/* A lower triangle */
static struct accel_call update(void)
{
    const int64_t size[ACCEL_DIMENSIONS] = {ORDER, ORDER, 2, 0};
    struct accel_call call;
    shape_typical(&call, routine("dsyrk"), size);
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_c].ptr = c;
    assert_int_equal(call.span[ACCEL_c].triangle, 'L');
    return call;
}

/* Devices run beside each other, and one may do a part of another's beside its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void compute(const struct accel_call *part)
{
    const struct accel_span *x = &part->span[ACCEL_c];
    assert_int_equal(part->blas.omits, 0); /* a part of a triangle that is not one */
    pthread_mutex_lock(&lock);
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = x->triangle == 'L' ? j : 0; i < x->rows; i++)
            ++*(double *)gpu_element(x, i, j);
    pthread_mutex_unlock(&lock);
}

static bool computed(double times)
{
    for (int i = 0; i < ROWS * COLS; i++)
        if (c[i] != times)
            return false;
    return true;
}

/* ---- Devices, and what becomes of the first call and of later ones on each ---- */

static struct dispatch_device device[MOST];
static struct played_device played[MOST];

struct outcome {
    enum gpu_status status;
    enum gpu_blame blame;
    atomic_int runs, hurried; /* so far */
    int64_t up, down, peer;
    bool sets_up, in_other;
    enum gpu_status later;
};
static struct outcome outcome[MOST];
static const double *part_of[MOST]; /* the part of each; NULL: the first call is its own */
static bool has_load[MOST];
static atomic_bool signals_are_held;
static enum gpu_precision asked[MOST];

static void tell(struct gpu_host *host, int number)
{
    struct gpu_step step = {.kind = GPU_STEP_UP, .bytes = number};
    const struct gpu_steps steps = {.step = &step, .count = 1, .device = number};
    for (int i = 0; i < EVENTS; i++)
        host->event(host->context, &(struct gpu_event){.rows = number, .cols = i});
    host->steps(host->context, &steps);
    step.bytes = -1; /* the array is the device's again */
}

static enum gpu_status run(struct played_device *on, const struct accel_call *call,
                           struct gpu_host *host)
{
    struct outcome *const o = &outcome[on->number];
    sigset_t held;
    pthread_mutex_lock(&lock);
    /* A part of another member's may come before its own. */
    const bool first =
        part_of[on->number] ? call->span[ACCEL_c].ptr == part_of[on->number] : o->runs == 0;
    o->runs++;
    enum gpu_status status = first ? o->status : o->later;
    o->hurried += host->hurries;
    has_load[on->number] = contention_gpu_ms(&on->device->contention) > 0;
    asked[on->number] = host->precision;
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_BLOCK, NULL, &held);
    signals_are_held &= sigismember(&held, SIGTERM) == 1 || !first;
    host->up_bytes = o->up;
    host->down_bytes = o->down;
    host->peer_bytes = o->peer;
    host->set_up = o->sets_up;
    host->blame = o->blame;
    strcpy(host->failure, "told to fail");
    if ((first || !part_of[on->number]) && host->event)
        tell(host, on->number);
    if (status == GPU_OK)
        compute(call);
    else if (gpu_is_finished(status) && !host->original(host->context, call))
        return GPU_LOST;
    if (gpu_is_finished(status) && !o->in_other)
        host->precision = GPU_NATIVE;
    return status;
}

/* ---- Who waits for the call ---- */

static int originals, events, messages, told[MOST];
static bool in_order, original_fails;
static const struct accel_record *reported;

static bool original(void *context, const struct accel_call *part)
{
    (void)context;
    originals++;
    if (!original_fails)
        compute(part);
    return !original_fails;
}

static void no_event(void *context, const struct gpu_event *event)
{
    (void)context;
    (void)event;
    fail();
}

static void no_steps(void *context, const struct gpu_steps *steps)
{
    (void)context;
    (void)steps;
    fail();
}

static void on_decision(const struct accel_record *record)
{
    (void)record;
}

static void on_event(const struct accel_record *record, const struct gpu_event *event)
{
    in_order &= event->cols == events % EVENTS && record == reported;
    events++;
}

static void on_steps(const struct accel_record *record, const char *name,
                     const struct gpu_steps *steps)
{
    in_order &= record == reported && steps->count == 1 && steps->step->bytes == steps->device &&
                strcmp(name, device[steps->device].name) == 0;
    told[steps->device]++;
}

static bool take_message(const char *message)
{
    (void)message;
    messages++;
    return true;
}

/* ---- A run ---- */

static struct gpu_host host;
static struct accel_record record;

static void prepare(struct gang_plan *plan, int count)
{
    memset(c, 0, sizeof c);
    memset(outcome, 0, sizeof outcome);
    memset(told, 0, sizeof told);
    memset(has_load, 0, sizeof has_load);
    originals = events = messages = 0;
    signals_are_held = in_order = true;
    original_fails = false;
    *plan = (struct gang_plan){.split = {.count = count}};
    for (int i = 0; i < count; i++) {
        const int cols = COLS / count;
        play_device(&played[i], &device[i], i);
        played[i].run = run;
        /* Part i is on the device behind: numbers of parts are not those of devices. */
        plan->split.part[i] = (struct split_part){
            .device = i, .region = {.col = i * cols, .rows = ROWS, .cols = cols}, .ms = 1e9};
    }
    for (int i = 0; i < count; i++) {
        plan->device[i] = &device[count - 1 - i];
        part_of[count - 1 - i] = c + plan->split.part[i].region.col * ROWS;
    }
}

static enum gpu_status run_call(const struct accel_call *call, const struct gang_plan *plan,
                                bool tells)
{
    sigset_t before, after;
    host = (struct gpu_host){.original = original,
                             .event = tells ? no_event : NULL,
                             .steps = tells ? no_steps : NULL,
                             .precision = GPU_TF32};
    record = record_of(call, call->routine->name, 1, (struct accel_decision){.gpu = true});
    reported = &record;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    const enum gpu_status status = gang_run(plan, call, &host, &record);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
    for (int i = 0; i < plan->split.count; i++)
        assert_true(contention_gpu_ms(&device[i].contention) == 0);
    return status;
}

static enum gpu_status run_plan(const struct gang_plan *plan, bool tells)
{
    const struct accel_call call = product();
    return run_call(&call, plan, tells);
}

static unsigned random_below(unsigned n)
{
    static uint64_t x = 88172645463325252U;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (unsigned)(x >> 33) % n;
}

/* ---- Parts ---- */

static bool is_short(enum gpu_status status)
{
    return status == GPU_NO_MEMORY || status == GPU_SHORT_ELSE;
}

static bool has_failed(enum gpu_status status)
{
    return status == GPU_ERROR || status == GPU_FINISHED_ELSE;
}

static void assert_names(int count, const bool *did, bool on_cpu)
{
    char names[100] = "";
    for (int i = 0; i < count; i++)
        if (did[i])
            snprintf(names + strlen(names), sizeof names - strlen(names), "%sgpu%d",
                     names[0] ? "+" : "", i);
    if (on_cpu)
        strcat(names, names[0] ? "+cpu" : "cpu");
    assert_string_equal(record.ran, names);
    for (int i = 0; i < count; i++)
        if (did[i]) {
            assert_ptr_equal(record.gpu, &played[i].gpu.info);
            return;
        }
}

/* What gang.h and run.h promise of parts that have ended so. The member number i is device count -
 * 1 - i. */
static void check_parts(int count, enum gpu_status status)
{
    const struct accel_routine *dgemm = routine("dgemm");
    bool any = false, lost = false, failed = false, on_cpu = false, in_other = false, well[MOST],
         did[MOST];
    int64_t up = 0, down = 0, peer = 0;
    bool set_up = false;
    int hurried = 0, helped = 0;
    for (int i = 0; i < count; i++) {
        const struct outcome *o = &outcome[i];
        any |= gpu_is_finished(o->status);
        lost |= o->status == GPU_LOST;
        failed |= o->status != GPU_OK && !is_short(o->status);
        did[i] = gpu_is_finished(o->status);
        well[i] = !has_failed(o->status);
        in_other |= did[i] && o->in_other;
    }
    /* While the parts run, another device does the rest of one. */
    for (int i = count; i-- > 0;)
        if (gpu_is_finished(outcome[i].status) && outcome[i].status != GPU_OK) {
            const int helper = i == count - 1 ? count - 2 : count - 1;
            on_cpu |= count == 1;
            if (count == 1)
                continue;
            did[helper] = true;
            in_other |= outcome[helper].in_other;
            hurried++;
            helped++;
        }
    if (lost) {
        assert_int_equal(status, GPU_LOST);
        return;
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(quarantine_has(&device[i].quarantine, dgemm, QUARANTINE_FAILED) ||
                             device_state(&device[i]) == DEVICE_FAILED,
                         !well[i]);
    if (!any) {
        assert_int_equal(status, outcome[count - 1].status);
        assert_int_equal(originals, 0);
        assert_true(computed(0));
        return;
    }
    /* Afterwards, the first member's device that is well does what others have not done. */
    for (int i = count; i-- > 0;) {
        int helper = count;
        if (gpu_is_finished(outcome[i].status))
            continue;
        while (helper-- > 0 && (helper == i || !well[helper]))
            continue;
        on_cpu |= helper < 0;
        if (helper < 0)
            continue;
        did[helper] = true;
        in_other |= outcome[helper].in_other;
        helped++;
    }
    assert_true(computed(1));
    assert_int_equal(status, !on_cpu ? GPU_OK : failed ? GPU_FINISHED_ELSE : GPU_SHORT_ELSE);
    assert_int_equal(originals > 0, on_cpu);
    assert_names(count, did, on_cpu);
    assert_int_equal(host.precision, in_other ? GPU_TF32 : GPU_NATIVE);
    int runs = 0, hurries = 0;
    for (int i = 0; i < count; i++) {
        const struct outcome *o = &outcome[i];
        up += (int64_t)o->runs * o->up;
        down += (int64_t)o->runs * o->down;
        peer += (int64_t)o->runs * o->peer;
        set_up |= o->sets_up;
        runs += o->runs;
        hurries += o->hurried;
        assert_true(has_load[i]);
        assert_int_equal(asked[i], GPU_TF32);
        assert_int_equal(warm_up_is_done(&device[i], dgemm), o->status == GPU_OK || o->runs > 1);
    }
    assert_int_equal(runs, count + helped);
    assert_int_equal(hurries, hurried); /* a member may hold what it waits for */
    assert_int_equal(host.up_bytes, up);
    assert_int_equal(host.down_bytes, down);
    assert_int_equal(host.peer_bytes, peer);
    assert_int_equal(host.set_up, set_up);
}

static void parts_that_end_in_any_way(void **state)
{
    static const enum gpu_status statuses[] = {GPU_OK,        GPU_OK,          GPU_NO_MEMORY,
                                               GPU_ERROR,     GPU_UNSUPPORTED, GPU_FINISHED_ELSE,
                                               GPU_SHORT_ELSE};
    static const enum gpu_blame blames[] = {GPU_BLAME_DEVICE, GPU_BLAME_ROUTINE};
    (void)state;
    for (int round = 0; round < 400; round++) {
        struct gang_plan plan;
        const int count = 1 + round % MOST;
        prepare(&plan, count);
        for (int i = 0; i < count; i++)
            outcome[i] = (struct outcome){.status = statuses[random_below(7)],
                                          .blame = blames[random_below(2)],
                                          .up = random_below(1000),
                                          .down = random_below(1000),
                                          .peer = random_below(1000),
                                          .sets_up = random_below(4) == 0,
                                          .in_other = random_below(3) == 0};
        if (random_below(8) == 0)
            outcome[random_below((unsigned)count)].status = GPU_LOST;
        const bool tells = random_below(2);
        const enum gpu_status status = run_plan(&plan, tells);
        check_parts(count, status);
        assert_true(signals_are_held && in_order);
        assert_int_equal(events, tells ? count * EVENTS : 0);
        for (int i = 0; i < count; i++)
            assert_int_equal(told[i], tells);
    }
}

/* A device that loses a part which it does for another one, or an original that fails: the result
 * cannot be made right. */
static void what_is_lost_in_the_end(void **state)
{
    struct gang_plan plan;
    (void)state;
    prepare(&plan, 2);
    outcome[0].status = GPU_NO_MEMORY;
    outcome[1].later = GPU_LOST;
    assert_int_equal(run_plan(&plan, false), GPU_LOST);
    prepare(&plan, 2);
    outcome[0].status = outcome[1].status = GPU_ERROR;
    outcome[1].status = GPU_FINISHED_ELSE;
    outcome[0].later = GPU_ERROR;
    original_fails = true;
    assert_int_equal(run_plan(&plan, false), GPU_LOST);
    /* One that fails at what it does for another one is followed by the next one. */
    prepare(&plan, 3);
    outcome[0].status = GPU_NO_MEMORY;
    outcome[2].later = GPU_ERROR;
    outcome[2].blame = GPU_BLAME_DEVICE;
    assert_int_equal(run_plan(&plan, false), GPU_OK);
    assert_true(computed(1));
    assert_int_equal(outcome[1].runs, 2);
    assert_int_equal(device_state(&device[2]), DEVICE_FAILED);
    assert_int_equal(played[2].trimmed > 0, true);
    assert_int_equal(messages, 1);
}

/* ---- Parts of a triangle ---- */

/* The second part, which is no triangle, is left to the original. */
static void prepare_triangle(struct gang_plan *plan)
{
    enum { HALF = ORDER / 2 };
    prepare(plan, 2);
    plan->split.part[0].region = (struct accel_region){.rows = HALF, .blocks = SCHEDULE_TAIL};
    plan->split.part[1].region = (struct accel_region){
        .cols = HALF, .row = HALF, .rows = HALF, .blocks = SCHEDULE_BETWEEN | SCHEDULE_TAIL};
    memset(part_of, 0, sizeof part_of);
    outcome[0].status = GPU_UNSUPPORTED; /* the second member's */
    outcome[1].later = GPU_ERROR;
}

static void the_original_gets_a_triangle(void **state)
{
    const struct accel_call call = update();
    struct gang_plan plan;
    (void)state;
    prepare_triangle(&plan);
    assert_int_equal(run_call(&call, &plan, false), GPU_FINISHED_ELSE);
    assert_int_equal(originals, 1);
    assert_string_equal(record.ran, "gpu1+cpu");
    for (int j = 0; j < ORDER; j++)
        for (int i = 0; i < ORDER; i++)
            assert_true(c[i + j * ORDER] == (i >= j));
}

/* ---- Members of a factorisation ---- */

static void run_factors(int count, enum gpu_status *status)
{
    struct gang_plan plan;
    const struct outcome *o = outcome;
    struct outcome wanted[MOST];
    memcpy(wanted, o, sizeof wanted);
    prepare(&plan, count);
    memcpy(outcome, wanted, sizeof wanted);
    plan.factors = true;
    memset(part_of, 0, sizeof part_of);
    *status = run_plan(&plan, true);
}

/* All or nothing: the leader has the result, or the first device that is well does all of it. The
 * leader is the last device. */
static void factorisations(void **state)
{
    static const enum gpu_status statuses[] = {GPU_OK, GPU_NO_MEMORY, GPU_ERROR, GPU_UNSUPPORTED};
    (void)state;
    for (int round = 0; round < 200; round++) {
        const int count = 2 + round % (MOST - 1);
        enum gpu_status status, expected;
        bool need = false, did[MOST] = {false};
        int alone = -1;
        for (int i = 0; i < count; i++) {
            outcome[i] = (struct outcome){.status = statuses[random_below(4)],
                                          .later = statuses[random_below(4)],
                                          .blame = GPU_BLAME_ROUTINE,
                                          .up = random_below(1000)};
            need |= outcome[i].status == GPU_NO_MEMORY || outcome[i].status == GPU_ERROR;
        }
        const enum gpu_status lead = outcome[count - 1].status;
        expected = lead != GPU_OK && need ? GPU_ERROR : lead;
        for (int i = count; lead != GPU_OK && need && expected == GPU_ERROR && i-- > 0;)
            if (outcome[i].status != GPU_ERROR) {
                expected = outcome[i].later;
                alone = i;
            }
        /* Each member computes the whole in this test: the leader's alone counts. */
        run_factors(count, &status);
        assert_int_equal(status, expected);
        assert_int_equal(originals, 0);
        int64_t up = 0;
        int runs = 0;
        for (int i = 0; i < count; i++) {
            runs += outcome[i].runs;
            assert_int_equal(told[i], outcome[i].runs);
            up += (int64_t)outcome[i].runs * outcome[i].up;
            did[i] = lead == GPU_OK || outcome[i].status == GPU_OK;
        }
        assert_int_equal(host.up_bytes, up);
        assert_true(in_order && events == runs * EVENTS);
        if (status == GPU_OK) {
            if (alone >= 0)
                did[alone] = true;
            assert_names(count, did, false);
        }
    }
}

/* Without memory for the whole of it, nothing is begun. */
static void no_memory(void **state)
{
    const struct accel_call call = product(), triangle = update();
    (void)state;
    for (int factors = 0; factors < 2; factors++)
        for (int whole = 0; whole < 2; whole++) {
            /* Its own, and that of a factorisation or of an original's triangle */
            const int allocations = factors || !whole ? 2 : 1;
            for (int i = 0; i < allocations; i++) {
                struct gang_plan plan;
                if (whole)
                    prepare(&plan, 2);
                else
                    prepare_triangle(&plan);
                plan.factors = factors;
                until_none = i;
                assert_int_equal(run_call(whole ? &call : &triangle, &plan, false), GPU_NO_MEMORY);
                until_none = -1;
                assert_int_equal(outcome[0].runs + outcome[1].runs + originals, 0);
            }
        }
}

static size_t bytes_in_use(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void nothing_stays(void **state)
{
    enum { RUNS = 300 };
    size_t before = 0;
    (void)state;
    for (int i = 0; i < 2 * RUNS; i++) {
        struct gang_plan plan;
        prepare(&plan, 2);
        plan.factors = i % 2;
        outcome[0].status = i % 4 == 0 ? GPU_OK : GPU_UNSUPPORTED;
        run_plan(&plan, true);
        if (i == RUNS)
            before = bytes_in_use();
    }
    /* A thread that has done its part may not have freed what it had: that goes, a leak stays. */
    const size_t most = before + RUNS / 2 * sizeof(void *);
    for (int i = 0; i < 200 && bytes_in_use() >= most; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_true(bytes_in_use() < most);
}

static int start(void **state)
{
    static const struct report_sink sink = {
        .decision = on_decision, .event = on_event, .steps = on_steps};
    (void)state;
    report_subscribe(&sink);
    message_to(take_message);
    device_prepare(&settings, &ranks);
    shared_file_prepare();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_that_end_in_any_way),
        cmocka_unit_test(what_is_lost_in_the_end),
        cmocka_unit_test(the_original_gets_a_triangle),
        cmocka_unit_test(factorisations),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(nothing_stays),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
