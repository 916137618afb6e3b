/*
 * Solves by a triangle: forward substitution, a right-hand side for each thread. The triangle comes
 * to shared memory in blocks of SUBSTITUTION_BLOCK rows and columns, which all threads read; so
 * many elements of its right-hand side a thread has in registers. From these it subtracts what the
 * elements above contribute, which are solved already, and then it solves by the block on the
 * diagonal. All loops over a block have the same length, so that each register is known when this
 * is compiled: where the triangle ends within a block, the identity continues it.
 *
 * Each row is multiplied by the reciprocal of its diagonal element, and its multiples are taken
 * from the rows below. So results have the error of substitution, however ill-conditioned the
 * triangle is; a product with its inverse would not.
 */
#include "substitution.h"

#include "own.cuh"

/* So many rows of the right-hand sides go through shared memory at a time: 64 bytes of each. The
 * distances of columns are such that threads which access neighbours in a row do not all meet in
 * one bank, and that blocks are read 16 bytes at a time. */
template <typename T> struct substitution_sizes {
    static const int rows = 64 / sizeof(T), tile_pitch = rows + 1,
                     pitch = SUBSTITUTION_BLOCK + 16 / sizeof(T);
};

/* In shared memory: a block of the triangle, column by column, on the triangle's diagonal with the
 * first factors of reciprocals; their second factors; and some rows of the right-hand sides of all
 * threads, one right-hand side after the other. */
template <typename T> struct substitution_shared {
    T *block, *factor, *tile;
};

/* The reciprocals of numbers from `least` to its own reciprocal have no more than a rounding error.
 * Others are multiplied by `up`, or divided by it, first. */
template <typename T> struct substitution_range {
    T least, up;
};
static __device__ inline substitution_range<double> range_of(double)
{
    return {1e-300, ldexp(1.0, 600)};
}
static __device__ inline substitution_range<float> range_of(float)
{
    return {1e-36f, ldexpf(1.0f, 100)};
}

/* Returns the second factor of a number's reciprocal, a power of two; the first one is 1 / (d *
 * factor). Of zeros, infinities and NaN, the reciprocal is as that of a division. */
template <typename T> static __device__ inline T factor_of(T d)
{
    const substitution_range<T> range = range_of(d);
    const T size = d < 0 ? -d : d;
    return size < range.least ? range.up : size > 1 / range.least ? 1 / range.up : 1;
}

/* Loads the block from element (row, col) on. Neighbouring threads read neighbouring numbers. */
template <typename T>
static __device__ inline void load_block(const struct substitution_task *x,
                                         const substitution_shared<T> &shared, int row, int col)
{
    const T *t = (const T *)x->t + row * x->t_row + col * x->t_col;
    const bool by_column = x->t_row == 1 || x->t_row == -1, on_diagonal = row == col;
    __syncthreads(); /* nobody needs the block before */
    for (int n = (int)threadIdx.x; n < SUBSTITUTION_BLOCK * SUBSTITUTION_BLOCK;
         n += (int)blockDim.x) {
        const int inner = n % SUBSTITUTION_BLOCK, outer = n / SUBSTITUTION_BLOCK;
        const int i = by_column ? inner : outer, k = by_column ? outer : inner;
        const bool is_diagonal = on_diagonal && i == k;
        const bool is_there = row + i < x->order && (!on_diagonal || i > k || (i == k && !x->unit));
        const T value = is_there ? t[i * x->t_row + k * x->t_col] : is_diagonal;
        const T factor = is_diagonal ? factor_of(value) : 1;
        shared.block[k * substitution_sizes<T>::pitch + i] =
            is_diagonal ? 1 / (value * factor) : value;
        if (is_diagonal)
            shared.factor[k] = factor;
    }
    __syncthreads();
}

/* The right-hand sides from `first` on, a thread's each. */
template <typename T> struct substitution_rhs {
    const struct substitution_task *x;
    int64_t first;
    T *tile;
};

