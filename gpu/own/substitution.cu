/*
 * Solves by a small triangle: forward substitution, a right-hand side for each thread, which it keeps in registers, while all read the
 * triangle from shared memory. All sizes are those of the largest triangle, so that each register is known when this is compiled; a
 * smaller one is continued by the identity.
 *
 * Rows come one after the other: each is divided by its diagonal element, and its multiples are taken from the rows below, as in the
 * reference trsm. So results have the error of substitution, however ill-conditioned the triangle is; a product with its inverse would not.
 */
#include "substitution.h"

#include "own.cuh"

/* So many rows of the right-hand sides go through shared memory at a time: 128 bytes of each. */
template <typename T> struct substitution_tile {
    static const int rows = 128 / sizeof(T), pitch = rows + 1;
};

/* The reciprocals of numbers between these have no more than a rounding error. */
static __device__ inline double substitution_least(double)
{
    return 1e-300;
}
static __device__ inline float substitution_least(float)
{
    return 1e-36f;
}

/* Returns what to multiply by instead of dividing by d; 0: there is no such number, or it is 0. */
template <typename T> static __device__ inline T reciprocal_of(T d)
{
    const T least = substitution_least(d), size = d < 0 ? -d : d;
    return size < least || size > 1 / least ? 0 : 1 / d;
}

/* The triangle in shared memory, column by column, with reciprocals on its diagonal, and that diagonal itself. */
template <typename T> struct substitution_triangle {
    T *column, *diagonal;
};

/* Neighbouring threads read neighbouring numbers. */
template <typename T>
static __device__ inline void load_triangle(const struct substitution_task *x,
                                            const substitution_triangle<T> &triangle)
{
    const T *t = (const T *)x->t;
    const bool by_column = x->t_row == 1 || x->t_row == -1;
    for (int n = (int)threadIdx.x; n < SUBSTITUTION_ORDER * SUBSTITUTION_ORDER;
         n += (int)blockDim.x) {
        const int inner = n % SUBSTITUTION_ORDER, outer = n / SUBSTITUTION_ORDER;
        const int i = by_column ? inner : outer, k = by_column ? outer : inner;
        const T value = i >= k && i < x->order && !(i == k && x->unit)
                            ? t[i * x->t_row + k * x->t_col]
                            : i == k;
        triangle.column[k * SUBSTITUTION_ORDER + i] = i == k ? reciprocal_of(value) : value;
        if (i == k)
            triangle.diagonal[k] = value;
    }
}

/* The way of right-hand sides from `first` on to each thread's registers, and back. */
template <typename T> struct substitution_way {
    const struct substitution_task *x;
    int64_t first;
    T *tile; /* rows x threads, a right-hand side after the other */
};

/* Returns the element of a right-hand side that number n of a tile is, whose first row is `from`; NULL: it has none. Neighbouring numbers are
 * neighbours in memory. */
template <typename T>
static __device__ inline T *in_tile(const substitution_way<T> &way, int from, int n)
{
    const int rows = substitution_tile<T>::rows, i = from + n % rows;
    const int64_t side = way.first + n / rows;
    const bool inside = i < way.x->order && side < way.x->sides;
    return inside ? (T *)way.x->b + i * way.x->b_row + side * way.x->b_side : NULL;
}

/* Where elements of a right-hand side are neighbours, threads exchange them in shared memory, so that neighbouring threads read neighbours. */
template <typename T>
static __device__ inline void load_by_tiles(const substitution_way<T> &way, T *value)
{
    const int rows = substitution_tile<T>::rows, pitch = substitution_tile<T>::pitch;
    const T alpha = (T)way.x->alpha;
    OWN_UNROLL
    for (int from = 0; from < SUBSTITUTION_ORDER; from += rows) {
        __syncthreads();
        for (int n = (int)threadIdx.x; n < rows * (int)blockDim.x; n += (int)blockDim.x) {
            const T *at = in_tile(way, from, n);
            way.tile[n / rows * pitch + n % rows] = at ? *at : 0;
        }
        __syncthreads();
        OWN_UNROLL
        for (int i = 0; i < rows; i++)
            value[from + i] = alpha * way.tile[(int)threadIdx.x * pitch + i];
    }
}

