#define _GNU_SOURCE
#include "device.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "decision_cache.h"
#include "startup_banner.h"
#include "base/thread/clock.h"
#include "base/thread/forks.h"
#include "base/thread/thread_spawn.h"
#include "base/output/message.h"
#include "base/text/text.h"
#include "base/thread/monotonic_wait.h"
#include "dispatch.h"
#include "dispatch/cost/cost.h"
#include "gpu/device/exit_guard.h"
#include "gpu/remote/remote.h"
#include "ops/op.h"
#include "report/banner.h"
#include "report/report.h"
#include "report/summary.h"
#include "report/totals.h"

static const struct accel_settings *settings;
static const struct accel_ranks *ranks;

/* Held while CUDA starts, which is for one device after the other. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static atomic_bool slow; /* a thread has waited for `lock` in vain: others do not wait */

void device_prepare(const struct accel_settings *with, const struct accel_ranks *with_ranks)
{
    settings = with;
    ranks = with_ranks;
    startup_banner_start(with);
}

enum device_state device_state(const struct dispatch_device *device)
{
    return (enum device_state)atomic_load_explicit(&device->state, memory_order_acquire);
}

static void set_state(struct dispatch_device *device, enum device_state to)
{
    atomic_store_explicit(&device->state, (int)to, memory_order_release);
    decision_cache_forget();
    syscall(SYS_futex, &device->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool device_pretend(struct dispatch_device *device)
{
    int64_t bytes = 0;
    struct cost_curves *curves = cost_curves_named(settings->estimate, &bytes);
    if (!curves) {
        accel_message("no GPU is known as %s: nothing is estimated", settings->estimate);
        return false;
    }
    atomic_store(&device->curves, curves);
    device->sharers = 1;
    device->memory_bytes = settings->memory_bytes ? settings->memory_bytes
                           : bytes ? (int64_t)((double)bytes * settings->memory_share)
                                   : INT64_MAX;
    set_state(device, DEVICE_ESTIMATED);
    return true;
}

struct gpu_device *device_gpu(const struct dispatch_device *device)
{
    return atomic_load_explicit(&device->gpu, memory_order_acquire);
}

bool device_has_failure(const struct dispatch_device *device)
{
    const struct gpu_device *gpu = device_gpu(device);
    return gpu ? gpu_has_failure(gpu)
               : device_state(device) == DEVICE_ABSENT && device->why_none[0];
}

const char *device_failure(const struct dispatch_device *device)
{
    const struct gpu_device *gpu = device_gpu(device);
    if (gpu)
        return gpu_failure(gpu);
    return device_has_failure(device) ? device->why_none : "no reason known";
}

static struct gpu_config config_of(void)
{
    const bool listed = settings->devices.kind == ACCEL_DEVICES_LIST;
    return (struct gpu_config){
        .cuda_dir = settings->cuda_dir,
        .memory_share = settings->memory_share,
        .memory_bytes = settings->memory_bytes,
        .devices = listed ? settings->devices.number : NULL,
        .device_count = listed ? settings->devices.count : 0,
        .several = settings->devices.kind == ACCEL_DEVICES_ALL || settings->devices.count > 1,
        .spreads = settings->devices.kind == ACCEL_DEVICES_AUTO && !ranks->mpi,
        .local_rank = ranks->local_rank,
        .local_size = ranks->local_size};
}

/* Stays set: a process has its calls in one place. */
static atomic_bool has_left_server;

bool device_has_server(void)
{
    return settings->server && !atomic_load(&has_left_server) &&
           settings->devices.kind == ACCEL_DEVICES_AUTO && remote_is_there();
}

#define SOME_SECONDS_MS 30000

static bool lock_start(enum device_patience patience)
{
    if (patience == DEVICE_WITHOUT_END)
        return pthread_mutex_lock(&lock) == 0;
    if (atomic_load(&slow))
        return pthread_mutex_trylock(&lock) == 0;
    bool locked = monotonic_timed_lock(&lock, SOME_SECONDS_MS);
    if (!locked)
        atomic_store(&slow, true);
    return locked;
}

/* The first product of a type loads cuBLAS's kernels, which takes longer than most calls: it is run
 * here, so that no call waits for it or is judged by it. Other routines are warmed up when they are
 * called (warm_up.h). */
static void warm_products(struct dispatch_device *device)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_op_of(&accel_routines[i])->cost->sample == ACCEL_SAMPLE_PRODUCT &&
            !accel_is_complex(accel_routines[i].dtype))
            warm_up_run(device, &accel_routines[i]);
}

/* 1 in the process that made it, and in the child of a vfork(2), which runs in the same memory; the
 * kernel wipes it in the child of a fork(2). Made once, before CUDA starts. */
