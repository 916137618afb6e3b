/*
 * FNN's brute force: get_KNNX_brute() finds the nearest points of queries, and get_KNN_brute()
 * those of each point itself, of which it drops the first. Both compute distances by annDist(), and
 * keep the k least; of equal ones the first comes first.
 */
#include <stdlib.h>
#include <string.h>

#include "knn.h"

/* The sources of 1.1 that have been read, with and without the keyword `register`, have the same
 * functions. */
static int accepts_fnn(const struct accel_provider *provider)
{
    double (*distance)(int features, const double *p, const double *q);
    /* annDist(int, double *, double *) */
    void *const found = provider->symbol(provider, "_Z7annDistiPdS_");
    const double point[2] = {knn_probe[0], knn_probe[2]}, zero[2] = {0, 0};
    if (!found || !knn_is_package(provider, "FNN", "1.1"))
        return 0;
    memcpy(&distance, &found, sizeof distance);
    return distance(2, point, zero) == KNN_PROBE_DISTANCE;
}

/* How many neighbours the results leave out: the first is mostly the point itself. */
static int64_t dropped(const struct accel_call *call)
{
    return call->own.integer[KNN_MORE];
}

static bool set_results(struct accel_call *call, const struct accel_passed *passed, int first,
                        int64_t count)
{
    call->span[ACCEL_x] = accel_column("index", (void *)(uintptr_t)knn_pointer(passed, first),
                                       count, ACCEL_INT32, ACCEL_WRITE);
    call->span[ACCEL_y] =
        accel_column("distance", (void *)(uintptr_t)knn_pointer(passed, first + 1), count,
                     ACCEL_FLOAT64, ACCEL_WRITE);
    return call->span[ACCEL_x].ptr && call->span[ACCEL_y].ptr;
}

/* (data, query, k, features, points, queries, index, distance) */
static bool parse_queries(struct accel_call *call, const struct accel_passed *passed)
{
    const int64_t k = knn_integer(passed, 2), count = knn_integer(passed, 5);
    const struct point_set train = {knn_pointer(passed, 0), knn_integer(passed, 4), false},
                           queries = {knn_pointer(passed, 1), count, false};
    return knn_parse(call, &train, &queries, knn_integer(passed, 3), k) &&
           set_results(call, passed, 6, k * count);
}

/* (data, k, features, points, index, distance) */
static bool parse_points(struct accel_call *call, const struct accel_passed *passed)
{
    const int64_t k = knn_integer(passed, 1), count = knn_integer(passed, 3);
    const struct point_set points = {knn_pointer(passed, 0), count, false};
    call->own.integer[KNN_MORE] = 1;
    return k < count && knn_parse(call, &points, &points, knn_integer(passed, 2), k) &&
           set_results(call, passed, 4, k * count);
}

static struct knn_nearest *nearest_of(const struct accel_call *call, int64_t query,
                                      const double *distance, enum gpu_status *status)
{
    const int64_t points = call->own.integer[KNN_TRAIN];
    const int32_t k = (int32_t)(call->own.integer[KNN_K] + dropped(call));
    /* All zero: a compiler cannot tell that what is read has been written. */
    struct knn_nearest *nearest =
        calloc(1, sizeof *nearest + (size_t)k * sizeof *nearest->neighbour);
    (void)query;
    if (!nearest) {
        *status = GPU_NO_MEMORY;
        return NULL;
    }
    struct knn_neighbour *const list = nearest->neighbour;
    int32_t count = 0;
    for (int64_t i = 0; i < points; i++) {
        int32_t at = count;
        while (at > 0 && list[at - 1].distance > distance[i])
            at--;
        if (at == k)
            continue;
        count += count < k;
        for (int32_t n = count - 1; n > at; n--)
            list[n] = list[n - 1];
        list[at] = (struct knn_neighbour){distance[i], i};
    }
    nearest->count = count;
    nearest->nearer = 0;
    return nearest;
}

static enum gpu_status run_fnn(struct gpu_work *work)
{
    return knn_run(work, nearest_of);
}

static double verify_fnn(const struct accel_call *call)
{
    return knn_judge(call, nearest_of);
}

static void complete_fnn(const struct accel_call *call, struct accel_result *result)
{
    int *index = call->span[ACCEL_x].ptr;
    double *distance = call->span[ACCEL_y].ptr;
    (void)result; /* there is none */
    for (int64_t i = 0; i < call->own.integer[KNN_TEST]; i++) {
        const struct knn_nearest *nearest = knn_found(call)[i];
        for (int32_t n = (int32_t)dropped(call); n < nearest->count; n++) {
            *index++ = (int)nearest->neighbour[n].point + 1;
            *distance++ = __builtin_sqrt(nearest->neighbour[n].distance);
        }
    }
    knn_discard(call);
}

const struct accel_op op_fnn_knnx =
    KNN_FUNCTION(run_fnn, verify_fnn, .accepts = accepts_fnn, .words = 8, .parse = parse_queries,
                 .complete = complete_fnn);
const struct accel_op op_fnn_knn = KNN_FUNCTION(run_fnn, verify_fnn, .accepts = accepts_fnn,
                                                .parse = parse_points, .complete = complete_fnn);
