/*
 * Moves two variables to the least objective that their bounds allow.
 */
#ifndef ACCEL_OWN_SMO_STEP_CUH
#define ACCEL_OWN_SMO_STEP_CUH

#include "smo_rows.cuh"

static __device__ inline void clip_opposite(double *alpha_i, double *alpha_j, double c_i,
                                            double c_j, double difference)
{
    if (difference > 0) {
        if (*alpha_j < 0) {
            *alpha_j = 0;
            *alpha_i = difference;
        }
    } else if (*alpha_i < 0) {
        *alpha_i = 0;
        *alpha_j = -difference;
    }
    if (difference > c_i - c_j) {
        if (*alpha_i > c_i) {
            *alpha_i = c_i;
            *alpha_j = c_i - difference;
        }
    } else if (*alpha_j > c_j) {
        *alpha_j = c_j;
        *alpha_i = c_j + difference;
    }
}

static __device__ inline void clip_equal(double *alpha_i, double *alpha_j, double c_i, double c_j,
                                         double sum)
{
    if (sum > c_i) {
        if (*alpha_i > c_i) {
            *alpha_i = c_i;
            *alpha_j = sum - c_i;
        }
    } else if (*alpha_j < 0) {
        *alpha_j = 0;
        *alpha_i = sum;
    }
    if (sum > c_j) {
        if (*alpha_j > c_j) {
            *alpha_j = c_j;
            *alpha_i = sum - c_j;
        }
    } else if (*alpha_i < 0) {
        *alpha_i = 0;
        *alpha_j = sum;
    }
}

static __device__ inline void store_alpha(const struct smo_block *b, const struct smo_pick *pick,
                                          double alpha)
{
    if (pick->at < b->from || pick->at >= b->to)
        return; /* another block's */
    b->task->alpha[pick->at] = alpha;
    b->task->state[pick->at] = (unsigned char)smo_state_of(alpha, pick->c, pick->sign);
}

/* Minimizes the objective along the two variables. By one thread of each block; all compute the
 * same. */
static __device__ inline void smo_make_step(const struct smo_block *b, const struct smo_pick *i,
                                            const struct smo_pick *j)
{
    double alpha_i = i->alpha, alpha_j = j->alpha;
    const double curvature = smo_curvature(i->diagonal, j->diagonal, j->k);
    if (i->sign != j->sign) {
        const double delta = (-i->gradient - j->gradient) / curvature;
        alpha_i += delta;
        alpha_j += delta;
        clip_opposite(&alpha_i, &alpha_j, i->c, j->c, i->alpha - j->alpha);
    } else {
        const double delta = (i->gradient - j->gradient) / curvature;
        alpha_i -= delta;
        alpha_j += delta;
        clip_equal(&alpha_i, &alpha_j, i->c, j->c, i->alpha + j->alpha);
    }
    store_alpha(b, i, alpha_i);
    store_alpha(b, j, alpha_j);
    b->step->row_i = smo_row_of(b, i->column);
    b->step->row_j = smo_row_of(b, j->column);
    b->step->i = i->sign * (alpha_i - i->alpha);
    b->step->j = j->sign * (alpha_j - j->alpha);
}

#endif