static _Atomic(atomic_int *) mark;

static void make_mark(void)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
        munmap(page, bytes);
        return;
    }
    atomic_store((atomic_int *)page, 1);
    atomic_store(&mark, (atomic_int *)page);
}

/* Changes the state from UNTRIED to STARTING. False: another thread has. */
static bool claim_start(struct dispatch_device *device)
{
    int untried = DEVICE_UNTRIED;
    if (device_state(device) != DEVICE_UNTRIED)
        return false;
    if (!atomic_load(&mark))
        make_mark();
    atomic_store(&device->starter, getpid());
    return atomic_compare_exchange_strong(&device->state, &untried, DEVICE_STARTING);
}

static void describe_device(struct dispatch_device *device, const struct gpu_info *info)
{
    struct accel_text text;
    text_start(&text, device->name, sizeof device->name);
    text_string(&text, "gpu");
    text_integer(&text, info->index);
    text_end(&text);
    strcpy(device->cpu_name, device->name);
    strcat(device->cpu_name, "+cpu");
    device->memory_bytes = info->memory_bytes;
    device->sharers = info->sharers;
}

static atomic_bool any_is_used;

/* Says that the user has asked for what the device cannot do. The rank that is told speaks for the
 * others. */
static void complain_of_c2c(const struct dispatch_device *device, const struct gpu_info *info)
{
    const bool asked = settings->c2c == ACCEL_C2C_PLACE || settings->c2c == ACCEL_C2C_MIGRATE;
    if (asked && !info->host_page_tables && ranks->local_rank == 0)
        accel_message("ACCEL_C2C=%s: %s does not use the host's page tables: operands are copied",
                      settings->c2c == ACCEL_C2C_PLACE ? "place" : "migrate", device->name);
}

bool device_is_remote(const struct dispatch_device *device)
{
    const struct gpu_device *gpu = device_gpu(device);
    return gpu && gpu_info(gpu)->remote;
}

/* A server whose device starts is asked again after so long. */
#define ASK_AGAIN_MS 200

static _Atomic double asked_ms = -ASK_AGAIN_MS; /* one that has said so */

static bool may_ask_server(void)
{
    return accel_now_ms() - atomic_load(&asked_ms) >= ASK_AGAIN_MS;
}

/* Returns NULL if the server that is there does not take this process; *starting: not yet. */
static struct gpu_device *ask_server(struct dispatch_device *device, bool *starting)
{
    char path[REMOTE_PATH_BYTES];
    struct gpu_device *gpu = remote_start(path, device->why_none, starting);
    if (*starting)
        atomic_store(&asked_ms, accel_now_ms());
    else if (!gpu && device->why_none[0] && (settings->log != ACCEL_LOG_OFF || settings->server[0]))
        accel_message("%s: %s: calls do not go there", path, device->why_none);
    return gpu;
}

/* Under the lock. */
static void start_cuda(struct dispatch_device *device, bool background)
{
    const struct gpu_config config = config_of();
    const bool listed = settings->devices.kind == ACCEL_DEVICES_LIST;
    const bool logs = settings->log != ACCEL_LOG_OFF;
    const double begin_ms = accel_now_ms();
    struct gpu_device *gpu = NULL;
    bool starting = false;
    if (device_has_server()) {
        atomic_store(&device->asks_server, true);
        gpu = ask_server(device, &starting);
    }
    if (starting) {
        atomic_store(&device->threaded, false);
        set_state(device, DEVICE_UNTRIED);
        atomic_store(&device->asks_server, false);
        return;
    }
    if (!gpu) {
        atomic_store(&device->asks_server, false);
        gpu = gpu_start(&config, device->why_none);
    }
    if (gpu) {
        const struct gpu_info *info = gpu_info(gpu);
        describe_device(device, info);
        atomic_store_explicit(&device->gpu, gpu, memory_order_release);
        if (info->passed_over[0] && (logs || listed))
            accel_message("%s is used; passed over: %s", device->name, info->passed_over);
        complain_of_c2c(device, info);
        contention_start(&device->contention, info->id);
        struct cost_curves *curves = cost_curves_of(gpu);
        atomic_store(&device->curves, curves);
        summary_know(TOTALS_ON_GPU | (cost_is_measured(curves) ? TOTALS_CALIBRATED : 0) |
                     (info->sharers > 1 && !info->mps ? TOTALS_TURNS : 0));
        if (background)
            warm_products(device);
        device->start_ms = accel_now_ms() - begin_ms;
        banner_gpu(info, cost_figures_of(curves), device->start_ms); /* before calls are decided */
        atomic_store(&any_is_used, true);
        set_state(device, DEVICE_READY);
        atomic_store(&device->asks_server, false);
    } else if (device_is_remote(device)) { /* its server may come back */
        atomic_store(&device->has_none_here, true);
        set_state(device, DEVICE_READY);
    } else if (atomic_load(&any_is_used)) {
        if (logs && !gpu_is_gone())
            accel_message("no further GPU is used: %s", device->why_none);
        set_state(device, DEVICE_ABSENT);
    } else {
        if ((settings->policy == ACCEL_POLICY_GPU || logs || listed) && !gpu_is_gone())
            accel_message("no GPU is used: %s", device->why_none);
        set_state(device, DEVICE_ABSENT);
        startup_banner_device(device);
    }
}

