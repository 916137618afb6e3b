/*
 * knn() of R's package class, VR_knn(k, l, points, queries, features, train, class, test, res, pr,
 * votes, classes, cv, use_all): the nearest points vote on the class of a query. Distances that
 * differ by less than a share of 10^-4 tie. Where votes tie, and where use_all = 0 and the
 * distances of the last points do, random numbers of R's decide; they are drawn when the result is
 * certain.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "knn.h"

/* ---- The package ---- */

typedef void lvq1_function(double *alpha, int *points, int *features, double *x, int *class_of_x,
                           int *codes, double *code, int *class_of_code, int *steps, int *step);

/* Its functions compute distances alike. lvq1 moves the first one of the codes that are nearest to
 * x, and draws no random number. */
static bool is_rounded(lvq1_function *lvq1)
{
    double alpha = 0.5, x[2] = {0, 0}, code[4];
    int one = 1, two = 2, class_of_code[2] = {1, 1}, zero = 0;
    memcpy(code, knn_probe, sizeof code);
    lvq1(&alpha, &one, &two, x, &one, &two, code, class_of_code, &one, &zero);
    return code[0] == knn_probe[0] / 2 && code[1] == knn_probe[1] && code[3] == knn_probe[3];
}

/* R's random numbers, and what lets a function clean up if an error of R's leaves it (R 3.5 and
 * newer; "Writing R Extensions", 6.12). */
struct generator {
    void (*get)(void);
    double (*draw)(void);
    void (*put)(void);
    void *(*protect)(void *(*run)(void *), void *data, void (*clean)(void *, int leaves), void *,
                     void *);
    void *const *null; /* R_NilValue */
};

static bool find_generator(struct generator *generator)
{
    void *const get = dlsym(RTLD_DEFAULT, "GetRNGstate"),
                *const put = dlsym(RTLD_DEFAULT, "PutRNGstate"),
                *const draw = dlsym(RTLD_DEFAULT, "unif_rand"),
                *const protect = dlsym(RTLD_DEFAULT, "R_UnwindProtect");
    memcpy(&generator->get, &get, sizeof get);
    memcpy(&generator->draw, &draw, sizeof draw);
    memcpy(&generator->put, &put, sizeof put);
    memcpy(&generator->protect, &protect, sizeof protect);
    generator->null = dlsym(RTLD_DEFAULT, "R_NilValue");
    return get && draw && put && protect && generator->null;
}

/* The sources of 2018 and of 2022, which have been read, have the same VR_knn. */
static int accepts_class(const struct accel_provider *provider)
{
    lvq1_function *lvq1;
    struct generator generator;
    void *const found = provider->symbol(provider, "VR_lvq1");
    if (!found || !knn_is_package(provider, "class", "7.3") || !find_generator(&generator))
        return 0;
    memcpy(&lvq1, &found, sizeof lvq1);
    return is_rounded(lvq1);
}

/* ---- The call ---- */

/* The arguments from the seventh on: they stay where the program has passed them until the call is
 * complete. */
enum argument {
    OF_CLASS = 6,
    OF_TEST,
    OF_RES,
    OF_PR,
    OF_VOTES,
    OF_CLASSES,
    OF_CV,
    OF_USE_ALL,
    WORDS
};
enum { CLASS_PASSED = KNN_MORE, CLASS_L };

static void *pointer_of(const struct accel_call *call, enum argument argument)
{
    return (void *)(uintptr_t)accel_passed_word(call->own.pointer[CLASS_PASSED], (int)argument);
}

static int integer_of(const struct accel_call *call, enum argument argument)
{
    return *(const int *)pointer_of(call, argument);
}

/* The package has room for 999 neighbours, with those that tie. */
enum { MOST = 999 };

