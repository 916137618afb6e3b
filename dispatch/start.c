#define _GNU_SOURCE
#include "start.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/forks.h"
#include "dispatch/cost/cost.h"
#include "base/quiet_thread.h"
#include "dispatch/cost/contention.h"
#include "base/say.h"
#include "base/text.h"
#include "dispatch/cost/warm.h"
#include "ops/op.h"

static const struct accel_settings *settings;
static const struct accel_ranks *ranks;
static bool waits;

static _Atomic int state = ACCEL_GPU_UNTRIED;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while CUDA starts */
FORKS_LOCK(lock);
static char why_none[GPU_FAILURE_BYTES]; /* constant once the state is ACCEL_GPU_ABSENT */

/* The one device that is used, with all that is kept of it beside what gpu/ keeps. */
static struct {
    struct gpu_device *_Atomic gpu; /* NULL: none has been started */
    struct contention load;
    struct full full;
    char name[16], cpu_name[24];
} device = {.name = "gpu0", .cpu_name = "gpu0+cpu"};

static int64_t pretended_memory; /* of the GPU of an estimate */

static _Atomic int64_t gain_us; /* of the calls seen so far */
static atomic_bool threaded;    /* the thread has been made, or there can be none */
static atomic_bool threadless;  /* there can be none */
static atomic_bool slow;        /* somebody has waited in vain */
static _Atomic pid_t starter;   /* the process that starts CUDA */

void start_prepare(const struct accel_settings *with, const struct accel_ranks *with_ranks,
                   bool wait)
{
    settings = with;
    ranks = with_ranks;
    waits = wait;
}

enum accel_gpu_state start_state(void)
{
    return (enum accel_gpu_state)atomic_load_explicit(&state, memory_order_acquire);
}

static void set_state(enum accel_gpu_state to)
{
    atomic_store_explicit(&state, (int)to, memory_order_release);
}

bool start_pretend(void)
{
    int64_t bytes = 0;
    if (!cost_set_gpu_named(settings->estimate, &bytes)) {
        accel_say("no GPU is known as %s: nothing is estimated", settings->estimate);
        return false;
    }
    pretended_memory = settings->memory_bytes ? settings->memory_bytes
                       : bytes                ? (int64_t)((double)bytes * settings->memory_share)
                                              : INT64_MAX;
    set_state(ACCEL_GPU_ESTIMATED);
    return true;
}

int64_t start_memory(void)
{
    return start_state() == ACCEL_GPU_ESTIMATED ? pretended_memory : start_gpu()->memory_bytes;
}

struct gpu_device *start_device(void)
{
    return atomic_load_explicit(&device.gpu, memory_order_acquire);
}

struct contention *start_contention(void)
{
    return &device.load;
}

struct full *start_full(void)
{
    return &device.full;
}

const struct gpu_info *start_gpu(void)
{
    static const struct gpu_info none;
    const struct gpu_device *there = start_device();
    return there ? gpu_info(there) : &none;
}

bool start_has_failure(void)
{
    const struct gpu_device *there = start_device();
    return there ? gpu_has_failure(there) : start_state() == ACCEL_GPU_ABSENT && why_none[0];
}

const char *start_failure(void)
{
    const struct gpu_device *there = start_device();
    if (there)
        return gpu_failure(there);
    return start_has_failure() ? why_none : "no reason known";
}

const char *start_gpu_name(void)
{
    return device.name;
}

const char *start_gpu_cpu_name(void)
{
    return device.cpu_name;
}

bool start_waits(void)
{
    return waits;
}

static struct gpu_config config_of(void)
{
    const bool listed = settings->devices.kind == ACCEL_DEVICES_LIST;
    return (struct gpu_config){.cuda_dir = settings->cuda_dir,
                               .memory_share = settings->memory_share,
                               .memory_bytes = settings->memory_bytes,
                               .devices = listed ? settings->devices.number : NULL,
                               .device_count = listed ? settings->devices.count : 0,
                               .local_rank = ranks->local_rank,
                               .local_size = ranks->local_size};
}

static bool lock_start(enum start_patience patience)
{
    struct timespec until;
    if (patience == START_WITHOUT_END)
        return pthread_mutex_lock(&lock) == 0;
    if (atomic_load(&slow))
        return pthread_mutex_trylock(&lock) == 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    bool locked = pthread_mutex_timedlock(&lock, &until) == 0;
    if (!locked)
        atomic_store(&slow, true);
    return locked;
}

/* The first product of a type loads cuBLAS's kernels, which takes longer than most calls. Nobody shall wait for that, or
 * be judged by it. Other routines come when they are called (warm.h). */
static void warm_products(void)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_op_of(&accel_routines[i])->sample == ACCEL_SAMPLE_PRODUCT &&
            !accel_is_complex(accel_routines[i].dtype))
            warm_up(&accel_routines[i]);
}

/* A mark that the kernel wipes where memory is copied: it is there in the process that made it, and in the child of a
 * vfork(2), which has the same memory. Made once, before CUDA starts. */
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

