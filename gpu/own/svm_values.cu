/* Kernel values of many vectors: from products that BLAS computes, and sums of them that check a
 * solution. */
#include "svm.cuh"

/* The squares of rows' norms, each summed in the order of libsvm. */
OWN_KERNEL(svm_squares, struct svm_rows x)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < x.rows; i += step) {
        const int64_t first = x.start ? x.start[i] : i * x.ld;
        const int64_t end = x.start ? x.start[i + 1] : first + x.features;
        double sum = 0;
        for (int64_t e = first; e < end; e++)
            sum = svm_add_product(sum, x.values[e], x.values[e]);
        x.square[i] = sum;
    }
}

/* Rows of CSR, from `first` on, as dense rows, which are zeros before. */
OWN_KERNEL(svm_dense, struct svm_rows x, int64_t first, int64_t rows, double *dense, int64_t ld)
{
    for (int64_t i = blockIdx.x; i < rows; i += gridDim.x)
        for (int64_t e = x.start[first + i] + threadIdx.x; e < x.start[first + i + 1];
             e += blockDim.x)
            dense[i * ld + x.column[e]] = x.values[e];
}

/* Kernel values of products, a column of them for each v: in place, and as floats beside. */
OWN_KERNEL(svm_values, struct smo_kernel kernel, double *product, int64_t ld, int64_t rows,
           int64_t columns, const double *square_u, const double *square_v)
{
    for (int64_t j = blockIdx.y; j < columns; j += gridDim.y)
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows;
             i += (int64_t)gridDim.x * blockDim.x)
            product[j * ld + i] = svm_value(kernel, product[j * ld + i], square_u[i], square_v[j]);
}

OWN_KERNEL(svm_floats, struct smo_kernel kernel, const double *product, int64_t ld, int64_t rows,
           int64_t columns, const double *square_u, const double *square_v, float *k, int64_t ld_k,
           int *bad)
{
    for (int64_t j = blockIdx.y; j < columns; j += gridDim.y)
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows;
             i += (int64_t)gridDim.x * blockDim.x) {
            const double value = svm_value(kernel, product[j * ld + i], square_u[i], square_v[j]);
            k[j * ld_k + i] = (float)value;
            if (!svm_fits(value))
                atomicOr(bad, 1);
        }
}

/* For each column c of each problem: sums[2 c] := sum over its support vectors s of coefficient[s]
 * K(s, c), and sums[2 c + 1] := sum of mass[s] |K(s, c)|. A block for each part of a problem's
 * columns. */
OWN_KERNEL(svm_sums, struct smo_kernel kernel, struct svm_rows x, const struct svm_sum *sum,
           int64_t problems)
{
    __shared__ double window[SVM_BATCH * SVM_WINDOW];
    __shared__ int32_t rows[SVM_BATCH];
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t p = blockIdx.y; p < problems; p += gridDim.y) {
        const struct svm_sum s = sum[p];
        for (int64_t from = (int64_t)blockIdx.x * blockDim.x; from < s.columns; from += step) {
            const int64_t c = from + threadIdx.x, own = c < s.columns ? s.row[c] : -1;
            double all = 0, magnitude = 0, value[SVM_BATCH];
            for (int64_t first = 0; first < s.support; first += SVM_BATCH) {
                const int count = (int)min((int64_t)SVM_BATCH, s.support - first);
                __syncthreads();
                for (int b = threadIdx.x; b < count; b += blockDim.x)
                    rows[b] = s.vector[first + b];
                __syncthreads();
                svm_batch(kernel, &x, rows, count, own, window, value);
                OWN_UNROLL
                for (int b = 0; b < SVM_BATCH; b++)
                    if (own >= 0 && b < count) {
                        all += s.coefficient[first + b] * value[b];
                        magnitude += s.mass[first + b] * fabs(value[b]);
                    }
            }
            if (own >= 0) {
                s.sums[2 * c] = all;
                s.sums[2 * c + 1] = magnitude;
            }
        }
    }
}