static bool parse_class(struct accel_call *call, const struct accel_passed *passed)
{
    const int64_t k = knn_integer(passed, 0), points = knn_integer(passed, 2),
                  queries = knn_integer(passed, 3);
    const struct point_set train = {knn_pointer(passed, 5), points, true},
                           test = {knn_pointer(passed, 7), queries, true};
    call->own.pointer[CLASS_PASSED] = passed;
    call->own.integer[CLASS_L] = knn_integer(passed, 1);
    if (k >= MOST || integer_of(call, OF_CLASSES) < 1 ||
        !knn_parse(call, &train, &test, knn_integer(passed, 4), k))
        return false;
    call->span[ACCEL_x] =
        accel_column("res", pointer_of(call, OF_RES), queries, ACCEL_INT32, ACCEL_WRITE);
    call->span[ACCEL_y] =
        accel_column("pr", pointer_of(call, OF_PR), queries, ACCEL_FLOAT64, ACCEL_WRITE);
    return true;
}

/* ---- Its neighbours ---- */

static const double tolerance = 1e-4, far = 0.99 * 1.7976931348623157e308;

/* The list of the nearest points so far: ascending, a fence behind its `count` places. A place
 * without a point is far away. */
struct list {
    double distance[MOST + 1];
    int32_t point[MOST + 1];
    int32_t k, count;
};

/* Returns false if there are too many ties. The list grows where the point that would leave it ties
 * with the k-th. */
static bool insert(struct list *list, int32_t point, double distance)
{
    int32_t at = list->count;
    while (at > 0 && distance < list->distance[at - 1])
        at--;
    if (!(distance < list->distance[at]))
        return true;
    const size_t behind = (size_t)(list->count - at);
    memmove(list->distance + at + 1, list->distance + at, behind * sizeof *list->distance);
    memmove(list->point + at + 1, list->point + at, behind * sizeof *list->point);
    list->distance[at] = distance;
    list->point[at] = point;
    if (list->distance[list->count] <= list->distance[list->k - 1])
        list->count++;
    if (list->count == MOST)
        return false;
    list->distance[list->count] = far;
    return true;
}

static bool fill_list(struct list *list, const double *distance, int32_t points, int64_t left_out)
{
    for (int32_t i = 0; i <= list->count; i++)
        list->distance[i] = far;
    for (int32_t i = 0; i < points; i++)
        if (i != left_out && distance[i] <= list->distance[list->k - 1] * (1 + tolerance) &&
            !insert(list, i, distance[i]))
            return false;
    return list->distance[list->k - 1] < far / 2; /* else there are fewer points than k */
}

/* Copies the points that have a vote. */
static struct knn_nearest *nearest_in(const struct list *list)
{
    const double last = list->distance[list->k - 1];
    int32_t count = list->k, nearer = 0;
    while (count < list->count && !(list->distance[count] > last * (1 + tolerance)))
        count++;
    while (list->distance[nearer] < last * (1 - tolerance))
        nearer++;
    struct knn_nearest *nearest =
        malloc(sizeof *nearest + (size_t)count * sizeof *nearest->neighbour);
    if (!nearest)
        return NULL;
    nearest->count = count;
    nearest->nearer = nearer;
    for (int32_t i = 0; i < count; i++)
        nearest->neighbour[i] = (struct knn_neighbour){list->distance[i], list->point[i]};
    return nearest;
}

static struct knn_nearest *nearest_of(const struct accel_call *call, int64_t query,
                                      const double *distance, enum gpu_status *status)
{
    struct list list;
    list.k = list.count = (int32_t)call->own.integer[KNN_K];
    if (!fill_list(&list, distance, (int32_t)call->own.integer[KNN_TRAIN],
                   integer_of(call, OF_CV) > 0 ? query : -1)) {
        *status = GPU_UNSUPPORTED;
        return NULL;
    }
    struct knn_nearest *nearest = nearest_in(&list);
    if (!nearest)
        *status = GPU_NO_MEMORY;
    return nearest;
}

/* Votes are counted by class: a class that is none would be counted elsewhere. */
static bool has_classes(const struct accel_call *call)
{
    const int *class = pointer_of(call, OF_CLASS), most = integer_of(call, OF_CLASSES);
    bool all = true;
    for (int64_t i = 0; i < call->own.integer[KNN_TRAIN]; i++)
        all = all && class[i] >= 0 && class[i] <= most;
    return all;
}

static enum gpu_status run_class(struct gpu_work *work)
{
    struct generator generator;
    return has_classes(work->call) && find_generator(&generator) ? knn_run(work, nearest_of)
                                                                 : GPU_UNSUPPORTED;
}

