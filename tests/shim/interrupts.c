/*
 * interrupts WHAT COUNT: products on a thread, and what comes in between.
 *
 *   handler     a timer's handler, on the same stack, that computes products of its own
 *   above       the same on an alternate stack, which lies above the thread's
 *   below       the same on one that lies below
 *   deferred    the thread is cancelled at a point of its own: BLAS is none
 *   async       the thread may be cancelled at any time, also within a call
 *
 * COUNT: of handlers or threads at least. Afterwards eight threads compute at once, and then one. Prints the counts; exit
 * status 1 where a product is wrong.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef void gemm(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
                  const double *, const double *, const int32_t *, const double *, const int32_t *,
                  const double *, double *, const int32_t *, size_t, size_t);
gemm dgemm_;

enum { LARGE = 48, SMALL = 8, STACK = 1 << 20 };

static atomic_int handlers, wrong, rounds;
static int wanted;

/* Of matrices of ones. */
static void multiply(int32_t n, double *a, double *c)
{
    const double one = 1, zero = 0;
    for (int i = 0; i < n * n; i++) {
        a[i] = 1;
        c[i] = -1;
    }
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n, 1, 1);
    for (int i = 0; i < n * n; i++)
        wrong += c[i] != n;
}

static void on_alarm(int number)
{
    double a[SMALL * SMALL], c[SMALL * SMALL];
    (void)number;
    multiply(SMALL, a, c);
    handlers++;
}

/* Signals come to this thread at odd times of its calls. */
static void *be_interrupted(void *alternate)
{
    static double a[LARGE * LARGE], c[LARGE * LARGE];
    const stack_t stack = {.ss_sp = alternate, .ss_size = STACK};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    timer_t timer;
    event._sigev_un._tid = gettid();
    if (alternate) {
        action.sa_flags |= SA_ONSTACK;
        if (sigaltstack(&stack, NULL) != 0)
            exit(2);
    }
    if (sigaction(SIGUSR1, &action, NULL) != 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        exit(2);
    multiply(LARGE, a, c);
    for (long ns = 0; handlers < wanted; ns++) {
        const struct itimerspec soon = {{0, 0}, {0, 20000 + ns * 7919 % 200000}};
        timer_settime(timer, 0, &soon, NULL);
        multiply(LARGE, a, c);
        rounds++;
    }
    timer_delete(timer);
    return NULL;
}

/* A thread on one half of some memory, its alternate stack in the other. */
static void interrupt(bool alternate, bool above)
{
    pthread_attr_t attributes;
    pthread_t thread;
    char *memory =
        mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *own = memory + (above ? 0 : STACK), *other = memory + (above ? STACK : 0);
    if (memory == MAP_FAILED || pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstack(&attributes, own, STACK) != 0 ||
        pthread_create(&thread, &attributes, be_interrupted, alternate ? other : NULL) != 0)
        exit(2);
    pthread_join(thread, NULL);
}

static void *be_cancelled(void *asynchronous)
{
    double a[LARGE * LARGE], c[LARGE * LARGE];
    const bool at_any_time = asynchronous != NULL;
    pthread_setcanceltype(at_any_time ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED,
                          NULL);
    for (;;) {
        multiply(LARGE, a, c);
        rounds++;
        if (!at_any_time)
            pthread_testcancel();
    }
    return NULL;
}

static void cancel_some(bool at_any_time)
{
    for (int i = 0; i < wanted; i++) {
        const struct timespec pause = {0, 100000 + i * 104729L % 1000000};
        pthread_t thread;
        void *result = NULL;
        int before = rounds;
        if (pthread_create(&thread, NULL, be_cancelled, at_any_time ? &wanted : NULL) != 0)
            exit(2);
        while (rounds == before)
            sched_yield();
        nanosleep(&pause, NULL);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result == PTHREAD_CANCELED)
            handlers++;
    }
}

static void *compute(void *unused)
{
    double a[LARGE * LARGE], c[LARGE * LARGE];
    for (int i = 0; i < 5; i++)
        multiply(LARGE, a, c);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[8];
    if (argc != 3)
        return 2;
    const char *what = argv[1];
    wanted = atoi(argv[2]);
    if (strcmp(what, "handler") == 0)
        interrupt(false, false);
    else if (strcmp(what, "above") == 0 || strcmp(what, "below") == 0)
        interrupt(true, *what == 'a');
    else if (strcmp(what, "deferred") == 0 || strcmp(what, "async") == 0)
        cancel_some(*what == 'a');
    else
        return 2;
    for (int i = 0; i < 8; i++)
        if (pthread_create(&threads[i], NULL, compute, NULL) != 0)
            return 2;
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    compute(NULL);
    printf("%d times, %d wrong\n", handlers, wrong);
    return wrong > 0;
}
