#define _GNU_SOURCE
#include "warm_up.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "call/matrix.h"
#include "call/shape.h"
#include "dispatch/cost/cost.h"
#include "base/thread/thread_spawn.h"
#include "ops/typical.h"
#include "device.h"
#include "ops/op.h"
#include "report/summary.h"

enum { ORDER = 64 };
enum { COLD, ASKED, WARM };

static uint32_t warm_index(const struct accel_routine *routine)
{
    return (uint32_t)(routine - accel_routines) % WARM_UP_ROUTINES;
}

bool warm_up_is_done(const struct dispatch_device *device, const struct accel_routine *routine)
{
    const struct gpu_device *gpu = device_gpu(device);
    return (gpu && gpu_info(gpu)->remote) ||
           atomic_load_explicit(&device->warm_up.state[warm_index(routine)],
                                memory_order_relaxed) == WARM;
}

void warm_up_note(struct dispatch_device *device, const struct accel_routine *routine)
{
    if (warm_up_is_done(device, routine))
        return;
    atomic_store(&device->warm_up.state[warm_index(routine)], WARM);
    if (accel_uses_solver(routine))
        atomic_store(&device->warm_up.solver_is_open, true);
}

double warm_up_cost_ms(const struct dispatch_device *device, const struct accel_routine *routine)
{
    if (warm_up_is_done(device, routine))
        return 0;
    const struct cost_first first = cost_first_calls(atomic_load(&device->curves));
    bool opens = accel_uses_solver(routine) && !atomic_load(&device->warm_up.solver_is_open);
    return first.kernels_ms + (opens ? first.solver_ms : 0);
}

double warm_up_counted_ms(const struct dispatch_device *device, const struct accel_routine *routine)
{
    double gained = (double)atomic_load(&device->warm_up.gained_us[warm_index(routine)]) * 1e-3;
    double cost = warm_up_cost_ms(device, routine);
    return cost > gained ? cost - gained : 0;
}

void warm_up_note_gain(struct dispatch_device *device, const struct accel_routine *routine,
                       double ms)
{
    ms += warm_up_counted_ms(device, routine);
    if (ms > 0)
        atomic_fetch_add(&device->warm_up.gained_us[warm_index(routine)],
                         ms < 1e6 ? (int64_t)(ms * 1e3) : 1000000000);
}

/* ---- A call that computes next to nothing ---- */

/* A part that the GPU refuses is left undone. */
static bool refuse_part(void *context, const struct accel_call *part)
{
    (void)context;
    (void)part;
    return false;
}

static void put_element(const struct accel_span *x, int64_t i, double value)
{
    char *at = (char *)x->ptr + i * (int64_t)accel_dtype_size(x->dtype);
    if (x->dtype == ACCEL_INT32)
        *(int32_t *)at = (int32_t)value;
    else if (x->dtype == ACCEL_INT64)
        *(int64_t *)at = (int64_t)value;
    else if (x->dtype != ACCEL_BFLOAT16)
        store_real(at, x->dtype, 0, value);
}

/* Fills matrices with the identity, which is definite, pivots with 1, 2, 3 …, which exchange
 * nothing, other vectors with small values. */
static void fill_with_identity(const struct accel_call *call, const struct accel_span *x)
{
    const bool pivots = x->dtype == ACCEL_INT32 || x->dtype == ACCEL_INT64;
    memset(x->ptr, 0, (size_t)(x->rows * x->cols) * accel_dtype_size(x->dtype));
    if (x->inc)
        for (int64_t i = 0; i < x->rows * x->cols; i++)
            put_element(x, i, pivots ? (double)(i + 1) : 1.0 / ORDER);
    else
        for (int64_t i = 0; i < shape_diagonal(call, x); i++)
            put_element(x, shape_diagonal_place(call, x, x->ld, i), 1);
}

static bool prepare_call(struct accel_call *call, const struct accel_routine *routine)
{
    shape_of_order(call, routine, ORDER);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        struct accel_span *x = &call->span[i];
        if (!x->access) /* the routine has no such operand */
            continue;
        x->ptr = malloc((size_t)(x->rows * x->cols + 1) * accel_dtype_size(x->dtype));
        if (!x->ptr)
            return false;
        fill_with_identity(call, x);
    }
    return true;
}

void warm_up_run(struct dispatch_device *device, const struct accel_routine *routine)
{
    struct gpu_host host = {.original = refuse_part};
    struct accel_call call;
    if (!accel_is_blas(routine)) { /* no call of it can be made up here */
        warm_up_note(device, routine);
        return;
    }
    if (prepare_call(&call, routine) && !gpu_is_gone())
        gpu_run(device_gpu(device), &call, &host); /* a failure will show again in a real call */
    for (int i = 0; i < ACCEL_SPANS; i++)
        free(call.span[i].ptr);
    warm_up_note(device, routine);
}

/* ---- In the background ---- */

static bool warm_up_next(struct dispatch_device *device)
{
    for (uint32_t i = 0; i < accel_routine_count && i < WARM_UP_ROUTINES; i++)
        if (atomic_load(&device->warm_up.state[i]) == ASKED) {
            summary_starting(true);
            warm_up_run(device, &accel_routines[i]);
            summary_starting(false);
            return true;
        }
    return false;
}

/* A routine asked for while the thread ends is seen by the second warm_up_next(), or by a new
 * thread. */
static void *run_warm_thread(void *context)
{
    struct dispatch_device *device = context;
    thread_spawn_begin("accel-warm");
    do {
        while (warm_up_next(device))
            continue;
        atomic_store(&device->warm_up.working, false);
    } while (warm_up_next(device) && !atomic_exchange(&device->warm_up.working, true));
    return NULL;
}

void warm_up_ask(struct dispatch_device *device, const struct accel_routine *routine)
{
    unsigned char cold = COLD;
    if (!atomic_compare_exchange_strong(&device->warm_up.state[warm_index(routine)], &cold, ASKED))
        return;
    if (!atomic_exchange(&device->warm_up.working, true) &&
        !thread_spawn(run_warm_thread, device, 0)) {
        atomic_store(&device->warm_up.working, false);
        warm_up_note(device, routine);
    }
}
