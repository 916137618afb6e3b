#include "train.h"

#include "gpu/device/work.h"

/* In the order in which they are asked. */
static const struct svm_dialect *const dialects[] = {&svm_dialect_libsvm, &svm_dialect_sklearn};

enum { DIALECTS = sizeof dialects / sizeof *dialects };

static const struct svm_dialect *dialect_of(int layout)
{
    return dialects[layout / SVM_LAYOUTS];
}

static int accepts_svm(const struct accel_provider *provider)
{
    for (int i = 0; i < DIALECTS; i++) {
        const int layout = dialects[i]->accepts(provider);
        if (layout > 0)
            return i * SVM_LAYOUTS + layout;
    }
    return 0;
}

static bool parse_svm_training(struct accel_call *call, const struct accel_passed *passed)
{
    if (!dialect_of(passed->layout)->parse(call, passed, passed->layout % SVM_LAYOUTS))
        return false;
    call->own.integer[SVM_TRAITS] += (int64_t)(passed->layout - passed->layout % SVM_LAYOUTS) << 16;
    svm_set_spans(call);
    return true;
}

static enum gpu_status run_svm_training(struct gpu_work *work)
{
    return dialect_of(svm_traits_layout(work->call))->run(work);
}

static void complete_svm_training(const struct accel_call *call, struct accel_result *result)
{
    dialect_of(svm_traits_layout(call))->complete(call, result);
}

static void discard_svm_training(const struct accel_call *call)
{
    dialect_of(svm_traits_layout(call))->discard(call);
}

static double verify_svm_training(const struct accel_call *call)
{
    return dialect_of(svm_traits_layout(call))->judge(call);
}

const struct accel_op op_svm_train = {
    .traits = {.group = ACCEL_NO_BLAS},
    .cost = &svm_cost,
    OP_GPU(.run = run_svm_training, .discard = discard_svm_training),
    OP_FOREIGN(SVM_FOREIGN, .accepts = accepts_svm, .parse = parse_svm_training,
               .complete = complete_svm_training, .judge = verify_svm_training)};
