#include "c2c.h"

#include "gpu/device/kernels.h"
#include "gpu/plan/scheduled.h"
#include "ops/op.h"
#include "call/shape.h"

bool c2c_is_aligned(const struct accel_span *x, int64_t batch)
{
    const uintptr_t size = accel_dtype_size(x->dtype);
    for (int64_t i = 0; i < (x->array ? batch : 1); i++)
        if ((uintptr_t)(x->array ? x->array[i] : x->ptr) % size != 0)
            return false;
    return true;
}

/* LAPACK works on copies: its steps read and overwrite them again and again. */
static bool is_of_blas(const struct accel_call *call)
{
    return accel_is_blas(call->routine) && !accel_is_lapack(call->routine);
}

static bool may_be_placed(const struct accel_call *call, const struct accel_span *x)
{
    return x->ptr && x->place == ACCEL_HOST && x->access == ACCEL_READ && accel_is_read(call, x) &&
           x->rows > 0 && x->cols > 0 && x->ld <= INT32_MAX && c2c_is_aligned(x, call->batch);
}

/* A product's kernels compute the result in tiles of this order, and read a factor once for each
 * row or column of tiles: the tiles of cuBLAS have 64 to 256 (NVIDIA, "Matrix Multiplication
 * Background User's Guide"). */
enum { TILE = 128 };

/* Returns how many times kernels read each element. */
static double reads_of(const struct accel_call *call, const struct accel_span *x)
{
    const double real = accel_is_complex(call->routine->dtype) ? 8 : 2;
    const double elements = (double)x->rows * (double)x->cols * (double)call->batch;
    const double uses = accel_flops(call) / real / elements;
    return uses > TILE ? uses / TILE : 1;
}

/* Returns the milliseconds that kernels take longer for an operand that is not in the device's
 * memory. */
static double ms_in_place(const struct accel_call *call, const struct accel_machine *machine,
                          const struct accel_span *x, double bytes, enum accel_c2c policy)
{
    if (machine->one_memory)
        return 0;
    const double reads = policy == ACCEL_C2C_MIGRATE ? 1 : reads_of(call, x);
    return reads * bytes / machine->place_gbps * 1e-6;
}

struct c2c_choice c2c_choose(const struct accel_call *call, const struct accel_machine *machine,
                             enum accel_c2c policy)
{
    struct c2c_choice choice = {0, 0, 0};
    if (!(machine->place_gbps > 0) || policy == ACCEL_C2C_COPY || !is_of_blas(call) ||
        (policy == ACCEL_C2C_AUTO && machine->caches))
        return choice;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (!may_be_placed(call, x) ||
            (policy == ACCEL_C2C_AUTO && machine->cached.operands & 1u << i))
            continue;
        /* A matrix that products share is copied once, and read by each. */
        const double one = (double)accel_bytes(x),
                     bytes = one * (double)scheduled_distinct(x, call->batch);
        const double ms = ms_in_place(call, machine, x, one * (double)call->batch, policy);
        if (policy == ACCEL_C2C_AUTO && ms >= bytes / machine->up_gbps * 1e-6)
            continue;
        choice.placed |= 1u << i;
        choice.bytes += bytes;
        choice.ms += ms;
    }
    return choice;
}
