/*
 * Sequential minimal optimization as in libsvm: many iterations for each launch, by one block or by several blocks together, which
 * share the variables out. All blocks come to the same decisions, each by itself, from what all have written before a barrier.
 *
 * Nothing is shrunk. The variables of a block are few, and a pass over them takes little longer than the barriers; libsvm's
 * shrinking saves kernel values, which are computed already here, and it must reconstruct the gradient in the end.
 */
#include "svm.cuh"

/* The guard of libsvm for a pair of variables along which the objective is flat or concave. */
#define TAU 1e-12

/* The state of a variable. */
#define POSITIVE 1
#define AT_C     2 /* alpha is at its upper bound */
#define AT_0     4 /* or else at its lower one */

/* The step of an iteration: what it adds to both variables, by their signs, and their rows. */
struct smo_step {
    const float *row_i, *row_j;
    double i, j;
};

/* What a block shares out among its threads. */
struct smo_block {
    struct smo_task *task;
    const struct smo_kernel *kernel; /* NULL: the whole kernel matrix is there */
    const struct svm_rows *x;
    bool alone; /* one block for this problem */
    unsigned long long *arrived;
    int block, blocks;         /* among those of the problem */
    int from, to, share;       /* its variables, and those of the blocks before it */
    struct smo_pick *pick;     /* shared memory: SMO_ROLES */
    double *value, *violation; /* shared memory: one for each thread */
    int *at;                   /* the same */
    double *window;            /* the same: see svm_batch() */
    struct smo_batch *batch;   /* the same */
    struct smo_step *step;     /* the same */
    int32_t *wanted;           /* the same: columns, SVM_BATCH */
};

static __device__ inline void wait_for_all(const struct smo_block *b)
{
    if (b->alone)
        __syncthreads();
    else
        own_grid_barrier(b->arrived);
}

/* ---- The best of many ---- */

/* An order without ties: by value, then by number, as libsvm's loops prefer the later variable. */
static __device__ inline bool beats(double value, int at, double other, int other_at)
{
    return value > other || (value == other && at > other_at);
}

