/*
 * own_memory CASE: a program with device memory of its own beside BLAS. An allocation that finds room without libaccel finds it
 * with libaccel, too. Ends with status 0 and "CASE: as it should be".
 *
 *   right_after   an allocation of most of the device right after calls on large operands
 *   step_by_step  one of small parts between the calls, until little is left
 *   later         what lies idle goes back to the driver, to the last byte, while the program does something else
 *   thread_ends   the thread that gives it back is there while something is idle, and ends after that
 *   exits N       exit() N milliseconds after a call
 *   beside        calls do not wait for the program's work on the device, though memory is given back meanwhile
 *   forks         a child of a fork after a call ends well, and its parent's memory still goes back
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
            const double *, const int *, const double *, const int *, const double *, double *,
            const int *, size_t, size_t);

enum { LARGE = 1200, MIDDLE = 1000, SMALL = 64 };
static double a[LARGE * LARGE], b[LARGE * LARGE];
static _Thread_local double c[LARGE * LARGE];

static void multiply(int n)
{
    const double one = 1, zero = 0;
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
}

static size_t available(void)
{
    size_t left, all;
    MUST(cuMemGetInfo(&left, &all));
    return left;
}

static void pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* What libaccel keeps for good (a stream, handles) is there after this, and nothing is idle. */
static size_t settled(void)
{
    multiply(SMALL);
    pause_ms(1500);
    size_t now = available(), before;
    do {
        before = now;
        pause_ms(500);
        now = available();
    } while (now != before);
    return now;
}

static bool allocate(size_t bytes, CUdeviceptr *memory)
{
    CUresult result = cuMemAlloc(memory, bytes);
    if (result != CUDA_SUCCESS)
        printf("cuMemAlloc of %zu bytes: %d, %zu are free\n", bytes, (int)result, available());
    return result == CUDA_SUCCESS;
}

static bool right_after(void)
{
    CUdeviceptr memory;
    size_t left = settled();
    for (int i = 0; i < 5; i++)
        multiply(LARGE);
    return allocate(left / 10 * 8, &memory);
}

static bool step_by_step(void)
{
    CUdeviceptr memory;
    size_t part = settled() / 32;
    for (int i = 0; i < 29; i++) {
        multiply(i % 2 ? LARGE
                       : SMALL); /* by the end, too little is left for the large one at once */
        if (!allocate(part, &memory))
            return false;
    }
    return true;
}

static bool later(void)
{
    size_t left = settled();
    for (int i = 0; i < 3; i++)
        multiply(SMALL * (i + 1));
    for (int i = 0; i < 100 && available() < left; i++)
        pause_ms(100);
    return available() >= left;
}

/* Work of the program's on the device, which ends when it may, or after so long that a test that fails has an end. */
static sem_t gate;
static atomic_bool has_waited_in_vain;

static void CUDA_CB wait_at_gate(void *unused)
{
    struct timespec until;
    (void)unused;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    if (sem_timedwait(&gate, &until) != 0)
        atomic_store(&has_waited_in_vain, true);
}

static void *multiply_small(void *unused)
{
    for (int i = 1; i < 6; i++)
        multiply(SMALL * i);
    return unused;
}

/* What is idle after the middle one is more than an eighth of what is free, and less than a quarter. It is given back meanwhile. */
static bool beside(void)
{
    pthread_t thread;
    CUstream stream;
    multiply(SMALL); /* handles are made */
    sem_init(&gate, 0, 0);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuLaunchHostFunc(stream, wait_at_gate, NULL));
    multiply(MIDDLE);
    for (int i = 0; i < 10; i++, pause_ms(100)) {
        if (pthread_create(&thread, NULL, multiply_small, NULL) != 0)
            return false;
        multiply(SMALL * (1 + i % 5));
        pthread_join(thread, NULL);
    }
    bool well = !atomic_load(&has_waited_in_vain);
    sem_post(&gate);
    MUST(cuStreamSynchronize(stream));
    return well;
}

static bool forks(void)
{
    int status = -1;
    size_t left = settled();
    multiply(SMALL);
    pid_t child = fork();
    if (child == 0) {
        multiply(SMALL);
        pause_ms(500);
        exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        return false;
    for (int i = 0; i < 100 && available() < left; i++)
        pause_ms(100);
    return available() >= left;
}

/* Whether this process has a thread of that name. */
static bool has_thread(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    bool found = false;
    for (struct dirent *entry; tasks && !found && (entry = readdir(tasks));) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(comm, sizeof comm, file))
            found = strncmp(comm, name, strlen(name)) == 0;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

static bool thread_ends(void)
{
    multiply(SMALL);
    bool there = false; /* it has its name when it has begun */
    for (int i = 0; i < 200 && !there; i++, pause_ms(2))
        there = has_thread("accel-idle");
    for (int i = 0; i < 100 && has_thread("accel-idle"); i++)
        pause_ms(100);
    return there && !has_thread("accel-idle");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    CUdevice device;
    CUcontext context;
    bool good = true;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    if (strcmp(name, "right_after") == 0)
        good = right_after();
    else if (strcmp(name, "step_by_step") == 0)
        good = step_by_step();
    else if (strcmp(name, "later") == 0)
        good = later();
    else if (strcmp(name, "beside") == 0)
        good = beside();
    else if (strcmp(name, "forks") == 0)
        good = forks();
    else if (strcmp(name, "thread_ends") == 0)
        good = thread_ends();
    else if (strcmp(name, "exits") == 0 && argc > 2) {
        multiply(SMALL);
        pause_ms(atol(argv[2]));
    } else {
        return 2;
    }
    printf("%s: %s\n", name, good ? "as it should be" : "not as it should be");
    return !good;
}
