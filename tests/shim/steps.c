/*
 * steps STEP...: does one after the other, and says how each went.
 *
 *   dgemm:N:COUNT         products of order N, from one place
 *   other:N:COUNT         the same, from another place
 *   during:MS:N           products from the first place for so long
 *   solve:N:COUNT         systems of equations, by dgesv
 *   threads:T:N:COUNT     products, each of T threads COUNT; `team` instead: an OpenMP team's
 *   beside:N:COUNT        products in a thread that nobody waits for
 *   both:N:COUNT:MS       `dgemm` in a thread, and MS later in this one, too
 *   sleep:MS
 *   write:PATH, await:PATH     makes a file; waits for one
 *   opened, started       waits until libcuda is in memory; until libaccel's thread has started CUDA
 *   handlers:COUNT        so many handlers of exit(); they say in the end whether each has run, newest first
 *   later:N               a product of order N when exit() runs handlers
 *   maps                  whether libcuda is in memory
 *   end:HOW               return, exit (from another thread), _exit, abort, kill; status 7
 *
 * Results are exact, and each is compared. The exit status is 1 where one is wrong.
 */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);
void dgesv_(const int32_t *, const int32_t *, double *, const int32_t *, int32_t *, double *,
            const int32_t *, int32_t *);

static int all_wrong;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void pause_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* ---- Products ---- */

struct product {
    int32_t n;
    double *a, *b, *c;
};

static double *matrix(int32_t n)
{
    double *memory = malloc((size_t)n * (size_t)n * sizeof *memory);
    if (!memory)
        abort();
    return memory;
}

static double element(int32_t i, int32_t j)
{
    return (i + 2 * j) % 5 - 2;
}

static struct product product_new(int32_t n)
{
    struct product p = {n, matrix(n), matrix(n), matrix(n)};
    for (int32_t j = 0; j < n; j++)
        for (int32_t i = 0; i < n; i++) {
            p.a[i + (size_t)j * (size_t)n] = element(i, j);
            p.b[i + (size_t)j * (size_t)n] = element(j, i);
        }
    return p;
}

static void product_free(struct product *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
}

/* Row i and column j of the factors depend on i % 5 and j % 5 alone. */
static bool product_is_right(const struct product *p)
{
    double right[5][5] = {{0}};
    for (int32_t i = 0; i < 5; i++)
        for (int32_t j = 0; j < 5; j++)
            for (int32_t k = 0; k < p->n; k++)
                right[i][j] += element(i, k) * element(j, k);
    for (int32_t j = 0; j < p->n; j++)
        for (int32_t i = 0; i < p->n; i++)
            if (p->c[i + (size_t)j * (size_t)p->n] != right[i % 5][j % 5])
                return false;
    return true;
}

/* Two places that call. */
#define MULTIPLY(p)                                                                                \
    dgemm_("N", "N", &(p)->n, &(p)->n, &(p)->n, &one, (p)->a, &(p)->n, (p)->b, &(p)->n, &zero,     \
           (p)->c, &(p)->n, 1, 1)
static const double one = 1, zero = 0;

__attribute__((noinline)) static void multiply_here(const struct product *p)
{
    MULTIPLY(p);
    __asm__ volatile("");
}

__attribute__((noinline)) static void multiply_there(const struct product *p)
{
    MULTIPLY(p);
    __asm__ volatile(" ");
}

typedef void multiply(const struct product *p);

/* count products, or as many as fit into ms. */
static void products(const char *name, int32_t n, long count, double ms, multiply *call)
{
    struct product p = product_new(n);
    double start = now_ms();
    long done = 0;
    int wrong = 0;
    while (count ? done < count : now_ms() - start < ms) {
        memset(p.c, 0xff, (size_t)n * (size_t)n * sizeof *p.c);
        call(&p);
        wrong += !product_is_right(&p);
        done++;
    }
    __atomic_fetch_add(&all_wrong, wrong, __ATOMIC_RELAXED);
    if (count)
        printf("%s %d: %ld calls, %d wrong\n", name, n, done, wrong);
    else
        printf("%s %d: %d wrong\n", name, n, wrong);
    product_free(&p);
}

