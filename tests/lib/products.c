#include "tests/lib/products.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory/hash.h"
#include "cpu_ref/judge.h"
#include "ops/names.h"
#include "ops/op.h"

static bool on_original(void *context, const struct accel_call *part)
{
    struct product *p = context;
    (void)part;
    p->original_calls++;
    return true;
}

static void on_event(void *context, const struct gpu_event *event)
{
    struct product *p = context;
    p->allocated += event->kind == GPU_EVENT_ALLOCATE;
    p->in_place += event->kind == GPU_EVENT_IN_PLACE;
}

static const struct accel_routine *gemm_of(enum accel_dtype dtype)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_op_of(&accel_routines[i]) == &op_gemm && accel_routines[i].dtype == dtype)
            return &accel_routines[i];
    return NULL;
}

void *random_matrix(int64_t rows, int64_t cols, enum accel_dtype dtype)
{
    size_t count = (size_t)(rows * cols) * (accel_is_complex(dtype) ? 2 : 1);
    void *x = malloc((size_t)(rows * cols) * accel_dtype_size(dtype) + 16);
    for (size_t i = 0; i < count; i++) {
        double value = 2.0 * rand() / RAND_MAX - 1;
        if (accel_is_double(dtype))
            ((double *)x)[i] = value;
        else
            ((float *)x)[i] = (float)value;
    }
    return x;
}

void make_product(struct product *p, enum accel_dtype dtype, char ta, char tb, int64_t m, int64_t n,
                  int64_t k, double beta)
{
    memset(p, 0, sizeof *p);
    struct accel_call *call = &p->call;
    *call = accel_call_of(gemm_of(dtype));
    call->blas.flag[ACCEL_transa] = ta;
    call->blas.flag[ACCEL_transb] = tb;
    call->blas.size[ACCEL_m] = m;
    call->blas.size[ACCEL_n] = n;
    call->blas.size[ACCEL_k] = k;
    call->blas.scalar[ACCEL_alpha] = (struct accel_complex){-1.25, 0};
    call->blas.scalar[ACCEL_beta] = (struct accel_complex){beta, 0};
    int64_t ar = ta == 'N' ? m : k, ac = ta == 'N' ? k : m, br = tb == 'N' ? k : n,
            bc = tb == 'N' ? n : k;
    call->span[ACCEL_a] = (struct accel_span){.name = "a",
                                              .ptr = random_matrix(ar, ac, dtype),
                                              .rows = ar,
                                              .cols = ac,
                                              .ld = ar,
                                              .dtype = dtype,
                                              .access = ACCEL_READ};
    call->span[ACCEL_b] = (struct accel_span){.name = "b",
                                              .ptr = random_matrix(br, bc, dtype),
                                              .rows = br,
                                              .cols = bc,
                                              .ld = br,
                                              .dtype = dtype,
                                              .access = ACCEL_READ};
    call->span[ACCEL_c] = (struct accel_span){.name = "c",
                                              .ptr = random_matrix(m, n, dtype),
                                              .rows = m,
                                              .cols = n,
                                              .ld = m,
                                              .dtype = dtype,
                                              .access = ACCEL_READWRITE};
    size_t bytes = (size_t)accel_bytes(&call->span[ACCEL_c]);
    p->before = malloc(bytes + 1);
    memcpy(p->before, call->span[ACCEL_c].ptr, bytes);
    p->host = (struct gpu_host){.original = on_original, .event = on_event, .context = p};
}

void destroy_product(struct product *p)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        free(p->call.span[i].ptr);
    free(p->before);
}

static uint64_t hash_of(const struct product *p)
{
    uint64_t hash = hash_bytes(&p->call.blas, sizeof p->call.blas) ^
                    hash_bytes(p->before, (size_t)accel_bytes(&p->call.span[ACCEL_c]));
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &p->call.span[i];
        hash =
            hash * 0x9e3779b97f4a7c15u + (x->ptr ? hash_bytes(x->ptr, (size_t)accel_bytes(x)) : 0);
    }
    return hash;
}

/* What is, bit for bit, as it was when it was judged last is right: a judge takes much longer than
 * the call. */
void right_product(const struct product *p)
{
    static uint64_t right;
    const uint64_t hash = hash_of(p);
    if (hash != right)
        assert_true(cpu_ref_ratio(&p->call, ACCEL_COLUMN_MAJOR, p->before) <= CPU_REF_THRESHOLD);
    right = hash;
    assert_int_equal(p->original_calls, 0);
}
