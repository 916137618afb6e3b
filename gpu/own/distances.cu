/* Squared distances of points, each summed in the order of its features, as R's packages sum on the
 * CPU. */
#include "distances.h"

#include "own.cuh"

/* Feature f of point i is values[i * point + f * feature]. */
struct points {
    const double *values;
    int64_t count, point, feature;
};

/* Puts some features of some points in shared memory, a feature after the other. Neighbouring
 * threads read neighbouring numbers: of points, or of features. `width` points, a power of 2. */
static __device__ inline void load(struct points x, int64_t from, int width, int64_t feature,
                                   int features, double *tile, int pitch)
{
    const bool by_feature = x.point == 1;
    const int inner = by_feature ? width : DISTANCES_FEATURES, end = by_feature ? width : features,
              outer = by_feature ? features : width;
    const int threads = (int)blockDim.x, thread = (int)threadIdx.x;
    for (int o = thread / inner; o < outer; o += max(threads / inner, 1))
        for (int n = thread % inner; n < end; n += threads) {
            const int i = by_feature ? n : o, f = by_feature ? o : n;
            const int64_t at = (from + i) * x.point + (feature + f) * x.feature;
            tile[f * pitch + i] = from + i < x.count ? x.values[at] : 0;
        }
}

/* distance[q * train.count + i] := the sum over all features of (query q - training point i)^2,
 * where each operation is rounded by itself: the compiler would fuse a product with a sum. */
OWN_KERNEL_FOR(DISTANCES_THREADS, distances, const double *train_values, int64_t train_count,
               int64_t train_point, int64_t train_feature, const double *query_values,
               int64_t query_count, int64_t query_point, int64_t query_feature, int64_t features,
               double *distance)
{
    const struct points train = {train_values, train_count, train_point, train_feature};
    const struct points query = {query_values, query_count, query_point, query_feature};
    __shared__ double points[DISTANCES_FEATURES * (DISTANCES_THREADS + 1)];
    __shared__ double queries[DISTANCES_FEATURES * DISTANCES_QUERIES];
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t q = (int64_t)blockIdx.y * DISTANCES_QUERIES; q < query.count;
         q += (int64_t)gridDim.y * DISTANCES_QUERIES)
        for (int64_t from = (int64_t)blockIdx.x * blockDim.x; from < train.count; from += step) {
            const int64_t i = from + threadIdx.x;
            double sum[DISTANCES_QUERIES] = {0};
            for (int64_t first = 0; first < features; first += DISTANCES_FEATURES) {
                const int some = (int)min((int64_t)DISTANCES_FEATURES, features - first);
                __syncthreads();
                load(train, from, (int)blockDim.x, first, some, points, DISTANCES_THREADS + 1);
                load(query, q, DISTANCES_QUERIES, first, some, queries, DISTANCES_QUERIES);
                __syncthreads();
                for (int f = 0; i < train.count && f < some; f++) {
                    const double x = points[f * (DISTANCES_THREADS + 1) + threadIdx.x];
                    OWN_UNROLL
                    for (int u = 0; u < DISTANCES_QUERIES; u++) {
                        const double difference = queries[f * DISTANCES_QUERIES + u] - x;
                        sum[u] = __dadd_rn(sum[u], __dmul_rn(difference, difference));
                    }
                }
            }
            OWN_UNROLL
            for (int u = 0; u < DISTANCES_QUERIES; u++)
                if (i < train.count && q + u < query.count)
                    distance[(q + u) * train.count + i] = sum[u];
        }
}
