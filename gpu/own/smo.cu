/*
 * Sequential minimal optimization as in libsvm: many iterations for each launch, by one block or by
 * several blocks together, which share the variables out. All blocks come to the same decisions,
 * each by itself, from what all have written before a barrier.
 *
 * Nothing is shrunk. The variables of a block are few, and a pass over them takes little longer
 * than the barriers; libsvm's shrinking saves kernel values, which are computed already here, and
 * it must reconstruct the gradient in the end.
 */
#include "smo_pick.cuh"
#include "smo_rows.cuh"
#include "smo_step.cuh"

/* ---- The start ---- */

static __device__ inline void begin_variables(const struct smo_block *b, struct smo_kernel kernel)
{
    const struct smo_task *t = b->task;
    for (int i = b->from + (int)threadIdx.x; i < b->to; i += (int)blockDim.x) {
        const int64_t row = t->row ? t->row[t->column[i]] : t->column[i];
        const double square = b->x->square[row];
        t->state[i] = (unsigned char)smo_state_of(t->alpha[i], t->c[i], t->y[i]);
        t->gradient[i] = t->p[i];
        t->diagonal[i] = kernel.type == SMO_PRECOMPUTED ? b->x->values[row * b->x->ld + row]
                                                        : svm_value(kernel, square, square, square);
    }
}

/* Adds what variables that are not 0 at the start contribute to the gradient. */
static __device__ inline bool begin_gradient(const struct smo_block *b)
{
    struct smo_task *t = b->task;
    for (int first = 0; first < t->starts; first += SVM_BATCH) {
        const int count = (int)min((int64_t)SVM_BATCH, t->starts - first);
        if (b->kernel) {
            __syncthreads();
            if (b->block == 0 && threadIdx.x == 0)
                t->now++;
            for (int s = threadIdx.x; s < count; s += blockDim.x)
                b->wanted[s] = t->column[t->started[first + s]];
            __syncthreads();
            if (!smo_fetch_rows(b, count, false))
                return false;
        }
        for (int i = b->from + (int)threadIdx.x; i < b->to; i += (int)blockDim.x) {
            double gradient = t->gradient[i];
            for (int s = 0; s < count; s++) {
                const int other = t->started[first + s];
                const double alpha = t->y[i] == t->y[other] ? t->alpha[other] : -t->alpha[other];
                gradient =
                    svm_add_product(gradient, alpha, smo_row_of(b, t->column[other])[t->column[i]]);
            }
            t->gradient[i] = gradient;
        }
        if (b->kernel)
            smo_wait_for_all(b); /* the next batch may replace the rows that a block still reads */
    }
    return true;
}

/* ---- An iteration ---- */

static __device__ inline void want(const struct smo_block *b, int place, int32_t column)
{
    if (threadIdx.x == 0)
        b->wanted[place] = column;
}

/* Finds the rows of the picked first variables, and computes them if need be. */
static __device__ inline bool first_rows(const struct smo_block *b, const float **positive_row,
                                         const float **negative_row)
{
    const struct smo_task *t = b->task;
    const struct smo_pick *up = smo_first_for(b, true);
    const struct smo_pick *down = smo_first_for(b, false);
    if (b->kernel) {
        int wanted = 0;
        if (up->at >= 0)
            want(b, wanted++, up->column);
        if (t->nu && down->at >= 0)
            want(b, wanted++, down->column);
        __syncthreads();
        if (!smo_fetch_rows(b, wanted, true))
            return false;
    }
    *positive_row = up->at >= 0 ? smo_row_of(b, up->column) : NULL;
    *negative_row = down->at >= 0 ? smo_row_of(b, down->column) : NULL;
    return true;
}

static __device__ inline bool second_row(const struct smo_block *b)
{
    if (!b->kernel)
        return true;
    __syncthreads();
    want(b, 0, b->pick[SMO_LOW].column);
    __syncthreads();
    return smo_fetch_rows(b, 1, true);
}

