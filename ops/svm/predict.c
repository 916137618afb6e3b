/*
 * svm_predict_values() of libsvm and of scikit-learn, through which all of their predictions go:
 * svm_predict() and svm_predict_probability() call it, and make labels and probabilities of its
 * values by themselves. The device computes the kernel values of the vector with all support
 * vectors; the sums over them, which are few operations, are made here, in libsvm's order.
 *
 * The support vectors stay on the device from call to call. The program may change or free a model
 * at any time, so each call reads all of them to see that they are those that the device has;
 * coefficients, rho and labels are read in each call anyway.
 */
#include "predict.h"

#include <math.h>
#include <stdlib.h>

#include "base/thread/copy_pool.h"
#include "cpu_ref/svm.h"
#include "gpu/device/work.h"
#include "train.h"

/* Where svm_train() has its problem and its parameters. */
enum {
    PREDICT_MODEL = SVM_PROBLEM,
    PREDICT_VECTOR = SVM_PARAMETER,
    PREDICT_ALONE = SVM_STORED + 1
};

/* ---- The call ---- */

/* Microseconds that come on top because the vectors are not on the device yet: in bits above those
 * of svm_traits(). */
static int64_t put_us_of(const struct accel_call *call)
{
    return call->own.integer[SVM_TRAITS] >> 32;
}

static int64_t put_us(const struct svm_view *view, const struct svm_admission *admission)
{
    const int64_t most = INT32_MAX, ns = view->dense ? 2 : 4; /* for each element */
    if (admission->cached)
        return 0;
    return accel_min(ns * admission->stored / 1000 / admission->seen, most >> admission->misses)
           << admission->misses;
}

/* Elements of the vector, as a dense one, that count as elements of the call: no more than the
 * library reads. The others are the device's work alone. */
static int64_t counted_features(const struct accel_call *call)
{
    return accel_min(call->own.integer[SVM_FEATURES], call->own.integer[SVM_STORED]);
}

/* The vector goes up, and a kernel value for each support vector comes down. */
static void set_spans(struct accel_call *call, double *values, int64_t functions)
{
    const int64_t rows = call->own.integer[SVM_ROWS], features = counted_features(call);
    svm_set_spans(call);
    call->span[ACCEL_a].rows = call->span[ACCEL_a].ld = features;
    call->span[ACCEL_b] = accel_column("values", values, functions, ACCEL_FLOAT64, ACCEL_WRITE);
    call->span[ACCEL_c] = accel_column("k", NULL, rows, ACCEL_FLOAT64, ACCEL_WRITE);
}

static bool parse_prediction(struct accel_call *call, const struct accel_passed *passed)
{
    const void *model = (void *)(uintptr_t)passed->gpr[0], *x = (void *)(uintptr_t)passed->gpr[1];
    double *values = (void *)(uintptr_t)passed->gpr[2];
    struct svm_view view;
    if (!values || !svm_view_of(&view, passed->layout, model, x))
        return false;
    const struct svm_admission admission = svm_admission_look(&view);
    if (admission.refused)
        return false;
    call->own.pointer[PREDICT_MODEL] = model;
    call->own.pointer[PREDICT_VECTOR] = x;
    call->own.integer[SVM_TRAITS] =
        svm_traits(passed->layout, view.parameter->svm_type, view.parameter->kernel_type) +
        (put_us(&view, &admission) << 32);
    call->own.integer[SVM_ROWS] = view.vectors;
    call->own.integer[SVM_FEATURES] = admission.features;
    call->own.integer[SVM_CLASSES] = libsvm_classifies(view.parameter->svm_type) ? view.classes : 1;
    call->own.integer[SVM_STORED] = admission.stored;
    call->own.integer[PREDICT_ALONE] = admission.alone;
    set_spans(call, values, svm_view_functions(&view));
    return true;
}

/* Of a call that has been parsed. */
static bool view_of(const struct accel_call *call, struct svm_view *view)
{
    return svm_view_of(view, svm_traits_layout(call), call->own.pointer[PREDICT_MODEL],
                       call->own.pointer[PREDICT_VECTOR]);
}

/* ---- Work ---- */

static bool is_dense(const struct accel_call *call)
{
    return svm_traits_layout(call) == SVM_VIEW_SKLEARN;
}

static double flops_of_prediction(const struct accel_call *call)
{
    return 2 * (double)call->own.integer[SVM_STORED];
}

