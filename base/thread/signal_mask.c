#define _GNU_SOURCE
#include "signal_mask.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static const int held_numbers[] = {SIGPIPE, SIGXFSZ};
enum { HELD = sizeof held_numbers / sizeof *held_numbers };

static void hold(struct signal_mask *held, const sigset_t *set)
{
    int saved = errno;
    sigemptyset(&held->pending);
    sigpending(&held->pending);
    pthread_sigmask(SIG_BLOCK, set, &held->before);
    errno = saved;
}

void signals_but_faults(sigset_t *signals)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    sigfillset(signals);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(signals, faults[i]);
}

void signals_hold(struct signal_mask *held)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < HELD; i++)
        sigaddset(&set, held_numbers[i]);
    hold(held, &set);
}

void signals_hold_all(struct signal_mask *held)
{
    sigset_t set;
    sigfillset(&set);
    hold(held, &set);
}

void signals_release(const struct signal_mask *held, bool failed)
{
    const struct timespec none = {0, 0};
    int saved = errno;
    for (int i = 0; failed && i < HELD; i++) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, held_numbers[i]);
        if (!sigismember(&held->pending, held_numbers[i]))
            sigtimedwait(&one, NULL, &none);
    }
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = saved;
}
