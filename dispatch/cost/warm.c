#define _GNU_SOURCE
#include "warm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/forks.h"
#include "cost.h"
#include "gpu/gpu.h"
#include "base/quiet_thread.h"
#include "ops/shape.h"
#include "dispatch/start.h"
#include "ops/op.h"

enum { ROUTINES = 1024, ORDER = 64 };
enum { COLD, ASKED, WARM };
static _Atomic unsigned char state[ROUTINES];
static _Atomic int64_t gained_us[ROUTINES];
static atomic_bool solver_is_open; /* by a call that has ended */
static atomic_bool working;        /* there is a thread that warms up */

static uint32_t index_of(const struct accel_routine *routine)
{
    return (uint32_t)(routine - accel_routines) % ROUTINES;
}

bool warm_is(const struct accel_routine *routine)
{
    return atomic_load_explicit(&state[index_of(routine)], memory_order_relaxed) == WARM;
}

void warm_note(const struct accel_routine *routine)
{
    if (warm_is(routine))
        return;
    atomic_store(&state[index_of(routine)], WARM);
    if (accel_uses_solver(routine))
        atomic_store(&solver_is_open, true);
}

double warm_cost_ms(const struct accel_routine *routine)
{
    if (warm_is(routine))
        return 0;
    const struct cost_first first = cost_first_calls();
    bool opens = accel_uses_solver(routine) && !atomic_load(&solver_is_open);
    return first.kernels_ms + (opens ? first.solver_ms : 0);
}

double warm_counted_ms(const struct accel_routine *routine)
{
    double gained = (double)atomic_load(&gained_us[index_of(routine)]) * 1e-3;
    double cost = warm_cost_ms(routine);
    return cost > gained ? cost - gained : 0;
}

void warm_note_gain(const struct accel_routine *routine, double ms)
{
    if (ms > 0)
        atomic_fetch_add(&gained_us[index_of(routine)],
                         ms < 1e6 ? (int64_t)(ms * 1e3) : 1000000000);
}

/* ---- A call that computes next to nothing ---- */

/* What the GPU does not do of it is not done. */
static bool refuse(void *context, const struct accel_call *part)
{
    (void)context;
    (void)part;
    return false;
}

static void put(const struct accel_span *x, int64_t i, double value)
{
    char *at = (char *)x->ptr + i * (int64_t)accel_dtype_size(x->dtype);
    if (x->dtype == ACCEL_INT32)
        *(int32_t *)at = (int32_t)value;
    else if (x->dtype == ACCEL_INT64)
        *(int64_t *)at = (int64_t)value;
    else if (accel_is_double(x->dtype))
        *(double *)at = value;
    else if (x->dtype != ACCEL_BFLOAT16)
        *(float *)at = (float)value;
}

/* Matrices are the identity: definite, and so are its triangles; of pivots, 1, 2, 3 ...: nothing is exchanged; other vectors are small. */
static void fill(const struct accel_span *x)
{
    const bool pivots = x->dtype == ACCEL_INT32 || x->dtype == ACCEL_INT64;
    memset(x->ptr, 0, (size_t)(x->rows * x->cols) * accel_dtype_size(x->dtype));
    if (x->inc)
        for (int64_t i = 0; i < x->rows * x->cols; i++)
            put(x, i, pivots ? (double)(i + 1) : 1.0 / ORDER);
    else
        for (int64_t i = 0; i < x->rows && i < x->cols; i++)
            put(x, i * x->ld + i, 1);
}

static bool prepare(struct accel_call *call, const struct accel_routine *routine)
{
    const int64_t size[ACCEL_DIMENSIONS] = {ORDER, ORDER, ORDER, ORDER};
    shape_typical(call, routine, size);
    call->scalar[ACCEL_beta].re = 0;
    call->scalar[ACCEL_rcond].re = -1; /* the type's own precision */
    for (int i = 0; i < routine->args; i++) {
        const struct accel_arg *arg = &routine->arg[i];
        if (arg->kind != ACCEL_ARG_MATRIX && arg->kind != ACCEL_ARG_VECTOR)
            continue;
        struct accel_span *x = &call->span[arg->slot];
        x->inc = arg->kind == ACCEL_ARG_VECTOR ? 1 : 0;
        x->stride = x->ld * x->cols;
        x->ptr = malloc((size_t)(x->rows * x->cols + 1) * accel_dtype_size(x->dtype));
        if (!x->ptr)
            return false;
        fill(x);
    }
    return true;
}

void warm_up(const struct accel_routine *routine)
{
    struct gpu_host host = {.original = refuse};
    struct accel_call call;
    if (!accel_is_blas(routine)) { /* only its operation could make up a call */
        warm_note(routine);
        return;
    }
    if (prepare(&call, routine) && !gpu_is_gone())
        gpu_run(start_device(), &call, &host); /* what fails here fails again where it matters */
    for (int i = 0; i < ACCEL_MATRICES; i++)
        free(call.span[i].ptr);
    warm_note(routine);
}

/* ---- In the background ---- */

static bool warm_next(void)
{
    for (uint32_t i = 0; i < accel_routine_count && i < ROUTINES; i++)
        if (atomic_load(&state[i]) == ASKED) {
            warm_up(&accel_routines[i]);
            return true;
        }
    return false;
}

/* Who asks while it comes to its end finds it working, or makes another. */
static void *run_thread(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "accel-warm");
    do {
        while (warm_next())
            continue;
        atomic_store(&working, false);
    } while (warm_next() && !atomic_exchange(&working, true));
    return NULL;
}

void warm_ask(const struct accel_routine *routine)
{
    unsigned char cold = COLD;
    if (!atomic_compare_exchange_strong(&state[index_of(routine)], &cold, ASKED))
        return;
    if (!atomic_exchange(&working, true) && !quiet_thread(run_thread)) {
        atomic_store(&working, false);
        warm_note(routine);
    }
}

/* The child of a fork lacks the thread. */
static void stop_work(void)
{
    atomic_store(&working, false);
}
FORKS_CHILD(stop_work);
