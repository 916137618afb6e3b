#include "train.h"

#include "gpu/work.h"

/* In the order in which they are asked. */
static const struct svm_dialect *const dialects[] = {&svm_dialect_libsvm, &svm_dialect_sklearn};

enum { DIALECTS = sizeof dialects / sizeof *dialects };

static const struct svm_dialect *dialect_of(int layout)
{
    return dialects[layout / SVM_LAYOUTS];
}

static int accepts(const struct accel_provider *provider)
{
    for (int i = 0; i < DIALECTS; i++) {
        const int layout = dialects[i]->accepts(provider);
        if (layout > 0)
            return i * SVM_LAYOUTS + layout;
    }
    return 0;
}

/* The spans stand for the vectors, as many bytes as their elements, and for the result. */
static bool parse(struct accel_call *call, const struct accel_passed *passed)
{
    if (!dialect_of(passed->layout)->parse(call, passed, passed->layout % SVM_LAYOUTS))
        return false;
    call->own.integer[SVM_TRAITS] += (int64_t)(passed->layout - passed->layout % SVM_LAYOUTS) << 16;
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
    return true;
}

/* The first member of both libraries' problems is l. */
static int count_at(int layout)
{
    (void)layout;
    return 0;
}

static const int64_t *sizes(const struct accel_call *call)
{
    return &call->own.integer[SVM_ROWS];
}

/* Fashion-MNIST's pairs of classes compute about a third of their kernel matrices on a CPU, for each element a product and a sum. */
static double flops(const struct accel_call *call)
{
    const double share = 0.3, rows = (double)call->own.integer[SVM_ROWS],
                 classes = (double)call->own.integer[SVM_CLASSES],
                 length = (double)call->own.integer[SVM_STORED] / rows;
    if (svm_traits_kernel(call) == SVM_PRECOMPUTED)
        return share * rows * rows;
    if (classes <= 1)
        return share * rows * rows * 2 * length;
    const double pair = 2 * rows / classes;
    return share * classes * (classes - 1) / 2 * pair * pair * 2 * length;
}

static void describe(const struct accel_call *call, const struct accel_fields *fields)
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
}

static enum gpu_status run(struct gpu_work *work)
{
    return dialect_of(svm_traits_layout(work->call))->run(work);
}

static void complete(const struct accel_call *call, struct accel_result *result)
{
    dialect_of(svm_traits_layout(call))->complete(call, result);
}

/* libsvm's kernel takes 1.4 ns for each element on one core: a twentieth of a product's rate. */
const struct accel_op op_svm_train = {.group = ACCEL_NO_BLAS,
                                      .ml = ACCEL_LIBSVM,
                                      .nominal = {.cpu_share = 0.05, .gpu_share = 0.3},
                                      .accepts = accepts,
                                      .nests = true,
                                      .count_at = count_at,
                                      .parse = parse,
                                      .sizes = sizes,
                                      .flops = flops,
                                      .describe = describe,
                                      .complete = complete,
                                      .run = run};
