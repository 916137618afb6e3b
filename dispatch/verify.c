#define _GNU_SOURCE
#include "verify.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "copies.h"
#include "cpu_ref/verify.h"
#include "ops/op.h"
#include "call/shape.h"
#include "base/output/message.h"
#include "report/record.h"

static _Atomic uint64_t calls; /* on the GPU, with ACCEL_VERIFY set */

/* ---- Copies ---- */

static int64_t count_of(const struct accel_call *call, const struct accel_span *x)
{
    bool batch = accel_is_batch(call->routine);
    return batch && (x->access & ACCEL_WRITE) ? call->batch : 1;
}

/* Returns matrix i of an operand. */
static struct accel_span matrix_of(const struct accel_span *x, int64_t i)
{
    struct accel_span y = *x;
    if (i > 0 || x->array)
        y.ptr = accel_matrix_of(x, i);
    y.array = NULL;
    return y;
}

/* Returns `count` matrices of an operand, packed, one behind the other; the caller frees them. NULL
 * without memory, or if the device fails. */
static void *fetch_matrices(struct gpu_device *gpu, const struct accel_span *x, int64_t count)
{
    int64_t bytes;
    if (accel_bytes(x) < 0 || !accel_mul(accel_bytes(x), count, &bytes) || bytes == INT64_MAX)
        return NULL;
    char *copy = malloc((size_t)bytes + 1);
    for (int64_t i = 0; copy && i < count; i++) {
        const struct accel_span matrix = matrix_of(x, i);
        if (!gpu_fetch(gpu, copy + i * accel_bytes(x), &matrix)) {
            free(copy);
            return NULL;
        }
    }
    return copy;
}

/* ---- A call ---- */

static bool is_due(const struct accel_settings *settings)
{
    if (settings->verify_every == 0)
        return false;
    return (atomic_fetch_add(&calls, 1) + 1) % settings->verify_every == 0;
}

static void say_no_memory(void)
{
    static atomic_bool said;
    if (!atomic_exchange(&said, true))
        accel_message(
            "verification: there is no memory for a copy of what a call overwrites; such calls "
            "are not verified");
}

/* Whether the rows of the matrices are known. The arguments of laswp say only how far columns are
 * apart. */
static bool has_known_rows(const struct accel_call *call)
{
    return !accel_rules_of(call->op)->rows;
}

void verify_begin(struct verification *verification, struct gpu_device *gpu,
                  const struct accel_call *call, const struct accel_settings *settings)
{
    *verification = (struct verification){.on = is_due(settings), .gpu = gpu};
    if (!has_known_rows(call))
        return;
    for (int i = 0; verification->on && i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (!x->ptr || !(x->access & ACCEL_WRITE) || !accel_is_read(call, x) || accel_bytes(x) == 0)
            continue;
        verification->before[i] = fetch_matrices(gpu, x, count_of(call, x));
        if (!verification->before[i]) {
            say_no_memory();
            verify_end(verification);
        }
    }
}

void verify_end(struct verification *verification)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        free(verification->before[i]);
    *verification = (struct verification){.on = false};
}

/* If the host cannot read x, makes it a packed copy; the caller frees *copy. */
static bool fetch_span(struct gpu_device *gpu, struct accel_span *x, void **copy)
{
    *copy = NULL;
    if (!x->ptr || accel_bytes(x) == 0 || copies_host_can_reach(x))
        return true;
    *copy = fetch_matrices(gpu, x, 1);
    if (!*copy)
        return false;
    copies_put(x, *copy);
    x->place = ACCEL_HOST;
    return true;
}

/* TF32 keeps 10 bits behind the point, and a tensor core cuts the others off (PTX ISA, "Alternate
 * floating-point data formats"). bfloat16 in three parts keeps all bits of an input. Emulation by
 * fixed point takes as many as double precision's own error asks for (cuBLAS, "Dynamic Mantissa
 * Control"). Both are judged by the native bound. */
static double input_error(enum gpu_precision precision)
{
    return precision == GPU_TF32 ? 0x1p-10 : 0;
}

/* Judges one call; of a batch, one product. */
static double judge_one(const struct verification *verification, const struct accel_call *call,
                        void *const before[ACCEL_SPANS])
{
    static _Atomic uint64_t seed;
    void (*const trim)(struct accel_call *) = accel_rules_of(call->op)->trim;
    struct accel_call on_host = *call;
    void *copies[ACCEL_SPANS] = {NULL};
    bool there = true;
    for (int i = ACCEL_SPANS;
         there && i-- > 0;) { /* the last has the count that the others are trimmed to */
        there = fetch_span(verification->gpu, &on_host.span[i], &copies[i]);
        if (there && i == ACCEL_SPANS - 1 && trim)
            trim(&on_host);
    }
    double ratio = CPU_REF_NOT_JUDGED;
    if (there)
        ratio = cpu_ref_verify(&on_host, (const void *const *)before, atomic_fetch_add(&seed, 1),
                               input_error(verification->precision));
    for (int i = 0; i < ACCEL_SPANS; i++)
        free(copies[i]);
    return ratio;
}

bool verify_apart(struct gpu_device *gpu, const struct accel_call *call,
                  const struct accel_call *done)
{
    const void *before[ACCEL_SPANS] = {NULL};
    void *copies[ACCEL_SPANS] = {NULL};
    bool there = true;
    for (int i = 0; there && i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (!x->ptr || x->ptr == done->span[i].ptr || !accel_is_read(call, x))
            continue;
        if (x->ld > x->rows)
            copies[i] = fetch_matrices(gpu, x, 1);
        before[i] = x->ld > x->rows ? copies[i] : x->ptr;
        there = before[i];
    }
    const double ratio = there ? cpu_ref_verify(done, before, 1, 0) : CPU_REF_NOT_JUDGED;
    for (int i = 0; i < ACCEL_SPANS; i++)
        free(copies[i]);
    return ratio >= 0 && ratio <= 1;
}

double verify_judge(const struct verification *verification, const struct accel_call *call)
{
    const double most = 1e9;
    double worst = 0;
    if (!verification->on)
        return VERIFY_NOT_ASKED;
    if (!has_known_rows(call))
        return CPU_REF_NOT_JUDGED;
    bool batch = accel_is_batch(call->routine);
    int64_t products = batch ? call->batch : 1;
    for (int64_t i = 0; i < products; i++) {
        const struct accel_call product = batch ? accel_products_of(call, i, 1) : *call;
        void *before[ACCEL_SPANS];
        for (int k = 0; k < ACCEL_SPANS; k++) {
            char *saved = verification->before[k];
            before[k] = saved ? saved + i * accel_bytes(&call->span[k]) : NULL;
        }
        worst = cpu_ref_worse_of(worst, judge_one(verification, &product, before));
    }
    return worst < most ? worst : most;
}

bool verify_restore(const struct verification *verification, const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        const char *saved = verification->before[i];
        for (int64_t k = 0; saved && k < count_of(call, x); k++) {
            const struct accel_span matrix = matrix_of(x, k);
            if (!gpu_store(verification->gpu, &matrix, saved + k * accel_bytes(x)))
                return false;
        }
    }
    return true;
}
