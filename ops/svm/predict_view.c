/* Models of libsvm and scikit-learn, as predictions read them. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "predict.h"

int svm_view_layout(const struct accel_provider *provider)
{
    const int number = libsvm_of(provider);
    if (number > 0)
        return number;
    if (sklearn_of(provider) == 0)
        return 0;
    return provider->function == provider->symbol(provider, "svm_csr_predict_values")
               ? SVM_VIEW_SKLEARN_CSR
               : SVM_VIEW_SKLEARN;
}

int svm_view_count_at(int layout)
{
    return layout < SVM_VIEW_SKLEARN ? (int)offsetof(struct libsvm_model, l)
                                     : (int)offsetof(struct sklearn_model, support);
}

static bool view_libsvm(struct svm_view *view, int layout, const struct libsvm_model *model)
{
    const struct libsvm *library = libsvm_asked(layout);
    if (!library)
        return false;
    *view = (struct svm_view){.parameter = &model->param,
                              .classes = model->nr_class,
                              .vectors = model->l,
                              .coefficient = model->sv_coef,
                              .rho = model->rho,
                              .label = libsvm_pointer_at(model, library->model->label),
                              .counts = libsvm_pointer_at(model, library->model->counts),
                              .nodes = (const struct libsvm_node *const *)(const void *)model->SV};
    return view->nodes;
}

static bool view_sklearn(struct svm_view *view, bool csr, const struct sklearn_model *model)
{
    *view = (struct svm_view){.parameter = &model->parameter.libsvm,
                              .classes = model->classes,
                              .vectors = model->support,
                              .coefficient = model->coefficient,
                              .rho = model->rho,
                              .label = model->label,
                              .counts = model->support_of,
                              .nodes = csr ? model->vectors : NULL,
                              .dense = csr ? NULL : model->vectors};
    return model->vectors;
}

static bool has_classes(const struct svm_view *view)
{
    return libsvm_classifies(view->parameter->svm_type);
}

/* Whether the classes' support vectors are among all. */
static bool are_classes_sound(const struct svm_view *view)
{
    int64_t sum = 0;
    if (view->classes < 2 || view->classes > SVM_MOST_CLASSES || !view->label || !view->counts)
        return false;
    for (int c = 0; c < view->classes; c++) {
        if (view->counts[c] < 0 || (c > 0 && !view->coefficient[c - 1]))
            return false;
        sum += view->counts[c];
    }
    return sum <= view->vectors;
}

/* A model that was read from a file has nothing in the parameters that its kernel does not need. */
static bool is_kernel_sound(const struct libsvm_parameter *p)
{
    const bool shifts = p->kernel_type == SVM_POLY || p->kernel_type == SVM_SIGMOID;
    return p->kernel_type == SVM_LINEAR || (p->kernel_type == SVM_RBF && isfinite(p->gamma)) ||
           (shifts && isfinite(p->gamma) && isfinite(p->coef0));
}

static bool is_model_sound(const struct svm_view *view)
{
    const int type = view->parameter->svm_type;
    return view->vectors > 0 && view->coefficient && view->coefficient[0] && view->rho &&
           type >= SVM_C_SVC && type <= SVM_NU_SVR && is_kernel_sound(view->parameter) &&
           (!has_classes(view) || are_classes_sound(view));
}

/* Whether the indices ascend and the values are finite. */
static bool is_vector_sound(const struct svm_view *view)
{
    if (view->dense) {
        const struct sklearn_node *x = view->x;
        bool sound = x->features > 0 && x->features == view->dense[0].features && x->values;
        for (int i = 0; sound && i < x->features; i++)
            sound = isfinite(x->values[i]);
        return sound;
    }
    int before = -1;
    for (const struct libsvm_node *node = view->x; node->index != -1; before = node++->index)
        if (node->index <= before || !isfinite(node->value))
            return false;
    return true;
}

bool svm_view_of(struct svm_view *view, int layout, const void *model, const void *x)
{
    if (!model || !x ||
        !(layout < SVM_VIEW_SKLEARN ? view_libsvm(view, layout, model)
                                    : view_sklearn(view, layout == SVM_VIEW_SKLEARN_CSR, model)))
        return false;
    view->x = x;
    return is_model_sound(view) && is_vector_sound(view);
}

int64_t svm_view_functions(const struct svm_view *view)
{
    return svm_function_count(view->parameter->svm_type, view->classes);
}

void svm_view_ranges(const struct svm_view *view, const int64_t *first, int i, int j,
                     struct svm_range range[2])
{
    if (!has_classes(view)) {
        range[0] = (struct svm_range){view->coefficient[0], 0, view->vectors};
        range[1] = (struct svm_range){view->coefficient[0], 0, 0};
        return;
    }
    range[0] = (struct svm_range){view->coefficient[j - 1] + first[i], first[i], view->counts[i]};
    range[1] = (struct svm_range){view->coefficient[i] + first[j], first[j], view->counts[j]};
}

/* ---- Vectors ---- */

static struct libsvm_problem problem_of(const struct svm_view *view)
{
    return (struct libsvm_problem){view->vectors, NULL,
                                   (struct libsvm_node **)(uintptr_t)view->nodes};
}

static enum gpu_status copy_dense(const struct svm_view *view, struct svm_matrix *x)
{
    const size_t features = (size_t)view->dense[0].features;
    double *values = malloc((size_t)view->vectors * features * sizeof *values);
    *x = (struct svm_matrix){.rows = view->vectors, .features = (int64_t)features, .dense = values};
    bool finite = true;
    if (!values)
        return GPU_NO_MEMORY;
    for (int i = 0; finite && i < view->vectors; i++, values += features) {
        memcpy(values, view->dense[i].values, features * sizeof *values);
        for (size_t k = 0; k < features; k++)
            finite = finite && isfinite(values[k]);
    }
    if (!finite)
        svm_matrix_free(x);
    return finite ? GPU_OK : GPU_UNSUPPORTED;
}

enum gpu_status svm_view_vectors(const struct svm_view *view, struct libsvm_size *size,
                                 struct svm_matrix *x)
{
    const struct libsvm_problem problem = problem_of(view);
    if (view->nodes)
        return !libsvm_measure(&problem, false, size)     ? GPU_UNSUPPORTED
               : libsvm_vectors(&problem, false, size, x) ? GPU_OK
                                                          : GPU_NO_MEMORY;
    size->features = view->dense[0].features;
    size->stored = size->features * view->vectors;
    size->base = 0;
    return copy_dense(view, x);
}

bool svm_view_is_sparse(const struct svm_view *view, const struct libsvm_size *size)
{
    return !view->dense && !libsvm_is_dense(view->vectors, size);
}

double svm_view_vector(const struct svm_view *view, const struct libsvm_size *size, double *v)
{
    const bool sparse = svm_view_is_sparse(view, size);
    double rest = 0;
    if (view->dense) {
        memcpy(v, ((const struct sklearn_node *)view->x)->values,
               (size_t)size->features * sizeof *v);
        return 0;
    }
    memset(v, 0, (size_t)size->features * sizeof *v);
    for (const struct libsvm_node *node = view->x; node->index != -1; node++) {
        const int64_t column = (int64_t)node->index - size->base;
        const bool there = column >= 0 && column < size->features;
        if (there)
            v[column] = node->value;
        if (sparse || !there)
            rest += node->value * node->value;
    }
    return rest;
}