static double verify_class(const struct accel_call *call)
{
    return knn_judge(call, nearest_of);
}

/* ---- Its votes ---- */

struct election {
    const struct accel_call *call;
    struct generator generator;
    const int *class_of; /* of each training point */
    int *votes;          /* of each class, from 1 on */
    int classes, least;  /* least: votes that a class needs */
    bool use_all;
};

/* Chooses among those that tie, each with the same chance: a later one takes the seat of an earlier
 * one. The package counts that seat from the k places' start, and so beyond the seats: such a
 * choice changes nothing. */
static void vote_of_ties(const struct election *e, const struct knn_nearest *nearest, int k)
{
    int32_t seat[MOST];
    const int seats = k - nearest->nearer;
    int candidates = seats;
    for (int i = 0; i < seats; i++)
        seat[i] = e->class_of[nearest->neighbour[nearest->nearer + i].point];
    for (int32_t i = k; i < nearest->count; i++)
        if (++candidates * e->generator.draw() < seats)
            seat[nearest->nearer + (int)(e->generator.draw() * seats)] =
                e->class_of[nearest->neighbour[i].point];
    for (int i = 0; i < seats; i++)
        e->votes[seat[i]]++;
}

static void count_votes(const struct election *e, const struct knn_nearest *nearest, int k)
{
    const int32_t sure = e->use_all ? nearest->count : nearest->nearer;
    memset(e->votes, 0, ((size_t)e->classes + 1) * sizeof *e->votes);
    for (int32_t i = 0; i < sure; i++)
        e->votes[e->class_of[nearest->neighbour[i].point]]++;
    if (e->use_all)
        return;
    if (nearest->nearer == k - 1) /* the k-th alone: what ties beyond it has no vote */
        e->votes[e->class_of[nearest->neighbour[k - 1].point]]++;
    else
        vote_of_ties(e, nearest, k);
}

/* Returns the class with the most votes, 0 for doubt; *most: its votes. */
static int winner(const struct election *e, int extra, int *most)
{
    int best = 0, ties = 1;
    *most = e->least > 0 ? e->least - 1 + extra : 0;
    for (int i = 1; i <= e->classes; i++)
        if (e->votes[i] > *most) {
            ties = 1;
            best = i;
            *most = e->votes[i];
        } else if (e->votes[i] == *most && e->votes[i] >= e->least) {
            if (++ties * e->generator.draw() < 1)
                best = i;
        }
    return best;
}

static void *vote(void *data)
{
    const struct election *const e = data;
    const int k = (int)e->call->own.integer[KNN_K];
    int *res = pointer_of(e->call, OF_RES);
    double *share = pointer_of(e->call, OF_PR);
    e->generator.get();
    for (int64_t i = 0; i < e->call->own.integer[KNN_TEST]; i++) {
        const struct knn_nearest *nearest = knn_found(e->call)[i];
        const int extra = e->use_all ? nearest->count - k : 0;
        int most;
        count_votes(e, nearest, k);
        res[i] = winner(e, extra, &most);
        share[i] = (double)most / (k + extra);
    }
    e->generator.put();
    return *e->generator.null;
}

static void end_vote(void *data, int leaves)
{
    const struct election *const e = data;
    (void)leaves;
    knn_discard(e->call);
}

/* If R's state of random numbers is broken, its error leaves us here, as it does the package:
 * nothing is held any more. */
static void complete_class(const struct accel_call *call, struct accel_result *result)
{
    struct election e = {.call = call,
                         .class_of = pointer_of(call, OF_CLASS),
                         .votes = pointer_of(call, OF_VOTES),
                         .classes = integer_of(call, OF_CLASSES),
                         .least = (int)call->own.integer[CLASS_L],
                         .use_all = integer_of(call, OF_USE_ALL) != 0};
    (void)result; /* there is none */
    find_generator(&e.generator);
    e.generator.protect(vote, &e, end_vote, &e, NULL);
}

const struct accel_op op_class_knn =
    KNN_FUNCTION(run_class, verify_class, .accepts = accepts_class, .words = WORDS,
                 .parse = parse_class, .complete = complete_class);
