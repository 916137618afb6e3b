/* Squared norms of the rows of a matrix in fp64: a block for each row at a time. */
#include "own.cuh"

OWN_KERNEL(own_row_norms, const double *x, int64_t rows, int64_t columns, int64_t ld, double *norms)
{
    OWN_SHARED(double, sums); /* one for each thread */
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        double sum = 0;
        for (int64_t j = threadIdx.x; j < columns; j += blockDim.x)
            sum += x[row * ld + j] * x[row * ld + j];
        sums[threadIdx.x] = sum;
        for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        if (threadIdx.x == 0)
            norms[row] = sums[0];
        __syncthreads();
    }
}
