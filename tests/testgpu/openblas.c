/*
 * The OpenBLAS inside a stand-in: its settings, and its end. A device's kernels do not need the
 * process, but the stand-in's are OpenBLAS's functions, whose own destructor must come after the
 * last of them. The last object to be linked, which this is, is the first to be ended.
 */
#include <string.h>
#include "openblas.h"
#include "testgpu.h"

pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

char *__wrap_getenv(const char *name);

/* OpenBLAS's getenv: it gets no settings of the program's, and starts no threads. */
char *__wrap_getenv(const char *name)
{
    static char one[] = "1";
    return strcmp(name, "OPENBLAS_NUM_THREADS") == 0 ? one : NULL;
}

static void before_fork(void)
{
    pthread_mutex_lock(&one_at_a_time);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&one_at_a_time);
}

/* A child's exit ends OpenBLAS there, which takes the lock that its routines take. */
__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

__attribute__((destructor)) static void end_kernels(void)
{
    testgpu_end_kernels();
}