template <typename T>
static __device__ inline void store_by_tiles(const substitution_way<T> &way, const T *value)
{
    const int rows = substitution_tile<T>::rows, pitch = substitution_tile<T>::pitch;
    OWN_UNROLL
    for (int from = 0; from < SUBSTITUTION_ORDER; from += rows) {
        __syncthreads();
        OWN_UNROLL
        for (int i = 0; i < rows; i++)
            way.tile[(int)threadIdx.x * pitch + i] = value[from + i];
        __syncthreads();
        for (int n = (int)threadIdx.x; n < rows * (int)blockDim.x; n += (int)blockDim.x) {
            T *at = in_tile(way, from, n);
            if (at)
                *at = way.tile[n / rows * pitch + n % rows];
        }
    }
}

/* Returns how many rows this thread's right-hand side has; 0: there is none. */
template <typename T> static __device__ inline int rows_of(const substitution_way<T> &way)
{
    return way.first + (int)threadIdx.x < way.x->sides ? (int)way.x->order : 0;
}

template <typename T>
static __device__ inline void load_directly(const substitution_way<T> &way, T *value)
{
    const T *at = (const T *)way.x->b + (way.first + (int)threadIdx.x) * way.x->b_side;
    const T alpha = (T)way.x->alpha;
    const int rows = rows_of(way);
    OWN_UNROLL
    for (int i = 0; i < SUBSTITUTION_ORDER; i++, at += way.x->b_row)
        value[i] = i < rows ? alpha * *at : 0;
}

template <typename T>
static __device__ inline void store_directly(const substitution_way<T> &way, const T *value)
{
    T *at = (T *)way.x->b + (way.first + (int)threadIdx.x) * way.x->b_side;
    const int rows = rows_of(way);
    OWN_UNROLL
    for (int i = 0; i < SUBSTITUTION_ORDER; i++, at += way.x->b_row)
        if (i < rows)
            *at = value[i];
}

template <typename T>
static __device__ inline void solve(const substitution_triangle<T> &triangle, T *value)
{
    OWN_UNROLL
    for (int k = 0; k < SUBSTITUTION_ORDER; k++) {
        const T *column = triangle.column + k * SUBSTITUTION_ORDER;
        value[k] = column[k] != 0 ? value[k] * column[k] : value[k] / triangle.diagonal[k];
        OWN_UNROLL
        for (int i = k + 1; i < SUBSTITUTION_ORDER; i++)
            value[i] = fma(-column[i], value[k], value[i]);
    }
}

template <typename T>
static __device__ inline void substitute(const struct substitution_task *x,
                                         const substitution_triangle<T> &triangle, T *tile)
{
    const substitution_way<T> way = {x, (int64_t)blockIdx.x * blockDim.x, tile};
    const bool directly = x->b_side == 1;
    T value[SUBSTITUTION_ORDER];
    load_triangle(x, triangle);
    if (directly)
        load_directly(way, value);
    else
        load_by_tiles(way, value);
    __syncthreads();
    solve(triangle, value);
    if (directly)
        store_directly(way, value);
    else
        store_by_tiles(way, value);
}

#define SUBSTITUTION(name, type)                                                                   \
    OWN_KERNEL_FOR(SUBSTITUTION_THREADS, name, struct substitution_task x)                         \
    {                                                                                              \
        __shared__ __align__(16) type column[SUBSTITUTION_ORDER * SUBSTITUTION_ORDER];             \
        __shared__ type diagonal[SUBSTITUTION_ORDER];                                              \
        __shared__ type tile[SUBSTITUTION_THREADS * substitution_tile<type>::pitch];               \
        const substitution_triangle<type> triangle = {column, diagonal};                           \
        substitute(&x, triangle, tile);                                                            \
    }
SUBSTITUTION(own_substitute_s, float)
SUBSTITUTION(own_substitute_d, double)