/* Of all functions: each vector counts in the function of its class with each other one. */
static double summed(const struct accel_call *call)
{
    const double classes = (double)call->own.integer[SVM_CLASSES];
    return (double)call->own.integer[SVM_ROWS] * (classes > 1 ? classes - 1 : 1);
}

/* Where only one of two vectors has a feature, libsvm's branches are predicted wrong: an element
 * takes up to four times as long. */
static double branches(const struct accel_call *call)
{
    const double some = 6 * (double)call->own.integer[PREDICT_ALONE],
                 most = 3 * (double)call->own.integer[SVM_STORED];
    return 2 * (some < most ? some : most);
}

/* Of dense vectors BLAS makes the products. A kernel value takes as long as some elements. */
static struct accel_effort effort_of_cpu(const struct accel_call *call)
{
    return (struct accel_effort){
        .operations = flops_of_prediction(call) * (is_dense(call) ? 0.3 : 1) + branches(call) +
                      5 * (double)call->own.integer[SVM_ROWS] + summed(call)};
}

/* A step is a microsecond of the program's thread: it reads the support vectors, with the copy
 * pool, and sums; copies and waits. */
static struct accel_effort effort_of_device(const struct accel_call *call)
{
    const double bytes_in_us = 8e3, sum_us = 0.0015, waits_us = 20, zero_us = 0.002;
    const double zeros = (double)(call->own.integer[SVM_FEATURES] - counted_features(call));
    const double bytes = (double)call->own.integer[SVM_STORED] *
                         (is_dense(call) ? sizeof(double) : sizeof(struct libsvm_node));
    return (struct accel_effort){.operations = flops_of_prediction(call),
                                 .steps = bytes / bytes_in_us / (1 + copy_pool_size()) +
                                          sum_us * summed(call) + (double)put_us_of(call) +
                                          zero_us * zeros + waits_us};
}

static struct accel_effort effort_of_prediction(const struct accel_call *call, bool device)
{
    return device ? effort_of_device(call) : effort_of_cpu(call);
}

static void describe_prediction(const struct accel_call *call, const struct accel_fields *fields)
{
    struct accel_call plain = *call;
    plain.own.integer[SVM_TRAITS] &= UINT32_MAX;
    svm_describe(&plain, fields);
}

/* ---- Decisions of kernel values ---- */

struct decision_values {
    double label; /* or the value of a regression */
    int64_t count;
    double value[]; /* of each function */
};

/* The sum of a function, and that of its terms' magnitudes. */
struct kernel_sum {
    double value, magnitude;
};

static struct kernel_sum sum_terms(const struct svm_range range[2], const double *k)
{
    struct kernel_sum sum = {0, 0};
    for (int part = 0; part < 2; part++)
        for (int64_t i = 0; i < range[part].count; i++) {
            const double term = range[part].coefficient[i] * k[range[part].first + i];
            sum.value += term;
            sum.magnitude += fabs(term);
        }
    return sum;
}

/* Rounding makes kernel values differ from the library's by less than this share. A value so near
 * to 0 could have another sign there. */
static double share_of_rounding(const struct svm_view *view, bool sparse, double rest)
{
    const struct libsvm_parameter *p = view->parameter;
    return 1e-10 + (sparse && p->kernel_type == SVM_RBF ? 1e-14 * fabs(p->gamma) * rest : 0);
}

/* Of sparse rows the device adds differences to |v|^2 (svm_vector.cu), where the library adds
 * squares of differences: of vectors that are long for the kernel's width, the difference of the
 * two sums is rounding. */
static bool is_exact(const struct svm_view *view, bool sparse, double rest)
{
    const struct libsvm_parameter *p = view->parameter;
    return !sparse || p->kernel_type != SVM_RBF || fabs(p->gamma) * rest <= 100;
}

/* Calls for each function with the classes i and j that it decides between. */
struct class_pair {
    const struct svm_view *view;
    int64_t *first; /* of each class, its first support vector; the caller frees it */
    int i, j;
    bool classifies;
};

static bool begin_walk(struct class_pair *walk, const struct svm_view *view)
{
    *walk = (struct class_pair){.view = view,
                                .first = calloc((size_t)view->classes + 1, sizeof *walk->first),
                                .classifies = libsvm_classifies(view->parameter->svm_type)};
    for (int c = 1; walk->first && walk->classifies && c < view->classes; c++)
        walk->first[c] = walk->first[c - 1] + view->counts[c - 1];
    walk->j = walk->classifies;
    return walk->first;
}

