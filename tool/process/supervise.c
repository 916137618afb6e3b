#define _GNU_SOURCE
#include "supervise.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Those that a process has earned itself stay as they are. */
static sigset_t signal_mask(void)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&set, own[i]);
    return set;
}

void supervise_begin(struct supervised *before)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    const sigset_t held = signal_mask();
    before->self = getpid();
    sigaction(SIGCHLD, &usual, &before->child); /* ignored, it would leave no status to wait for */
    sigprocmask(SIG_BLOCK, &held, &before->mask);
}

void supervise_child(const struct supervised *before)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != before->self) /* it has been killed already */
        _exit(128 + SIGKILL);
    sigaction(SIGCHLD, &before->child, NULL);
    sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

/* A stop by SIGSTOP is the child's alone: whoever sends that continues it, and would not continue
 * this process. */
static bool is_of_job_control(int number)
{
    return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* Whether the kernel sends it to a terminal's whole foreground process group, and so to the child
 * too. When the terminal is gone, SIGHUP comes to the session's leader alone. (tty_ioctl(4),
 * credentials(7)) */
static bool is_of_terminal(int number)
{
    static const int group[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGWINCH};
    for (size_t i = 0; i < sizeof group / sizeof *group; i++)
        if (number == group[i])
            return true;
    return number == SIGHUP && getsid(0) != getpid();
}

static void pass_on(pid_t child, const siginfo_t *info)
{
    const bool by_process = info->si_code <= 0;
    if (info->si_signo != SIGCHLD && (by_process || !is_of_terminal(info->si_signo)))
        kill(child, info->si_signo);
}

static void note_end(int number, int *asked)
{
    if (!*asked && (number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP))
        *asked = number;
}

/* Those that came to both by the child's end are not for this process alone. */
static void forget_pending(int *asked)
{
    const struct timespec now = {0, 0};
    const sigset_t held = signal_mask();
    int number;
    while ((number = sigtimedwait(&held, NULL, &now)) > 0)
        note_end(number, asked);
}

int supervise_wait(const struct supervised *before, pid_t child, int *status)
{
    const sigset_t held = signal_mask();
    siginfo_t info;
    int asked = 0;
    for (;;) {
        const pid_t changed = waitpid(child, status, WNOHANG | WUNTRACED);
        if (changed < 0 || (changed > 0 && !WIFSTOPPED(*status)))
            break;
        if (changed > 0 && is_of_job_control(WSTOPSIG(*status))) {
            kill(before->self, SIGSTOP);
            kill(child, SIGCONT); /* this process is continued */
        }
        if (changed == 0 && sigwaitinfo(&held, &info) > 0) {
            note_end(info.si_signo, &asked);
            pass_on(child, &info);
        }
    }
    forget_pending(&asked);
    sigaction(SIGCHLD, &before->child, NULL);
    sigprocmask(SIG_SETMASK, &before->mask, NULL);
    return asked;
}

int supervise_end(int status)
{
    const struct rlimit no_core = {0, 0}; /* the child has left one */
    sigset_t set;
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    setrlimit(RLIMIT_CORE, &no_core);
    signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}
