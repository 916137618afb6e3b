#define _GNU_SOURCE
#include "copies.h"

#include <stdlib.h>

#include "ops/op.h"

bool copies_host_can_reach(const struct accel_span *x)
{
    return x->place != ACCEL_DEVICE && x->place != ACCEL_REMOTE;
}

bool copies_host_can_read(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (!copies_host_can_reach(&call->span[i]))
            return false;
    return true;
}

void copies_put(struct accel_span *x, void *memory)
{
    x->ptr = memory;
    if (x->rows > 0) /* or LAPACK compares it with another size */
        x->ld = x->rows;
    x->inc = (x->inc > 0) - (x->inc < 0);
}

/* Makes x a packed copy; the caller frees it. NULL without memory, or if the device fails. An
 * operand that is only written is fetched, too, since the original may leave it as it is; but not
 * one that may have fewer elements than its span. */
static void *make_copy(struct gpu_device *gpu, struct accel_span *x, bool may_be_short)
{
    void *memory = calloc((size_t)accel_bytes(x) + 1, 1);
    if (!memory)
        return NULL;
    if (!(may_be_short && x->access == ACCEL_WRITE) && !gpu_fetch(gpu, memory, x)) {
        free(memory);
        return NULL;
    }
    copies_put(x, memory);
    return memory;
}

/* Copies back as much as the trimmed span has. */
static bool store_copy(struct gpu_device *gpu, const struct accel_call *on_copies,
                       const struct accel_call *call, int i, const void *copy)
{
    struct accel_span x = call->span[i];
    x.rows = on_copies->span[i].rows;
    x.cols = on_copies->span[i].cols;
    return gpu_store(gpu, &x, copy);
}

/* Runs one call; of a batch, one product. */
static bool run_one_on_copies(struct gpu_device *gpu, const struct accel_call *call,
                              const struct dispatch_caller *caller)
{
    const struct accel_rules *rules = accel_rules_of(call->op);
    struct accel_call on_copies = *call;
    void *copies[ACCEL_SPANS] = {NULL};
    bool right = true;
    for (int i = ACCEL_SPANS; right && i-- > 0;) { /* the matrices last */
        if (i == 0 && rules->rows)
            on_copies.span[i].rows = rules->rows(&on_copies);
        if (!copies_host_can_reach(&call->span[i]))
            right = (copies[i] =
                         make_copy(gpu, &on_copies.span[i], rules->may_be_short & 1u << i)) != NULL;
    }
    if (right)
        caller->original(caller->context, &on_copies);
    if (right && rules->trim)
        rules->trim(&on_copies);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        if (right && copies[i] && (call->span[i].access & ACCEL_WRITE))
            right = store_copy(gpu, &on_copies, call, i, copies[i]);
        free(copies[i]);
    }
    return right;
}

bool copies_run(struct gpu_device *gpu, const struct accel_call *call,
                const struct dispatch_caller *caller)
{
    bool right = true;
    if (!accel_is_batch(call->routine))
        return run_one_on_copies(gpu, call, caller);
    for (int64_t i = 0; right && i < call->batch; i++) {
        const struct accel_call product = accel_products_of(call, i, 1);
        right = run_one_on_copies(gpu, &product, caller);
    }
    return right;
}
