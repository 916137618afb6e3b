#define _GNU_SOURCE
#include "runs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/util/complain.h"
#include "base/thread/clock.h"
#include "base/host/cpu.h"
#include "base/file/file.h"
#include "tool/process/become.h"
#include "tool/process/preload.h"

/* ---- Signals ---- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { SIGNALS = sizeof signals / sizeof *signals };

static volatile sig_atomic_t asked, child;

/* Whether the program gets it anyway: a terminal's keys send it to both. When the terminal is gone,
 * SIGHUP comes to the session's leader alone. */
static bool comes_to_both(int number, const siginfo_t *info)
{
    return info->si_code == SI_KERNEL && (number != SIGHUP || getsid(0) != getpid());
}

/* Passes a signal to this process on to the program. A second signal kills the program, or this
 * process. */
static void pass_signal_on(int number, siginfo_t *info, void *context)
{
    (void)context;
    bool again = asked != 0;
    asked = number;
    if (child > 0 && again)
        kill((pid_t)child, SIGKILL);
    else if (child > 0 && !comes_to_both(number, info))
        kill((pid_t)child, number);
    else if (again) {
        /* A long comparison runs; the folder is left behind. */
        signal(number, SIG_DFL);
        raise(number);
    }
}

/* Ignored signals stay ignored, as nohup wants. */
static void set_actions(const struct sigaction *action)
{
    struct sigaction old;
    for (int i = 0; i < SIGNALS; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], action, NULL);
}

static void block_signals(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&set, signals[i]);
    sigprocmask(how, &set, NULL);
}

int runs_signal(void)
{
    return asked;
}

/* ---- Environments ---- */

static const char *const thread_variables[] = {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                               "BLIS_NUM_THREADS", "OMP_NUM_THREADS"};
enum { THREAD_VARIABLES = sizeof thread_variables / sizeof *thread_variables };

/* Returns how many threads BLAS has in the program without our doing: by the first variable that is
 * set. */
static int usual_threads(void)
{
    for (int i = 0; i < THREAD_VARIABLES; i++) {
        const char *value = getenv(thread_variables[i]);
        long n = value ? strtol(value, NULL, 10) : 0;
        if (n > 0)
            return n > 4096 ? 4096 : (int)n;
    }
    return cpu_usable();
}

/* Removes the ACCEL_... settings, which are for the run with libaccel alone. */
static void remove_settings(void)
{
    extern char **environ;
    for (char **entry = environ; *entry;) {
        char name[256];
        size_t length = strcspn(*entry, "=");
        bool ours = strncmp(*entry, "ACCEL", 5) == 0 && (length == 5 || (*entry)[5] == '_');
        if (!ours || length >= sizeof name) {
            entry++;
            continue;
        }
        memcpy(name, *entry, length);
        name[length] = 0;
        unsetenv(name); /* moves the others up */
    }
}

/* Sets ACCEL_LOG_FILE, a pattern, to a path. */
static void set_log_file(const char *path)
{
    char pattern[2 * PATH_MAX];
    size_t n = 0;
    for (; *path; path++) {
        pattern[n++] = *path;
        if (*path == '%')
            pattern[n++] = '%';
    }
    pattern[n] = 0;
    setenv("ACCEL_LOG_FILE", pattern, 1);
}

static void set_environment(const struct runs *runs, enum run which)
{
    char threads[16];
    preload_remove();
    if (which == RUN_SHIM) {
        preload_set(runs->shim, runs->program[0]);
        setenv("ACCEL_LOG", "json", 1);
        setenv("ACCEL_LOG_MIN_MS", "0", 1);
        set_log_file(runs->decisions);
        /* With `wait', decisions depend on the calls alone. */
        setenv("ACCEL_START", "wait", 0);
        return;
    }
    remove_settings();
    if (which == RUN_PLAIN)
        return;
    snprintf(threads, sizeof threads, "%d", runs->threads[RUN_THREADS]);
    for (int i = 0; i < THREAD_VARIABLES; i++)
        setenv(thread_variables[i], threads, 1);
}

