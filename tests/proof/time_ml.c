/*
 * time_ml: an ordinary program that trains and predicts with libsvm or liblinear, or finds nearest
 * neighbours with FNN.
 *     time_ml svm IMAGES LABELS COUNT PREDICTED [C [GAMMA]]
 *         COUNT samples of two IDX files (http://yann.lecun.com/exdb/mnist: big-endian, after
 *         headers of 16 and 8 bytes), pixels divided by 255: svm_train by RBF, then
 *         svm_predict_values and its label for the first PREDICTED samples.
 *     time_ml text FILE COUNT PREDICTED [C [GAMMA]]
 *         the same with COUNT rows of a file in libsvm's format, taken evenly (0: all), and without
 *         libsvm's shrinking: the device takes the same steps as libsvm without it, so that models
 *         agree in their support vectors, too.
 *     time_ml linear ROWS FEATURES SOLVER
 *         dense random rows with two classes: train.
 *     time_ml knn IMAGES COUNT QUERIES K FNN LIBR
 *         the K nearest of COUNT samples to each of the first QUERIES, by get_KNNX_brute() of R's
 *         package FNN, whose object FNN is; LIBR: a libR.so.
 * Prints one line of "name value" pairs: train_ms, what the model is like, predict_ms, and sums
 * that tell models apart. Exit status 1, with a line on stderr, if a file cannot be read or memory
 * is short.
 */
#include <dlfcn.h>
#include <linear.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <svm.h>

#include "base/thread/clock.h"

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "time_ml: %s\n", what);
    exit(1);
}

static void *memory(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p)
        fail("no memory");
    return p;
}

static void be_quiet(const char *line)
{
    (void)line;
}

/* ---- Fashion-MNIST and its like ---- */

enum { PIXELS = 784 };

/* Returns `bytes` bytes of a file from `start` on. */
static unsigned char *read_file(const char *path, long start, size_t bytes)
{
    FILE *file = fopen(path, "rb");
    unsigned char *data = memory(bytes, 1);
    if (!file || fseek(file, start, SEEK_SET) != 0 || fread(data, 1, bytes, file) != bytes)
        fail(path);
    fclose(file);
    return data;
}

static struct svm_node *nodes_of(const unsigned char *image)
{
    struct svm_node *list = memory(PIXELS + 1, sizeof *list);
    int count = 0;
    for (int i = 0; i < PIXELS; i++)
        if (image[i] > 0)
            list[count++] = (struct svm_node){i + 1, image[i] / 255.0};
    list[count] = (struct svm_node){-1, 0};
    return list;
}

static void time_predictions(const struct svm_model *model, const struct svm_problem *problem,
                             int count)
{
    int pairs = model->nr_class * (model->nr_class - 1) / 2, right = 0;
    double *values = memory((size_t)pairs, sizeof *values), sum = 0, start = accel_now_ms();
    for (int i = 0; i < count; i++) {
        right += svm_predict_values(model, problem->x[i], values) == problem->y[i];
        for (int pair = 0; pair < pairs; pair++)
            sum += fabs(values[pair]);
    }
    printf(" predict_ms %.3f right %d values %.9g", accel_now_ms() - start, right, sum);
    free(values);
}

static struct svm_problem problem_of(int rows)
{
    return (struct svm_problem){rows, memory((size_t)rows, sizeof(double)),
                                memory((size_t)rows, sizeof(struct svm_node *))};
}

static struct svm_problem read_images(const char *images, const char *labels, int count)
{
    unsigned char *pixels = read_file(images, 16, (size_t)count * PIXELS);
    unsigned char *classes = read_file(labels, 8, (size_t)count);
    struct svm_problem problem = problem_of(count);
    for (int i = 0; i < count; i++) {
        problem.y[i] = classes[i];
        problem.x[i] = nodes_of(pixels + (size_t)i * PIXELS);
    }
    return problem;
}

/* ---- libsvm's format: a label, then index:value ---- */

static struct svm_node *nodes_in(char *line)
{
    int count = 0;
    for (const char *at = line; *at; at++)
        count += *at == ':';
    struct svm_node *list = memory((size_t)count + 1, sizeof *list);
    for (int i = 0; i < count; i++) {
        list[i].index = (int)strtol(line, &line, 10);
        list[i].value = strtod(line + 1, &line);
    }
    list[count].index = -1;
    return list;
}

static int lines_in(FILE *file)
{
    int lines = 0;
    for (int c = getc(file); c != EOF; c = getc(file))
        lines += c == '\n';
    rewind(file);
    return lines;
}

static struct svm_problem read_text(const char *path, int count)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path);
    const int lines = lines_in(file), rows = count > 0 && count < lines ? count : lines;
    struct svm_problem problem = problem_of(rows);
    char *line = NULL;
    size_t room = 0;
    for (int i = 0, at = 0; i < lines && getline(&line, &room, file) > 0; i++) {
        if (at >= rows || i < (int64_t)at * lines / rows)
            continue;
        char *features;
        problem.y[at] = strtod(line, &features);
        problem.x[at++] = nodes_in(features);
    }
    free(line);
    fclose(file);
    return problem;
}

/* ---- libsvm ---- */

