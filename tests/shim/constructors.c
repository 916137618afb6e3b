/*
 * constructors PLUG_IN: a system is solved within the plug-in's constructor, under the dynamic linker's lock, while another thread
 * solves one, too: the first two, which need cuSOLVER. Prints whether they are right. A program that hangs ends by SIGALRM.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);
void dgesv_(const int32_t *, const int32_t *, double *, const int32_t *, int32_t *, double *,
            const int32_t *, int32_t *);
void at_load(void);

enum { N = 100 };

/* Twice the identity, of order n. */
static bool solve(int32_t n)
{
    const int32_t one = 1, ld = N;
    static _Thread_local double a[N * N], b[N];
    int32_t pivot[N], info = -1;
    bool right = true;
    for (int i = 0; i < N; i++) {
        a[i * N + i] = 2;
        b[i] = i;
    }
    dgesv_(&n, &one, a, &ld, pivot, b, &ld, &info);
    for (int i = 0; i < n; i++)
        right = right && b[i] == i / 2.0;
    return right && info == 0;
}

static bool multiply(void)
{
    const int32_t n = 1;
    const double two = 2, zero = 0;
    double c = 0;
    dgemm_("N", "N", &n, &n, &n, &two, &two, &n, &two, &n, &zero, &c, &n, 1, 1);
    return c == 8;
}

static void say(const char *what, bool right)
{
    printf("%s: %s\n", what, right ? "right" : "WRONG");
}

static pthread_t thread;
static bool right_beside;

static void *solve_beside(void *unused)
{
    right_beside = solve(N);
    return unused;
}

void at_load(void)
{
    if (pthread_create(&thread, NULL, solve_beside, NULL) != 0)
        exit(2);
    usleep(300000); /* it has come to cuSOLVER, and to the linker's lock */
    say("in a constructor", solve(N));
}

/* Before, the GPU is started, and the originals are known, for which the linker's lock is taken. */
int main(int argc, char **argv)
{
    alarm(30);
    if (argc != 2 || !multiply() || !multiply() || !solve(0) || !dlopen(argv[1], RTLD_NOW))
        return 2;
    pthread_join(thread, NULL);
    say("beside it", right_beside);
    return 0;
}
