/*
 * Rows of the kernel matrix, where the device cannot keep all of them: the rows that a step needs
 * are computed together with others that later steps are likely to need, and take the place of the
 * rows that no step has used for longest.
 */
#ifndef ACCEL_OWN_SMO_ROWS_CUH
#define ACCEL_OWN_SMO_ROWS_CUH

#include "smo_block.cuh"

static __device__ inline const float *smo_row_of(const struct smo_block *b, int32_t column)
{
    const struct smo_task *t = b->task;
    return t->k + (b->kernel ? t->slot[column] : column) * t->ld;
}

/* Returns how much a variable violates the conditions on one side: in I_up (side 0) or I_low (side
 * 1). */
static __device__ inline double wish_of(const struct smo_block *b, int i, int side)
{
    const struct smo_task *t = b->task;
    const int state = t->state[i];
    const bool positive = state & SMO_POSITIVE, low = positive != (side == 0);
    const double most = smo_first_for(b, positive)->value;
    const double distance = positive ? most + t->gradient[i] : most - t->gradient[i];
    if (t->slot[t->column[i]] >= 0 || state & (low ? SMO_AT_0 : SMO_AT_C))
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
                    if (wish > -INFINITY && smo_beats(wish, i, value, at) &&
                        (last == INFINITY || smo_beats(last, last_at, wish, i))) {
                        value = wish;
                        at = i;
                    }
                }
                if (at < 0)
                    at = -2; /* looks no more */
            }
            smo_find_best(b, value, at, 0);
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
            if (w->at >= 0 && smo_beats(w->value, w->at, value, at) &&
                (last[side] == INFINITY || smo_beats(last[side], last_at[side], w->value, w->at))) {
                value = w->value;
                at = w->at;
                entry = e;
            }
        }
        smo_find_best(b, value, at, 0);
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
        if (used < t->now && smo_beats(-(double)used, i, value, at)) {
            value = -(double)used;
            at = i;
        }
    }
    smo_find_best(b, value, at, 0);
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

/* The first block decides on a batch: the wanted rows that are not there, and others as long as no
 * more than twice as many rows are computed as are used. */
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
        OWN_UNROLL
        for (int i = 0; i < SVM_BATCH; i++)
            if (c < end && i < count) {
                t->k[b->batch->slot[i] * t->ld + c] = (float)value[i];
                if (!svm_fits(value[i]))
                    atomicOr(&t->bad, 1);
            }
    }
}

/* Makes sure that the rows of the columns b->wanted are there, and notes that they are used.
 * Returns false if a value does not fit a float. All blocks come here. */
static __device__ inline bool smo_fetch_rows(const struct smo_block *b, int wanted, bool wishes)
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
        smo_wait_for_all(b);
        if (b->block == 0)
            choose_batch(b, wanted, wishes);
        smo_wait_for_all(b);
        compute_batch(b);
        smo_wait_for_all(b);
        good = !t->bad;
    }
    for (int i = 0; i < wanted && b->block == 0 && threadIdx.x == 0; i++) {
        int64_t *used = &t->used[t->slot[column[i]]];
        t->touched += *used < 0;
        *used = t->now;
    }
    return good;
}

#endif
