/*
 * svm_train(), of libsvm and of the libraries that have changed it: each is a dialect.
 */
#ifndef ACCEL_SVM_TRAIN_H
#define ACCEL_SVM_TRAIN_H

#include "ops/op.h"
#include "call/svm.h"

/* call->own of svm_train(). A dialect's parse() fills in all but SVM_RESULT. */
enum {
    SVM_RESULT,    /* integer: what run() leaves for complete() */
    SVM_PROBLEM,   /* pointer: the dialect's */
    SVM_PARAMETER, /* pointer: the dialect's */
    SVM_TRAITS,    /* integer: svm_traits() */
    SVM_ROWS,      /* integers, the sizes that the cost depends on */
    SVM_FEATURES,
    SVM_CLASSES, /* 1: none */
    SVM_STORED,  /* elements of all vectors */
    SVM_STATUS,  /* pointer: scikit-learn's */
    SVM_CAP      /* integer: 1 + the iterations that the caller allows a problem; 0: any number */
};

_Static_assert(SVM_STORED - SVM_ROWS + 1 == ACCEL_DIMENSIONS,
               "as many sizes as the cost model takes");

/* layout: the dialect's own number; type, kernel: libsvm's. Above them are the folds of a
 * cross-validation. */
static inline int64_t svm_traits(int layout, int type, int kernel)
{
    return (int64_t)layout << 16 | type << 8 | kernel;
}
static inline int svm_traits_layout(const struct accel_call *call)
{
    return (int)(call->own.integer[SVM_TRAITS] >> 16 & 0xffff);
}
static inline int svm_traits_folds(const struct accel_call *call)
{
    return (int)(call->own.integer[SVM_TRAITS] >> 32);
}
static inline int svm_traits_type(const struct accel_call *call)
{
    return (int)(call->own.integer[SVM_TRAITS] >> 8 & 0xff);
}
static inline int svm_traits_kernel(const struct accel_call *call)
{
    return (int)(call->own.integer[SVM_TRAITS] & 0xff);
}

/* For run(), whose call is constant: sets SVM_RESULT, which is the span y. */
static inline void svm_leave(const struct accel_call *call, void *result)
{
    memcpy(call->span[ACCEL_y].ptr, &result, sizeof result);
}

/* Fills in the spans of a call that has been read: one stands for the vectors, as many bytes as
 * their elements, one for the result. */
void svm_set_spans(struct accel_call *call);

/* Members of struct accel_op for calls whose words are those above. */
const int64_t *svm_sizes(const struct accel_call *call);
double svm_flops(const struct accel_call *call);
struct accel_effort svm_effort(const struct accel_call *call, bool device);
void svm_typical(struct accel_call *call, const int64_t size[ACCEL_DIMENSIONS]);
void svm_describe(const struct accel_call *call, const struct accel_fields *fields);
int svm_count_at(int layout);

/* What the operations have in common. nominal: libsvm's kernel takes 1.6 ns for each element on one
 * core, a twentieth of a product's rate, and a step 4 ns. An iteration on the device waits for sums
 * over all rows. */
#define SVM_OPERATION                                                                              \
    .group = ACCEL_NO_BLAS, .ml = ACCEL_LIBSVM,                                                    \
    .nominal = {.cpu_share = 0.05, .cpu_step_ms = 4e-6, .gpu_share = 0.3, .gpu_step_ms = 0.01},    \
    .nests = true, .count_at = svm_count_at, .sizes = svm_sizes, .flops = svm_flops,               \
    .effort = svm_effort, .typical = svm_typical, .dimensions = ACCEL_DIMENSIONS,                  \
    .measured_as = "svm_train", .describe = svm_describe

/* As in struct accel_op. `layout` is the dialect's own number, below SVM_LAYOUTS. */
struct svm_dialect {
    int (*accepts)(const struct accel_provider *provider);
    bool (*parse)(struct accel_call *call, const struct accel_passed *passed, int layout);
    enum gpu_status (*run)(struct gpu_work *work);
    void (*complete)(const struct accel_call *call, struct accel_result *result);
    void (*discard)(const struct accel_call *call);
    double (*judge)(const struct accel_call *call);
};

enum { SVM_LAYOUTS = 256 };

extern const struct svm_dialect svm_dialect_libsvm, svm_dialect_sklearn;

#endif
