/* What training and cross-validation have in common for those who decide and report: sizes, work,
 * fields. */
#include "train.h"

void svm_set_spans(struct accel_call *call)
{
    call->span[ACCEL_a] =
        accel_column("x", NULL, call->own.integer[SVM_STORED], ACCEL_FLOAT64, ACCEL_READ);
    call->span[ACCEL_y] =
        accel_column("model", &call->own.integer[SVM_RESULT], 1, ACCEL_FLOAT64, ACCEL_WRITE);
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

/* ---- Work ---- */

/* What a call is expected to be: so many problems of the same size, beside each other. */
struct shape {
    double rows, problems, length; /* of a problem, of the call, and elements of a vector */
    double iterations;             /* as many as a problem has rows, but the caller's cap */
    bool given;                    /* precomputed kernel */
};

static struct shape shape_of(const struct accel_call *call)
{
    const int64_t *word = call->own.integer;
    const double rows = (double)word[SVM_ROWS], classes = (double)word[SVM_CLASSES],
                 folds = svm_traits_folds(call), part = folds > 0 ? (folds - 1) / folds : 1;
    const double own = part * (classes > 1 ? 2 * rows / classes : rows),
                 cap = (double)word[SVM_CAP] - 1;
    return (struct shape){.rows = own,
                          .iterations = word[SVM_CAP] && cap < own ? cap : own,
                          .problems = (folds > 0 ? folds : 1) *
                                      (classes > 1 ? classes * (classes - 1) / 2 : 1),
                          .length = (double)word[SVM_STORED] / rows,
                          .given = svm_traits_kernel(call) == SVM_PRECOMPUTED};
}

/* Of a kernel value: a product and a sum for each element. */
static double value_flops(const struct shape *shape)
{
    return shape->given ? 1 : 2 * shape->length;
}

/* Fashion-MNIST's pairs of classes compute about a third of their kernel matrices on a CPU. */
double svm_flops(const struct accel_call *call)
{
    const struct shape shape = shape_of(call);
    return 0.3 * shape.problems * shape.rows * shape.rows * value_flops(&shape);
}

/* Vectors of scikit-learn that have all their elements are multiplied by BLAS. */
static bool uses_blas(const struct accel_call *call)
{
    const int64_t *word = call->own.integer;
    return svm_traits_layout(call) >= SVM_LAYOUTS &&
           word[SVM_STORED] == word[SVM_ROWS] * word[SVM_FEATURES];
}

/* Easy problems compute a tenth of the kernel matrix, and take as many iterations as they have
 * rows. An iteration computes two rows at most. A step is what a row takes in an iteration, with
 * its share of what a kernel value takes besides its elements. */
static struct accel_effort effort_of_cpu(const struct accel_call *call)
{
    const struct shape shape = shape_of(call);
    const double steps = shape.problems * shape.rows, computed = 0.1 * shape.rows,
                 most = 2 * shape.iterations;
    return (struct accel_effort){.operations = steps * (computed < most ? computed : most) *
                                               value_flops(&shape) * (uses_blas(call) ? 0.3 : 1),
                                 .steps = steps * shape.iterations};
}

/* The device computes the matrix of all rows, dense if it is not very sparse; many problems iterate
 * at once. */
static struct accel_effort effort_of_device(const struct accel_call *call)
{
    const struct shape shape = shape_of(call);
    const int64_t *word = call->own.integer;
    const double rows = (double)word[SVM_ROWS], features = (double)word[SVM_FEATURES],
                 length = shape.length * 32 < features ? 16 * shape.length : features,
                 at_once = 100, slow_rows = 50000;
    return (struct accel_effort){.operations = rows * rows * (shape.given ? 1 : 2 * length),
                                 .steps = 2 * shape.iterations * (1 + shape.rows / slow_rows) *
                                          (1 + shape.problems / at_once)};
}

struct accel_effort svm_effort(const struct accel_call *call, bool device)
{
    return device ? effort_of_device(call) : effort_of_cpu(call);
}

/* C-SVC with an RBF kernel. */
void svm_typical(struct accel_call *call, const int64_t size[ACCEL_DIMENSIONS])
{
    memcpy(&call->own.integer[SVM_ROWS], size, ACCEL_DIMENSIONS * sizeof *size);
    call->own.integer[SVM_TRAITS] = svm_traits(0, SVM_C_SVC, SVM_RBF);
    svm_set_spans(call);
}

/* nominal: libsvm's kernel takes 1.6 ns for each element on one core, a twentieth of a product's
 * rate, and a step 4 ns. An iteration on the device waits for sums over all rows. */
const struct accel_cost svm_cost = {
    .nominal = {.cpu_share = 0.05, .cpu_step_ms = 4e-6, .gpu_share = 0.3, .gpu_step_ms = 0.01},
    .dimensions = ACCEL_DIMENSIONS,
    .sizes = svm_sizes,
    .flops = svm_flops,
    .effort = svm_effort,
    .typical = svm_typical,
    .measured_as = "svm_train"};

/* ---- Fields of the log ---- */

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
