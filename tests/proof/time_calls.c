/*
 * time_calls: an ordinary program that calls BLAS and LAPACK on host memory. For each line "ROUTINE
 * N [CALLS]" on stdin it calls the routine on square matrices of order N: CALLS times, or as often
 * as fits into 30 ms, at most nine times. It answers with a line on stdout:
 *     milliseconds figure operations bytes_in bytes_out calls
 * milliseconds: the median of the calls. figure: a sum, or a logarithm of a determinant; all
 * libraries give the same number up to rounding. The first result of an order is judged as a whole,
 * and "error" is the answer if it is wrong (time_calls.h). operations: the least that the usual
 * algorithm needs. bytes_in, bytes_out: the least that the call must read and write. Inputs are
 * made once for a routine and an order, and copied before each call that overwrites them; "prepare
 * ROUTINE N" makes them, and is answered by "ready". "memory ROUTINE N" is answered by the bytes of
 * their matrices. "error WHY" answers a line that is not understood, or a lack of memory. "quit"
 * and the end of stdin end the program.
 *
 * The process stays, so that processes with other libraries in LD_PRELOAD can take turns.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/clock.h"
#include "products.h"
#include "time_calls.h"

/* Behind the last argument: the hidden lengths of CHARACTER arguments. */
#define GEMM(letter)                                                                               \
    extern void letter##gemm_(const char *, const char *, const int *, const int *, const int *,   \
                              const void *, const void *, const int *, const void *, const int *,  \
                              const void *, void *, const int *, size_t, size_t);
GEMM(s)
GEMM(d)
GEMM(z)
extern void dsyrk_(const char *, const char *, const int *, const int *, const double *,
                   const double *, const int *, const double *, double *, const int *, size_t,
                   size_t);
extern void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *,
                   const double *, const double *, const int *, double *, const int *, size_t,
                   size_t, size_t, size_t);
extern void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
extern void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
extern void dgeqrf_(const int *, const int *, double *, const int *, double *, double *,
                    const int *, int *);
extern void dsyevd_(const char *, const char *, const int *, double *, const int *, double *,
                    double *, const int *, int *, const int *, int *, size_t, size_t);
extern void dgesdd_(const char *, const int *, const int *, double *, const int *, double *,
                    double *, const int *, double *, const int *, double *, const int *, int *,
                    int *, size_t);

static const double one[2] = {1, 0}, zero[2] = {0, 0};
static const float single_one = 1, single_zero = 0;

/* ---- Contents ---- */

enum { SEED = 88172645 };
/* SEED and 0 before each set of inputs: those of all processes are the same. */
static uint64_t state, filled;

static double next_of(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return (double)(*x >> 11) / 9007199254740992.0 - 0.5;
}

static double uniform(void)
{
    return next_of(&state);
}

/* Large matrices are filled by several threads, segment by segment. */
enum { SEGMENT = 1 << 18, FILLERS = 8 };

struct filling {
    char *matrix;
    size_t item, count; /* bytes of a number; numbers */
    uint64_t seed;      /* 0: zeros */
    atomic_size_t next;
};

static void *fill_segments(void *context)
{
    struct filling *f = context;
    for (size_t first; (first = atomic_fetch_add(&f->next, SEGMENT)) < f->count;) {
        const size_t end = f->count - first < SEGMENT ? f->count : first + SEGMENT;
        uint64_t x = (f->seed + first) * 0x9e3779b97f4a7c15 | 1;
        if (f->seed == 0)
            memset(f->matrix + first * f->item, 0, (end - first) * f->item);
        for (size_t i = first; f->seed && i < end; i++) {
            double value = next_of(&x);
            float single = (float)value;
            memcpy(f->matrix + i * f->item,
                   f->item == 4 ? (const void *)&single : (const void *)&value, f->item);
        }
    }
    return NULL;
}

static void fill_by(struct filling *f)
{
    pthread_t thread[FILLERS];
    int threads = 0;
    while (threads < FILLERS && f->count > SEGMENT &&
           pthread_create(&thread[threads], NULL, fill_segments, f) == 0)
        threads++;
    fill_segments(f);
    while (threads > 0)
        pthread_join(thread[--threads], NULL);
}