/* ---- Systems: the solution is a vector of ones ---- */

static void solve(int32_t n, long count)
{
    double *a = matrix(n), *b = malloc((size_t)n * sizeof *b);
    int32_t *pivots = malloc((size_t)n * sizeof *pivots), info, nrhs = 1;
    int wrong = 0;
    for (long done = 0; done < count; done++) {
        for (int32_t i = 0; i < n; i++)
            b[i] = 0;
        for (int32_t j = 0; j < n; j++)
            for (int32_t i = 0; i < n; i++) {
                double x = i == j ? 4 * n : element(i, j);
                a[i + (size_t)j * (size_t)n] = x;
                b[i] += x;
            }
        dgesv_(&n, &nrhs, a, &n, pivots, b, &n, &info);
        bool right = info == 0;
        for (int32_t i = 0; i < n; i++)
            right = right && fabs(b[i] - 1) < 1e-10;
        wrong += !right;
    }
    all_wrong += wrong;
    printf("solve %d: %ld calls, %d wrong\n", n, count, wrong);
    free(a);
    free(b);
    free(pivots);
}

/* ---- Several threads ---- */

struct share {
    int32_t n;
    long count;
};

static void *work(void *argument)
{
    const struct share *share = argument;
    products("thread", share->n, share->count, 0, multiply_here);
    return NULL;
}

static void in_threads(int threads, int32_t n, long count)
{
    struct share share = {n, count};
    pthread_t thread[64];
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, &share) != 0)
            abort();
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
}

static void in_team(int threads, int32_t n, long count)
{
#pragma omp parallel num_threads(threads)
    products("team", n, count, 0, multiply_here);
}

static void in_both(int32_t n, long count, long ms)
{
    struct share share = {n, count};
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, &share) != 0)
        abort();
    pause_ms(ms);
    products("both", n, count, 0, multiply_here);
    pthread_join(thread, NULL);
}

static void start_beside(int32_t n, long count)
{
    static struct share share;
    pthread_t thread;
    share = (struct share){n, count};
    if (pthread_create(&thread, NULL, work, &share) != 0)
        abort();
}

/* ---- Handlers of exit(): of atexit(3), and those with an argument of C++'s destructors ---- */

int __cxa_atexit(void (*function)(void *), void *argument, void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

enum { WITH_ARGUMENT = 100 };
static long handlers_left;
static int argument[WITH_ARGUMENT];
static bool disorder;
static int32_t later_order;

static void run_plain(void)
{
    disorder = disorder || handlers_left < WITH_ARGUMENT;
    handlers_left--;
}

static void run_with(void *own)
{
    disorder = disorder || own != &argument[--handlers_left];
}

static void tell_handlers(void)
{
    printf("handlers: %s\n", handlers_left == 0 && !disorder ? "right" : "WRONG");
}

static void add_handlers(long count)
{
    bool done = atexit(tell_handlers) == 0;
    for (int i = 0; i < WITH_ARGUMENT; i++)
        done = done && __cxa_atexit(run_with, &argument[i], &__dso_handle) == 0;
    for (long i = 0; i < count; i++)
        done = done && atexit(run_plain) == 0;
    if (!done)
        abort();
    handlers_left = WITH_ARGUMENT + count;
}

static void multiply_later(void)
{
    products("later", later_order, 1, 0, multiply_here);
    fflush(stdout);
}

static void add_product(int32_t n)
{
    later_order = n;
    if (atexit(multiply_later) != 0)
        abort();
}

/* ---- The rest ---- */

static bool libcuda_is_there(void)
{
    char line[1024];
    bool there = false;
    FILE *file = fopen("/proc/self/maps", "r");
    if (!file)
        abort();
    while (fgets(line, sizeof line, file))
        there = there || strstr(line, "libcuda.so");
    fclose(file);
    return there;
}

/* The first thread of libaccel's name, or 0; CUDA's threads, which it makes, have that name too. */
static pid_t starting_thread(void)
{
    char path[300], name[64];
    pid_t first = 0;
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    while (tasks && (entry = readdir(tasks))) {
        pid_t thread = atoi(entry->d_name);
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && strcmp(name, "accel-start\n") == 0 &&
            (first == 0 || thread < first))
            first = thread;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return first;
}

/* Whoever comes when libcuda is there may take another thread for the first one, and waits for a while only. */
static void await_cuda(bool started)
{
    bool late = libcuda_is_there(), there = late;
    pid_t first = started ? starting_thread() : 0, now = first;
    for (int i = 0; i < (late ? 300 : 6000) && !(there && (!started || now != first)); i++) {
        pause_ms(5);
        there = libcuda_is_there();
        now = started ? starting_thread() : 0;
        if (first == 0)
            first = now;
    }
}

static void *exit_thread(void *unused)
{
    (void)unused;
    exit(7);
}

static int end(const char *how)
{
    pthread_t thread;
    fflush(stdout);
    if (strcmp(how, "exit") == 0) {
        if (pthread_create(&thread, NULL, exit_thread, NULL) == 0)
            for (;;)
                pause();
    }
    if (strcmp(how, "_exit") == 0)
        _exit(7);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        raise(SIGTERM);
    return 7;
}

static void write_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (fd < 0)
        abort();
    close(fd);
}

