/*
 * toy_score(): a product of two vectors, and a number of the model's.
 */
#include "toy.h"

#include <math.h>
#include <string.h>

#include "gpu/exec/blas/level2.h"
#include "ops/op.h"

static int accepts(const struct accel_provider *provider)
{
    void *found = provider->symbol(provider, "toy_version");
    int (*version)(void);
    memcpy(&version, &found, sizeof version);
    return found && version() / 100 == 1 ? version() : 0;
}

/* Of version 102 it is not known. */
static int count_at(int version)
{
    return version == 102 ? -1 : (int)offsetof(struct toy_model, features);
}

/* call->own has the product, the model, and from SIZES on the sizes: one. */
enum { PRODUCT, MODEL, SIZES };

static void shape(struct accel_call *call, void *weights, void *x, int64_t features)
{
    call->own.integer[SIZES] = features;
    call->span[ACCEL_a] = accel_column("weights", weights, features, ACCEL_FLOAT64, ACCEL_READ);
    call->span[ACCEL_x] = accel_column("x", x, features, ACCEL_FLOAT64, ACCEL_READ);
    call->span[ACCEL_y] =
        accel_column("score", &call->own.number[PRODUCT], 1, ACCEL_FLOAT64, ACCEL_WRITE);
}

static bool parse(struct accel_call *call, const struct accel_passed *passed)
{
    const struct toy_model *model = (const struct toy_model *)(uintptr_t)passed->gpr[0];
    void *x = (void *)(uintptr_t)passed->gpr[1];
    if (!model || !x || model->features < 1 || !model->weights)
        return false;
    call->own.pointer[MODEL] = model;
    shape(call, (void *)(uintptr_t)model->weights, x, model->features);
    return true;
}

static const int64_t *sizes(const struct accel_call *call)
{
    return &call->own.integer[SIZES];
}

static double flops(const struct accel_call *call)
{
    return 2 * (double)call->own.integer[SIZES];
}

/* The CPU is thought to do half of it, the device twice as much. */
static struct accel_effort effort(const struct accel_call *call, bool device)
{
    return (struct accel_effort){.operations = flops(call) * (device ? 2 : 0.5),
                                 .steps = device ? 3 : 0};
}

static void typical(struct accel_call *call, const int64_t size[ACCEL_DIMENSIONS])
{
    shape(call, NULL, NULL, size[0]);
}

static void describe(const struct accel_call *call, const struct accel_fields *fields)
{
    fields->integer(fields, "features", call->own.integer[SIZES]);
}

static bool is_supported(const struct accel_call *call)
{
    return call->span[ACCEL_a].place == ACCEL_HOST && call->span[ACCEL_x].place == ACCEL_HOST;
}

static void complete(const struct accel_call *call, struct accel_result *result)
{
    const struct toy_model *model = call->own.pointer[MODEL];
    result->fpr[0][0] = call->own.number[PRODUCT] + model->bias;
}

static double judge(const struct accel_call *call)
{
    const double *weights = call->span[ACCEL_a].ptr, *x = call->span[ACCEL_x].ptr;
    double product = 0, magnitude = 0;
    for (int64_t i = 0; i < call->own.integer[SIZES]; i++) {
        product += weights[i] * x[i];
        magnitude += fabs(weights[i] * x[i]);
    }
    return fabs(product - call->own.number[PRODUCT]) / (1e-12 * magnitude);
}

/* ---- The GPU: one tile, of one element ---- */

enum { WEIGHTS, X, SCORE };

static enum gpu_status compute(struct level2 *t, struct level2_strip *strip)
{
    const struct accel_complex one = {1, 0}, zero = {0, 0};
    const int64_t n = t->work->call->own.integer[SIZES];
    struct dmat weights, x;
    enum gpu_status status = level2_load(t, WEIGHTS, 0, 0, n, 1, &weights);
    if (status == GPU_OK)
        status = level2_load(t, X, 0, 0, n, 1, &x);
    if (status == GPU_OK)
        status = gpu_kernels(t->work)->gemm(t->work, 'T', 'N', 1, 1, n, one, weights, x, zero,
                                            strip->at);
    return status;
}

static enum gpu_status run(struct gpu_work *work)
{
    const struct accel_span *span = work->call->span;
    const int64_t *n = &work->call->own.integer[SIZES];
    struct level2 t = {.work = work,
                       .most = 1,
                       .over = SCORE,
                       .out = SCORE,
                       .rows = 1,
                       .cols = 1,
                       .compute = compute};
    t.part[WEIGHTS] = level2_part_of(&span[ACCEL_a], n, &t.size);
    t.part[X] = level2_part_of(&span[ACCEL_x], n, &t.size);
    t.part[SCORE] = level2_part_of(&span[ACCEL_y], &t.size, &t.size);
    return level2_run(&t);
}

/* ml: so that ACCEL_ML turns it off. */
const struct accel_op op_toy_score = {
    .traits = {.group = ACCEL_NO_BLAS},
    OP_COST(.nominal = {.cpu_share = 0.1, .gpu_share = 0.1, .gpu_step_ms = 1}, .dimensions = 1,
            .sizes = sizes, .flops = flops, .effort = effort, .typical = typical),
    OP_GPU(.is_supported = is_supported, .run = run),
    OP_FOREIGN(.ml = ACCEL_LIBSVM, .accepts = accepts, .count_at = count_at, .parse = parse,
               .describe = describe, .complete = complete, .judge = judge)};
