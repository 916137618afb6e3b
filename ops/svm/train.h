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

/* Functions of operations for calls whose words are those above. */
const int64_t *svm_sizes(const struct accel_call *call);
double svm_flops(const struct accel_call *call);
struct accel_effort svm_effort(const struct accel_call *call, bool device);
void svm_typical(struct accel_call *call, const int64_t size[ACCEL_DIMENSIONS]);
void svm_describe(const struct accel_call *call, const struct accel_fields *fields);
int svm_count_at(int layout);

/* Of both kinds of trainings. */
extern const struct accel_cost svm_cost;
#define SVM_FOREIGN                                                                                \
    .ml = ACCEL_LIBSVM, .nests = true, .count_at = svm_count_at, .describe = svm_describe

/* As in struct accel_foreign and struct accel_gpu. `layout` is the dialect's own number, below
 * SVM_LAYOUTS. */
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
