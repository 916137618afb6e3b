/*
 * turmoil MS FOLDER: for so long, all at once: threads that multiply, by the linked BLAS; threads that open a library which
 * is linked to a BLAS (RTLD_LOCAL, 32- and 64-bit integers), multiply by it and close it; one that looks names up; and one
 * that forks children, which multiply, or execute another program. A child or a thread that takes 20 s ends the program
 * with status 3. Prints how many products each kind has done, and how many were wrong.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
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

typedef void gemm32(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
                    const double *, const double *, const int32_t *, const double *,
                    const int32_t *, const double *, double *, const int32_t *, size_t, size_t);
gemm32 dgemm_;

extern char **environ;

enum kind { CALLER, LOADER, LOOKER, FORKER, KINDS };
enum { N = 16, THREADS = 8 };

static const char *folder;
static atomic_bool ending;
static atomic_int done[KINDS], wrong[KINDS];
/* No fork while a library is being loaded or unloaded: the dynamic linker of the child would be left in the middle of it. */
static pthread_rwlock_t linker = PTHREAD_RWLOCK_INITIALIZER;
static _Atomic long beats[THREADS]; /* when each thread was last alive, in seconds */

static long now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void pause_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Of matrices of ones. */
static bool multiply(gemm32 *gemm, int32_t n)
{
    const double one = 1, zero = 0;
    double a[N * N], c[N * N];
    bool right = true;
    for (int i = 0; i < n * n; i++)
        a[i] = 1;
    gemm("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n, 1, 1);
    for (int i = 0; i < n * n; i++)
        right = right && c[i] == n;
    return right;
}

static bool call(int round)
{
    return multiply(dgemm_, 1 + round % N);
}

static bool load(int round)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/libcaller_%s.so", folder, round % 3 ? "lp64" : "ilp64");
    pthread_rwlock_rdlock(&linker);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    pthread_rwlock_unlock(&linker);
    int (*product)(int);
    if (!handle)
        return false;
    void *found = dlsym(handle, "caller_product");
    memcpy(&product, &found, sizeof product);
    bool right = found && product(1 + round % N) == 0 && product(N) == 0;
    pthread_rwlock_rdlock(&linker);
    right = dlclose(handle) == 0 && right;
    pthread_rwlock_unlock(&linker);
    return right;
}

static bool look_up(int round)
{
    void *found = dlsym(RTLD_DEFAULT, "dgemm_");
    gemm32 *gemm;
    memcpy(&gemm, &found, sizeof gemm);
    pause_ms(1);
    return found && multiply(gemm, 1 + round % N);
}

static bool see_to_child(pid_t child)
{
    int status = -1;
    for (int waited = 0; waitpid(child, &status, WNOHANG) == 0; waited += 2) {
        if (waited > 10000) {
            fprintf(stderr, "a child hangs\n");
            kill(child, SIGKILL);
            _exit(3);
        }
        pause_ms(2);
    }
    if (status != 0)
        fprintf(stderr, "a child: status %#x\n", (unsigned)status);
    return status == 0;
}

static bool make_child(int round)
{
    static char *const other[] = {"/bin/true", NULL};
    pthread_rwlock_wrlock(&linker);
    pid_t child = fork();
    if (child != 0)
        pthread_rwlock_unlock(&linker);
    if (child == 0 && round % 4 == 0) {
        execve(other[0], other, environ);
        _exit(4);
    }
    if (child == 0)
        _exit(call(round) && call(round + 1) ? 0 : 5);
    return child > 0 && see_to_child(child);
}

static bool (*const act[KINDS])(int round) = {call, load, look_up, make_child};
static const char *const names[KINDS] = {"products", "libraries", "look-ups", "children"};
static const enum kind kinds[THREADS] = {CALLER, CALLER, CALLER, LOADER,
                                         LOADER, LOADER, LOOKER, FORKER};

static void *run(void *number)
{
    int i = (int)(intptr_t)number;
    for (int round = i; !atomic_load(&ending); round++) {
        atomic_store(&beats[i], now_s());
        if (!act[kinds[i]](round))
            atomic_fetch_add(&wrong[kinds[i]], 1);
        atomic_fetch_add(&done[kinds[i]], 1);
    }
    atomic_store(&beats[i], INT32_MAX);
    return NULL;
}

static void watch(void)
{
    for (int i = 0; i < THREADS; i++)
        if (now_s() - atomic_load(&beats[i]) > 20) {
            fprintf(stderr, "a thread hangs: %s\n", names[kinds[i]]);
            _exit(3);
        }
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    int all_wrong = 0;
    if (argc != 3)
        return 2;
    folder = argv[2];
    /* Stays: OpenBLAS itself does not stand being unloaded while another thread forks. */
    if (!dlopen("libblas64.so.3", RTLD_NOW | RTLD_LOCAL))
        return 2;
    for (int i = 0; i < THREADS; i++) {
        atomic_store(&beats[i], now_s());
        if (pthread_create(&thread[i], NULL, run, (void *)(intptr_t)i) != 0)
            return 2;
    }
    for (int waited = 0; waited < atoi(argv[1]); waited += 50) {
        pause_ms(50);
        watch();
    }
    atomic_store(&ending, true);
    for (bool all = false; !all;) {
        all = true;
        for (int i = 0; i < THREADS; i++)
            all = all && atomic_load(&beats[i]) == INT32_MAX;
        watch();
        pause_ms(5);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int kind = 0; kind < KINDS; kind++) {
        printf("%s: %d, %d wrong\n", names[kind], atomic_load(&done[kind]),
               atomic_load(&wrong[kind]));
        all_wrong += atomic_load(&wrong[kind]);
    }
    return all_wrong != 0;
}