/* Finds the best of the threads' values: value[0] and at[0], after the barrier with which it ends; and the largest violation. */
static __device__ inline void find_best(const struct smo_block *b, double value, int at,
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
            if (beats(b->value[other], b->at[other], b->value[me], b->at[me])) {
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

/* Returns what the others must know of a variable that is picked. */
static __device__ inline struct smo_pick describe(const struct smo_block *b, double value, int at,
                                                  double violation)
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
    pick.sign = t->state[at] & POSITIVE ? 1 : -1;
    return pick;
}

/* Says what this block has picked. row: that of the first variable, or NULL. */
static __device__ inline void publish(const struct smo_block *b, enum smo_role role, double value,
                                      int at, double violation, const float *positive_row,
                                      const float *negative_row)
{
    find_best(b, value, at, violation);
    if (threadIdx.x > 0)
        return;
    struct smo_pick pick = describe(b, b->value[0], b->at[0], b->violation[0]);
    const float *row = pick.sign > 0 ? positive_row : negative_row;
    if (row && pick.at >= 0)
        pick.k = row[pick.column];
    if (b->alone)
        b->pick[role] = pick;
    else
        b->task->pick[role * b->blocks + b->block] = pick;
}

/* Puts the best of what all blocks have published in b->pick[role]; after a barrier. */
static __device__ inline void gather(const struct smo_block *b, enum smo_role role)
{
    const struct smo_pick *all = b->task->pick + role * b->blocks;
    double value = -INFINITY, violation = -INFINITY;
    int at = -1;
    if (b->alone)
        return;
    for (int i = (int)threadIdx.x; i < b->blocks; i += (int)blockDim.x) {
        if (beats(all[i].value, all[i].at, value, at)) {
            value = all[i].value;
            at = all[i].at;
        }
        violation = all[i].violation > violation ? all[i].violation : violation;
    }
    find_best(b, value, at, violation);
    if (threadIdx.x == 0) {
        b->pick[role] = all[b->at[0] < 0 ? 0 : b->at[0] / b->share];
        b->pick[role].violation = b->violation[0];
    }
    __syncthreads();
}

/* ---- Rows of the kernel matrix ---- */

static __device__ inline const float *row_of(const struct smo_block *b, int32_t column)
{
    const struct smo_task *t = b->task;
    return t->k + (b->kernel ? t->slot[column] : column) * t->ld;
}

/* Returns how much a variable violates the conditions on one side: in I_up (side 0) or I_low (side 1). */
static __device__ inline double wish_of(const struct smo_block *b, int i, int side)
{
    const struct smo_task *t = b->task;
    const int state = t->state[i];
    const bool positive = state & POSITIVE, low = positive != (side == 0);
    const double most = b->pick[t->nu && !positive ? SMO_UP_NEGATIVE : SMO_UP].value;
    const double distance = positive ? most + t->gradient[i] : most - t->gradient[i];
    if (t->slot[t->column[i]] >= 0 || state & (low ? AT_0 : AT_C))
        return -INFINITY;
    if (side == 0)
        return -distance;
    return distance > 0 ? distance : -INFINITY;
}

/* Lists the rows of this block's variables that violate most, on each side, best first. */
static __device__ inline void list_wishes(const struct smo_block *b)
{
    struct smo_pick *list = b->task->wish + 2 * SMO_WISHES * b->block;
    for (int side = 0; side < 2; side++) {
        double last = INFINITY, value = 0;
        int last_at = -1, at = -1;
        for (int r = 0; r < SMO_WISHES; r++) {
            if (at == last_at) { /* this thread's best is gone, or there was none */
                value = -INFINITY;
                at = -1;
                for (int i = b->from + (int)threadIdx.x; i < b->to; i += (int)blockDim.x) {
                    const double wish = wish_of(b, i, side);
                    if (wish > -INFINITY && beats(wish, i, value, at) &&
                        (last == INFINITY || beats(last, last_at, wish, i))) {
                        value = wish;
                        at = i;
                    }
                }
                if (at < 0)
                    at = -2; /* looks no more */
            }
            find_best(b, value, at, 0);
            last = b->value[0];
            last_at = b->at[0];
            if (threadIdx.x == 0) {
                list[side * SMO_WISHES + r].value = last;
                list[side * SMO_WISHES + r].at = last_at;
                list[side * SMO_WISHES + r].column = last_at < 0 ? -1 : b->task->column[last_at];
            }
        }
    }
}

static __device__ inline bool is_in(const struct smo_batch *batch, int32_t column)
{
    for (int i = 0; i < batch->count; i++)
        if (batch->column[i] == column)
            return true;
    return false;
}

/* Adds the rows that all blocks wish for most, up to `most` in the batch; the sides take turns. */
static __device__ inline void add_wishes(const struct smo_block *b, int most)
{
    double last[2] = {INFINITY, INFINITY};
    int last_at[2] = {-1, -1};
    for (int r = 0; r < 2 * SMO_WISHES; r++) {
        const int side = r % 2;
        double value = -INFINITY;
        int at = -1, entry = -1;
        for (int i = (int)threadIdx.x; i < b->blocks * SMO_WISHES; i += (int)blockDim.x) {
            const int e = (i / SMO_WISHES) * 2 * SMO_WISHES + side * SMO_WISHES + i % SMO_WISHES;
            const struct smo_pick *w = &b->task->wish[e];
            if (w->at >= 0 && beats(w->value, w->at, value, at) &&
                (last[side] == INFINITY || beats(last[side], last_at[side], w->value, w->at))) {
                value = w->value;
                at = w->at;
                entry = e;
            }
        }
        find_best(b, value, at, 0);
        last[side] = b->value[0];
        last_at[side] = b->at[0];
        if (at >= 0 && at == last_at[side]) { /* the thread that has found it */
            const int32_t column = b->task->wish[entry].column;
            if (b->batch->count < most && !is_in(b->batch, column))
                b->batch->column[b->batch->count++] = column;
        }
        __syncthreads();
        if (b->batch->count == most)
            break;
    }
}

/* Returns the slot that has not been used for longest, except those used now; -1: none. */
static __device__ inline int oldest_slot(const struct smo_block *b)
{
    const struct smo_task *t = b->task;
    double value = -INFINITY;
    int at = -1;
    for (int i = (int)threadIdx.x; i < t->slots; i += (int)blockDim.x) {
        const int64_t used = t->used[i] < 0 ? -t->used[i] : t->used[i];
        if (used < t->now && beats(-(double)used, i, value, at)) {
            value = -(double)used;
            at = i;
        }
    }
    find_best(b, value, at, 0);
    return b->at[0];
}

/* Gives each row of the batch a slot; cuts the batch short if there is none left. */
static __device__ inline void place_batch(const struct smo_block *b)
{
    struct smo_task *t = b->task;
    for (int i = 0; i < b->batch->count; i++) {
        const bool is_full = t->filled == t->slots;
        const int64_t slot = is_full ? oldest_slot(b) : t->filled;
        __syncthreads();
        if (threadIdx.x == 0 && slot < 0) {
            b->batch->count = i;
        } else if (threadIdx.x == 0) {
            if (is_full)
                t->slot[t->holder[slot]] = -1;
            else
                t->filled++;
            t->holder[slot] = b->batch->column[i];
            t->slot[b->batch->column[i]] = (int32_t)slot;
            t->used[slot] = -t->now;
            b->batch->slot[i] = (int32_t)slot;
        }
        __syncthreads();
    }
}

/* By the first block: decides on a batch, with the wanted rows that are not there, and as many others as keep the rows computed
 * within twice those used. */
static __device__ inline void choose_batch(const struct smo_block *b, int wanted, bool wishes)
{
    struct smo_task *t = b->task;
    if (threadIdx.x == 0) {
        b->batch->count = 0;
        for (int i = 0; i < wanted; i++) {
            const int32_t slot = t->slot[b->wanted[i]];
            if (slot >= 0)
                t->used[slot] = t->used[slot] < 0 ? -t->now : t->now; /* stays */
            else if (!is_in(b->batch, b->wanted[i]))
                b->batch->column[b->batch->count++] = b->wanted[i];
        }
    }
    __syncthreads();
    const int missing = b->batch->count;
    const int64_t allowed = 2 * (t->touched + missing) - t->computed;
    if (wishes && allowed > missing)
        add_wishes(b, allowed < SVM_BATCH ? (int)allowed : SVM_BATCH);
    place_batch(b);
    if (threadIdx.x == 0) {
        t->computed += b->batch->count;
        *t->batch = *b->batch;
    }
}

static __device__ inline void compute_batch(const struct smo_block *b)
{
    struct smo_task *t = b->task;
    const int64_t share = (t->columns + b->blocks - 1) / b->blocks;
    const int64_t first = b->block * share, end = min(first + share, t->columns);
    double value[SVM_BATCH];
    if (threadIdx.x == 0) {
        *b->batch = *t->batch;
        for (int i = 0; i < b->batch->count; i++)
            b->wanted[i] = t->row[b->batch->column[i]];
    }
    __syncthreads();
    const int count = b->batch->count;
    for (int64_t from = first; from < end; from += blockDim.x) {
        const int64_t c = from + threadIdx.x;
        svm_batch(*b->kernel, b->x, b->wanted, count, c < end ? t->row[c] : -1, b->window, value);
        SVM_UNROLL
        for (int i = 0; i < SVM_BATCH; i++)
            if (c < end && i < count) {
                t->k[b->batch->slot[i] * t->ld + c] = (float)value[i];
                if (!svm_fits(value[i]))
                    atomicOr(&t->bad, 1);
            }
    }
}

/* Makes sure that the rows of the columns b->wanted are there, and notes that they are used. Returns false if a value does not fit
 * a float. All blocks come here. */
static __device__ inline bool fetch_rows(const struct smo_block *b, int wanted, bool wishes)
{
    struct smo_task *t = b->task;
    int32_t column[SVM_BATCH];
    bool missing = false, good = true;
    for (int i = 0; i < wanted; i++) {
        column[i] = b->wanted[i];
        missing = missing || t->slot[column[i]] < 0;
    }
    if (missing) {
        if (wishes)
            list_wishes(b);
        wait_for_all(b);
        if (b->block == 0)
            choose_batch(b, wanted, wishes);
        wait_for_all(b);
        compute_batch(b);
        wait_for_all(b);
        good = !t->bad;
    }
    for (int i = 0; i < wanted && b->block == 0 && threadIdx.x == 0; i++) {
        int64_t *used = &t->used[t->slot[column[i]]];
        t->touched += *used < 0;
        *used = t->now;
    }
    return good;
}

/* ---- The start ---- */

static __device__ inline int state_of(double alpha, double c, int sign)
{
    return (sign > 0 ? POSITIVE : 0) | (alpha >= c ? AT_C : alpha <= 0 ? AT_0 : 0);
}

static __device__ inline void begin_variables(const struct smo_block *b, struct smo_kernel kernel)
{
    const struct smo_task *t = b->task;
    for (int i = b->from + (int)threadIdx.x; i < b->to; i += (int)blockDim.x) {
        const int64_t row = t->row ? t->row[t->column[i]] : t->column[i];
        const double square = b->x->square[row];
        t->state[i] = (unsigned char)state_of(t->alpha[i], t->c[i], t->y[i]);
        t->gradient[i] = t->p[i];
        t->diagonal[i] = kernel.type == SMO_PRECOMPUTED ? b->x->values[row * b->x->ld + row]
                                                        : svm_value(kernel, square, square, square);
    }
}

/* Adds to the gradient what the variables contribute that are not 0 at the start. */
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
            if (!fetch_rows(b, count, false))
                return false;
        }
        for (int i = b->from + (int)threadIdx.x; i < b->to; i += (int)blockDim.x) {
            double gradient = t->gradient[i];
            for (int s = 0; s < count; s++) {
                const int other = t->started[first + s];
                const double alpha = t->y[i] == t->y[other] ? t->alpha[other] : -t->alpha[other];
                gradient += alpha * row_of(b, t->column[other])[t->column[i]];
            }
            t->gradient[i] = gradient;
        }
        if (b->kernel)
            wait_for_all(b); /* before rows go that a block may read still */
    }
    return true;
}

