/*
 * handlers: a program with handlers of its own for every signal there is, and products between. Each product's first operand
 * is in memory that cannot be read until the program's handler of SIGSEGV makes it so. Prints a line for each check; exit
 * status 1 where one failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);

enum { N = 200, PAGE = 4096, BYTES = (N * N * 8 + PAGE - 1) / PAGE * PAGE };

static char *nowhere; /* memory that cannot be had */
static char *lazy;    /* memory whose pages come when they are needed */
static volatile sig_atomic_t counts[65], pages, returns;
static sigjmp_buf back;
static int failed;

static void check(bool good, const char *what)
{
    printf("%s: %s\n", what, good ? "right" : "WRONG");
    fflush(stdout);
    failed |= !good;
}

static void count(int number)
{
    counts[number]++;
}

/* Makes a page of ones; from an address that is nowhere, it leaves. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    char *at = info->si_addr;
    (void)context;
    counts[number]++;
    if (at < lazy || at >= lazy + BYTES) {
        returns++;
        siglongjmp(back, 1);
    }
    double *page = (double *)(void *)(lazy + (size_t)(at - lazy) / PAGE * PAGE);
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < PAGE / sizeof *page; i++)
        page[i] = 1;
    pages++;
}

/* What the program has asked for, by signal; the C library's own and the two that cannot be handled left out. */
static bool is_free(int number)
{
    return number != SIGKILL && number != SIGSTOP && (number < 32 || number >= SIGRTMIN);
}

static struct sigaction wanted(int number)
{
    struct sigaction action = {.sa_handler = count};
    sigaddset(&action.sa_mask, SIGUSR2);
    if (number == SIGSEGV || number == SIGBUS) {
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    } else if (number == SIGCHLD) {
        action.sa_flags = SA_RESTART | SA_NOCLDSTOP;
    }
    return action;
}

static void handle_all(void)
{
    for (int number = 1; number <= SIGRTMAX; number++) {
        const struct sigaction action = wanted(number);
        if (is_free(number) && sigaction(number, &action, NULL) != 0)
            abort();
    }
}

static bool all_are_ours(void)
{
    bool same = true;
    for (int number = 1; number <= SIGRTMAX; number++) {
        const struct sigaction want = wanted(number);
        struct sigaction is;
        if (!is_free(number))
            continue;
        sigaction(number, NULL, &is);
        same = same && is.sa_handler == want.sa_handler &&
               (is.sa_flags & ~0x04000000) == want.sa_flags && /* SA_RESTORER */
               sigismember(&is.sa_mask, SIGUSR2) == 1 && sigismember(&is.sa_mask, SIGUSR1) == 0;
    }
    return same;
}

static bool multiply(void)
{
    static double b[N * N], c[N * N];
    const int32_t n = N;
    const double one = 1, zero = 0;
    bool right = true;
    for (int i = 0; i < N * N; i++) {
        b[i] = 1;
        c[i] = -1;
    }
    mprotect(lazy, BYTES, PROT_NONE);
    dgemm_("N", "N", &n, &n, &n, &one, (double *)(void *)lazy, &n, b, &n, &zero, c, &n, 1, 1);
    for (int i = 0; i < N * N; i++)
        right = right && c[i] == N;
    return right;
}

/* A system call that a signal interrupts says so, unless its handler has SA_RESTART. */
static bool is_interrupted(void)
{
    const struct itimerval soon = {{0, 0}, {0, 20000}};
    int ends[2];
    char byte;
    if (pipe(ends) != 0)
        abort();
    setitimer(ITIMER_REAL, &soon, NULL);
    bool interrupted = read(ends[0], &byte, 1) == -1 && errno == EINTR;
    close(ends[0]);
    close(ends[1]);
    return interrupted;
}

static void *write_later(void *fd)
{
    const struct timespec pause = {0, 60000000};
    nanosleep(&pause, NULL);
    return (void *)(intptr_t)(write(*(int *)fd, "x", 1) == 1);
}

/* SIGCHLD's has SA_RESTART: what it interrupts goes on. */
static bool goes_on(void)
{
    sigset_t all, before;
    pthread_t writer;
    int ends[2];
    char byte = 0;
    if (pipe(ends) != 0)
        abort();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for this thread */
    if (pthread_create(&writer, NULL, write_later, &ends[1]) != 0)
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    bool read_it = read(ends[0], &byte, 1) == 1 && byte == 'x';
    pthread_join(writer, NULL);
    close(ends[0]);
    close(ends[1]);
    return waitpid(child, NULL, 0) == child && read_it && counts[SIGCHLD] > 0;
}

int main(void)
{
    static char stack[1 << 16];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    stack_t is;
    sigset_t none, mask;
    lazy = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    nowhere = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lazy == MAP_FAILED || nowhere == MAP_FAILED || sigaltstack(&alternate, NULL) != 0)
        return 2;
    handle_all();
    check(multiply(), "memory that comes by SIGSEGV");
    check(pages == BYTES / PAGE, "a fault for each page");
    check(is_interrupted() && counts[SIGALRM] == 1, "SIGALRM interrupts read()");
    check(goes_on(), "SIGCHLD does not");

    /* A timer that goes off all the time. */
    setitimer(ITIMER_REAL, &often, NULL);
    bool right = true;
    for (int i = 0; i < 50; i++)
        right = multiply() && right;
    setitimer(ITIMER_REAL, &never, NULL);
    check(right && counts[SIGALRM] > 5, "products under a timer");

    int before = returns;
    if (sigsetjmp(back, 1) == 0)
        *(volatile char *)nowhere = 1;
    check(returns == before + 1, "a fault of the program's own");
    check(raise(SIGFPE) == 0 && raise(SIGXFSZ) == 0 && raise(SIGPIPE) == 0 && raise(SIGILL) == 0 &&
              counts[SIGFPE] == 1 && counts[SIGXFSZ] == 1 && counts[SIGPIPE] == 1 &&
              counts[SIGILL] == 1,
          "other signals");
    check(multiply(), "and on it goes");

    sigemptyset(&none);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    check(all_are_ours(), "all handlers are the program's");
    check(memcmp(&mask, &none, 8) == 0, "so is the mask");
    check(sigaltstack(NULL, &is) == 0 && is.ss_sp == stack && is.ss_flags == 0, "and the stack");
    int others = 0;
    for (int number = 1; number <= SIGRTMAX; number++)
        if (number != SIGSEGV && number != SIGALRM && number != SIGCHLD && number != SIGFPE &&
            number != SIGXFSZ && number != SIGPIPE && number != SIGILL)
            others += counts[number];
    check(others == 0 && counts[SIGPIPE] == 1 && counts[SIGXFSZ] == 1, "no signal came unasked");
    return failed;
}
