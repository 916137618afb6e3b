#include "products.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 8, BLOCK = 2048, COLUMNS_AT_ONCE = 16, THREADS = 8, SMALL = 1 << 18 };

/* ---- A column ---- */

static void range_of(const struct matrix *m, size_t col, size_t *from, size_t *to)
{
    *from = m->part == LOWER ? col : m->part == BELOW ? col + 1 : 0;
    *to = m->part == UPPER ? col + 1 : m->rows;
}

/* Up to BLOCK numbers of a column, in double precision. */
static const double *numbers_of(const struct matrix *m, size_t row, size_t col, size_t count,
                                double *buffer)
{
    const size_t at = row + col * m->rows;
    if (m->item == 8)
        return (const double *)m->numbers + at;
    for (size_t i = 0; i < count; i++)
        buffer[i] = (double)((const float *)m->numbers)[at + i];
    return buffer;
}

/* Sums in several lanes: additions do not wait for each other. */
static double sum_of_lanes(const double lane[LANES])
{
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
}

double dot(const double *x, const double *y, size_t count)
{
    double lane[LANES] = {0};
    const size_t whole = count - count % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += x[i + (size_t)k] * y[i + (size_t)k];
    for (size_t i = whole; i < count; i++)
        lane[0] += x[i] * y[i];
    return sum_of_lanes(lane);
}

static double sum_of_absolutes(const double *x, size_t count)
{
    double lane[LANES] = {0};
    const size_t whole = count - count % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += fabs(x[i + (size_t)k]);
    for (size_t i = whole; i < count; i++)
        lane[0] += fabs(x[i]);
    return sum_of_lanes(lane);
}

/* ---- All of them ---- */

struct task {
    void (*run)(struct task *, size_t first, size_t end);
    struct matrix *m;
    const double *vector;
    double *products;
    size_t step, end;
    atomic_size_t next;
    pthread_mutex_t lock;
};

static void *take_parts(void *context)
{
    struct task *t = context;
    for (size_t first; (first = atomic_fetch_add(&t->next, t->step)) < t->end;)
        t->run(t, first, t->end - first < t->step ? t->end : first + t->step);
    return NULL;
}

static void run_in_threads(struct task *t)
{
    pthread_t thread[THREADS];
    int threads = 0;
    pthread_mutex_init(&t->lock, NULL);
    while (threads < THREADS - 1 && t->m->rows * t->m->cols > SMALL &&
           pthread_create(&thread[threads], NULL, take_parts, t) == 0)
        threads++;
    take_parts(t);
    while (threads > 0)
        pthread_join(thread[--threads], NULL);
    pthread_mutex_destroy(&t->lock);
}

static void multiply_columns(struct task *t, size_t first, size_t end)
{
    struct matrix *m = t->m;
    double buffer[BLOCK], all = 0, longest = 0;
    for (size_t col = first; col < end; col++) {
        size_t from, to;
        double sum = 0, squares = 0;
        range_of(m, col, &from, &to);
        for (size_t row = from; row < to; row += BLOCK) {
            const size_t count = to - row < BLOCK ? to - row : BLOCK;
            const double *x = numbers_of(m, row, col, count, buffer);
            sum += t->vector ? dot(t->vector + row, x, count) : sum_of_absolutes(x, count);
            squares += dot(x, x, count);
        }
        t->products[col] = sum;
        all += squares;
        longest = fmax(longest, squares);
    }
    pthread_mutex_lock(&t->lock);
    m->squares += all;
    m->longest = fmax(m->longest, longest);
    pthread_mutex_unlock(&t->lock);
}

void product_by_columns(struct matrix *m, const double *left, double *products)
{
    m->squares = m->longest = 0;
    run_in_threads(&(struct task){.run = multiply_columns,
                                  .m = m,
                                  .vector = left,
                                  .products = products,
                                  .step = COLUMNS_AT_ONCE,
                                  .end = m->cols});
    m->longest = sqrt(m->longest);
}

/* A block of rows, of all columns: no two threads add to the same sum. */
static void multiply_rows(struct task *t, size_t first, size_t end)
{
    double buffer[BLOCK];
    for (size_t col = 0; col < t->m->cols; col++) {
        size_t from, to;
        range_of(t->m, col, &from, &to);
        from = from > first ? from : first;
        to = to < end ? to : end;
        if (from >= to)
            continue;
        const double *x = numbers_of(t->m, from, col, to - from, buffer);
        for (size_t i = 0; i < to - from; i++)
            t->products[from + i] += t->vector[col] * x[i];
    }
}

void product_by_rows(const struct matrix *m, const double *right, double *products)
{
    struct matrix copy = *m;
    run_in_threads(&(struct task){.run = multiply_rows,
                                  .m = &copy,
                                  .vector = right,
                                  .products = products,
                                  .step = BLOCK,
                                  .end = m->rows});
}

/* ---- Judging ---- */

void draw_signs(double *x, size_t count)
{
    uint64_t state = 88172645463325252;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        x[i] = state >> 63 ? -1 : 1;
    }
}

/*
 * An element of a product of P and Q has errors of the size of u |p| |q|, p a row and q a column,
 * because the sums on the way are so large and the errors of the single additions have any sign; so
 * have the factors that LAPACK finds, seen backwards. With signs by chance, a sum of a column's has
 * u |P| |q|. The most of some ten thousand is below five times that, and 32 leaves room for other
 * orders of adding.
 */
double distance(const double *x, const double *y, size_t count, int item, double squares,
                double longest)
{
    const double u = item == 4 ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2;
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        const double d = fabs(x[i] - y[i]);
        if (isnan(d) || d > most)
            most = d;
    }
    return most == 0 ? 0 : most / (32 * u * sqrt(squares) * longest);
}
