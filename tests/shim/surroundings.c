/*
 * surroundings STEP...: products, and between them what a program may do to its own surroundings. One after the other:
 *
 *   multiply[:COUNT]    products, whose results are compared
 *   close:FROM          closes all descriptors from this number on
 *   take:PATH           opens a file of its own, new and empty, under every number that is free
 *   fill:PATH, unlink:PATH   a file that takes all the room there is; removes one
 *   chdir:PATH, chroot:PATH
 *   user:ID             gives up root for this user
 *   files:N, bytes:N    the limits on open files, and on the size of a file
 *   fork                the rest in a child process, whose status this one takes over
 *   run:COMMAND         by the shell
 *   spawn:STEP          this program with that one step, by posix_spawn(3); its status counts
 *   vfork               products in the child of a vfork(2), and then one by exec
 *   daemon              the rest in the background, as daemon(3) has it
 *   forbid              of system calls, all that does not compute, read or write fails from here on (seccomp(2))
 *   end-for             the same, and what is forbidden ends the process at once
 *   status              tells on stdout what the signals are: those pending, and whether one is handled or blocked
 *
 * The exit status is 1 where a product is wrong, and 2 where a step cannot be done.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);

enum { N = 8 };

/* Of matrices of ones. */
static bool multiply(void)
{
    const int32_t n = N;
    const double one = 1, zero = 0;
    double a[N * N], c[N * N];
    bool right = true;
    for (int i = 0; i < N * N; i++)
        a[i] = 1;
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n, 1, 1);
    for (int i = 0; i < N * N; i++)
        right = right && c[i] == N;
    return right;
}

static bool take(const char *path)
{
    struct rlimit limit;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return false;
    for (int other = 0; other < 1024 && (rlim_t)other < limit.rlim_cur; other++)
        if (other != fd && fcntl(other, F_GETFD) < 0 && dup2(fd, other) < 0)
            return false;
    return true;
}

static bool fill(const char *path)
{
    static const char zeros[512];
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0)
        return false;
    while (write(fd, zeros, sizeof zeros) > 0)
        ;
    return close(fd) == 0;
}

static bool become(uid_t user)
{
    return setgroups(0, NULL) == 0 && setgid(user) == 0 && setuid(user) == 0 && setuid(0) != 0;
}

static bool limit(int what, const char *value)
{
    const struct rlimit limit = {strtoul(value, NULL, 10), strtoul(value, NULL, 10)};
    return setrlimit(what, &limit) == 0;
}

static bool in_child(void)
{
    int status;
    pid_t child = fork();
    if (child <= 0)
        return child == 0;
    exit(waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 3);
}

static bool has_done(pid_t child)
{
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool spawn(const char *step)
{
    char *const arguments[] = {"surroundings", (char *)(uintptr_t)step, NULL};
    pid_t child;
    return posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0 &&
           has_done(child);
}

static bool in_vfork_child(void)
{
    char *const arguments[] = {"surroundings", "multiply:2", NULL};
    pid_t child = vfork();
    if (child == 0) {
        if (multiply())
            execve("/proc/self/exe", arguments, environ);
        _exit(1);
    }
    return has_done(child);
}

/* action: what becomes of it. EPERM is what the sandboxes of containers have. */
static bool forbid(uint32_t action)
{
    void *volatile memory = malloc(1); /* glibc's first asks for random numbers */
    free(memory);
#define ALLOW(name)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read),
        ALLOW(write),
        ALLOW(exit),
        ALLOW(exit_group),
        ALLOW(rt_sigreturn),
        ALLOW(futex),
        ALLOW(brk),
        ALLOW(munmap),
        /* No memory that can be executed. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, action),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           (action == SECCOMP_RET_KILL_PROCESS || open("/dev/null", O_RDONLY) < 0);
}

static bool tell_signals(void)
{
    sigset_t pending, blocked;
    int pendings = 0, blockeds = 0, handled = 0;
    sigpending(&pending);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number < SIGRTMIN; number++) {
        struct sigaction action;
        pendings += sigismember(&pending, number);
        blockeds += sigismember(&blocked, number);
        handled += sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
                   action.sa_handler != SIG_IGN;
    }
    return printf("%d pending, %d blocked, %d handled\n", pendings, blockeds, handled) > 0 &&
           fflush(stdout) == 0;
}

/* Whether the step could be done. */
static bool step(const char *name, const char *value, int *wrong)
{
    if (strcmp(name, "multiply") == 0) {
        for (int i = 0; i < (*value ? atoi(value) : 1); i++)
            *wrong += !multiply();
        return true;
    }
    return strcmp(name, "close") == 0     ? close_range((unsigned)atoi(value), ~0u, 0) == 0
           : strcmp(name, "take") == 0    ? take(value)
           : strcmp(name, "fill") == 0    ? fill(value)
           : strcmp(name, "unlink") == 0  ? unlink(value) == 0
           : strcmp(name, "chdir") == 0   ? chdir(value) == 0
           : strcmp(name, "chroot") == 0  ? chroot(value) == 0 && chdir("/") == 0
           : strcmp(name, "user") == 0    ? become((uid_t)atoi(value))
           : strcmp(name, "files") == 0   ? limit(RLIMIT_NOFILE, value)
           : strcmp(name, "bytes") == 0   ? limit(RLIMIT_FSIZE, value)
           : strcmp(name, "fork") == 0    ? in_child()
           : strcmp(name, "spawn") == 0   ? spawn(value)
           : strcmp(name, "vfork") == 0   ? in_vfork_child()
           : strcmp(name, "daemon") == 0  ? daemon(1, 0) == 0
           : strcmp(name, "forbid") == 0  ? forbid(SECCOMP_RET_ERRNO | EPERM)
           : strcmp(name, "end-for") == 0 ? forbid(SECCOMP_RET_KILL_PROCESS)
           : strcmp(name, "run") == 0     ? system(value) == 0
           : strcmp(name, "status") == 0  ? tell_signals()
                                          : false;
}

int main(int argc, char **argv)
{
    int wrong = 0;
    for (int i = 1; i < argc; i++) {
        char *colon = strchr(argv[i], ':');
        if (colon)
            *colon = 0;
        if (!step(argv[i], colon ? colon + 1 : "", &wrong))
            return 2;
    }
    return wrong != 0;
}