/* ---- An iteration ---- */

#define AT_ONCE 4 /* variables whose loads a thread has under way */

/* Applies the last step to the gradient, and picks the first variable: the one that maximizes -y G in I_up. */
static __device__ inline void pick_first(const struct smo_block *b, struct smo_step step)
{
    const struct smo_task *t = b->task;
    double best = -INFINITY, best_negative = -INFINITY;
    int at = -1, at_negative = -1;
    for (int first = b->from + (int)threadIdx.x; first < b->to;
         first += AT_ONCE * (int)blockDim.x) {
        double gradient[AT_ONCE];
        float k_i[AT_ONCE], k_j[AT_ONCE];
        int state[AT_ONCE];
        SVM_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = first + u * (int)blockDim.x;
            state[u] = -1;
            if (i >= b->to)
                continue;
            state[u] = t->state[i];
            gradient[u] = t->gradient[i];
            if (step.row_i) {
                const int32_t column = t->column[i];
                k_i[u] = step.row_i[column];
                k_j[u] = step.row_j[column];
            }
        }
        SVM_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = first + u * (int)blockDim.x;
            if (state[u] < 0)
                continue;
            const bool positive = state[u] & POSITIVE;
            if (step.row_i) {
                const double change = k_i[u] * step.i + k_j[u] * step.j;
                gradient[u] += positive ? change : -change;
                t->gradient[i] = gradient[u];
            }
            if (state[u] & (positive ? AT_C : AT_0))
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
    wait_for_all(b);
    gather(b, SMO_UP);
    if (t->nu)
        gather(b, SMO_UP_NEGATIVE);
}

