#include "knn.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread/copy_pool.h"

enum { BYTES = sizeof(double) };

/* ---- The call ---- */

static int64_t size_of(const struct accel_call *call, int which)
{
    return call->own.integer[which];
}

static struct accel_span span_of(const char *name, const struct point_set *x, int64_t features)
{
    const int64_t rows = x->by_feature ? x->count : features,
                  cols = x->by_feature ? features : x->count;
    return (struct accel_span){.name = name,
                               .ptr = (void *)(uintptr_t)x->values,
                               .rows = rows,
                               .cols = cols,
                               .ld = rows,
                               .dtype = ACCEL_FLOAT64,
                               .access = ACCEL_READ};
}

bool knn_parse(struct accel_call *call, const struct point_set *train,
               const struct point_set *queries, int64_t features, int64_t k)
{
    if (!train->values || !queries->values || train->count < 1 || queries->count < 1 ||
        features < 1 || k < 1 || k > train->count)
        return false;
    call->own.integer[KNN_TRAIN] = train->count;
    call->own.integer[KNN_TEST] = queries->count;
    call->own.integer[KNN_FEATURES] = features;
    call->own.integer[KNN_K] = k;
    call->own.integer[KNN_BY_FEATURE] = train->by_feature;
    call->span[ACCEL_a] = span_of("train", train, features);
    call->span[ACCEL_b] = span_of("test", queries, features);
    call->span[ACCEL_c] = (struct accel_span){.name = "distances",
                                              .rows = train->count,
                                              .cols = queries->count,
                                              .ld = train->count,
                                              .dtype = ACCEL_FLOAT64,
                                              .access = ACCEL_WRITE};
    return true;
}

static struct point_set points_of(const struct accel_call *call, int which)
{
    return (struct point_set){call->span[which == KNN_TRAIN ? ACCEL_a : ACCEL_b].ptr,
                              size_of(call, which), size_of(call, KNN_BY_FEATURE)};
}

static const int64_t *sizes(const struct accel_call *call)
{
    return &call->own.integer[KNN_TRAIN];
}

/* A difference, its square, and a sum. */
static double flops_of_knn(const struct accel_call *call)
{
    return 3 * (double)size_of(call, KNN_TRAIN) * (double)size_of(call, KNN_TEST) *
           (double)size_of(call, KNN_FEATURES);
}

/* A step on the device is a microsecond of the program's thread, which scans the distances with the
 * copy pool. */
static struct accel_effort effort_of_knn(const struct accel_call *call, bool device)
{
    const double scan_us = 0.001, waits_us = 40;
    const double distances = (double)size_of(call, KNN_TRAIN) * (double)size_of(call, KNN_TEST);
    struct accel_effort work = {.operations = flops_of_knn(call)};
    if (device)
        work.steps = waits_us + scan_us * distances / (1 + copy_pool_size());
    return work;
}

/* nominal: on one core FNN takes 0.4 to 0.6 ns for a feature of a pair of points (5,000 queries of
 * 15,000 points, 32 features: 1 to 1.5 s). On the device products and sums are not fused. */
const struct accel_cost knn_cost = {
    .nominal = {.cpu_share = 0.2, .gpu_share = 0.1, .gpu_step_ms = 0.001},
    .dimensions = ACCEL_DIMENSIONS,
    .sizes = sizes,
    .flops = flops_of_knn,
    .effort = effort_of_knn};

void knn_describe(const struct accel_call *call, const struct accel_fields *fields)
{
    static const char *const name[] = {"train", "test", "features", "k"};
    for (int i = KNN_TRAIN; i <= KNN_K; i++)
        fields->integer(fields, name[i], size_of(call, i));
}

/* ---- What a run leaves ---- */

struct knn_nearest *const *knn_found(const struct accel_call *call)
{
    struct knn_nearest *const *found = call->own.pointer[KNN_RESULT];
    return found;
}

static void free_all(struct knn_nearest *const *found, int64_t count)
{
    for (int64_t i = 0; found && i < count; i++)
        free(found[i]);
    free((void *)(uintptr_t)found);
}

void knn_discard(const struct accel_call *call)
{
    free_all(knn_found(call), size_of(call, KNN_TEST));
}

/* ---- The scan ---- */

struct scanning {
    const struct accel_call *call;
    knn_select *select;
    struct knn_nearest **found; /* of each query of the block */
    const double *distance;
    int64_t first, count, each; /* queries, and those of a task */
    _Atomic enum gpu_status status;
};

