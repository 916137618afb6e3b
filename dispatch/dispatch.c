#define _GNU_SOURCE
#include "dispatch.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "decide.h"
#include "gpu/gpu.h"
#include "log.h"
#include "output.h"
#include "say.h"

static struct accel_settings settings;
static uint64_t gate;     /* depends on the CPU alone */
static atomic_bool ready; /* the settings have been read */

/* `machine` changes under the lock: once when CUDA starts, once if the GPU is given up. Readers
 * copy it under the lock as well; the state alone is read without. */
static pthread_mutex_t machine_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER; /* held while CUDA starts */
static struct accel_machine machine;
static _Atomic int gpu_state = ACCEL_GPU_UNTRIED;
static char gpu_name[16] = "gpu0", gpu_cpu_name[24] = "gpu0+cpu";

/* The program has a CUDA context of its own: any pointer may be a device pointer. Stays set. */
static atomic_bool program_uses_cuda;

void dispatch_start(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    cpu_set_t set;
    int cores = 1;
    if (atomic_flag_test_and_set(&begun))
        return;
    settings_read(&settings);
    output_start();
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cores = CPU_COUNT(&set);
    accel_machine_init(&machine, cores);
    gate = accel_decide_gate(&machine);
    atomic_store_explicit(&ready, true, memory_order_release);
}

/* Off as well while they are being read: that is at start-up, when the program has one thread. */
bool dispatch_is_on(void)
{
    if (!atomic_load_explicit(&ready, memory_order_acquire))
        dispatch_start();
    return atomic_load_explicit(&ready, memory_order_acquire) && settings.on;
}

const char *dispatch_original_libraries(void)
{
    dispatch_is_on();
    return settings.original;
}

void dispatch_end(void)
{
    if (dispatch_is_on() && settings.summary)
        summary_print(&settings);
}

static enum accel_gpu_state state(void)
{
    return (enum accel_gpu_state)atomic_load_explicit(&gpu_state, memory_order_acquire);
}

static struct accel_machine machine_now(void)
{
    pthread_mutex_lock(&machine_lock);
    struct accel_machine copy = machine;
    pthread_mutex_unlock(&machine_lock);
    copy.gpu = state();
    return copy;
}

struct dispatch_attention dispatch_attention(void)
{
    struct dispatch_attention attention = {DISPATCH_SEE_NOTHING, UINT64_MAX};
    if (!dispatch_is_on())
        return attention;
    enum accel_gpu_state now = state();
    if (settings.log != ACCEL_LOG_OFF || settings.summary) {
        attention.level = DISPATCH_SEE_ALL;
    } else if (settings.policy == ACCEL_POLICY_CPU || now == ACCEL_GPU_ABSENT ||
               now == ACCEL_GPU_FORKED) {
        return attention;
    } else if (atomic_load(&program_uses_cuda)) {
        attention.level = DISPATCH_SEE_ALL;
    } else if (now == ACCEL_GPU_FAILED) {
        return attention;
    } else if (settings.policy == ACCEL_POLICY_GPU) {
        attention.level = DISPATCH_SEE_ALL;
    } else {
        attention.level = DISPATCH_SEE_LARGE;
        attention.gate = gate;
    }
    return attention;
}

/* ---- The GPU's life ---- */

static void set_state(enum accel_gpu_state to)
{
    atomic_store_explicit(&gpu_state, (int)to, memory_order_release);
}

/* Starts CUDA, once. Its threads must not take the program's signals: they inherit this thread's mask,
 * which blocks all meanwhile. Another thread that starts it already may need the dynamic linker's lock, which this
 * one holds where a constructor calls BLAS: it is waited for without end only where there is no other way. */
enum patience { NO_WAIT, SOME_SECONDS, WITHOUT_END };

/* Somebody has waited in vain. */
static atomic_bool start_is_slow;

static bool lock_start(enum patience patience)
{
    struct timespec until;
    if (patience == WITHOUT_END)
        return pthread_mutex_lock(&start_lock) == 0;
    if (patience == NO_WAIT || atomic_load(&start_is_slow))
        return pthread_mutex_trylock(&start_lock) == 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    bool locked = pthread_mutex_timedlock(&start_lock, &until) == 0;
    if (!locked)
        atomic_store(&start_is_slow, true);
    return locked;
}

