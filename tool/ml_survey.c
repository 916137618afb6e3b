#define _GNU_SOURCE
#include "ml_survey.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "ops/names.h"
#include "shim/elf/library.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

double ml_survey_train(const struct ml_library *library, const void *problem, const void *parameter)
{
    const double start = now();
    void *model = library->train(problem, parameter);
    const double ms = now() - start;
    library->destroy(&model);
    return ms;
}

bool ml_survey_make(struct ml_survey_rows *made, int rows, int features)
{
    const double apart = 0.7 / sqrt(features); /* in each feature */
    const size_t length = (size_t)features + 1;
    struct libsvm_node **x = malloc((size_t)rows * sizeof *x);
    *made = (struct ml_survey_rows){.nodes = malloc((size_t)rows * length * sizeof *made->nodes),
                                    .x = x,
                                    .y = malloc((size_t)rows * sizeof(double))};
    if (!made->nodes || !x || !made->y)
        return false;
    unsigned random = 1;
    for (int i = 0; i < rows; i++) {
        x[i] = made->nodes + (size_t)i * length;
        made->y[i] = i % 2 ? 1 : -1;
        for (int k = 0; k < features; k++) {
            random = random * 1664525 + 1013904223;
            x[i][k] = (struct libsvm_node){k + 1, (random >> 8) * 0x1p-23 - 1 + apart * made->y[i]};
        }
        x[i][features].index = -1;
    }
    return true;
}

void ml_survey_free(struct ml_survey_rows *made)
{
    free(made->nodes);
    free(made->x);
    free(made->y);
}

/* Finds the library's other functions. Returns false if one is missing. */
static bool open_library(const struct ml_survey *one, void *handle, void *function,
                         struct ml_library *library)
{
    void (*set_print)(void (*print)(const char *text));
    void *destroy = dlsym(handle, one->destroy), *set = dlsym(handle, one->set_print);
    if (!destroy || !set || !dlsym(handle, one->version))
        return false;
    memcpy(&library->train, &function, sizeof function);
    memcpy(&library->destroy, &destroy, sizeof destroy);
    memcpy(&set_print, &set, sizeof set);
    set_print(one->print);
    return true;
}

static bool measure_all(const struct ml_survey *one, const struct ml_library *library,
                        struct survey_track *track, double seconds)
{
    const double start = accel_now_ms();
    double last_ms = 0, last_work = 1;
    for (int i = 0; i < one->sizes && track->shapes < SURVEY_SHAPES; i++) {
        const double work = one->work(one->size[i]);
        struct survey_shape *shape = &track->shape[track->shapes];
        *shape = (struct survey_shape){.kind = SURVEY_SQUARE};
        memcpy(shape->size, one->size[i], sizeof shape->size);
        if (accel_now_ms() - start + last_ms * work / last_work > seconds * 1e3)
            continue;
        const double before = accel_now_ms();
        if (!one->measure(library, shape))
            return false;
        track->shapes++;
        last_ms = accel_now_ms() - before;
        last_work = work;
    }
    return true;
}

bool ml_survey_run(const struct ml_survey *one, struct survey *survey, double seconds)
{
    *survey = (struct survey){.tracks = 0};
    void *handle = dlopen(one->library, RTLD_NOW | RTLD_LOCAL); /* stays */
    void *function = handle ? dlsym(handle, one->routine) : NULL;
    struct ml_library library;
    if (!function || !open_library(one, handle, function, &library))
        return true;
    survey->track = calloc(1, sizeof *survey->track);
    if (!survey->track)
        return false;
    survey->track->routine = accel_name_routine((uint32_t)accel_name_find(one->routine));
    survey->track->function = (struct library_function){function, 0, accel_library_at(function)};
    survey->tracks = 1;
    return measure_all(one, &library, survey->track, seconds);
}