/* Picks the second variable: the one of I_low with which the objective decreases most. */
static __device__ inline void pick_second(const struct smo_block *b, const float *positive_row,
                                          const float *negative_row)
{
    const struct smo_task *t = b->task;
    const double most[2] = {b->pick[SMO_UP].value, b->pick[t->nu ? SMO_UP_NEGATIVE : SMO_UP].value};
    const double diagonal[2] = {b->pick[SMO_UP].diagonal,
                                b->pick[t->nu ? SMO_UP_NEGATIVE : SMO_UP].diagonal};
    double best = -1, violation = -INFINITY;
    int at = -1;
    for (int first = b->from + (int)threadIdx.x; first < b->to;
         first += AT_ONCE * (int)blockDim.x) {
        double gradient[AT_ONCE], own[AT_ONCE];
        float k[AT_ONCE];
        int state[AT_ONCE];
        SVM_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = first + u * (int)blockDim.x;
            state[u] = -1;
            if (i >= b->to)
                continue;
            state[u] = t->state[i];
            gradient[u] = t->gradient[i];
            own[u] = t->diagonal[i];
            const float *row = state[u] & POSITIVE ? positive_row : negative_row;
            k[u] = row ? row[t->column[i]] : 0;
        }
        SVM_UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            const bool positive = state[u] & POSITIVE;
            if (state[u] < 0 || state[u] & (positive ? AT_0 : AT_C))
                continue;
            const double difference = positive ? most[0] + gradient[u] : most[1] - gradient[u];
            violation = difference > violation ? difference : violation;
            if (!(difference > 0))
                continue;
            const double curve = diagonal[positive ? 0 : 1] + own[u] - 2.0 * k[u];
            const double gain = difference * difference / (curve > 0 ? curve : TAU);
            if (gain >= best) {
                best = gain;
                at = first + u * (int)blockDim.x;
            }
        }
    }
    publish(b, SMO_LOW, best, at, violation, positive_row, negative_row);
    wait_for_all(b);
    gather(b, SMO_LOW);
}

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
    b->task->state[pick->at] = (unsigned char)state_of(alpha, pick->c, pick->sign);
}