static void fill(const struct data *d, char *matrix)
{
    const size_t item = d->routine->item == 4 ? 4 : 8;
    fill_by(&(struct filling){
        .matrix = matrix, .item = item, .count = d->bytes / item, .seed = SEED + (++filled << 40)});
}

static double *diagonal(const struct data *d, char *matrix, int i)
{
    return (double *)(void *)matrix + (size_t)i * (size_t)d->n + i;
}

/* The diagonal outweighs the rest: well-conditioned, and with a symmetric triangle positive
 * definite. */
static void strengthen(const struct data *d, char *matrix)
{
    for (int i = 0; i < d->n; i++)
        *diagonal(d, matrix, i) = d->n + uniform();
}

static bool product(struct data *d)
{
    fill(d, d->x);
    fill(d, d->y);
    return true;
}

static bool one_matrix(struct data *d)
{
    fill(d, d->x);
    return true;
}

static bool keep_source(struct data *d)
{
    d->source = malloc(d->bytes);
    if (d->source)
        memcpy(d->source, d->x, d->bytes);
    return d->source != NULL;
}

static bool overwritten(struct data *d)
{
    fill(d, d->x);
    return keep_source(d);
}

static bool definite(struct data *d)
{
    fill(d, d->x);
    strengthen(d, d->x);
    return keep_source(d);
}

/* y is triangular, x the right sides. */
static bool triangular(struct data *d)
{
    fill(d, d->y);
    strengthen(d, d->y);
    return overwritten(d);
}

static bool with_workspace(struct data *d)
{
    double size = 0;
    int integers = 0;
    if (!overwritten(d))
        return false;
    d->work = &size;
    d->pivots = &integers;
    d->lwork = d->liwork = -1;
    d->routine->call(d);
    d->lwork = (int)size;
    /* dgesdd has 8 n integers and says nothing of them. */
    d->liwork = integers > 8 * d->n ? integers : 8 * d->n;
    d->work = malloc((size_t)d->lwork * sizeof *d->work);
    d->pivots = malloc((size_t)d->liwork * sizeof *d->pivots);
    return d->work && d->pivots;
}

/* ---- Calls ---- */

static void sgemm(struct data *d)
{
    sgemm_("N", "N", &d->n, &d->n, &d->n, &single_one, d->x, &d->n, d->y, &d->n, &single_zero, d->z,
           &d->n, 1, 1);
}

static void dgemm(struct data *d)
{
    dgemm_("N", "N", &d->n, &d->n, &d->n, one, d->x, &d->n, d->y, &d->n, zero, d->z, &d->n, 1, 1);
}

static void zgemm(struct data *d)
{
    zgemm_("N", "N", &d->n, &d->n, &d->n, one, d->x, &d->n, d->y, &d->n, zero, d->z, &d->n, 1, 1);
}

static double *doubles(char *matrix)
{
    return (double *)(void *)matrix;
}

static void dsyrk(struct data *d)
{
    dsyrk_("L", "N", &d->n, &d->n, one, doubles(d->x), &d->n, zero, doubles(d->y), &d->n, 1, 1);
}

static void dtrsm(struct data *d)
{
    dtrsm_("L", "L", "N", "N", &d->n, &d->n, one, doubles(d->y), &d->n, doubles(d->x), &d->n, 1, 1,
           1, 1);
}

static void dgetrf(struct data *d)
{
    dgetrf_(&d->n, &d->n, doubles(d->x), &d->n, d->pivots, &d->info);
}

static void dpotrf(struct data *d)
{
    dpotrf_("L", &d->n, doubles(d->x), &d->n, &d->info, 1);
}

static void dgeqrf(struct data *d)
{
    dgeqrf_(&d->n, &d->n, doubles(d->x), &d->n, d->values, d->work, &d->lwork, &d->info);
}

static void dsyevd(struct data *d)
{
    dsyevd_("V", "L", &d->n, doubles(d->x), &d->n, d->values, d->work, &d->lwork, d->pivots,
            &d->liwork, &d->info, 1, 1);
}