static void scan_some(void *context, int64_t number)
{
    struct scanning *s = context;
    const int64_t end = accel_min((number + 1) * s->each, s->count);
    for (int64_t i = number * s->each; i < end && atomic_load(&s->status) == GPU_OK; i++) {
        enum gpu_status status = GPU_OK;
        s->found[i] = s->select(s->call, s->first + i,
                                s->distance + i * size_of(s->call, KNN_TRAIN), &status);
        if (status != GPU_OK)
            atomic_store(&s->status, status);
    }
}

/* The copy pool helps where that takes longer than to wake it. */
static enum gpu_status scan(struct scanning *s)
{
    const int64_t helped = 1 << 16, tasks = accel_min(COPY_POOL_TASKS, s->count);
    struct copy_pool_job job = {.task = scan_some, .context = s};
    s->each = (s->count + tasks - 1) / tasks;
    copy_pool_begin(&job, s->count * size_of(s->call, KNN_TRAIN) >= helped);
    copy_pool_open(&job, tasks);
    copy_pool_finish(&job, tasks);
    copy_pool_end(&job);
    return atomic_load(&s->status);
}

/* While the host scans a block, the device computes the next one. */
static void find_nearest(struct distances *d, knn_select *select, struct knn_nearest **found)
{
    const int64_t all = d->queries.count;
    distances_compute(d, 0);
    for (int64_t first = 0; first < all && d->status == GPU_OK; first += d->most) {
        struct scanning scanning = {.call = d->work->call,
                                    .select = select,
                                    .found = found + first,
                                    .distance = d->down,
                                    .first = first,
                                    .count = accel_min(d->most, all - first)};
        distances_fetch(d, scanning.count);
        if (first + d->most < all)
            distances_compute(d, first + d->most);
        GPU_DO(d, scan(&scanning));
    }
}

enum gpu_status knn_run(struct gpu_work *work, knn_select *select)
{
    const struct accel_call *call = work->call;
    struct distances d = {.work = work,
                          .train = points_of(call, KNN_TRAIN),
                          .queries = points_of(call, KNN_TEST),
                          .features = size_of(call, KNN_FEATURES)};
    struct knn_nearest **found = calloc((size_t)d.queries.count, sizeof *found);
    distances_note(&d, found ? GPU_OK : GPU_NO_MEMORY);
    distances_begin(&d);
    if (d.status == GPU_OK)
        find_nearest(&d, select, found);
    distances_end(&d);
    if (d.status != GPU_OK)
        free_all(found, d.queries.count);
    else
        ((struct accel_call *)(uintptr_t)call)->own.pointer[KNN_RESULT] = found;
    return d.status;
}

/* ---- Judging ---- */

static void distances_to(const struct accel_call *call, int64_t query, double *distance)
{
    const struct point_set train = points_of(call, KNN_TRAIN), test = points_of(call, KNN_TEST);
    const int64_t features = size_of(call, KNN_FEATURES), point = test.by_feature ? 1 : features;
    for (int64_t i = 0; i < train.count; i++) {
        double sum = 0;
        for (int64_t f = 0; f < features; f++) {
            const double difference =
                test.values[query * point + f * (test.by_feature ? test.count : 1)] -
                train.values[i * point + f * (train.by_feature ? train.count : 1)];
            sum += difference * difference;
        }
        distance[i] = sum;
    }
}

static bool is_same_nearest(const struct knn_nearest *a, const struct knn_nearest *b)
{
    bool same = a->count == b->count && a->nearer == b->nearer;
    for (int32_t i = 0; same && i < a->count; i++)
        same = a->neighbour[i].point == b->neighbour[i].point &&
               a->neighbour[i].distance == b->neighbour[i].distance;
    return same;
}

double knn_judge(const struct accel_call *call, knn_select *select)
{
    double *distance = malloc((size_t)size_of(call, KNN_TRAIN) * BYTES), worst = 0;
    for (int64_t i = 0; distance && worst == 0 && i < size_of(call, KNN_TEST); i++) {
        enum gpu_status status = GPU_OK;
        distances_to(call, i, distance);
        struct knn_nearest *own = select(call, i, distance, &status);
        if (status == GPU_NO_MEMORY)
            worst = -1;
        else if (status != GPU_OK || !is_same_nearest(own, knn_found(call)[i]))
            worst = INFINITY;
        free(own);
    }
    free(distance);
    return distance ? worst : -1;
}
