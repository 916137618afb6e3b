/*
 * Picks the two variables of a step, as libsvm does: each block finds the best of its own
 * variables, then the best of all blocks.
 */
#ifndef ACCEL_OWN_SMO_PICK_CUH
#define ACCEL_OWN_SMO_PICK_CUH

#include "smo_block.cuh"

/* Returns what other blocks must know of a picked variable. */
static __device__ inline struct smo_pick smo_describe_pick(const struct smo_block *b, double value,
                                                           int at, double violation)
{
    const struct smo_task *t = b->task;
    struct smo_pick pick = {value, violation, 0, 0, 0, 0, 0, at, 0, 0};
    if (at < 0)
        return pick;
    pick.alpha = t->alpha[at];
    pick.c = t->c[at];
    pick.diagonal = t->diagonal[at];
    pick.gradient = t->gradient[at];
    pick.column = t->column[at];
    pick.sign = t->state[at] & SMO_POSITIVE ? 1 : -1;
    return pick;
}

/* Tells all blocks what this block has picked. Rows: of the first variable for each sign; NULL: no
 * kernel value is needed. */
static __device__ inline void publish(const struct smo_block *b, enum smo_role role, double value,
                                      int at, double violation, const float *positive_row,
                                      const float *negative_row)
{
    smo_find_best(b, value, at, violation);
    if (threadIdx.x > 0)
        return;
    struct smo_pick pick = smo_describe_pick(b, b->value[0], b->at[0], b->violation[0]);
    const float *row = pick.sign > 0 ? positive_row : negative_row;
    if (row && pick.at >= 0)
        pick.k = row[pick.column];
    if (b->alone)
        b->pick[role] = pick;
    else
        b->task->pick[role * b->blocks + b->block] = pick;
}

/* Puts the best of what the blocks have published in b->pick[role]. Before it all blocks must have
 * come to a barrier. */
static __device__ inline void gather(const struct smo_block *b, enum smo_role role)
{
    const struct smo_pick *all = b->task->pick + role * b->blocks;
    double value = -INFINITY, violation = -INFINITY;
    int at = -1;
    if (b->alone)
        return;
    for (int i = (int)threadIdx.x; i < b->blocks; i += (int)blockDim.x) {
        if (smo_beats(all[i].value, all[i].at, value, at)) {
            value = all[i].value;
            at = all[i].at;
        }
        violation = all[i].violation > violation ? all[i].violation : violation;
    }
    smo_find_best(b, value, at, violation);
    if (threadIdx.x == 0) {
        b->pick[role] = all[b->at[0] < 0 ? 0 : b->at[0] / b->share];
        b->pick[role].violation = b->violation[0];
    }
    __syncthreads();
}

#define AT_ONCE 4 /* variables whose loads a thread has under way */

/* Loads the states and gradients of some variables of a thread, from `first` on. Behind the block's
 * last one the state is -1. */
static __device__ inline void load_variables(const struct smo_block *b, int first,
                                             int state[AT_ONCE], double gradient[AT_ONCE])
{
    OWN_UNROLL
    for (int u = 0; u < AT_ONCE; u++) {
        const int i = first + u * (int)blockDim.x;
        state[u] = i < b->to ? b->task->state[i] : -1;
        gradient[u] = i < b->to ? b->task->gradient[i] : 0;
    }
}

/* Applies the last step to the gradient, and picks the first variable: the one that maximizes -y G
 * in I_up. */
static __device__ inline void smo_pick_first(const struct smo_block *b, struct smo_step step)
{
    const struct smo_task *t = b->task;
    double best = -INFINITY, best_negative = -INFINITY;
    int at = -1, at_negative = -1;
    for (int first = b->from + (int)threadIdx.x; first < b->to;
         first += AT_ONCE * (int)blockDim.x) {
        double gradient[AT_ONCE];
        float k_i[AT_ONCE], k_j[AT_ONCE];
        int state[AT_ONCE];
        load_variables(b, first, state, gradient);
        OWN_UNROLL
        for (int u = 0; u < AT_ONCE; u++)
            if (step.row_i && state[u] >= 0) {
                const int32_t column = t->column[first + u * (int)blockDim.x];
                k_i[u] = step.row_i[column];
                k_j[u] = step.row_j[column];
            }
        OWN_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = first + u * (int)blockDim.x;
            if (state[u] < 0)
                continue;
            const bool positive = state[u] & SMO_POSITIVE;
            if (step.row_i) {
                const double change = svm_add_product(__dmul_rn(k_i[u], step.i), k_j[u], step.j);
                gradient[u] += positive ? change : -change;
                t->gradient[i] = gradient[u];
            }
            if (state[u] & (positive ? SMO_AT_C : SMO_AT_0))
                continue;
            const double value = positive ? -gradient[u] : gradient[u];
            if (t->nu && !positive) {
                if (value >= best_negative) {
                    best_negative = value;
                    at_negative = i;
                }
            } else if (value >= best) {
                best = value;
                at = i;
            }
        }
    }
    publish(b, SMO_UP, best, at, 0, NULL, NULL);
    if (t->nu)
        publish(b, SMO_UP_NEGATIVE, best_negative, at_negative, 0, NULL, NULL);
    smo_wait_for_all(b);
    gather(b, SMO_UP);
    if (t->nu)
        gather(b, SMO_UP_NEGATIVE);
}

/* Picks the second variable: the one of I_low with which the objective decreases most. */
static __device__ inline void smo_pick_second(const struct smo_block *b, const float *positive_row,
                                              const float *negative_row)
{
    const struct smo_task *t = b->task;
    const double most[2] = {smo_first_for(b, false)->value, smo_first_for(b, true)->value};
    const double diagonal[2] = {smo_first_for(b, false)->diagonal,
                                smo_first_for(b, true)->diagonal};
    double best = -1, violation = -INFINITY;
    int at = -1;
    for (int first = b->from + (int)threadIdx.x; first < b->to;
         first += AT_ONCE * (int)blockDim.x) {
        double gradient[AT_ONCE], own[AT_ONCE];
        float k[AT_ONCE];
        int state[AT_ONCE];
        load_variables(b, first, state, gradient);
        OWN_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = first + u * (int)blockDim.x;
            if (state[u] < 0)
                continue;
            own[u] = t->diagonal[i];
            const float *row = state[u] & SMO_POSITIVE ? positive_row : negative_row;
            k[u] = row ? row[t->column[i]] : 0;
        }
        OWN_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const bool positive = state[u] & SMO_POSITIVE;
            if (state[u] < 0 || state[u] & (positive ? SMO_AT_0 : SMO_AT_C))
                continue;
            const double difference = positive ? most[1] + gradient[u] : most[0] - gradient[u];
            violation = difference > violation ? difference : violation;
            if (!(difference > 0))
                continue;
            const double gain =
                difference * difference / smo_curvature(diagonal[positive], own[u], k[u]);
            if (gain >= best) {
                best = gain;
                at = first + u * (int)blockDim.x;
            }
        }
    }
    publish(b, SMO_LOW, best, at, violation, positive_row, negative_row);
    smo_wait_for_all(b);
    gather(b, SMO_LOW);
}

#endif
