/*
 * What the threads of a block share while they solve a problem, and how they find the best of their
 * values.
 */
#ifndef ACCEL_OWN_SMO_BLOCK_CUH
#define ACCEL_OWN_SMO_BLOCK_CUH

#include "svm.cuh"

/* The state of a variable. */
#define SMO_POSITIVE 1
#define SMO_AT_C     2 /* alpha is at its upper bound */
#define SMO_AT_0     4 /* or else at its lower one */

static __device__ inline int smo_state_of(double alpha, double c, int sign)
{
    return (sign > 0 ? SMO_POSITIVE : 0) | (alpha >= c ? SMO_AT_C : alpha <= 0 ? SMO_AT_0 : 0);
}

/* The step of an iteration: what it adds to both variables, by their signs, and their rows. */
struct smo_step {
    const float *row_i, *row_j;
    double i, j;
};

/* What the threads of a block have in common. */
struct smo_block {
    struct smo_task *task;
    const struct smo_kernel *kernel; /* NULL: the whole kernel matrix is there */
    const struct svm_rows *x;
    bool alone; /* one block for this problem */
    unsigned long long *arrived;
    int block, blocks;         /* this one, and how many the problem has */
    int from, to, share;       /* its variables, and how many each block before it has */
    struct smo_pick *pick;     /* shared memory: SMO_ROLES */
    double *value, *violation; /* shared memory: one for each thread */
    int *at;                   /* the same */
    double *window;            /* the same: see svm_batch() */
    struct smo_batch *batch;   /* the same */
    struct smo_step *step;     /* the same */
    int32_t *wanted;           /* the same: columns, SVM_BATCH */
};

static __device__ inline void smo_wait_for_all(const struct smo_block *b)
{
    if (b->alone)
        __syncthreads();
    else
        own_grid_barrier(b->arrived);
}

/* Returns the first variable of a pair whose second one has y = 1, or y = -1. */
static __device__ inline const struct smo_pick *smo_first_for(const struct smo_block *b,
                                                              bool positive)
{
    return &b->pick[b->task->nu && !positive ? SMO_UP_NEGATIVE : SMO_UP];
}

/* Returns the objective's second derivative along a pair, whose kernel value is k; as in libsvm,
 * never 0 or less. */
static __device__ inline double smo_curvature(double diagonal_i, double diagonal_j, double k)
{
    const double curvature = diagonal_i + diagonal_j - 2.0 * k;
    return curvature > 0 ? curvature : 1e-12;
}

/* An order without ties: by value, then by number, as libsvm's loops prefer the later variable. */
static __device__ inline bool smo_beats(double value, int at, double other, int other_at)
{
    return value > other || (value == other && at > other_at);
}

/* Leaves the best of the threads' values in value[0] and at[0], the largest violation in
 * violation[0]; a barrier ends it. */
static __device__ inline void smo_find_best(const struct smo_block *b, double value, int at,
                                            double violation)
{
    const int me = threadIdx.x;
    __syncthreads();
    b->value[me] = value;
    b->at[me] = at;
    b->violation[me] = violation;
    __syncthreads();
    for (int width = blockDim.x; width > 1;) {
        const int next = (width + 3) / 4;
        for (int other = me + next; me < next && other < width; other += next) {
            if (smo_beats(b->value[other], b->at[other], b->value[me], b->at[me])) {
                b->value[me] = b->value[other];
                b->at[me] = b->at[other];
            }
            if (b->violation[other] > b->violation[me])
                b->violation[me] = b->violation[other];
        }
        __syncthreads();
        width = next;
    }
}

#endif