static void dgesdd(struct data *d)
{
    dgesdd_("S", &d->n, &d->n, doubles(d->x), &d->n, d->values, doubles(d->y), &d->n, doubles(d->z),
            &d->n, d->work, &d->lwork, d->pivots, &d->info, 1);
}

/* ---- Figures ---- */

/* The sum of the absolute values of a matrix or of its lower triangle. */
static double sum_of(const struct data *d, const char *numbers, enum part part)
{
    const size_t n = (size_t)d->n, rows = d->routine->item == 16 ? 2 * n : n;
    struct matrix m = {numbers, d->routine->item == 4 ? 4 : 8, rows, n, part, 0, 0};
    double sum = 0;
    product_by_columns(&m, NULL, d->vectors);
    for (size_t i = 0; i < n; i++)
        sum += d->vectors[i];
    return sum;
}

static double sum_of_z(const struct data *d)
{
    return sum_of(d, d->z, WHOLE);
}

static double sum_of_x(const struct data *d)
{
    return sum_of(d, d->x, WHOLE);
}

static double sum_of_triangle(const struct data *d)
{
    return sum_of(d, d->y, LOWER);
}

static double logarithms(const struct data *d)
{
    double sum = 0;
    for (int i = 0; i < d->n; i++)
        sum += log(fabs(*diagonal(d, d->x, i)));
    return sum;
}

static double sum_of_values(const struct data *d)
{
    double sum = 0;
    for (int i = 0; i < d->n; i++)
        sum += fabs(d->values[i]);
    return sum;
}

/* Of the eigenvalue problem: 4/3 for the tridiagonal matrix, 2 for the vectors; of the singular
 * values: 8/3 and 4. */
static const struct routine routines[] = {
    {"sgemm", 4, 3, 2, 2, 1, product, sgemm, sum_of_z, judge_product},
    {"dgemm", 8, 3, 2, 2, 1, product, dgemm, sum_of_z, judge_product},
    {"zgemm", 16, 3, 8, 2, 1, product, zgemm, sum_of_z, judge_product},
    {"dsyrk", 8, 2, 1, 1, 0.5, one_matrix, dsyrk, sum_of_triangle, judge_square},
    {"dtrsm", 8, 2, 1, 1.5, 1, triangular, dtrsm, sum_of_x, judge_solution},
    {"dgetrf", 8, 1, 2.0 / 3, 1, 1, overwritten, dgetrf, logarithms, judge_lu},
    {"dpotrf", 8, 1, 1.0 / 3, 0.5, 0.5, definite, dpotrf, logarithms, judge_cholesky},
    {"dgeqrf", 8, 1, 4.0 / 3, 1, 1, with_workspace, dgeqrf, logarithms, judge_qr},
    {"dsyevd", 8, 1, 10.0 / 3, 0.5, 1, with_workspace, dsyevd, sum_of_values, judge_eigenvectors},
    {"dgesdd", 8, 3, 20.0 / 3, 1, 2, with_workspace, dgesdd, sum_of_values, judge_singular_vectors},
};

/* ---- Requests ---- */

__attribute__((weak)) char *new_operand(size_t bytes)
{
    return malloc(bytes);
}

__attribute__((weak)) void free_operand(char *memory)
{
    free(memory);
}

static void discard(struct data *d)
{
    free(d->source);
    free_operand(d->x);
    free_operand(d->y);
    free_operand(d->z);
    free(d->values);
    free(d->pivots);
    free(d->work);
    free(d->vectors);
    memset(d, 0, sizeof *d);
}

/* Memory that is written once, as a program's is: what the call would find untouched costs it page
 * faults. */
static char *new_matrix(const struct data *d)
{
    char *matrix = new_operand(d->bytes);
    if (matrix)
        fill_by(&(struct filling){.matrix = matrix, .item = 1, .count = d->bytes});
    return matrix;
}