static void start_gpu(enum patience patience)
{
    const struct gpu_config config = {settings.cuda_dir, settings.memory_share,
                                      settings.memory_bytes};
    struct gpu_info info;
    sigset_t all, before;
    if (!lock_start(patience))
        return;
    if (state() == ACCEL_GPU_UNTRIED) {
        set_state(ACCEL_GPU_STARTING);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        bool started = gpu_start(&config, &info);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (started) {
            pthread_mutex_lock(&machine_lock);
            /* Large products reach about 70 % of the nominal peak. */
            for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++)
                machine.gpu_gflops[dtype] =
                    0.7 * info.gflops[accel_is_double((enum accel_dtype)dtype)];
            machine.up_gbps = machine.down_gbps = 10; /* one staging thread, PCIe 4 */
            machine.gpu_memory = info.memory_bytes;
            gpu_name[3] = gpu_cpu_name[3] = (char)('0' + info.index % 10);
            pthread_mutex_unlock(&machine_lock);
        } else if (settings.policy == ACCEL_POLICY_GPU || settings.log != ACCEL_LOG_OFF) {
            accel_say("no GPU is used: %s", gpu_failure());
        }
        set_state(started ? ACCEL_GPU_READY : ACCEL_GPU_ABSENT);
    }
    pthread_mutex_unlock(&start_lock);
}

static void give_up_gpu(void)
{
    int ready = ACCEL_GPU_READY;
    if (atomic_compare_exchange_strong(&gpu_state, &ready, ACCEL_GPU_FAILED) && !gpu_is_gone())
        accel_say("%s is left alone from here on, the CPU computes: %s", gpu_name, gpu_failure());
    if (!gpu_is_gone())
        gpu_trim();
}

/* Where no right result can be had: the device has failed after it had overwritten a matrix of the
 * program, or with a matrix that is nowhere else. */
static _Noreturn void stop_program(const struct dispatch_caller *caller)
{
    accel_say(
        "%s: the GPU failed (%s) with a matrix of the program on it; the result cannot be made "
        "right, so the program is stopped",
        caller->symbol, gpu_failure());
    abort();
}

/* ---- One call ---- */

struct running {
    const struct dispatch_caller *caller;
    bool log_moves;
};

static void on_event(void *context, const struct gpu_event *event)
{
    const struct running *running = context;
    log_event(&settings, running->caller->symbol, event);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool all_on_host(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_MATRICES; i++)
        if (call->operand[i].place != ACCEL_HOST)
            return false;
    return true;
}

static bool host_can_reach(const struct accel_operand *x)
{
    return x->place != ACCEL_DEVICE && x->place != ACCEL_REMOTE;
}

static bool host_can_read(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_MATRICES; i++)
        if (!host_can_reach(&call->operand[i]))
            return false;
    return true;
}

/* ---- The original on copies ---- */

/* Makes x a packed copy in memory of our own; NULL where that cannot be done. What is only written is not
 * fetched: there may be less of it than could be written. */
static void *make_copy(struct accel_operand *x)
{
    void *memory = calloc((size_t)accel_bytes(x) + 1, 1);
    if (!memory)
        return NULL;
    if (x->access != ACCEL_WRITE && !gpu_fetch(memory, x)) {
        free(memory);
        return NULL;
    }
    x->ptr = memory;
    x->ld = x->rows > 0 ? x->rows : 1;
    x->inc = (x->inc > 0) - (x->inc < 0);
    return memory;
}

static int64_t integer_at(const struct accel_operand *x, int64_t i)
{
    return x->dtype == ACCEL_INT64 ? ((const int64_t *)x->ptr)[i] : ((const int32_t *)x->ptr)[i];
}

/* laswp does not say how many rows its matrix has: those that it exchanges. Once the exchanges are in host memory. */
static int64_t rows_of_laswp(const struct accel_call *call)
{
    int64_t k1 = call->size[ACCEL_k1], k2 = call->size[ACCEL_k2], inc = call->size[ACCEL_incx];
    int64_t rows = k2;
    for (int64_t k = k1; k <= k2; k++)
        rows = accel_max(
            rows, integer_at(&call->operand[ACCEL_x], k1 - 1 + (k - k1) * (inc < 0 ? -inc : inc)));
    return accel_min(rows, call->operand[ACCEL_a].ld);
}