/* UNTRIED to STARTING, once. */
static bool begin(void)
{
    int untried = ACCEL_GPU_UNTRIED;
    if (start_state() != ACCEL_GPU_UNTRIED)
        return false;
    if (!atomic_load(&mark))
        make_mark();
    atomic_store(&starter, getpid());
    return atomic_compare_exchange_strong(&state, &untried, ACCEL_GPU_STARTING);
}

/* "gpu12", and "gpu12+cpu". */
static void name_gpu(int index)
{
    struct accel_text text;
    text_start(&text, device.name, sizeof device.name);
    text_string(&text, "gpu");
    text_integer(&text, index);
    text_end(&text);
    strcpy(device.cpu_name, device.name);
    strcat(device.cpu_name, "+cpu");
}

/* Under the lock. */
static void start_cuda(bool background)
{
    const struct gpu_config config = config_of();
    const bool asked = settings->policy == ACCEL_POLICY_GPU || settings->log != ACCEL_LOG_OFF ||
                       settings->devices.kind == ACCEL_DEVICES_LIST;
    struct gpu_device *new = gpu_start(&config, why_none);
    if (new) {
        const struct gpu_info *info = gpu_info(new);
        atomic_store_explicit(&device.gpu, new, memory_order_release);
        name_gpu(info->index);
        if (info->passed_over[0] &&
            (settings->log != ACCEL_LOG_OFF || settings->devices.kind == ACCEL_DEVICES_LIST))
            accel_say("%s is used; passed over: %s", device.name, info->passed_over);
        contention_start(&device.load, info->id);
        cost_set_gpu(new);
        if (background)
            warm_products();
        set_state(ACCEL_GPU_READY);
    } else {
        if (asked && !gpu_is_gone())
            accel_say("no GPU is used: %s", why_none);
        set_state(ACCEL_GPU_ABSENT);
    }
}

/* CUDA's threads must not take the program's signals: they inherit this thread's mask, which blocks all meanwhile. Another
 * thread that starts it already may need the dynamic linker's lock, which this one holds where a constructor calls BLAS: it
 * is waited for without end only where there is no other way. */
void start_now(enum start_patience patience)
{
    sigset_t all, before;
    if (!lock_start(patience))
        return;
    /* Where it is starting, and the lock is here, the thread that was made for it has not come to it yet. */
    if (begin() || start_state() == ACCEL_GPU_STARTING) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        start_cuda(false);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- On a thread of its own ---- */

static void *run_thread(void *unused)
{
    (void)unused;
    int none;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &none);
    pthread_setname_np(pthread_self(), "accel-start");
    pthread_mutex_lock(&lock);
    if (start_state() == ACCEL_GPU_STARTING)
        start_cuda(true);
    pthread_mutex_unlock(&lock);
    return NULL;
}

void start_note_gain(double gain_ms)
{
    int64_t us = gain_ms < 1e6 ? (int64_t)(gain_ms * 1e3) : (int64_t)1e9;
    if (atomic_fetch_add(&gain_us, us) + us < (int64_t)(START_GAIN_MS * 1e3) ||
        atomic_exchange(&threaded, true) || !begin())
        return;
    int saved = errno, starting = ACCEL_GPU_STARTING;
    /* A process that may have no more threads: the calls that ask for the GPU by force still start it. */
    if (!quiet_thread(run_thread)) {
        atomic_compare_exchange_strong(&state, &starting, ACCEL_GPU_UNTRIED);
        atomic_store(&threadless, true);
        if (settings->log != ACCEL_LOG_OFF)
            accel_say("no GPU is used: there can be no thread that starts CUDA");
    }
    errno = saved;
}

bool start_has_no_thread(void)
{
    return atomic_load_explicit(&threadless, memory_order_relaxed);
}

void start_rule_out(void)
{
    int untried = ACCEL_GPU_UNTRIED;
    atomic_compare_exchange_strong(&state, &untried, ACCEL_GPU_ABSENT);
}

void start_give_up(void)
{
    int ready = ACCEL_GPU_READY;
    if (atomic_compare_exchange_strong(&state, &ready, ACCEL_GPU_FAILED) && !gpu_is_gone())
        accel_say("%s is left alone from here on, the CPU computes: %s", device.name,
                  start_failure());
    start_tidy();
}

void start_tidy(void)
{
    if (start_state() == ACCEL_GPU_FAILED && !gpu_is_gone())
        gpu_trim(start_device());
}

bool start_is_own_process(void)
{
    return getpid() == atomic_load_explicit(&starter, memory_order_relaxed);
}

bool start_is_borrowed(void)
{
    atomic_int *here = atomic_load_explicit(&mark, memory_order_acquire);
    return here && !start_is_own_process() && atomic_load(here) == 1;
}

/* The child of a fork stays on the CPU, if the GPU was in use, or starting, in the parent. */
static void give_gpu_up(void)
{
    enum accel_gpu_state was = start_state();
    atomic_store(&threaded, false);
    atomic_store(&threadless, false);
    contention_fork_child(&device.load);
    if (gpu_state_has_cuda(was)) {
        set_state(ACCEL_GPU_FORKED);
        gpu_fork_child();
    }
}
FORKS_CHILD(give_gpu_up);
