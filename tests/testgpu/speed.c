/*
 * How long operations last. A device has an engine for what it computes or moves in its own memory
 * and one for the copies of each direction; each does one operation at a time, in the order in
 * which they come. An operation's engine is taken from the end of the one before, as the settings
 * have it and not as late as its thread woke up, so that delays of the machine do not add up.
 */
#include <errno.h>
#include <sched.h>
#include <unistd.h>
#include "driver.h"

/* The end of a pause is watched: a sleeping thread is woken too late for a few microseconds. */
enum { WATCHED_NS = 80000, AWAITED_NS = 400000 };

static const double longest_ns = 1e15;

/* Operations of double precision in the time in which device memory moves a byte. */
static const double operations_per_byte = 4;

uint64_t lasted[ENGINES];

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void sleep_until(int64_t when)
{
    int64_t early = when - WATCHED_NS;
    struct timespec time = {.tv_sec = early / 1000000000, .tv_nsec = early % 1000000000};
    while (now() < early && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        continue;
    while (now() < when)
        continue;
}

void progress_made(void)
{
    driver.news++;
    pthread_cond_broadcast(&driver.progress);
}

void progress_await(void)
{
    unsigned long seen = driver.news;
    if (speed_is_set()) {
        int64_t until = now() + AWAITED_NS;
        testgpu_unlock();
        while (driver.news == seen && now() < until)
            sched_yield();
        testgpu_lock();
    }
    if (driver.news == seen)
        pthread_cond_wait(&driver.progress, &driver.lock);
}

/* With the lock, which is let go: the process may fork or end meanwhile, and nobody waits. */
static void pause_until(int64_t when)
{
    if (when <= now())
        return;
    testgpu_unlock();
    sleep_until(when);
    testgpu_lock();
}

/* What is left to a process of a device that is somebody else's for a part of the time. */
static double stretch(void)
{
    return 100.0 / (100 - settings.busy);
}

static void set_duration(struct operation *operation, enum engine engine, double ns)
{
    ns += 1e3 * settings.launch_us;
    if (engine == ENGINE_KERNELS)
        ns *= stretch();
    operation->lasts = (int64_t)(ns < longest_ns ? ns : longest_ns);
    if (ns > 0 || (engine == ENGINE_KERNELS && settings.busy != 0))
        operation->engine = engine;
}

void speed_of_copy(CUdevice device, struct operation *operation, enum engine engine, size_t bytes)
{
    const struct card *card = card_of(device);
    double rate = engine == ENGINE_UP ? card->up_gbps : card->down_gbps;
    set_duration(operation, engine, rate != 0 ? (double)bytes / rate : 0);
}

void speed_of_peer_copy(CUdevice device, struct operation *operation, size_t bytes, bool straight)
{
    const struct card *card = card_of(device);
    const double up = card->up_gbps != 0 ? (double)bytes / card->up_gbps : 0;
    const double down = card->down_gbps != 0 ? (double)bytes / card->down_gbps : 0;
    const double peer = settings.peer_gbps != 0 ? (double)bytes / settings.peer_gbps : 0;
    set_duration(operation, ENGINE_UP, straight ? peer : up + down);
}

void speed_of_kernel(CUdevice device, struct operation *operation, const struct testgpu_cost *cost)
{
    const double gflops = card_of(device)->gflops;
    double ns = cost->launches > 1 ? 1e3 * settings.launch_us * (cost->launches - 1) : 0;
    if (gflops != 0) {
        double rate = gflops * (cost->single ? 2 : 1);
        if (cost->dimension > 0)
            rate *= (double)cost->dimension / ((double)cost->dimension + settings.half);
        double computing = cost->operations / rate;
        double moving = cost->bytes * operations_per_byte / gflops;
        ns += computing > moving ? computing : moving;
    }
    set_duration(operation, ENGINE_KERNELS, ns);
}

static int64_t *engine_of(CUstream stream, const struct operation *operation)
{
    return &devices[stream->object.context->device].engine_free[operation->engine];
}

static int64_t wait_for_others(CUstream stream, const struct operation *operation)
{
    if (settings.busy == 0 || operation->engine != ENGINE_KERNELS)
        return 0;
    return (int64_t)((random_next(&stream->random) >> 16) % (10000ull * settings.busy + 1));
}

int64_t speed_begin(CUstream stream, const struct operation *operation)
{
    if (operation->engine == ENGINE_NONE)
        return 0;
    int64_t *engine_free = engine_of(stream, operation);
    int64_t start = now();
    if (start < *engine_free)
        start = *engine_free;
    start += wait_for_others(stream, operation);
    *engine_free = start + operation->lasts;
    pause_until(start);
    return start;
}

void speed_end(CUstream stream, const struct operation *operation, int64_t start)
{
    if (operation->engine == ENGINE_NONE)
        return;
    progress_made(); /* the kernel is no longer being run */
    int64_t lasts = operation->lasts;
    if (operation->kernel && card_of(stream->object.context->device)->gflops == 0) {
        int64_t computed = (int64_t)((double)(now() - start) * stretch());
        lasts = lasts < computed ? computed : lasts;
    }
    pause_until(start + lasts);
    int64_t *engine_free = engine_of(stream, operation);
    if (*engine_free < start + lasts)
        *engine_free = start + lasts;
    lasted[operation->engine] += (uint64_t)lasts;
}

bool speed_is_set(void)
{
    bool set = settings.launch_us != 0 || settings.busy != 0 || settings.peer_gbps != 0;
    for (int i = 0; i < settings.devices && !set; i++) {
        const struct card *card = &settings.card[i];
        set = card->up_gbps != 0 || card->down_gbps != 0 || card->gflops != 0;
    }
    return set;
}

void speed_await_file(void)
{
    while (settings.start_file && !driver.exiting && access(settings.start_file, F_OK) != 0)
        pause_until(now() + 1000000);
}

bool speed_start(bool *started, unsigned tenths)
{
    if (settings.start_ms != 0 && !*started)
        pause_until(now() + (int64_t)settings.start_ms * 100000 * tenths);
    *started = true;
    return !driver.exiting;
}

void pause_ms(unsigned ms)
{
    if (ms != 0)
        sleep_until(now() + (int64_t)ms * 1000000);
}

_Atomic uint64_t call_costs[COSTS];

static void pay(enum call_cost which, double ns)
{
    if (ns <= 0)
        return;
    const int64_t whole = (int64_t)(ns < longest_ns ? ns : longest_ns);
    sleep_until(now() + whole);
    call_costs[which] += (uint64_t)whole;
}

void cost_of_memory(size_t pinned_bytes)
{
    pay(COST_MEMORY, 1e3 * settings.memory_us);
    pay(COST_PINNING, 1e-3 * settings.pin_ms * (double)pinned_bytes);
}

void cost_of_info(void)
{
    pay(COST_INFO, 1e3 * settings.info_us);
}
