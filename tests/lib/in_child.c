#define _GNU_SOURCE
#include "in_child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void broken(const char *condition, int line)
{
    fprintf(stderr, "line %d: %s\n", line, condition);
    _exit(1);
}

/* The linker sends the calls of base/ here. */
int cpus;
atomic_int attempts;
bool undisturbed = true;
_Thread_local int bound_to;
static atomic_int threads_left;
int __wrap_sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *mask);
int __wrap_sched_setaffinity(pid_t process, size_t bytes, const cpu_set_t *mask);
int __real_getrusage(int who, struct rusage *usage);
int __wrap_getrusage(int who, struct rusage *usage);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);

int __wrap_sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *mask)
{
    CPU_ZERO_S(bytes, mask);
    for (int i = process ? 1 : 0; i < (process ? cpus : 1); i++)
        CPU_SET_S((size_t)i, bytes, mask);
    return 0;
}

int __wrap_sched_setaffinity(pid_t process, size_t bytes, const cpu_set_t *mask)
{
    must(process == 0);
    bound_to = CPU_COUNT_S(bytes, mask);
    return 0;
}

int __wrap_getrusage(int who, struct rusage *usage)
{
    const int result = __real_getrusage(who, usage);
    if (undisturbed)
        usage->ru_nivcsw = 0;
    return result;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    if (attributes) {
        attempts++;
        if (threads_left-- <= 0)
            return EAGAIN;
    }
    return __real_pthread_create(thread, attributes, run, argument);
}

int threads_named(const char *wanted)
{
    char path[300], name[32];
    int found = 0;
    DIR *folder = opendir("/proc/self/task");
    must(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        found += fgets(name, sizeof name, file) && strncmp(name, wanted, strlen(wanted)) == 0;
        fclose(file);
    }
    closedir(folder);
    return found;
}

void in_child(void (*test)(void), int with_cpus, int with_threads)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(600);
        cpus = with_cpus;
        threads_left = with_threads;
        test();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("%d CPUs, %d threads: status %#x", with_cpus, with_threads, (unsigned)status);
}