/* The part of operand i that a range of eigenvalues has written. */
static struct accel_operand written_part(const struct accel_call *on_copies,
                                         const struct accel_call *call, int i)
{
    struct accel_operand x = call->operand[i];
    x.rows = on_copies->operand[i].rows;
    const struct accel_operand *found = &on_copies->operand[ACCEL_found];
    if (call->flag[ACCEL_range] && (i == ACCEL_c || i == ACCEL_x)) {
        int64_t m = integer_at(found, 0);
        x.cols = m < 0 ? 0 : m < x.cols ? m : x.cols;
    }
    return x;
}

static bool store_copy(const struct accel_call *on_copies, const struct accel_call *call, int i,
                       const void *copy)
{
    const struct accel_operand x = written_part(on_copies, call, i);
    return gpu_store(&x, copy, accel_triangle_of(call, i));
}

/* The original on copies of those operands that are in device memory; no batch of several. */
static bool run_one_on_copies(const struct accel_call *call, const struct dispatch_caller *caller)
{
    struct accel_call on_copies = *call;
    void *copies[ACCEL_MATRICES] = {NULL};
    bool right = true;
    for (int i = ACCEL_MATRICES; right && i-- > 0;) { /* the matrices last */
        if (i == ACCEL_a && call->routine->family == ACCEL_LASWP)
            on_copies.operand[i].rows = rows_of_laswp(&on_copies);
        if (!host_can_reach(&call->operand[i]))
            right = (copies[i] = make_copy(&on_copies.operand[i])) != NULL;
    }
    if (right)
        caller->original(caller->context, &on_copies);
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        if (right && copies[i] && (call->operand[i].access & ACCEL_WRITE))
            right = store_copy(&on_copies, call, i, copies[i]);
        free(copies[i]);
    }
    return right;
}

/* The GPU has refused a call that the CPU cannot see. Products of a batch one after the other: they may be refused
 * for depending on each other. False where it cannot be done. */
static bool run_on_copies(const struct accel_call *call, const struct dispatch_caller *caller)
{
    bool right = true;
    if (call->routine->family != ACCEL_GEMM_BATCH)
        return run_one_on_copies(call, caller);
    for (int64_t i = 0; right && i < call->batch; i++) {
        const struct accel_call product = accel_products_of(call, i, 1);
        right = run_one_on_copies(&product, caller);
    }
    return right;
}

static bool run_original(void *context, const struct accel_call *part)
{
    const struct running *running = context;
    if (!host_can_read(part))
        return run_on_copies(part, running->caller);
    running->caller->original(running->caller->context, part);
    return true;
}

/* Runs on the GPU. True when the result is there; the record says where it came from. */
static bool run_on_gpu(const struct accel_call *call, const struct dispatch_caller *caller,
                       struct accel_record *record)
{
    struct running running = {caller, settings.log == ACCEL_LOG_MOVES};
    struct gpu_host host = {run_original, running.log_moves ? on_event : NULL, &running, 0, 0};
    enum gpu_status status = gpu_run(call, &host);
    record->up_bytes = host.up_bytes;
    record->down_bytes = host.down_bytes;
    record->ran = "cpu";
    switch (status) {
    case GPU_OK:
        record->ran = gpu_name;
        caller->succeed(caller->context);
        return true;
    case GPU_NO_MEMORY:
        record->why = ACCEL_NO_MEMORY;
        break;
    case GPU_UNSUPPORTED:
        record->why = ACCEL_UNSUPPORTED;
        break;
    case GPU_ERROR:
        record->why = ACCEL_ERROR;
        give_up_gpu();
        break;
    case GPU_FINISHED_ELSE:
        record->why = ACCEL_ERROR;
        record->ran = gpu_cpu_name;
        give_up_gpu();
        return true;
    case GPU_SHORT_ELSE:
        record->why = ACCEL_NO_MEMORY;
        record->ran = gpu_cpu_name;
        return true;
    case GPU_LOST:
        stop_program(caller);
    }
    return false;
}

static void settle(const struct accel_record *record)
{
    if (settings.log != ACCEL_LOG_OFF)
        log_decision(&settings, record);
    if (settings.summary)
        summary_count(record);
}

/* Then the original is not to be called with all that the caller passed. */
static bool call_is_part(const struct accel_call *call)
{
    return call->groups > 1;
}

