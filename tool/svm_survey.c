#define _GNU_SOURCE
#include "svm_survey.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ops/names.h"
#include "ops/svm/libsvm.h"
#include "shim/elf/library.h"

/* The functions of libsvm that a measurement needs. */
struct functions {
    struct libsvm_model *(*train)(const struct libsvm_problem *, const struct libsvm_parameter *);
    void (*destroy)(struct libsvm_model **);
    void (*set_print)(libsvm_print *);
    void *address; /* of svm_train() */
};

static void *find(void *handle, const char *name)
{
    return handle ? dlsym(handle, name) : NULL;
}

/* The parameters and problems are the same in all versions of libsvm.so.3. */
static bool open_libsvm(struct functions *libsvm)
{
    void *handle = dlopen("libsvm.so.3", RTLD_NOW | RTLD_LOCAL); /* stays */
    void *destroy = find(handle, "svm_free_and_destroy_model"),
         *set_print = find(handle, "svm_set_print_string_function");
    libsvm->address = find(handle, "svm_train");
    memcpy(&libsvm->train, &libsvm->address, sizeof libsvm->train);
    memcpy(&libsvm->destroy, &destroy, sizeof libsvm->destroy);
    memcpy(&libsvm->set_print, &set_print, sizeof libsvm->set_print);
    return libsvm->address && destroy && set_print;
}

static void print_nothing(const char *text)
{
    (void)text;
}

/* Two classes that overlap, so that a third of the vectors or so become support vectors. */
struct made_up {
    struct libsvm_problem problem;
    struct libsvm_node *nodes;
};

static bool make_up(struct made_up *made, int rows, int features)
{
    const size_t length = (size_t)features + 1;
    made->nodes = malloc((size_t)rows * length * sizeof *made->nodes);
    made->problem = (struct libsvm_problem){.l = rows,
                                            .y = malloc((size_t)rows * sizeof(double)),
                                            .x = malloc((size_t)rows * sizeof(void *))};
    if (!made->nodes || !made->problem.y || !made->problem.x)
        return false;
    unsigned random = 1;
    for (int i = 0; i < rows; i++) {
        struct libsvm_node *node = made->nodes + (size_t)i * length;
        made->problem.x[i] = node;
        made->problem.y[i] = i % 2 ? 1 : -1;
        for (int k = 0; k < features; k++) {
            random = random * 1664525 + 1013904223;
            node[k] =
                (struct libsvm_node){k + 1, (random >> 8) * 0x1p-23 - 1 + 0.1 * made->problem.y[i]};
        }
        node[features].index = -1;
    }
    return true;
}

static void free_made_up(struct made_up *made)
{
    free(made->nodes);
    free(made->problem.y);
    free(made->problem.x);
}

/* Measures one training. False if memory runs out. */
static bool measure(const struct functions *libsvm, struct survey_shape *shape)
{
    const int rows = (int)shape->size[0], features = (int)shape->size[1];
    struct made_up made;
    const struct libsvm_parameter parameter = {.svm_type = SVM_C_SVC,
                                               .kernel_type = SVM_RBF,
                                               .gamma = 1.0 / features,
                                               .cache_size = 100,
                                               .eps = 1e-3,
                                               .C = 1,
                                               .shrinking = 1};
    const bool there = make_up(&made, rows, features);
    if (there) {
        const double start = accel_now_ms();
        struct libsvm_model *model = libsvm->train(&made.problem, &parameter);
        shape->ms = shape->model_ms = accel_now_ms() - start;
        libsvm->destroy(&model);
    }
    free_made_up(&made);
    return there;
}

bool svm_survey_run(struct survey *survey, double seconds)
{
    static const int sizes[][2] = {{200, 20},   {200, 200},  {400, 50},  {400, 400},  {800, 20},
                                   {800, 100},  {800, 800},  {1600, 50}, {1600, 400}, {3200, 20},
                                   {3200, 100}, {3200, 800}, {6400, 50}};
    const double start = accel_now_ms();
    struct functions libsvm;
    *survey = (struct survey){.tracks = 0};
    if (!open_libsvm(&libsvm))
        return true;
    survey->track = calloc(1, sizeof *survey->track);
    if (!survey->track)
        return false;
    struct survey_track *track = survey->track;
    track->routine = accel_name_routine((uint32_t)accel_name_find("svm_train"));
    track->function =
        (struct library_function){libsvm.address, 0, accel_library_at(libsvm.address)};
    libsvm.set_print(print_nothing);
    double last_ms = 0, last_work = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int rows = sizes[i][0], features = sizes[i][1];
        const double work = (double)rows * rows * (features + 5);
        struct survey_shape *shape = &track->shape[track->shapes];
        *shape = (struct survey_shape){.size = {rows, features, 2, (int64_t)rows * features}};
        if (accel_now_ms() - start + last_ms * work / last_work > seconds * 1e3)
            continue;
        if (!measure(&libsvm, shape))
            return false;
        track->shapes++;
        last_ms = shape->ms;
        last_work = work;
    }
    survey->tracks = 1;
    return true;
}
