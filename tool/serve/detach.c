#define _GNU_SOURCE
#include "detach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "gpu/remote/lane.h"
#include "tool/util/complain.h"

/* How long a server may take to start CUDA; how long another one is waited for. */
enum { START_MS = 15000, OTHER_MS = 8000 };

static void replace_by_null(int fd, int flags)
{
    const int null = open("/dev/null", flags | O_CLOEXEC);
    if (null >= 0 && null != fd) {
        dup2(null, fd);
        close(null);
    }
}

/* What the caller has open, such as a pipe whose reader waits for its end, must not stay open as
 * long as the server is there. */
static void close_inherited(void)
{
    DIR *const folder = opendir("/proc/self/fd");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        const int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != dirfd(folder))
            close(fd);
    }
    if (folder)
        closedir(folder);
}

/* Returns this process's exit status. */
static int wait_for_server(pid_t child, int told)
{
    struct pollfd event = {.fd = told, .events = POLLIN};
    char byte;
    int status = 0, ready;
    do
        ready = poll(&event, 1, START_MS);
    while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return complain(1, "accel serve: the GPU has not started within %d s\n", START_MS / 1000);
    }
    if (recv(told, &byte, 1, 0) == 1)
        return 0;
    if (waitpid(child, &status, 0) == child && WIFSIGNALED(status))
        return complain(1, "accel serve: it has ended by signal %d\n", WTERMSIG(status));
    return WEXITSTATUS(status);
}

int detach_begin(void)
{
    int ends[2];
    close_inherited();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return complain(-1, "accel serve: --detach: %s\n", strerror(errno));
    const pid_t child = fork();
    if (child < 0)
        return complain(-1, "accel serve: --detach: %s\n", strerror(errno));
    if (child > 0) {
        close(ends[1]);
        exit(wait_for_server(child, ends[0]));
    }
    close(ends[0]);
    setsid();
    replace_by_null(STDIN_FILENO, O_RDONLY);
    return ends[1];
}

void detach_done(int parent)
{
    replace_by_null(STDOUT_FILENO, O_WRONLY);
    replace_by_null(STDERR_FILENO, O_WRONLY);
    if (chdir("/") != 0)
        (void)0; /* it stays in the caller's */
    send(parent, "", 1, MSG_NOSIGNAL);
    close(parent);
}

enum listener_claim detach_claim(struct listener *listener, const char *wanted,
                                 const struct listener_access *access)
{
    const double begin_ms = accel_now_ms();
    char why[GPU_FAILURE_BYTES];
    for (;;) {
        const enum listener_claim claim = listener_claim(listener, wanted, access);
        if (claim != LISTENER_TAKEN)
            return claim;
        if (lane_answers(listener->path, why))
            return LISTENER_TAKEN;
        if (accel_now_ms() - begin_ms > OTHER_MS) {
            complain(0, "accel serve: another server is at %s: %s\n", listener->path, why);
            return LISTENER_FAILED;
        }
        usleep(20000);
    }
}