/* Minimizes the objective along the two variables. By one thread of each block; all compute the same. */
static __device__ inline void make_step(const struct smo_block *b, const struct smo_pick *i,
                                        const struct smo_pick *j)
{
    double alpha_i = i->alpha, alpha_j = j->alpha;
    double curve = i->diagonal + j->diagonal - 2.0 * j->k;
    if (curve <= 0)
        curve = TAU;
    if (i->sign != j->sign) {
        const double delta = (-i->gradient - j->gradient) / curve;
        alpha_i += delta;
        alpha_j += delta;
        clip_opposite(&alpha_i, &alpha_j, i->c, j->c, i->alpha - j->alpha);
    } else {
        const double delta = (i->gradient - j->gradient) / curve;
        alpha_i -= delta;
        alpha_j += delta;
        clip_equal(&alpha_i, &alpha_j, i->c, j->c, i->alpha + j->alpha);
    }
    store_alpha(b, i, alpha_i);
    store_alpha(b, j, alpha_j);
    b->step->row_i = row_of(b, i->column);
    b->step->row_j = row_of(b, j->column);
    b->step->i = i->sign * (alpha_i - i->alpha);
    b->step->j = j->sign * (alpha_j - j->alpha);
}

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
    const struct smo_pick *up = &b->pick[SMO_UP];
    const struct smo_pick *down = &b->pick[t->nu ? SMO_UP_NEGATIVE : SMO_UP];
    if (b->kernel) {
        int wanted = 0;
        if (up->at >= 0)
            want(b, wanted++, up->column);
        if (t->nu && down->at >= 0)
            want(b, wanted++, down->column);
        __syncthreads();
        if (!fetch_rows(b, wanted, true))
            return false;
    }
    *positive_row = up->at >= 0 ? row_of(b, up->column) : NULL;
    *negative_row = down->at >= 0 ? row_of(b, down->column) : NULL;
    return true;
}

static __device__ inline bool second_row(const struct smo_block *b)
{
    if (!b->kernel)
        return true;
    __syncthreads();
    want(b, 0, b->pick[SMO_LOW].column);
    __syncthreads();
    return fetch_rows(b, 1, true);
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
        pick_first(b, step);
        step.row_i = NULL;
        if (b->kernel && b->block == 0 && threadIdx.x == 0)
            t->now++;
        if (!first_rows(b, &positive_row, &negative_row))
            return SMO_NOT_FINITE;
        pick_second(b, positive_row, negative_row);
        if (b->pick[SMO_LOW].violation < eps || b->pick[SMO_LOW].at < 0)
            return SMO_OPTIMAL;
        ++*iterations;
        if (!second_row(b))
            return SMO_NOT_FINITE;
        const struct smo_pick *j = &b->pick[SMO_LOW];
        if (threadIdx.x == 0)
            make_step(b, &b->pick[t->nu && j->sign < 0 ? SMO_UP_NEGATIVE : SMO_UP], j);
        __syncthreads();
        step = *b->step;
    }
    if (step.row_i) /* the gradient takes in the last step */
        pick_first(b, step);
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
    wait_for_all(b);
    if (end == SMO_GOES_ON)
        end = iterate(b, limit, &iterations);
    if (b->block == 0 && threadIdx.x == 0) {
        t->iterations = iterations;
        t->begun = 1;
        t->end = end;
    }
}

/* Shares the memory of a block out. rows: kernel rows are computed here. */
static __device__ inline void solve(struct smo_task *tasks, struct smo_kernel kernel,
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

#ifdef __CUDACC__
/* Threads wait for memory, so twice as many of them are worth a few registers that are spilled. */
extern "C" __global__ void __launch_bounds__(1024)
    smo_solve_matrix(struct smo_task *, struct smo_kernel, struct svm_rows, int, int64_t,
                     unsigned long long *);
#endif

/* Go on with problems for at most `limit` iterations each: a block for each problem, or if `together` all blocks for one. */
OWN_KERNEL(smo_solve_matrix, struct smo_task *tasks, struct smo_kernel kernel, struct svm_rows x,
           int together, int64_t limit, unsigned long long *arrived)
{
    OWN_SHARED(unsigned char, shared);
    solve(tasks, kernel, &x, false, together, limit, arrived, shared);
}

OWN_KERNEL(smo_solve_rows, struct smo_task *tasks, struct smo_kernel kernel, struct svm_rows x,
           int together, int64_t limit, unsigned long long *arrived)
{
    OWN_SHARED(unsigned char, shared);
    solve(tasks, kernel, &x, true, together, limit, arrived, shared);
}
