#!/bin/bash
# glibc 2.36 (Debian 12): a recursive mutex with PTHREAD_PROCESS_SHARED excludes nobody whose
# thread has the same number in another PID namespace. The owner is kept as the number that
# gettid() gives, and the first process of each container is number 1: of two containers that
# share memory (docker run --ipc=host, a common /dev/shm), the second one locks what the first one
# holds, and gets 0 at once, as if it held it already. That is so with PTHREAD_MUTEX_ROBUST and
# PTHREAD_PRIO_INHERIT, too. PTHREAD_MUTEX_ERRORCHECK answers EDEADLK, for waiting, and the second
# process may unlock it; the first one's unlock is then EPERM. A normal mutex keeps the second
# out. Neither pthread_mutexattr_setpshared(3) nor pid_namespaces(7) says so. What shares a device
# between containers should hold locks of the kernel on a file (flock, F_OFD_SETLK). Needs gcc,
# and a kernel that lets users make namespaces (unshare --user --pid).
set -eu
unshare --user --map-root-user --pid --fork true 2> /dev/null || {
    echo "no PID namespaces can be made here: there is nothing to see"
    exit 0
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > mutex.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shared {
    pthread_mutex_t mutex;
    int first_locks, first_unlocks, second_locks, second_unlocks, pid[2];
} *shared;
static int locked[2], go_on[2];

static void lock_as_first(void)
{
    char byte = 0;
    shared->pid[0] = getpid();
    shared->first_locks = pthread_mutex_trylock(&shared->mutex);
    if (write(locked[1], &byte, 1) != 1 || read(go_on[0], &byte, 1) != 1)
        abort();
    shared->first_unlocks = pthread_mutex_unlock(&shared->mutex);
}

/* A normal mutex is only tried: to lock it would wait. */
static void lock_as_second(int type)
{
    shared->pid[1] = getpid();
    shared->second_locks =
        type == PTHREAD_MUTEX_NORMAL ? pthread_mutex_trylock(&shared->mutex) : pthread_mutex_lock(&shared->mutex);
    if (type == PTHREAD_MUTEX_ERRORCHECK)
        shared->second_unlocks = pthread_mutex_unlock(&shared->mutex);
}

/* Forks a process that makes a PID namespace, and runs one half as the first process in it. */
static pid_t start_container(int second, int type)
{
    const pid_t made = fork();
    if (made)
        return made;
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
        _exit(1);
    const pid_t init = fork();
    if (!init) {
        if (second)
            lock_as_second(type);
        else
            lock_as_first();
        _exit(0);
    }
    int status = -1;
    waitpid(init, &status, 0);
    _exit(status != 0);
}

int main(void)
{
    const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    const char *names[] = {"normal", "recursive", "errorcheck"};
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe(locked) || pipe(go_on))
        return 1;
    for (int robust = 0; robust < 2; robust++)
        for (int inherit = 0; inherit < 2; inherit++)
            for (int t = 0; t < 3; t++) {
                memset(shared, 0, sizeof *shared);
                pthread_mutexattr_t how;
                pthread_mutexattr_init(&how);
                pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
                pthread_mutexattr_settype(&how, types[t]);
                pthread_mutexattr_setrobust(&how, robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
                pthread_mutexattr_setprotocol(&how, inherit ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
                if (pthread_mutex_init(&shared->mutex, &how))
                    return 1;
                char byte = 0;
                int status[2];
                const pid_t first = start_container(0, types[t]);
                if (read(locked[0], &byte, 1) != 1)
                    return 1;
                const pid_t second = start_container(1, types[t]);
                waitpid(second, &status[1], 0);
                if (write(go_on[1], &byte, 1) != 1)
                    return 1;
                waitpid(first, &status[0], 0);
                if (status[0] || status[1] || shared->first_locks)
                    return 1;
                printf("%s%s%s: process %d holds it, process %d of the other container gets %s", robust ? "robust " : "",
                       inherit ? "inheriting " : "", names[t], shared->pid[0], shared->pid[1],
                       shared->second_locks ? strerrorname_np(shared->second_locks) : "it");
                if (types[t] == PTHREAD_MUTEX_ERRORCHECK)
                    printf(", may unlock it: %s, the first one's unlock: %s", shared->second_unlocks ? "no" : "yes",
                           strerrorname_np(shared->first_unlocks));
                puts("");
            }
    return 0;
}
END
gcc -O1 -Wall mutex.c -o mutex -pthread
timeout 60 ./mutex > said
ldd --version | sed -n 1p
cat said
for kind in "" "inheriting " "robust " "robust inheriting "; do
    echo "${kind}normal: process 1 holds it, process 1 of the other container gets EBUSY"
    echo "${kind}recursive: process 1 holds it, process 1 of the other container gets it"
    echo "${kind}errorcheck: process 1 holds it, process 1 of the other container gets EDEADLK, may unlock it: yes, the first one's unlock: EPERM"
done | diff said -