/* Goes on for some iterations; returns how it has ended. */
static __device__ inline int iterate(const struct smo_block *b, int64_t limit, int64_t *iterations)
{
    struct smo_task *t = b->task;
    struct smo_step step = {NULL, NULL, 0, 0};
    const int64_t most = t->most, end = min(most, *iterations + limit);
    const double eps = t->eps;
    while (*iterations < end) {
        const float *positive_row = NULL, *negative_row = NULL;
        smo_pick_first(b, step);
        step.row_i = NULL;
        if (b->kernel && b->block == 0 && threadIdx.x == 0)
            t->now++;
        if (!first_rows(b, &positive_row, &negative_row))
            return SMO_NOT_FINITE;
        smo_pick_second(b, positive_row, negative_row);
        if (b->pick[SMO_LOW].violation < eps || b->pick[SMO_LOW].at < 0)
            return SMO_OPTIMAL;
        ++*iterations;
        if (!second_row(b))
            return SMO_NOT_FINITE;
        const struct smo_pick *j = &b->pick[SMO_LOW];
        if (threadIdx.x == 0)
            smo_make_step(b, smo_first_for(b, j->sign > 0), j);
        __syncthreads();
        step = *b->step;
    }
    if (step.row_i) /* the gradient takes in the last step */
        smo_pick_first(b, step);
    return *iterations >= most ? SMO_CAPPED : SMO_GOES_ON;
}

static __device__ inline void go_on(struct smo_block *b, struct smo_kernel kernel, int64_t limit)
{
    struct smo_task *t = b->task;
    int end = t->end;
    int64_t iterations = t->iterations;
    if (end != SMO_GOES_ON)
        return;
    if (!t->begun) {
        begin_variables(b, kernel);
        if (!begin_gradient(b))
            end = SMO_NOT_FINITE;
    }
    smo_wait_for_all(b);
    if (end == SMO_GOES_ON)
        end = iterate(b, limit, &iterations);
    if (b->block == 0 && threadIdx.x == 0) {
        t->iterations = iterations;
        t->begun = 1;
        t->end = end;
    }
}

/* Lays the block's shared memory out, and goes on. rows: there is memory for some kernel rows only,
 * which are computed here. */
static __device__ inline void solve_tasks(struct smo_task *tasks, struct smo_kernel kernel,
                                          const struct svm_rows *x, bool rows, int together,
                                          int64_t limit, unsigned long long *arrived,
                                          unsigned char *shared)
{
    struct smo_block b;
    b.alone = !together;
    b.arrived = arrived;
    b.task = tasks + (together ? 0 : blockIdx.x);
    b.block = together ? (int)blockIdx.x : 0;
    b.blocks = together ? (int)gridDim.x : 1;
    b.kernel = rows ? &kernel : NULL;
    b.x = x;
    const int n = (int)b.task->n;
    b.share = (n + b.blocks - 1) / b.blocks;
    b.from = (int)min((int64_t)b.block * b.share, (int64_t)n);
    b.to = min(b.from + b.share, n);
    b.pick = (struct smo_pick *)shared;
    b.value = (double *)(b.pick + SMO_ROLES);
    b.violation = b.value + blockDim.x;
    b.at = (int *)(b.violation + blockDim.x);
    b.window = (double *)(b.at + blockDim.x);
    b.step = (struct smo_step *)(b.window + SVM_BATCH * SVM_WINDOW);
    b.batch = (struct smo_batch *)(b.step + 1);
    b.wanted = (int32_t *)(b.batch + 1);
    go_on(&b, kernel, limit);
}

/* Go on with problems for at most `limit` iterations each: a block for each problem, or if
 * `together` all blocks for one. */
OWN_KERNEL_FOR(SMO_MATRIX_THREADS, smo_solve_matrix, struct smo_task *tasks,
               struct smo_kernel kernel, struct svm_rows x, int together, int64_t limit,
               unsigned long long *arrived)
{
    OWN_SHARED(unsigned char, shared);
    solve_tasks(tasks, kernel, &x, false, together, limit, arrived, shared);
}

OWN_KERNEL_FOR(SMO_ROWS_THREADS, smo_solve_rows, struct smo_task *tasks, struct smo_kernel kernel,
               struct svm_rows x, int together, int64_t limit, unsigned long long *arrived)
{
    OWN_SHARED(unsigned char, shared);
    solve_tasks(tasks, kernel, &x, true, together, limit, arrived, shared);
}
