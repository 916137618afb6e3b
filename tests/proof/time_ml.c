/*
 * time_ml: an ordinary program that trains and predicts with libsvm or liblinear.
 *     time_ml svm IMAGES LABELS COUNT PREDICTED [C [GAMMA]]
 *         COUNT samples of two IDX files (http://yann.lecun.com/exdb/mnist: big-endian, after headers of 16 and 8 bytes), pixels divided by
 *         255: svm_train by RBF, then svm_predict_values and its label for the first PREDICTED samples.
 *     time_ml linear ROWS FEATURES SOLVER
 *         dense random rows with two classes: train.
 * Prints one line of "name value" pairs: train_ms, what the model is like, predict_ms, and sums that tell models apart. Exit status 1,
 * with a line on stderr, if a file cannot be read or memory is short.
 */
#include <linear.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <svm.h>

#include "base/clock.h"

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

static void train_svm(const char *images, const char *labels, int count, int predicted, double c,
                      double gamma)
{
    unsigned char *pixels = read_file(images, 16, (size_t)count * PIXELS);
    unsigned char *classes = read_file(labels, 8, (size_t)count);
    struct svm_problem problem = {count, memory((size_t)count, sizeof(double)),
                                  memory((size_t)count, sizeof(struct svm_node *))};
    struct svm_parameter parameter = {.svm_type = C_SVC,
                                      .kernel_type = RBF,
                                      .gamma = gamma,
                                      .C = c,
                                      .eps = 1e-3,
                                      .cache_size = 1000,
                                      .shrinking = 1};
    for (int i = 0; i < count; i++) {
        problem.y[i] = classes[i];
        problem.x[i] = nodes_of(pixels + (size_t)i * PIXELS);
    }
    svm_set_print_string_function(be_quiet);
    double start = accel_now_ms();
    struct svm_model *model = svm_train(&problem, &parameter);
    double ms = accel_now_ms() - start, sum = 0;
    for (int k = 0; k < model->nr_class - 1; k++)
        for (int i = 0; i < model->l; i++)
            sum += fabs(model->sv_coef[k][i]);
    printf("train_ms %.3f classes %d vectors %d coefficients %.9g rho %.9g", ms, model->nr_class,
           model->l, sum, model->rho[0]);
    time_predictions(model, &problem, predicted < count ? predicted : count);
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

int main(int argc, char **argv)
{
    if (argc >= 6 && strcmp(argv[1], "svm") == 0)
        train_svm(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]), argc > 6 ? atof(argv[6]) : 1,
                  argc > 7 ? atof(argv[7]) : 1.0 / PIXELS);
    else if (argc == 5 && strcmp(argv[1], "linear") == 0)
        train_linear(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    else
        fail("expected: svm IMAGES LABELS COUNT PREDICTED [C [GAMMA]], or linear ROWS FEATURES "
             "SOLVER");
    return 0;
}
