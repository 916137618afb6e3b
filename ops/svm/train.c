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

static bool parse(struct accel_call *call, const struct accel_passed *passed)
{
    if (!dialect_of(passed->layout)->parse(call, passed, passed->layout % SVM_LAYOUTS))
        return false;
    call->own.integer[SVM_TRAITS] += (int64_t)(passed->layout - passed->layout % SVM_LAYOUTS) << 16;
    svm_set_spans(call);
    return true;
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
                                      .count_at = svm_count_at,
                                      .parse = parse,
                                      .sizes = svm_sizes,
                                      .flops = svm_flops,
                                      .describe = svm_describe,
                                      .complete = complete,
                                      .run = run};