static void await_file(const char *path)
{
    while (access(path, F_OK) != 0)
        pause_ms(5);
}

static bool is(const char *name, const char *step, const char **rest)
{
    size_t n = strlen(name);
    if (strncmp(step, name, n) != 0 || (step[n] && step[n] != ':'))
        return false;
    *rest = step[n] ? step + n + 1 : step + n;
    return true;
}

/* False where the step is not known. */
static bool take(const char *step)
{
    const char *rest;
    long x[3] = {0};
    bool known = true;
    const char *colon = strchr(step, ':');
    if (colon)
        sscanf(colon + 1, "%ld:%ld:%ld", &x[0], &x[1], &x[2]);
    if (is("dgemm", step, &rest))
        products("dgemm", (int32_t)x[0], x[1], 0, multiply_here);
    else if (is("other", step, &rest))
        products("other", (int32_t)x[0], x[1], 0, multiply_there);
    else if (is("during", step, &rest))
        products("during", (int32_t)x[1], 0, (double)x[0], multiply_here);
    else if (is("beside", step, &rest))
        start_beside((int32_t)x[0], x[1]);
    else if (is("solve", step, &rest))
        solve((int32_t)x[0], x[1]);
    else if (is("threads", step, &rest))
        in_threads((int)x[0], (int32_t)x[1], x[2]);
    else if (is("team", step, &rest))
        in_team((int)x[0], (int32_t)x[1], x[2]);
    else if (is("both", step, &rest))
        in_both((int32_t)x[0], x[1], x[2]);
    else if (is("handlers", step, &rest))
        add_handlers(x[0]);
    else if (is("later", step, &rest))
        add_product((int32_t)x[0]);
    else if (is("sleep", step, &rest))
        pause_ms(x[0]);
    else if (is("write", step, &rest))
        write_file(rest);
    else if (is("await", step, &rest))
        await_file(rest);
    else if (is("opened", step, &rest) || is("started", step, &rest))
        await_cuda(step[0] == 's');
    else if (is("maps", step, &rest))
        printf("libcuda %s\n", libcuda_is_there() ? "is there" : "is not there");
    else
        known = false;
    return known;
}

int main(int argc, char **argv)
{
    const char *how;
    for (int i = 1; i < argc; i++) {
        if (is("end", argv[i], &how))
            return end(how);
        if (!take(argv[i])) {
            fprintf(stderr, "steps: what is %s?\n", argv[i]);
            return 2;
        }
        fflush(stdout);
    }
    return all_wrong != 0;
}