static void take_step(struct class_pair *walk, struct svm_range range[2])
{
    svm_view_ranges(walk->view, walk->first, walk->i, walk->j, range);
    svm_next_pair(walk->view->classes, &walk->i, &walk->j);
}

/* Sets all functions' values. Returns false if the library itself must decide. */
static bool decide(struct class_pair *walk, const double *k, double share,
                   struct decision_values *d)
{
    const int type = walk->view->parameter->svm_type;
    const bool has_sign = walk->classifies || type == SVM_ONE_CLASS;
    for (int64_t p = 0; p < d->count; p++) {
        struct svm_range range[2];
        take_step(walk, range);
        const struct kernel_sum sum = sum_terms(range, k);
        const double rho = walk->view->rho[p], value = sum.value - rho;
        if (!isfinite(value) || (has_sign && fabs(value) <= share * (sum.magnitude + fabs(rho))))
            return false;
        d->value[p] = value;
    }
    return true;
}

static enum gpu_status decide_all(const struct svm_view *view, const double *k, double share,
                                  struct decision_values **decisions)
{
    const int64_t count = svm_view_functions(view);
    struct decision_values *d = malloc(sizeof *d + (size_t)count * sizeof *d->value);
    struct class_pair walk;
    enum gpu_status status = begin_walk(&walk, view) && d ? GPU_OK : GPU_NO_MEMORY;
    if (status == GPU_OK) {
        d->count = count;
        status = decide(&walk, k, share, d) ? GPU_OK : GPU_UNSUPPORTED;
    }
    if (status == GPU_OK)
        d->label =
            svm_answer(view->parameter->svm_type, view->label, view->classes, d->value, walk.first);
    free(walk.first);
    if (status != GPU_OK)
        free(d);
    else
        *decisions = d;
    return status;
}

/* ---- On the device ---- */

/* Vectors that change while they are copied must not stay under the key of what they were: then
 * returns GPU_UNSUPPORTED. */
static enum gpu_status compare_content(const struct svm_view *view,
                                       const struct svm_content *content)
{
    struct svm_content now;
    const enum gpu_status status = svm_content_of(view, content->length, &now);
    if (status == GPU_OK && memcmp(&now.key, &content->key, sizeof now.key) != 0)
        return GPU_UNSUPPORTED;
    return status;
}

/* Puts the vectors there, to stay. */
static void put_vectors(struct smo *s, const struct svm_view *view,
                        const struct svm_content *content, struct smo_matrix *x)
{
    struct svm_matrix vectors;
    struct libsvm_size size;
    s->status = svm_view_vectors(view, &size, &vectors);
    if (s->status == GPU_UNSUPPORTED)
        svm_admission_refused(view);
    if (s->status != GPU_OK)
        return;
    s->status = compare_content(view, content);
    if (s->status == GPU_OK) {
        s->work->host->set_up = true;
        *x = svm_put(s, &vectors);
        smo_cache(s, &content->key, x);
    }
    svm_matrix_free(&vectors);
    if (s->status == GPU_OK)
        svm_admission_put(view, put_us_of(s->work->call) == 0);
}

/* The vector goes up first: a call is no fallback if it has brought the device something, and the
 * support vectors are then found to be none that it can have, or this one none that it can
 * judge. */
static enum gpu_status values_of(struct gpu_work *work, const struct svm_view *view,
                                 const struct svm_content *content, bool exact, double *v,
                                 double rest, double *k)
{
    const struct libsvm_parameter *p = view->parameter;
    struct smo s = {.work = work, .kernel = {p->kernel_type, p->degree, p->gamma, p->coef0}};
    struct smo_matrix x = {.rows = view->vectors, .features = content->size.features};
    const gpu_address vector = smo_put(&s, v, x.features * (int64_t)sizeof *v);
    if (s.status == GPU_OK && !exact)
        return GPU_UNSUPPORTED;
    if (smo_find(&s, &content->key, svm_view_is_sparse(view, &content->size), &x))
        svm_admission_found(view);
    else if (s.status == GPU_OK)
        put_vectors(&s, view, content, &x);
    smo_vector(&s, &x, vector, rest, k);
    return s.status;
}