/* Finds out where the operands are, and decides; CUDA is started if that would pay. */
static struct accel_decision survey_and_decide(struct accel_call *call,
                                               const struct dispatch_caller *caller)
{
    struct accel_machine now = machine_now();
    if (now.gpu == ACCEL_GPU_READY && !gpu_is_own_process()) {
        /* Forked without the handlers: _Fork(), clone(). */
        dispatch_fork_child();
        now = machine_now();
    }
    /* Device pointers can only exist where the program has a context, though not in each of its threads. */
    bool may_start = now.gpu == ACCEL_GPU_UNTRIED || now.gpu == ACCEL_GPU_STARTING;
    if (settings.policy != ACCEL_POLICY_CPU && (may_start || now.gpu == ACCEL_GPU_READY) &&
        !atomic_load(&program_uses_cuda) && gpu_program_uses_cuda(caller->loads))
        atomic_store(&program_uses_cuda, true);
    if ((now.gpu == ACCEL_GPU_READY || now.gpu == ACCEL_GPU_FAILED ||
         (may_start && atomic_load(&program_uses_cuda))) &&
        !accel_call_fault(call) && !accel_is_rows_of_lapack(call)) {
        gpu_locate(call->operand, ACCEL_MATRICES, call->batch);
        if (!all_on_host(call))
            atomic_store(&program_uses_cuda, true);
    }
    bool on_device = !host_can_read(call);
    struct accel_decision decision = accel_decide(call, &now, &settings);
    if ((now.gpu == ACCEL_GPU_UNTRIED && (on_device || decision.gpu)) ||
        (now.gpu == ACCEL_GPU_STARTING && (on_device || settings.policy == ACCEL_POLICY_GPU))) {
        start_gpu(on_device                             ? WITHOUT_END
                  : settings.policy == ACCEL_POLICY_GPU ? SOME_SECONDS
                                                        : NO_WAIT);
        now = machine_now();
        if (on_device) /* whose context they belong to is known only now */
            gpu_locate(call->operand, ACCEL_MATRICES, call->batch);
        decision = accel_decide(call, &now, &settings);
    }
    return decision;
}

bool dispatch_would_run(struct accel_call *call, const struct dispatch_caller *caller)
{
    const struct accel_decision decision = survey_and_decide(call, caller);
    return !host_can_read(call) || decision.gpu;
}

bool dispatch_call(struct accel_call *call, const struct dispatch_caller *caller)
{
    settings_complain();
    struct accel_decision decision = survey_and_decide(call, caller);
    bool valid = decision.why != ACCEL_BAD_ARGUMENT;
    if (decision.gpu && !caller->forward) { /* become ready since the caller asked */
        decision.gpu = false;
        decision.why = ACCEL_WARMING;
    }
    struct accel_record record = {.call = call,
                                  .symbol = caller->symbol,
                                  .why = decision.why,
                                  .ran = "cpu",
                                  .est_cpu_ms = decision.est_cpu_ms,
                                  .est_gpu_ms = decision.est_gpu_ms,
                                  .ms = -1};
    bool recorded = settings.log != ACCEL_LOG_OFF || settings.summary;
    double start = recorded ? now_ms() : 0;
    if (decision.gpu && run_on_gpu(call, caller, &record)) {
        record.ms = recorded ? now_ms() - start : 0;
        settle(&record);
        return true;
    }
    bool readable = host_can_read(call);
    if (!valid || !caller->forward ||
        (readable && record.why == ACCEL_UNSUPPORTED && !call_is_part(call))) {
        /* The original may leave by longjmp or by an exception from its error handler: nothing of
         * ours may be on the stack then. */
        settle(&record);
        return false;
    }
    if (readable && !recorded && !call_is_part(call))
        return false;
    start = recorded ? now_ms() : 0;
    if (readable)
        caller->forward(caller->context);
    else if (!run_on_copies(call, caller))
        stop_program(caller);
    record.ms = recorded ? now_ms() - start : 0;
    settle(&record);
    return true;
}

void dispatch_not_blas(const char *symbol)
{
    static const struct accel_routine no_routine = {.args = 0};
    const struct accel_call call = {.routine = &no_routine};
    const struct accel_record record = {
        .call = &call, .symbol = symbol, .why = ACCEL_UNSUPPORTED, .ran = "cpu", .ms = -1};
    settings_complain();
    settle(&record);
}

void dispatch_fork_child(void)
{
    enum accel_gpu_state was = state();
    pthread_mutex_init(&machine_lock, NULL);
    pthread_mutex_init(&start_lock, NULL);
    if (was != ACCEL_GPU_UNTRIED && was != ACCEL_GPU_ABSENT) {
        set_state(ACCEL_GPU_FORKED);
        gpu_fork_child();
    }
    output_fork_child();
    summary_fork_child();
}