/* Returns the element that number n of a tile is, whose first row is `from`; NULL: there is none.
 * Neighbouring numbers are neighbours in memory. */
template <typename T>
static __device__ inline T *in_tile(const substitution_rhs<T> &rhs, int from, int n)
{
    const int rows = substitution_sizes<T>::rows, i = from + n % rows;
    const int64_t number = rhs.first + n / rows;
    const bool inside = i < rhs.x->order && number < rhs.x->nrhs;
    return inside ? (T *)rhs.x->b + i * rhs.x->b_row + number * rhs.x->b_next : NULL;
}

/* Loads rows of all threads' right-hand sides. Where elements of a right-hand side are neighbours,
 * each is read by another thread than that which needs it. */
template <typename T>
static __device__ inline void load_tile(const substitution_rhs<T> &rhs, int from)
{
    const int rows = substitution_sizes<T>::rows, pitch = substitution_sizes<T>::tile_pitch;
    __syncthreads();
    for (int n = (int)threadIdx.x; n < rows * (int)blockDim.x; n += (int)blockDim.x) {
        const T *at = in_tile(rhs, from, n);
        rhs.tile[n / rows * pitch + n % rows] = at ? *at : 0;
    }
    __syncthreads();
}

template <typename T>
static __device__ inline void store_tile(const substitution_rhs<T> &rhs, int from)
{
    const int rows = substitution_sizes<T>::rows, pitch = substitution_sizes<T>::tile_pitch;
    __syncthreads();
    for (int n = (int)threadIdx.x; n < rows * (int)blockDim.x; n += (int)blockDim.x) {
        T *at = in_tile(rhs, from, n);
        if (at)
            *at = rhs.tile[n / rows * pitch + n % rows];
    }
    __syncthreads();
}

/* Returns this thread's place in a tile. */
template <typename T> static __device__ inline T *own_tile(const substitution_rhs<T> &rhs)
{
    return rhs.tile + (int)threadIdx.x * substitution_sizes<T>::tile_pitch;
}

/* Where right-hand sides are neighbours, threads need no tile. Returns this thread's element in a
 * row; and how many rows it has, 0 behind the last right-hand side. */
template <typename T>
static __device__ inline T *own_element(const substitution_rhs<T> &rhs, int row)
{
    return (T *)rhs.x->b + row * rhs.x->b_row + (rhs.first + (int)threadIdx.x) * rhs.x->b_next;
}
template <typename T> static __device__ inline int own_rows(const substitution_rhs<T> &rhs)
{
    return rhs.first + (int)threadIdx.x < rhs.x->nrhs ? (int)rhs.x->order : 0;
}

/* Loads this thread's elements from `row` on, as many as a block has rows, and zeros behind the
 * last one. */
template <typename T>
static __device__ inline void load_values(const substitution_rhs<T> &rhs, int row, bool directly,
                                          T *value)
{
    const T alpha = (T)rhs.x->alpha;
    if (directly) {
        const T *at = own_element(rhs, row);
        const int rows = own_rows(rhs) - row;
        OWN_UNROLL
        for (int i = 0; i < SUBSTITUTION_BLOCK; i++, at += rhs.x->b_row)
            value[i] = i < rows ? alpha * *at : 0;
        return;
    }
    OWN_UNROLL
    for (int from = 0; from < SUBSTITUTION_BLOCK; from += substitution_sizes<T>::rows) {
        load_tile(rhs, row + from);
        OWN_UNROLL
        for (int i = 0; i < substitution_sizes<T>::rows; i++)
            value[from + i] = alpha * own_tile(rhs)[i];
    }
}

