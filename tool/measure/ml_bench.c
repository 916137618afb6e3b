#define _GNU_SOURCE
#include "ml_bench.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "base/thread/clock.h"
#include "dispatch/cost/model.h"
#include "ops/convention.h"
#include "ops/names.h"
#include "shim/elf/library.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double train_on(struct ml_device *on, const void *problem, const void *parameter)
{
    const uint64_t gpr[6] = {(uintptr_t)problem, (uintptr_t)parameter};
    const struct accel_passed passed = {.gpr = gpr, .abi = ACCEL_ABI_OWN, .layout = on->layout};
    struct gpu_host host = {0};
    enum gpu_status status;
    struct accel_call call;
    struct model_work work;
    if (!accel_convention_of(on->routine)->parse(&call, on->routine, &passed))
        return 0;
    model_work_of(&call, true, &work);
    on->copies_ms = model_copies_ms(&work, on->up_gbps, on->down_gbps);
    const double ms = workload_run_ms(on->device, &call, &host, &status);
    if (status == GPU_OK)
        accel_op_of(on->routine)->gpu->discard(&call);
    return fmax(ms, 0);
}

double ml_bench_train(const struct ml_library *library, const void *problem, const void *parameter)
{
    if (library->device)
        return train_on(library->device, problem, parameter);
    const double start = now();
    void *model = library->train(problem, parameter);
    const double ms = now() - start;
    library->destroy(&model);
    return ms;
}

/* False without memory. The caller frees them, whatever is returned. */
static bool make_rows(struct ml_bench_rows *made, int rows, int features)
{
    const double apart = 0.7 / sqrt(features); /* in each feature */
    const size_t length = (size_t)features + 1;
    struct libsvm_node **x = malloc((size_t)rows * sizeof *x);
    *made = (struct ml_bench_rows){.rows = rows,
                                   .features = features,
                                   .nodes = malloc((size_t)rows * length * sizeof *made->nodes),
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

/* Sets the milliseconds of a training of this size. False without memory. */
static bool measure_training(const struct ml_bench *one, const struct ml_library *library,
                             struct bench_shape *shape, const int64_t size[ACCEL_DIMENSIONS])
{
    struct ml_bench_rows made;
    const bool there = make_rows(&made, (int)size[0], (int)size[1]);
    *shape = (struct bench_shape){.kind = BENCH_SQUARE};
    memcpy(shape->size, size, sizeof shape->size);
    if (there)
        shape->ms = one->measure(library, &made, size);
    free(made.nodes);
    free(made.x);
    free(made.y);
    return there;
}

/* Finds the library's other functions. Returns false if one is missing. */
static bool open_library(const struct ml_bench *one, void *handle, void *function,
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

static bool measure_all(const struct ml_bench *one, const struct ml_library *library,
                        struct bench_track *track, double seconds)
{
    const double start = accel_now_ms();
    double last_ms = 0, last_work = 1;
    for (int i = 0; i < one->sizes && track->shapes < BENCH_SHAPES; i++) {
        const double work = one->work(one->size[i]);
        struct bench_shape *shape = &track->shape[track->shapes];
        if (accel_now_ms() - start + last_ms * work / last_work > seconds * 1e3)
            continue;
        const double before = accel_now_ms();
        if (!measure_training(one, library, shape, one->size[i]))
            return false;
        if (shape->ms <= 0 && library->device)
            return true;
        shape->model_ms = shape->ms;
        if (library->device)
            shape->model_ms = fmax(shape->ms - library->device->copies_ms, 0.02 * shape->ms);
        track->shapes++;
        last_ms = accel_now_ms() - before;
        last_work = work;
    }
    return true;
}

static const struct accel_routine *routine_of(const struct ml_bench *one)
{
    return accel_name_routine((uint32_t)accel_name_find(one->routine));
}

/* Opens the library. Returns its function that trains; NULL: it is not there. */
static void *open_one(const struct ml_bench *one, struct ml_library *library, void **handle)
{
    *library = (struct ml_library){.device = NULL};
    *handle = dlopen(one->library, RTLD_NOW | RTLD_LOCAL); /* stays */
    void *function = *handle ? dlsym(*handle, one->routine) : NULL;
    return function && open_library(one, *handle, function, library) ? function : NULL;
}

bool ml_bench_run(const struct ml_bench *one, struct bench_plan *plan, double seconds)
{
    *plan = (struct bench_plan){.tracks = 0};
    struct ml_library library;
    void *handle, *function = open_one(one, &library, &handle);
    if (!function)
        return true;
    plan->track = calloc(1, sizeof *plan->track);
    if (!plan->track)
        return false;
    plan->track->routine = routine_of(one);
    plan->track->function =
        (struct library_function){function, 0, accel_library_at(function, false)};
    plan->tracks = 1;
    return measure_all(one, &library, plan->track, seconds);
}

/* ---- On a device ---- */

/* A library that is known by its handle. */
struct opened {
    struct accel_provider provider; /* first: it is given to the operation */
    void *handle;
};

static void *symbol_of(const struct accel_provider *provider, const char *name)
{
    return dlsym(((const struct opened *)provider)->handle, name);
}

static const char *no_path(const struct accel_provider *provider)
{
    (void)provider;
    return "";
}

/* The system's libraries call all others through the dynamic linker. */
static bool refers_to(const struct accel_provider *provider, const char *name)
{
    (void)provider;
    (void)name;
    return true;
}

bool ml_bench_run_on(const struct ml_bench *one, struct gpu_device *device, double up_gbps,
                     double down_gbps, struct bench_track *track, double seconds)
{
    struct ml_library library;
    void *handle, *function = open_one(one, &library, &handle);
    const struct opened opened = {{function, symbol_of, no_path, refers_to}, handle};
    struct ml_device on = {device, up_gbps, down_gbps, routine_of(one), 0, 0};
    *track = (struct bench_track){.routine = on.routine, .gpu = true};
    on.layout = function ? accel_op_of(on.routine)->foreign->accepts(&opened.provider) : 0;
    if (on.layout <= 0)
        return true;
    library.device = &on;
    struct bench_shape first; /* loads the kernels */
    return measure_training(one, &library, &first, one->size[0]) &&
           measure_all(one, &library, track, seconds);
}