/* CUDA's threads inherit this thread's signal mask; it blocks all signals meanwhile, so that they
 * do not take the program's. A thread that starts CUDA already may need the dynamic linker's lock.
 * This thread holds that lock if a constructor calls BLAS: so it does not wait without end unless
 * it must. */
static void try_start(struct dispatch_device *device, enum device_patience patience)
{
    sigset_t all, before;
    if (forks_memory_is_shared() || !lock_start(patience))
        return;
    /* STARTING: the thread that is to start it does not hold the lock yet. */
    if (claim_start(device) || device_state(device) == DEVICE_STARTING) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        start_cuda(device, false);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_mutex_unlock(&lock);
}

/* As long as CUDA itself may take to start. */
#define SERVER_STARTS_MS 15000

void device_start_now(struct dispatch_device *device, enum device_patience patience)
{
    const double until_ms = accel_now_ms() + SERVER_STARTS_MS;
    const struct timespec again = {.tv_nsec = ASK_AGAIN_MS * 1000000L};
    if (device_has_server() && patience == DEVICE_AT_ONCE && !may_ask_server())
        return;
    try_start(device, patience);
    while (patience != DEVICE_AT_ONCE && device_state(device) == DEVICE_UNTRIED &&
           device_has_server() && !may_ask_server() && accel_now_ms() < until_ms) {
        syscall(SYS_nanosleep, &again, NULL); /* no place where a thread is cancelled */
        try_start(device, patience);
    }
}

/* ---- On a thread of its own ---- */

static void *run_start_thread(void *device)
{
    thread_spawn_begin("accel-start");
    const bool first = !atomic_load(&any_is_used); /* calls need not wait for further ones */
    if (first)
        summary_starting(true);
    pthread_mutex_lock(&lock);
    if (device_state(device) == DEVICE_STARTING)
        start_cuda(device, true);
    pthread_mutex_unlock(&lock);
    if (first)
        summary_starting(false);
    return NULL;
}

void device_note_gain(struct dispatch_device *device, double gain_ms)
{
    int64_t us = gain_ms < 1e6 ? (int64_t)(gain_ms * 1e3) : (int64_t)1e9;
    if (atomic_fetch_add(&device->gain_us, us) + us < (int64_t)(DEVICE_GAIN_MS * 1e3) ||
        atomic_exchange(&device->threaded, true) || !claim_start(device))
        return;
    int saved = errno, starting = DEVICE_STARTING;
    /* The process may have no more threads. Calls that must have the GPU still start it. */
    if (!thread_spawn(run_start_thread, device, 0)) {
        atomic_compare_exchange_strong(&device->state, &starting, DEVICE_UNTRIED);
        atomic_store(&device->threadless, true);
        if (settings->log != ACCEL_LOG_OFF)
            accel_message("no GPU is used: there can be no thread that starts CUDA");
    }
    errno = saved;
}

bool device_has_no_thread(const struct dispatch_device *device)
{
    return atomic_load_explicit(&device->threadless, memory_order_relaxed);
}

/* The thread is made, or another one makes it at this moment. */
static bool may_become_ready(const struct dispatch_device *device, enum device_state state)
{
    return state == DEVICE_STARTING || (state == DEVICE_UNTRIED && atomic_load(&device->threaded) &&
                                        !device_has_no_thread(device));
}

static atomic_bool late; /* a call has waited for a start in vain: others do not wait */

struct nap {
    const _Atomic int *state;
    int while_it_is;
    struct timespec most;
};

/* By the system call, since BLAS is no place where a thread is cancelled, unless it may be at any
 * time. No arithmetic: the program's traps may be on. */
static void take_nap(void *argument)
{
    const struct nap *nap = argument;
    syscall(SYS_futex, nap->state, FUTEX_WAIT_PRIVATE, nap->while_it_is, &nap->most, NULL, 0);
}

/* A nap that takes longer than any load explains: the process was stopped (SIGSTOP, a debugger),
 * and so was the thread that starts CUDA. */