template <typename T>
static __device__ inline void store_values(const substitution_rhs<T> &rhs, int row, bool directly,
                                           const T *value)
{
    if (directly) {
        T *at = own_element(rhs, row);
        const int rows = own_rows(rhs) - row;
        OWN_UNROLL
        for (int i = 0; i < SUBSTITUTION_BLOCK; i++, at += rhs.x->b_row)
            if (i < rows)
                *at = value[i];
        return;
    }
    OWN_UNROLL
    for (int from = 0; from < SUBSTITUTION_BLOCK; from += substitution_sizes<T>::rows) {
        OWN_UNROLL
        for (int i = 0; i < substitution_sizes<T>::rows; i++)
            own_tile(rhs)[i] = value[from + i];
        store_tile(rhs, row + from);
    }
}

/* Subtracts what solved elements, those from `from` on, contribute by the block. */
template <typename T>
static __device__ inline void subtract(const substitution_rhs<T> &rhs,
                                       const substitution_shared<T> &shared, int from,
                                       bool directly, T *value)
{
    const int rows = substitution_sizes<T>::rows;
    const bool is_there = own_rows(rhs) > 0;
    for (int k = 0; k < SUBSTITUTION_BLOCK; k++) {
        const T *column = shared.block + k * substitution_sizes<T>::pitch;
        if (!directly && k % rows == 0)
            load_tile(rhs, from + k);
        const T solved = !directly  ? own_tile(rhs)[k % rows]
                         : is_there ? *own_element(rhs, from + k)
                                    : 0;
        OWN_UNROLL
        for (int i = 0; i < SUBSTITUTION_BLOCK; i++)
            value[i] = fma(-column[i], solved, value[i]);
    }
}

/* Solves by a block on the diagonal, from row K on. Not a loop, since compilers for some devices do
 * not unroll one of that length, and then have the values in memory. */
template <int K, typename T> struct substitution_rows {
    static __device__ __forceinline__ void solve(const substitution_shared<T> &shared, T *value)
    {
        const T *column = shared.block + K * substitution_sizes<T>::pitch;
        value[K] = value[K] * column[K] * shared.factor[K];
        OWN_UNROLL
        for (int i = K + 1; i < SUBSTITUTION_BLOCK; i++)
            value[i] = fma(-column[i], value[K], value[i]);
        substitution_rows<K + 1, T>::solve(shared, value);
    }
};
template <typename T> struct substitution_rows<SUBSTITUTION_BLOCK, T> {
    static __device__ __forceinline__ void solve(const substitution_shared<T> &, T *) {}
};

template <typename T>
static __device__ inline void substitute(const struct substitution_task *x,
                                         const substitution_shared<T> &shared)
{
    const substitution_rhs<T> rhs = {x, (int64_t)blockIdx.x * blockDim.x, shared.tile};
    const bool directly = x->b_next == 1;
    T value[SUBSTITUTION_BLOCK];
    for (int row = 0; row < (int)x->order; row += SUBSTITUTION_BLOCK) {
        load_values(rhs, row, directly, value);
        for (int col = 0; col < row; col += SUBSTITUTION_BLOCK) {
            load_block(x, shared, row, col);
            subtract(rhs, shared, col, directly, value);
        }
        load_block(x, shared, row, row);
        substitution_rows<0, T>::solve(shared, value);
        store_values(rhs, row, directly, value);
    }
}

#define SUBSTITUTION(name, type)                                                                   \
    OWN_KERNEL_FOR(SUBSTITUTION_THREADS, name, struct substitution_task x)                         \
    {                                                                                              \
        __shared__ __align__(16) type block[SUBSTITUTION_BLOCK * substitution_sizes<type>::pitch]; \
        __shared__ type factor[SUBSTITUTION_BLOCK];                                                \
        __shared__ type tile[SUBSTITUTION_THREADS * substitution_sizes<type>::tile_pitch];         \
        const substitution_shared<type> shared = {block, factor, tile};                            \
        substitute(&x, shared);                                                                    \
    }
SUBSTITUTION(own_substitute_s, float)
SUBSTITUTION(own_substitute_d, double)
