/*
 * signals MS: products for so long, while signals come in: an interval timer's, one that a thread waits for and all others
 * block, one from outside, and a pause that one interrupts. Says how many came, and whether each came to a thread of this
 * program; and of the threads that are not its own, whether each blocks every signal.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);

enum { N = 400, LIBRARY_THREADS = 16 };

static pid_t main_thread;
static _Atomic pid_t waiter_thread;
static volatile sig_atomic_t alarms, interrupts, elsewhere, unwanted;
static _Atomic int awaited;
static pid_t known[LIBRARY_THREADS + 2]; /* of this program, and of its BLAS */
static int knowns;

static void on_alarm(int number)
{
    if (number == SIGALRM)
        alarms++;
    else
        interrupts++;
    if (gettid() != main_thread)
        elsewhere++;
}

/* All threads block it. */
static void on_user(int number)
{
    (void)number;
    unwanted++;
}

static void *wait_for_user(void *unused)
{
    sigset_t set;
    int number;
    sigfillset(&set); /* the handlers are for the main thread */
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    waiter_thread = gettid();
    while (sigwait(&set, &number) == 0)
        awaited++;
    return unused;
}

static void multiply(double *memory)
{
    const int32_t n = N;
    const double one = 1, zero = 0;
    dgemm_("N", "N", &n, &n, &n, &one, memory, &n, memory, &n, &zero, memory + N * N, &n, 1, 1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool is_known(pid_t thread)
{
    for (int i = 0; i < knowns; i++)
        if (known[i] == thread)
            return true;
    return false;
}

/* What a thread's status says of the signals that it blocks. */
static bool read_blocked(const char *thread, uint64_t *blocked)
{
    char path[300], line[256];
    bool found = false;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        found = sscanf(line, "SigBlk: %lx", blocked) == 1 || found;
    if (file)
        fclose(file);
    return found;
}

/* Notes the threads there are, or counts those that are new and those among them that do not block all. */
static void look_at_threads(bool note, int *found, int *open)
{
    /* SIGKILL, SIGSTOP, and those that the C library keeps for itself. */
    const uint64_t never = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 3ull << 31;
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    while (tasks && (entry = readdir(tasks))) {
        pid_t thread = atoi(entry->d_name);
        uint64_t blocked;
        if (thread == 0 || is_known(thread))
            continue;
        if (note && knowns < LIBRARY_THREADS + 2) {
            known[knowns++] = thread;
        } else if (read_blocked(entry->d_name, &blocked)) {
            ++*found;
            *open += (blocked | never) != UINT64_MAX;
        }
    }
    if (tasks)
        closedir(tasks);
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(number, &action, NULL);
}

int main(int argc, char **argv)
{
    static double memory[2 * N * N];
    const struct itimerval often = {{0, 5000}, {0, 5000}};
    pthread_t waiter;
    sigset_t user;
    int sent = 0, found = 0, open = 0;
    if (argc != 2)
        return 2;
    main_thread = gettid();
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &user, NULL);
    handle(SIGUSR1, on_user);
    handle(SIGALRM, on_alarm);
    handle(SIGINT, on_alarm);
    if (pthread_create(&waiter, NULL, wait_for_user, NULL) != 0)
        return 2;
    while (!waiter_thread)
        sched_yield();
    look_at_threads(true, &found, &open);
    setitimer(ITIMER_REAL, &often, NULL);
    for (double start = now_ms(); now_ms() - start < atof(argv[1]);) {
        multiply(memory);
        if (awaited == sent) { /* or several would be one */
            kill(getpid(), SIGUSR1);
            sent++;
        }
        if (sent % 8 == 0)
            kill(getpid(), SIGINT);
        look_at_threads(false, &found, &open);
    }
    struct timespec pause = {1, 0};
    bool interrupted = nanosleep(&pause, NULL) != 0 && errno == EINTR;
    for (int i = 0; i < 5000 && awaited < sent; i++)
        usleep(1000);
    printf("alarms %s, interrupts %s, elsewhere %d\n", alarms > 10 ? "came" : "are missed",
           interrupts > 2 ? "came" : "are missed", (int)elsewhere);
    printf("awaited %s, unwanted %d, a pause is %s\n",
           sent > 2 && awaited == sent ? "came" : "are missed", (int)unwanted,
           interrupted ? "interrupted" : "not interrupted");
    printf("other threads %s, open %d\n", found > 0 ? "seen" : "not seen", open);
    return 0;
}
