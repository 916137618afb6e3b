/* Kernel values of one vector: what a prediction is made of. */
#include "svm.cuh"

/* What an element of a row adds to u.v, or to |u - v|^2; v: the vector's element of the same
 * column. Of CSR, whose rows lack columns, the latter is the difference to |v|^2. */
static __device__ inline double svm_term(int type, bool sparse, double u, double v)
{
    if (type != SMO_RBF)
        return u * v;
    return sparse ? u * (u - 2 * v) : (u - v) * (u - v);
}

/* values[i] := K(row i, v) for a dense v. rest: of RBF, what is to be added to the rows' terms. A
 * block sums a row, in an order that depends on the size of the block alone. */
OWN_KERNEL_FOR(SVM_VECTOR_THREADS, svm_vector, struct smo_kernel kernel, struct svm_rows x,
               const double *v, double rest, double *values)
{
    __shared__ double part[SVM_VECTOR_THREADS];
    for (int64_t i = blockIdx.x; i < x.rows; i += gridDim.x) {
        const int64_t first = x.start ? x.start[i] : i * x.ld;
        const int64_t end = x.start ? x.start[i + 1] : first + x.features;
        double sum = 0;
        for (int64_t e = first + threadIdx.x; e < end; e += blockDim.x)
            sum += svm_term(kernel.type, x.start != NULL, x.values[e],
                            v[x.start ? x.column[e] : e - first]);
        part[threadIdx.x] = sum;
        for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                part[threadIdx.x] += part[threadIdx.x + half];
        }
        if (threadIdx.x == 0)
            values[i] = kernel.type == SMO_RBF ? svm_value(kernel, 0, part[0] + rest, 0)
                                               : svm_value(kernel, part[0], 0, 0);
        __syncthreads();
    }
}
