/* svm_train() of libsvm. The parameters and problems are the same in all versions of
 * libsvm.so.3. */
#include "ml_bench.h"
#include "ops/svm/libsvm.h"

static void print_nothing(const char *text)
{
    (void)text;
}

static double measure_svm(const struct ml_library *libsvm, const struct ml_bench_rows *made,
                          const int64_t size[ACCEL_DIMENSIONS])
{
    (void)size;
    const struct libsvm_parameter parameter = {.svm_type = SVM_C_SVC,
                                               .kernel_type = SVM_RBF,
                                               .gamma = 1.0 / made->features,
                                               .cache_size = 100,
                                               .eps = 1e-3,
                                               .C = 1,
                                               .shrinking = 1};
    const struct libsvm_problem problem = {.l = made->rows, .y = made->y, .x = made->x};
    return ml_bench_train(libsvm, &problem, &parameter);
}

static double work_of(const int64_t size[ACCEL_DIMENSIONS])
{
    return (double)size[0] * (double)size[0] * ((double)size[1] + 15);
}

/* Few features as well as many: a kernel value takes time besides its elements'. */
static const int64_t sizes[][ACCEL_DIMENSIONS] = {
    {200, 20, 2, 4000},     {200, 200, 2, 40000},   {400, 50, 2, 20000},    {400, 400, 2, 160000},
    {800, 4, 2, 3200},      {800, 20, 2, 16000},    {800, 100, 2, 80000},   {1600, 2, 2, 3200},
    {1600, 8, 2, 12800},    {800, 800, 2, 640000},  {1600, 50, 2, 80000},   {3200, 4, 2, 12800},
    {3200, 20, 2, 64000},   {1600, 400, 2, 640000}, {6400, 2, 2, 12800},    {6400, 8, 2, 51200},
    {3200, 100, 2, 320000}, {6400, 50, 2, 320000},  {3200, 800, 2, 2560000}};

const struct ml_bench ml_bench_svm = {.routine = "svm_train",
                                      .library = "libsvm.so.3",
                                      .version = "libsvm_version",
                                      .destroy = "svm_free_and_destroy_model",
                                      .set_print = "svm_set_print_string_function",
                                      .print = print_nothing,
                                      .measure = measure_svm,
                                      .size = sizes,
                                      .sizes = sizeof sizes / sizeof *sizes,
                                      .work = work_of};
