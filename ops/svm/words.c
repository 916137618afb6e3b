/* What training and cross-validation have in common for those who decide and report: sizes, work, fields. */
#include "train.h"

void svm_set_spans(struct accel_call *call)
{
    call->span[ACCEL_a] = (struct accel_span){.name = "x",
                                              .rows = call->own.integer[SVM_STORED],
                                              .cols = 1,
                                              .ld = call->own.integer[SVM_STORED],
                                              .dtype = ACCEL_FLOAT64,
                                              .access = ACCEL_READ};
    call->span[ACCEL_y] = (struct accel_span){.name = "model",
                                              .ptr = &call->own.integer[SVM_RESULT],
                                              .rows = 1,
                                              .cols = 1,
                                              .ld = 1,
                                              .dtype = ACCEL_FLOAT64,
                                              .access = ACCEL_WRITE};
}

/* The first member of all libraries' problems is l. */
int svm_count_at(int layout)
{
    (void)layout;
    return 0;
}

const int64_t *svm_sizes(const struct accel_call *call)
{
    return &call->own.integer[SVM_ROWS];
}

/* Operations for each element of a vector in a kernel value: a product and a sum. */
static double value_flops(const struct accel_call *call)
{
    const int64_t *word = call->own.integer;
    return svm_traits_kernel(call) == SVM_PRECOMPUTED
               ? 1
               : 2 * (double)word[SVM_STORED] / (double)word[SVM_ROWS];
}

/* Fashion-MNIST's pairs of classes compute about a third of their kernel matrices on a CPU. */
static double training_flops(const struct accel_call *call, double rows)
{
    const double share = 0.3, classes = (double)call->own.integer[SVM_CLASSES],
                 pair = classes > 1 ? 2 * rows / classes : rows,
                 pairs = classes > 1 ? classes * (classes - 1) / 2 : 1;
    return share * pairs * pair * pair * value_flops(call);
}

/* Each row is decided once, by as many support vectors as a third of the others. */
double svm_flops(const struct accel_call *call)
{
    const double rows = (double)call->own.integer[SVM_ROWS], folds = svm_traits_folds(call);
    if (folds == 0)
        return training_flops(call, rows);
    const double rest = rows * (folds - 1) / folds, share = 0.3;
    return folds * training_flops(call, rest) + share * rows * rest * value_flops(call);
}

void svm_describe(const struct accel_call *call, const struct accel_fields *fields)
{
    static const char *const types[] = {NULL, "nu_svc", "one_class", "epsilon_svr", "nu_svr"};
    static const char *const kernels[] = {"linear", "poly", "rbf", "sigmoid", "precomputed"};
    const int type = svm_traits_type(call);
    if (types[type])
        fields->string(fields, "type", types[type]);
    fields->integer(fields, "l", call->own.integer[SVM_ROWS]);
    fields->integer(fields, "features", call->own.integer[SVM_FEATURES]);
    fields->string(fields, "kernel", kernels[svm_traits_kernel(call)]);
    if (call->own.integer[SVM_CLASSES] > 1)
        fields->integer(fields, "classes", call->own.integer[SVM_CLASSES]);
    if (svm_traits_folds(call))
        fields->integer(fields, "folds", svm_traits_folds(call));
}
