/*
 * Nearest neighbours of R's packages, by the distances to all training points. The device computes
 * the distances, to the last bit as the packages do; the package's own scan over them is made on
 * the CPU, by its operation's `select`.
 */
#ifndef ACCEL_KNN_H
#define ACCEL_KNN_H

#include "gpu/exec/ml/distances.h"
#include "ops/op.h"

/* What a scan has found for a query. */
struct knn_nearest {
    int32_t count;
    int32_t nearer; /* class: so many of them are nearer than those that tie with the last one */
    struct knn_neighbour {
        double distance; /* squared */
        int64_t point;
    } neighbour[];
};

/* Returns the nearest points of a query; the caller frees them. Sets *status if there are none that
 * the package's own code is sure to find, or no memory. */
typedef struct knn_nearest *knn_select(const struct accel_call *call, int64_t query,
                                       const double *distance, enum gpu_status *status);

/* call->own: the sizes, in the order in which the log has them; two places for the operation; what
 * a run has left. */
enum { KNN_TRAIN, KNN_TEST, KNN_FEATURES, KNN_K, KNN_MORE, KNN_BY_FEATURE = 6, KNN_RESULT };

/* R passes all arguments by reference. */
static inline const void *knn_pointer(const struct accel_passed *passed, int argument)
{
    return (const void *)(uintptr_t)accel_passed_word(passed, argument);
}
static inline int64_t knn_integer(const struct accel_passed *passed, int argument)
{
    return accel_integer_at(ACCEL_INT32, knn_pointer(passed, argument), 0);
}

/* Notes a call's points and sizes; queries are laid out like training points. Returns false if
 * there is nothing to find. */
bool knn_parse(struct accel_call *call, const struct point_set *train,
               const struct point_set *queries, int64_t features, int64_t k);

/* Of every operation. */
extern const struct accel_cost knn_cost;
void knn_describe(const struct accel_call *call, const struct accel_fields *fields);

/* Finds the nearest points of all queries, and leaves them in the call. Writes nothing else. */
enum gpu_status knn_run(struct gpu_work *work, knn_select *select);
/* Returns what knn_run() has left: a result for each query. */
struct knn_nearest *const *knn_found(const struct accel_call *call);
void knn_discard(const struct accel_call *call);
/* Returns 0 if distances of the CPU lead to the same points, else infinity; negative: there is no
 * memory to tell. */
double knn_judge(const struct accel_call *call, knn_select *select);

/* Returns whether the provider is the library of an R package of a known version, such as "7.3", by
 * the file DESCRIPTION of its installation. */
bool knn_is_package(const struct accel_provider *provider, const char *package,
                    const char *version);

/* Two points of two features, by feature. The first one's squared distance to 0 is
 * KNN_PROBE_DISTANCE, as is the second one's, if a square is rounded before it is added; if a
 * compiler has fused the two, it is larger. */
extern const double knn_probe[4];
#define KNN_PROBE_DISTANCE 16777217

/* An operation, by its GPU function and its check; `...`: more members of its struct
 * accel_foreign. */
#define KNN_FUNCTION(run_call, judge_call, ...)                                                    \
    {                                                                                              \
        .traits = {.group = ACCEL_NO_BLAS}, .cost = &knn_cost,                                     \
        OP_GPU(.is_supported = accel_is_on_host, .run = (run_call), .discard = knn_discard),       \
        OP_FOREIGN(.nests = true, .describe = knn_describe, .judge = (judge_call), __VA_ARGS__)    \
    }

#endif
