/*
 * forks_anytime N ROUNDS thread|main|crowd MS: products of order N on the main thread, and meanwhile on a thread of its own,
 * or between them, a child in each round: a fork whose child computes, one that executes another program, a vfork, a
 * posix_spawn. A crowd is of children that all compute, each forked within 2 ms of the one before, which goes on; there are
 * products all the while. A child that takes 30 s is ended, and so is the program, with status 3. Then products until MS have
 * passed.
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);

extern char **environ;

static int32_t n;
static int rounds, wrong;
static atomic_bool crowd_done;
static char *const other[] = {"/bin/true", NULL};

static void pause_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Of matrices of ones. They are kept: one who allocates is stopped while another forks, and shall not be. */
static bool multiply(void)
{
    static _Thread_local double *a;
    const double one = 1, zero = 0;
    size_t elements = (size_t)n * (size_t)n;
    bool right = true;
    if (!a && !(a = malloc(2 * elements * sizeof *a)))
        abort();
    double *c = a + elements;
    for (size_t i = 0; i < elements; i++)
        a[i] = 1, c[i] = 0;
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n, 1, 1);
    for (size_t i = 0; right && i < elements; i++)
        right = c[i] == n;
    return right;
}

static _Noreturn void compute_in_child(int round)
{
    bool right = multiply() && multiply();
    if (round % 2)
        _exit(!right);
    exit(!right);
}

/* The child of a round, or -1. */
static pid_t start_child(int round)
{
    pid_t child = -1;
    switch (round % 6) {
    case 0:
        if ((child = fork()) == 0) {
            execve(other[0], other, environ);
            _exit(1);
        }
        break;
    case 1:
        if ((child = vfork()) == 0) {
            execve(other[0], other, environ);
            _exit(1);
        }
        break;
    case 2:
        if (posix_spawn(&child, other[0], NULL, NULL, other, environ) != 0)
            child = -1;
        break;
    default:
        fflush(stdout);
        if ((child = fork()) == 0)
            compute_in_child(round);
    }
    return child;
}

static void await_child(int round, pid_t child)
{
    int status = -1;
    if (child < 0) {
        wrong++;
        return;
    }
    for (int waited = 0; waitpid(child, &status, WNOHANG) == 0; waited += 5) {
        if (waited > 30000) {
            fprintf(stderr, "the child of round %d hangs\n", round);
            kill(child, SIGKILL);
            _exit(3);
        }
        pause_ms(5);
    }
    if (status != 0) {
        fprintf(stderr, "the child of round %d: status %#x\n", round, (unsigned)status);
        wrong++;
    }
}

static void *make_children(void *unused)
{
    for (int round = 0; round < rounds; round++)
        await_child(round, start_child(round));
    return unused;
}

static void *make_crowd(void *unused)
{
    pid_t *child = calloc((size_t)rounds, sizeof *child);
    if (!child)
        abort();
    for (int round = 0; round < rounds; round++) {
        const struct timespec pause = {0, random() % 2000000};
        nanosleep(&pause, NULL);
        if ((child[round] = fork()) == 0)
            compute_in_child(round);
    }
    for (int round = 0; round < rounds; round++)
        await_child(round, child[round]);
    free(child);
    atomic_store(&crowd_done, true);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 5)
        return 2;
    n = atoi(argv[1]);
    rounds = atoi(argv[2]);
    bool crowd = strcmp(argv[3], "crowd") == 0, threaded = crowd || strcmp(argv[3], "thread") == 0;
    srandom((unsigned)getpid());
    if (threaded && pthread_create(&thread, NULL, crowd ? make_crowd : make_children, NULL) != 0)
        return 2;
    for (int round = 0; round < rounds || (crowd && !atomic_load(&crowd_done)); round++) {
        wrong += !multiply();
        if (!threaded)
            await_child(round, start_child(round));
    }
    if (threaded)
        pthread_join(thread, NULL);
    for (int i = 0; i < atoi(argv[4]) / 20; i++) {
        wrong += !multiply();
        pause_ms(20);
    }
    printf("%d children, %d wrong\n", rounds, wrong);
    return wrong != 0;
}