static enum gpu_status predict(struct gpu_work *work, const struct svm_view *view,
                               const struct svm_content *content)
{
    const size_t features = (size_t)content->size.features, rows = (size_t)view->vectors;
    double *v = malloc((features + rows) * sizeof *v);
    struct decision_values *decisions;
    if (!v)
        return GPU_NO_MEMORY;
    const bool sparse = svm_view_is_sparse(view, &content->size);
    const double rest = svm_view_vector(view, &content->size, v);
    const bool exact = is_exact(view, sparse, rest);
    svm_admission_vector(view, !exact);
    enum gpu_status status = values_of(work, view, content, exact, v, rest, v + features);
    if (status == GPU_OK)
        status = decide_all(view, v + features, share_of_rounding(view, sparse, rest), &decisions);
    if (status == GPU_OK)
        svm_leave(work->call, decisions);
    free(v);
    return status;
}

static enum gpu_status run_prediction(struct gpu_work *work)
{
    const int64_t *size = svm_sizes(work->call);
    struct svm_view view;
    struct svm_content content;
    const double length = (double)size[SVM_STORED - SVM_ROWS] / (double)size[0];
    if (!view_of(work->call, &view))
        return GPU_UNSUPPORTED;
    const enum gpu_status status = svm_content_of(&view, length, &content);
    if (status != GPU_OK)
        return status;
    return content.size.features > 0 ? predict(work, &view, &content) : GPU_UNSUPPORTED;
}

static void discard_prediction(const struct accel_call *call)
{
    free((void *)(uintptr_t)call->own.pointer[SVM_RESULT]);
}

static void complete_prediction(const struct accel_call *call, struct accel_result *result)
{
    const struct decision_values *d = call->own.pointer[SVM_RESULT];
    memcpy(call->span[ACCEL_b].ptr, d->value, (size_t)d->count * sizeof *d->value);
    result->fpr[0][0] = d->label;
    discard_prediction(call);
}

/* ---- Judging ---- */

/* The largest error of all functions' values, divided by what rounding may do. */
static double worst_of(const struct svm_view *view, const struct decision_values *d,
                       const double *k, const double *errors)
{
    double worst = 0;
    struct class_pair walk;
    if (!begin_walk(&walk, view))
        return -1;
    for (int64_t p = 0; p < d->count; p++) {
        struct svm_range range[2];
        take_step(&walk, range);
        const double error = fabs(sum_terms(range, k).value - view->rho[p] - d->value[p]);
        const double bound = sum_terms(range, errors).magnitude + 1e-15 * fabs(view->rho[p]);
        if (!(error <= worst * bound)) /* a NaN is wrong */
            worst = error / bound == error / bound ? error / bound : INFINITY;
    }
    free(walk.first);
    return worst;
}

static double judge_vectors(const struct svm_view *view, const struct svm_matrix *vectors,
                            const struct libsvm_size *size, const struct decision_values *d)
{
    const struct libsvm_parameter *p = view->parameter;
    const struct svm_kernel kernel = {p->kernel_type, p->degree, p->gamma, p->coef0};
    const size_t rows = (size_t)view->vectors;
    double *k = malloc((2 * rows + (size_t)size->features) * sizeof *k), *v = k + 2 * rows;
    if (!k)
        return -1;
    const double rest = svm_view_vector(view, size, v);
    cpu_ref_svm_vector(vectors, &kernel, v, rest, k, k + rows);
    const double worst = worst_of(view, d, k, k + rows);
    free(k);
    return worst;
}

static double verify_prediction(const struct accel_call *call)
{
    struct svm_view view;
    struct svm_matrix vectors;
    struct libsvm_size size;
    if (!view_of(call, &view) || svm_view_vectors(&view, &size, &vectors) != GPU_OK)
        return -1;
    const double worst = judge_vectors(&view, &vectors, &size, call->own.pointer[SVM_RESULT]);
    svm_matrix_free(&vectors);
    return worst;
}

/* nominal: libsvm takes 0.8 ns for an element if both vectors have it, several times as long where
 * they differ; the device reads each once. */
const struct accel_op op_svm_predict = {
    .traits = {.group = ACCEL_NO_BLAS},
    OP_COST(.nominal = {.cpu_share = 0.1, .gpu_share = 0.01, .gpu_step_ms = 0.001},
            .dimensions = ACCEL_DIMENSIONS, .sizes = svm_sizes, .flops = flops_of_prediction,
            .effort = effort_of_prediction),
    OP_GPU(.run = run_prediction, .discard = discard_prediction),
    OP_FOREIGN(.ml = ACCEL_LIBSVM, .accepts = svm_view_layout, .count_at = svm_view_count_at,
               .parse = parse_prediction, .describe = describe_prediction,
               .complete = complete_prediction, .judge = verify_prediction)};