static bool make(struct data *d, const struct routine *routine, int n)
{
    discard(d);
    state = SEED;
    filled = 0;
    d->routine = routine;
    d->n = n;
    d->bytes = (size_t)n * (size_t)n * (size_t)routine->item;
    d->x = new_matrix(d);
    d->y = routine->matrices > 1 ? new_matrix(d) : NULL;
    d->z = routine->matrices > 2 ? new_matrix(d) : NULL;
    d->values = malloc((size_t)n * sizeof *d->values);
    d->vectors = malloc(VECTORS * 2 * (size_t)n * sizeof *d->vectors);
    if (!d->x || !d->values || !d->vectors || (routine->matrices > 1 && !d->y) ||
        (routine->matrices > 2 && !d->z))
        return false;
    if (!routine->prepare(d))
        return false;
    if (!d->pivots)
        d->pivots = malloc((size_t)n * sizeof *d->pivots);
    return d->pivots != NULL;
}

static double one_call(struct data *d)
{
    if (d->source)
        memcpy(d->x, d->source, d->bytes);
    d->info = 0;
    double start = accel_now_ms();
    d->routine->call(d);
    return accel_now_ms() - start;
}

enum { MOST_CALLS = 9 };
static const double most_ms = 30;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* wanted: the calls to make; 0: as many as fit into most_ms. */
static void answer(struct data *d, int wanted)
{
    const struct routine *r = d->routine;
    double n = d->n, ms[MOST_CALLS], sum = 0;
    int calls = 0;
    while (calls < (wanted ? wanted : MOST_CALLS) &&
           (wanted || calls == 0 || sum + sum / calls < most_ms)) {
        ms[calls] = one_call(d);
        sum += ms[calls++];
        if (d->info != 0) {
            printf("error info %d\n", d->info);
            return;
        }
    }
    const double off = d->judged ? 0 : r->judge(d);
    if (!(off <= 1)) {
        printf("error the result is off by %.3g times what rounding explains\n", off);
        return;
    }
    d->judged = true;
    qsort(ms, (size_t)calls, sizeof *ms, compare);
    double median = (ms[(calls - 1) / 2] + ms[calls / 2]) / 2;
    printf("%.6f %.17g %.6g %.6g %.6g %d\n", median, r->figure(d), r->operations * n * n * n,
           r->elements_in * n * n * r->item, r->elements * n * n * r->item, calls);
}

static const struct routine *find(const char *name)
{
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
        if (strcmp(routines[i].name, name) == 0)
            return &routines[i];
    return NULL;
}

/* With the copy of what a call overwrites, and a workspace of as much again. */
static double most_bytes(const struct routine *routine, int n)
{
    const bool copied = routine->prepare != product && routine->prepare != one_matrix,
               worked = routine->prepare == with_workspace;
    return (double)(routine->matrices + copied + 3 * worked) * n * n * routine->item;
}

/* One request; what is wrong with it, or NULL. */
static const char *handle(const char *line, struct data *data)
{
    const bool prepare = strncmp(line, "prepare ", 8) == 0,
               memory = strncmp(line, "memory ", 7) == 0;
    const struct routine *routine;
    char name[32];
    int n, calls = 0;
    if (sscanf(line + (prepare  ? 8
                       : memory ? 7
                                : 0),
               "%31s %d %d", name, &n, &calls) < 2 ||
        n < 1 || n > 32768 || calls < 0 || calls > MOST_CALLS)
        return "expected ROUTINE N [CALLS] with N from 1 to 32768, CALLS to 9";
    routine = find(name);
    if (!routine)
        return "no such routine";
    if (memory) {
        printf("%.0f\n", most_bytes(routine, n));
        return NULL;
    }
    if ((data->routine != routine || data->n != n) && !make(data, routine, n)) {
        discard(data);
        return "no memory";
    }
    if (prepare)
        printf("ready\n");
    else
        answer(data, calls);
    return NULL;
}

int main(void)
{
    char line[128];
    struct data data = {0};
    while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n") != 0) {
        const char *wrong = handle(line, &data);
        if (wrong)
            printf("error %s\n", wrong);
        fflush(stdout);
    }
    discard(&data);
    return 0;
}