#define NAP_MS     50.0
#define STOPPED_MS 1000

/* A constructor that calls BLAS may hold the dynamic linker's lock, which the start needs: then
 * this ends as late as it may. */
void device_await(struct dispatch_device *device, double most_ms,
                  const struct dispatch_caller *caller)
{
    const int saved = errno;
    double left = most_ms, now = accel_now_ms();
    enum device_state state;
    while (may_become_ready(device, state = device_state(device)) && !exit_guard_has_begun() &&
           !atomic_load(&late) && !device_is_inherited(device)) { /* a handler may have forked */
        if (!(left > 0)) {
            atomic_store(&late, true);
            break;
        }
        const double ms = left < NAP_MS ? left : NAP_MS, before = now;
        struct nap nap = {&device->state, (int)state, {.tv_nsec = (long)(ms * 1e6)}};
        caller->pause(caller->context, take_nap, &nap);
        now = accel_now_ms();
        left -= now - before < STOPPED_MS ? now - before : ms;
    }
    errno = saved;
}

bool device_rule_out(struct dispatch_device *device)
{
    int untried = DEVICE_UNTRIED;
    return atomic_compare_exchange_strong(&device->state, &untried, DEVICE_ABSENT);
}

void device_give_up(struct dispatch_device *device, const char *instead)
{
    int ready = DEVICE_READY;
    if (atomic_compare_exchange_strong(&device->state, &ready, DEVICE_FAILED) && !gpu_is_gone())
        accel_message("%s is left alone from here on, %s: %s", device->name, instead,
                      device_failure(device));
    device_tidy(device);
}

/* The next call that gains starts it anew. */
static void start_anew(struct dispatch_device *device)
{
    int ready = DEVICE_READY;
    if (!atomic_compare_exchange_strong(&device->state, &ready, DEVICE_UNTRIED))
        return;
    atomic_store(&device->threaded, false);
    decision_cache_forget();
}

void device_leave_server(struct dispatch_device *device)
{
    if (atomic_load(&device->has_none_here))
        return; /* the CPU has the call */
    atomic_store(&has_left_server, true);
    start_anew(device);
}

void device_lose_server(struct dispatch_device *device, const char *why)
{
    const struct gpu_config config = config_of();
    if (why[0])
        report_server_lost(why);
    /* Without a GPU that this process could open, the next calls look for a server, too. */
    if (!atomic_load(&device->has_none_here) && gpu_may_exist(&config, false))
        start_anew(device);
}

void device_tidy(struct dispatch_device *device)
{
    if (device_state(device) == DEVICE_FAILED && !gpu_is_gone())
        gpu_trim(device_gpu(device));
}

bool device_is_inherited(const struct dispatch_device *device)
{
    const enum device_state state = device_state(device);
    return (device_state_is_in_use(state) || state == DEVICE_FAILED) &&
           getpid() != atomic_load_explicit(&device->starter, memory_order_relaxed);
}

bool device_is_borrowed(const struct dispatch_device *device)
{
    atomic_int *here = atomic_load_explicit(&mark, memory_order_acquire);
    return here && device_is_inherited(device) && atomic_load(here) == 1;
}

/* Whether it is a server's: no CUDA is in this process. */
static bool is_elsewhere(const struct dispatch_device *device)
{
    return atomic_load(&device->asks_server) ||
           (device_is_remote(device) && device_state(device) != DEVICE_STARTING);
}

bool device_is_begun(const struct dispatch_device *device)
{
    if (is_elsewhere(device))
        return false;
    const enum device_state state = device_state(device);
    return device_state_is_in_use(state) || state == DEVICE_FAILED || state == DEVICE_FORKED;
}

void device_fork_child(struct dispatch_device *device, bool any_begun)
{
    const enum device_state was = device_state(device);
    if (atomic_load(&device->threaded) || atomic_load(&device->threadless)) {
        atomic_store(&device->threaded, false);
        atomic_store(&device->threadless, false);
    }
    if (is_elsewhere(device)) {
        if (was == DEVICE_STARTING) /* by a thread that the child has not: it starts it anew */
            set_state(device, DEVICE_UNTRIED);
        atomic_store(&device->asks_server, false);
        atomic_store(&device->starter, getpid());
        contention_fork_child(&device->contention);
        return;
    }
    if ((was == DEVICE_UNTRIED || was == DEVICE_ABSENT) && !any_begun)
        return; /* no call has been there: its pages stay untouched */
    contention_fork_child(&device->contention);
    atomic_store(&device->warm_up.working, false);
    if (any_begun && (device_is_begun(device) || was == DEVICE_UNTRIED)) {
        set_state(device, DEVICE_FORKED);
        gpu_fork_child();
    }
}
