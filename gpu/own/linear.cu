/*
 * Linear classifiers and regression: products with a matrix of rows of examples and with its
 * transpose, the losses of the rows, and their derivatives. In fp64; sums are in an order that the
 * grid alone decides.
 *
 * A dense matrix lies in tiles of tile_rows rows, each in column-major order. A sparse one is a
 * list of segments, once of its rows and once of its columns: segment k has the elements first[k]
 * to first[k + 1] - 1.
 */
#include "own.cuh"

/* liblinear's numbers. */
#define LINEAR_LR     0
#define LINEAR_L2_SVC 2
#define LINEAR_L2_SVR 11

/* Adds up what the `group` neighbouring threads have in sums. All threads of the block come here;
 * the first of a group has the sum. */
static __device__ void linear_add_up(double *sums, unsigned group)
{
    const unsigned member = threadIdx.x % group;
    for (unsigned half = group / 2; half > 0; half /= 2) {
        __syncthreads();
        if (member < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
}

/* out := X v, times scale unless that is NULL; rows whose scale is 0 are not read. */
OWN_KERNEL(linear_dense_rows, const double *x, int64_t tile_rows, int64_t rows, int64_t columns,
           const double *v, const double *scale, double *out)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows;
         i += (int64_t)gridDim.x * blockDim.x) {
        const double *row = x + i / tile_rows * tile_rows * columns + i % tile_rows;
        const double times = scale ? scale[i] : 1;
        double sum = 0;
        if (times != 0) {
            for (int64_t j = 0; j < columns; j++)
                sum += row[j * tile_rows] * v[j];
        }
        out[i] = times * sum;
    }
}

/* Of each tile, a block: partial[tile * columns + j] := the tile's part of X'u, or of the squared
 * elements if `squares`. The columns are shared out to the blocks' second dimension. */
OWN_KERNEL(linear_dense_columns, const double *x, int64_t tile_rows, int64_t rows, int64_t columns,
           int squares, const double *u, double *partial)
{
    OWN_SHARED(double, sums); /* one for each thread */
    const int64_t first = blockIdx.x * tile_rows;
    const int64_t count = rows - first < tile_rows ? rows - first : tile_rows;
    for (int64_t j = blockIdx.y; j < columns; j += gridDim.y) {
        const double *column = x + first * columns + j * tile_rows;
        double sum = 0;
        for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
            sum += (squares ? column[i] * column[i] : column[i]) * u[first + i];
        sums[threadIdx.x] = sum;
        linear_add_up(sums, blockDim.x);
        if (threadIdx.x == 0)
            partial[blockIdx.x * columns + j] = sums[0];
        __syncthreads();
    }
}

/* A block for each column at a time: out[j] := the sum of partial[part * columns + j]. */
OWN_KERNEL(linear_dense_fold, const double *partial, int64_t parts, int64_t columns, double *out)
{
    OWN_SHARED(double, sums); /* one for each thread */
    for (int64_t j = blockIdx.x; j < columns; j += gridDim.x) {
        double sum = 0;
        for (int64_t part = threadIdx.x; part < parts; part += blockDim.x)
            sum += partial[part * columns + j];
        sums[threadIdx.x] = sum;
        linear_add_up(sums, blockDim.x);
        if (threadIdx.x == 0)
            out[j] = sums[0];
        __syncthreads();
    }
}

/* A group of threads for each segment at a time: out[k] := the sum of its elements, squared if
 * `squares`, times v at their places; times scale[k] unless that is NULL; segments whose scale is 0
 * are not read. group: a power of 2, at most a block. */
OWN_KERNEL(linear_sparse, int64_t segments, const int64_t *first, const int32_t *place,
           const double *value, unsigned group, int squares, const double *v, const double *scale,
           double *out)
{
    OWN_SHARED(double, sums); /* one for each thread */
    const unsigned member = threadIdx.x % group, groups = blockDim.x / group;
    for (int64_t at = (int64_t)blockIdx.x * groups; at < segments;
         at += (int64_t)gridDim.x * groups) {
        const int64_t k = at + threadIdx.x / group;
        const double times = k >= segments ? 0 : scale ? scale[k] : 1;
        double sum = 0;
        if (times != 0)
            for (int64_t e = first[k] + member; e < first[k + 1]; e += group)
                sum += (squares ? value[e] * value[e] : value[e]) * v[place[e]];
        sums[threadIdx.x] = sum;
        linear_add_up(sums, group);
        if (member == 0 && k < segments)
            out[k] = times * sums[threadIdx.x];
        __syncthreads();
    }
}

/* out[j] := the sum of the segments segment[j] to segment[j + 1] - 1. */
OWN_KERNEL(linear_sparse_fold, const double *partial, int64_t columns, const int64_t *segment,
           double *out)
{
    for (int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; j < columns;
         j += (int64_t)gridDim.x * blockDim.x) {
        double sum = 0;
        for (int64_t k = segment[j]; k < segment[j + 1]; k++)
            sum += partial[k];
        out[j] = sum;
    }
}

/* A row's loss for the decision value z, without its factor c. */
static __device__ double linear_loss_of(int solver, double y, double z, double p)
{
    const double margin = y * z, distance = z - y;
    if (solver == LINEAR_LR)
        return margin >= 0 ? log(1 + exp(-margin)) : log(1 + exp(margin)) - margin;
    if (solver == LINEAR_L2_SVC)
        return margin < 1 ? (1 - margin) * (1 - margin) : 0;
    if (distance < -p)
        return (distance + p) * (distance + p);
    return distance > p ? (distance - p) * (distance - p) : 0;
}

/* partial[block] := the losses of some rows, at z + alpha step; step: NULL: at z. */
OWN_KERNEL(linear_losses, int solver, double p, int64_t rows, const double *y, const double *c,
           const double *z, double alpha, const double *step, double *partial)
{
    OWN_SHARED(double, sums); /* one for each thread */
    double sum = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows;
         i += (int64_t)gridDim.x * blockDim.x)
        sum += c[i] * linear_loss_of(solver, y[i], step ? step[i] * alpha + z[i] : z[i], p);
    sums[threadIdx.x] = sum;
    linear_add_up(sums, blockDim.x);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sums[0];
}

/* The first and second derivatives of each row's loss by its decision value. */
OWN_KERNEL(linear_derivatives, int solver, double p, int64_t rows, const double *y, const double *c,
           const double *z, double *slope, double *curvature)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows;
         i += (int64_t)gridDim.x * blockDim.x) {
        const double margin = y[i] * z[i], distance = z[i] - y[i];
        double first = 0, second = 0;
        if (solver == LINEAR_LR) {
            const double sure = 1 / (1 + exp(-margin));
            first = c[i] * (sure - 1) * y[i];
            second = c[i] * sure * (1 - sure);
        } else if (solver == LINEAR_L2_SVC ? margin < 1 : distance < -p || distance > p) {
            first = 2 * c[i] *
                    (solver == LINEAR_L2_SVC ? y[i] * (margin - 1)
                     : distance < -p         ? distance + p
                                             : distance - p);
            second = 2 * c[i];
        }
        slope[i] = first;
        curvature[i] = second;
    }
}

/* z += alpha step */
OWN_KERNEL(linear_advance, int64_t rows, double alpha, const double *step, double *z)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows;
         i += (int64_t)gridDim.x * blockDim.x)
        z[i] += alpha * step[i];
}
