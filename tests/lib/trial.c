#include "trial.h"

#include "call/shape.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

void trial_put(void *at, int64_t i, enum accel_dtype dtype, double re, double im)
{
    switch (dtype) {
    case ACCEL_FLOAT32:
        ((float *)at)[i] = (float)re;
        break;
    case ACCEL_FLOAT64:
        ((double *)at)[i] = re;
        break;
    case ACCEL_COMPLEX64:
        ((float *)at)[2 * i] = (float)re;
        ((float *)at)[2 * i + 1] = (float)im;
        break;
    case ACCEL_COMPLEX128:
        ((double *)at)[2 * i] = re;
        ((double *)at)[2 * i + 1] = im;
        break;
    default:
        ((int32_t *)at)[i] = (int32_t)re;
    }
}

void trial_fill(void *x, const struct accel_call *call, enum accel_matrix which, double diagonal,
                double rest)
{
    const struct accel_span *const span = &call->span[which];
    for (int64_t col = 0; col < span->cols; col++)
        for (int64_t row = 0; row < span->rows; row++)
            trial_put(x, row + col * span->ld, span->dtype, rest, 0);
    for (int64_t i = 0; i < shape_diagonal(call, span); i++)
        trial_put(x, shape_diagonal_place(call, span, span->ld, i), span->dtype, diagonal, 0);
}

struct trial *trial_open(const char *name)
{
    static struct trial t;
    const struct accel_routine *const what = routine(name);
    memset(&t, 0, sizeof t);
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, N};
    shape_typical(&t.call, what, size);
    for (int i = 0; i < ACCEL_SPANS; i++)
        t.call.span[i].ptr = t.call.span[i].rows > 0 ? t.now[i] : NULL;
    return &t;
}

void trial_set(struct trial *t, enum accel_matrix which, double diagonal, double rest)
{
    trial_fill(t->now[which], &t->call, which, diagonal, rest);
}

void trial_set_old(struct trial *t, enum accel_matrix which, double diagonal, double rest)
{
    trial_fill(t->old[which], &t->call, which, diagonal, rest);
    t->has_old[which] = true;
}

double trial_judged(struct trial *t)
{
    const void *before[ACCEL_SPANS];
    for (int i = 0; i < ACCEL_SPANS; i++)
        before[i] = t->has_old[i] ? t->old[i] : NULL;
    return cpu_ref_verify(&t->call, before, 1, 0);
}