static void train_svm(struct svm_problem problem, bool shrinks, int predicted, double c,
                      double gamma)
{
    struct svm_parameter parameter = {.svm_type = C_SVC,
                                      .kernel_type = RBF,
                                      .gamma = gamma,
                                      .C = c,
                                      .eps = 1e-3,
                                      .cache_size = 1000,
                                      .shrinking = shrinks};
    svm_set_print_string_function(be_quiet);
    double start = accel_now_ms();
    struct svm_model *model = svm_train(&problem, &parameter);
    double ms = accel_now_ms() - start, sum = 0;
    for (int k = 0; k < model->nr_class - 1; k++)
        for (int i = 0; i < model->l; i++)
            sum += fabs(model->sv_coef[k][i]);
    printf("train_ms %.3f classes %d vectors %d coefficients %.9g rho %.9g", ms, model->nr_class,
           model->l, sum, model->rho[0]);
    time_predictions(model, &problem, predicted < problem.l ? predicted : problem.l);
    printf("\n");
    svm_free_and_destroy_model(&model);
}

/* ---- Dense random rows ---- */

static double uniform(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / 9007199254740992.0 - 0.5;
}

static void train_linear(int rows, int features, int solver)
{
    struct problem problem = {rows, features, memory((size_t)rows, sizeof(double)),
                              memory((size_t)rows, sizeof(struct feature_node *)), -1};
    struct parameter parameter = {.solver_type = solver, .C = 1, .eps = 1e-3, .p = 0.1};
    struct feature_node *nodes = memory((size_t)rows * (size_t)(features + 1), sizeof *nodes);
    uint64_t state = 88172645;
    for (int i = 0; i < rows; i++) {
        struct feature_node *row = problem.x[i] = nodes + (size_t)i * (size_t)(features + 1);
        double side = uniform(&state);
        for (int j = 0; j < features; j++) {
            row[j] = (struct feature_node){j + 1, uniform(&state)};
            side += j % 3 == 0 ? row[j].value : 0;
        }
        row[features].index = -1;
        problem.y[i] = side > 0 ? 1 : -1;
    }
    set_print_string_function(be_quiet);
    double start = accel_now_ms();
    struct model *model = train(&problem, &parameter);
    double ms = accel_now_ms() - start, sum = 0;
    for (int j = 0; j < features; j++)
        sum += fabs(model->w[j]);
    printf("train_ms %.3f weights %.9g\n", ms, sum);
    free_and_destroy_model(&model);
}

/* ---- Nearest neighbours ---- */

typedef void get_knnx(const double *points, const double *queries, const int *k,
                      const int *features, const int *count, const int *query_count, int *index,
                      double *distance);

static get_knnx *open_fnn(const char *fnn, const char *libr)
{
    get_knnx *function;
    void *handle = dlopen(libr, RTLD_NOW | RTLD_LOCAL) ? dlopen(fnn, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *found = handle ? dlsym(handle, "get_KNNX_brute") : NULL;
    if (!found)
        fail(dlerror());
    memcpy(&function, &found, sizeof function);
    return function;
}

/* FNV-1a, less than 2^31: each bit of the results counts. */
static uint64_t hash_of(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 16777619 % 2147483648;
    return hash;
}

static void find_neighbours(const char *images, int count, int queries, int k, get_knnx *find)
{
    const int features = PIXELS;
    const size_t numbers = (size_t)count * PIXELS, results = (size_t)queries * (size_t)k;
    unsigned char *pixels = read_file(images, 16, numbers);
    double *points = memory(numbers, sizeof *points), *distance = memory(results, sizeof *distance);
    int *index = memory(results, sizeof *index);
    double sum = 0;
    for (size_t i = 0; i < numbers; i++)
        points[i] = pixels[i] / 255.0;
    const double start = accel_now_ms();
    find(points, points, &k, &features, &count, &queries, index, distance);
    const double ms = accel_now_ms() - start;
    for (size_t i = 0; i < results; i++)
        sum += distance[i];
    const uint64_t hash = hash_of(hash_of(2166136, index, results * sizeof *index), distance,
                                  results * sizeof *distance);
    printf("predict_ms %.3f distances %.9g hash %llu\n", ms, sum, (unsigned long long)hash);
}

int main(int argc, char **argv)
{
    if (argc >= 6 && strcmp(argv[1], "svm") == 0)
        train_svm(read_images(argv[2], argv[3], atoi(argv[4])), true, atoi(argv[5]),
                  argc > 6 ? atof(argv[6]) : 1, argc > 7 ? atof(argv[7]) : 1.0 / PIXELS);
    else if (argc >= 5 && strcmp(argv[1], "text") == 0)
        train_svm(read_text(argv[2], atoi(argv[3])), false, atoi(argv[4]),
                  argc > 5 ? atof(argv[5]) : 1, argc > 6 ? atof(argv[6]) : 0.1);
    else if (argc == 5 && strcmp(argv[1], "linear") == 0)
        train_linear(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    else if (argc == 8 && strcmp(argv[1], "knn") == 0 && atoi(argv[4]) <= atoi(argv[3]))
        find_neighbours(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]),
                        open_fnn(argv[6], argv[7]));
    else
        fail(
            "expected: svm IMAGES LABELS COUNT PREDICTED [C [GAMMA]], text FILE COUNT PREDICTED [C "
            "[GAMMA]], linear ROWS FEATURES SOLVER, or knn IMAGES COUNT QUERIES K FNN LIBR");
    return 0;
}