/* ---- Running ---- */

static bool make_paths(struct runs *runs)
{
    static const char *const names[] = {"stdin", "stdout.1", "stdout.2", "stdout.3", "decisions"};
    char *const paths[] = {runs->input, runs->output[0], runs->output[1], runs->output[2],
                           runs->decisions};
    for (int i = 0; i < 5; i++)
        if (snprintf(paths[i], PATH_MAX, "%s/%s", runs->folder, names[i]) >= PATH_MAX)
            return false;
    return true;
}

static bool copy_input(const char *path)
{
    char buffer[65536];
    ssize_t n = 0;
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = to >= 0;
    while (good && !asked && !isatty(STDIN_FILENO)) {
        n = read(STDIN_FILENO, buffer, sizeof buffer);
        if (n == 0 || (n < 0 && errno == EBADF)) /* at its end, or closed */
            break;
        good = n < 0 ? errno == EINTR : write(to, buffer, (size_t)n) == n;
    }
    if (to >= 0)
        good = close(to) == 0 && good;
    if (!good)
        complain(0, "accel diff: stdin cannot be copied to %s: %s\n", path, strerror(errno));
    return good;
}

bool runs_open(struct runs *runs)
{
    if (!file_temporary(runs->folder, "diff") || !mkdtemp(runs->folder) || !make_paths(runs))
        return complain(false, "accel diff: no folder can be made in TMPDIR, or /tmp: %s\n",
                        strerror(errno));
    int usual = usual_threads();
    if (!runs->threads[RUN_THREADS])
        runs->threads[RUN_THREADS] = usual > 1 ? 1 : 2;
    runs->threads[RUN_PLAIN] = usual;
    struct sigaction action = {.sa_sigaction = pass_signal_on, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    set_actions(&action);
    if (copy_input(runs->input))
        return true;
    runs_close(runs);
    return false;
}

/* In the child: opens a file as descriptor `target`. */
static void put_in_place(const char *path, int flags, int target)
{
    int fd = open(path, flags, 0600);
    if (fd < 0 || dup2(fd, target) < 0)
        _exit(complain(126, "accel diff: %s: %s\n", path, strerror(errno)));
    if (fd != target)
        close(fd);
}

static _Noreturn void exec_program(const struct runs *runs, enum run which)
{
    set_actions(&(struct sigaction){.sa_handler = SIG_DFL});
    block_signals(SIG_UNBLOCK);
    put_in_place(runs->input, O_RDONLY, STDIN_FILENO);
    put_in_place(runs->output[which], O_WRONLY | O_CREAT | O_EXCL, STDOUT_FILENO);
    set_environment(runs, which);
    char text[BECOME_FAULT_BYTES];
    const int error = become_program(runs->program);
    _exit(complain(127, "accel diff: %s: %s\n", runs->program[0],
                   become_fault(text, "accel diff", runs->program[0], error)));
}

int runs_program(struct runs *runs, enum run which)
{
    int status = 0;
    const double start_ms = accel_now_ms();
    fflush(NULL);
    block_signals(SIG_BLOCK);
    pid_t pid = fork();
    if (pid == 0)
        exec_program(runs, which);
    child = pid;
    block_signals(SIG_UNBLOCK);
    if (pid < 0)
        return complain(-1, "accel diff: no process can be started: %s\n", strerror(errno));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    child = 0;
    runs->made++;
    runs->seconds[which] = 1e-3 * (accel_now_ms() - start_ms);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void runs_close(struct runs *runs)
{
    unlink(runs->input);
    unlink(runs->decisions);
    for (int i = 0; i < RUNS; i++)
        unlink(runs->output[i]);
    rmdir(runs->folder);
    if (!asked)
        return;
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(asked, &standard, NULL);
    raise(asked);
}
