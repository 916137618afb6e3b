/*
 * Steps of a solver (gpu/exec/lapack/solver.h), in the work of a unit test (device_work.h), and
 * operands of its type that hold other numbers beside their own.
 */
#ifndef ACCEL_TEST_IN_SOLVER_H
#define ACCEL_TEST_IN_SOLVER_H

#include "gpu/exec/lapack/solver.h"
#include "tests/lib/level3.h"

/* Setup of a group of tests. cuSOLVER's functions are there before the first test keeps them. */
static inline int start_with_solver(void **state)
{
    return start_work(state) == 0 && cuda_api_open_cusolver() ? 0 : -1;
}

/* Runs steps in a solver for calls of a routine; returns what has become of it. */
static inline enum gpu_status in_solver(const char *routine, void (*steps)(struct solver *s))
{
    call = accel_call_of(accel_name_routine((uint32_t)accel_name_find(routine)));
    host.up_bytes = host.down_bytes = host.cached_bytes = 0;
    const enum gpu_status status = solver_run(&work, steps, NULL);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    return status;
}

enum { BESIDE = 77 }; /* between the columns of an operand */

/* Returns an operand of which each element is another number; the caller frees its memory. */
static inline struct accel_span operand(int64_t rows, int64_t cols, int64_t ld,
                                        enum accel_dtype dtype)
{
    struct accel_span x = {.name = "a",
                           .ptr = malloc((size_t)(ld * cols + 1) * accel_dtype_size(dtype)),
                           .rows = rows,
                           .cols = cols,
                           .ld = ld,
                           .dtype = dtype,
                           .access = ACCEL_READWRITE};
    assert_non_null(x.ptr);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < ld; i++) {
            const double number = (double)(i * 31 + j * 17 + 1);
            const bool is_complex = accel_is_complex(dtype);
            set(&x, i, j, i < rows ? number + (is_complex ? CMPLX(0, -number) : 0) : BESIDE);
        }
    return x;
}

/* Returns an array of INTEGERs. */
static inline struct accel_span integers(const int64_t *values, int64_t count,
                                         enum accel_dtype dtype)
{
    struct accel_span x = {.name = "x",
                           .ptr = malloc((size_t)(count + 1) * accel_dtype_size(dtype)),
                           .rows = 1,
                           .cols = count,
                           .ld = 1,
                           .inc = 1,
                           .dtype = dtype,
                           .access = ACCEL_READWRITE};
    assert_non_null(x.ptr);
    for (int64_t i = 0; i < count; i++)
        if (dtype == ACCEL_INT64)
            ((int64_t *)x.ptr)[i] = values[i];
        else
            ((int32_t *)x.ptr)[i] = (int32_t)values[i];
    return x;
}

/* part: U, L, u, l: the triangle that counts, the two latter without its diagonal; 0: all. */
static inline bool counts(char part, int64_t i, int64_t j)
{
    return part == 'U'   ? i <= j
           : part == 'u' ? i < j
           : part == 'L' ? i >= j
           : part == 'l' ? i > j
                         : true;
}

/* Returns what an array has, as an operand without gaps; the caller frees its memory. */
static inline struct accel_span fetched(struct solver *s, struct array x)
{
    struct accel_span to = operand(x.rows, x.cols, x.rows, x.dtype);
    solver_get(s, to.ptr, x);
    return to;
}

/* Moves an operand to device memory, packed. Returns it; its host memory stays the caller's. */
static inline struct accel_span on_device(struct solver *s, const struct accel_span *x)
{
    struct accel_span there = *x;
    const int64_t rows = x->inc ? x->cols * x->ld : x->ld, cols = x->inc ? 1 : x->cols,
                  bytes = rows * cols * gpu_size_of(x);
    gpu_address memory = 0;
    assert_int_equal(gpu_memory(s->work)->take(s->work, bytes, &memory), GPU_OK);
    const struct host_rectangle all = host_whole(x->ptr, rows, cols, rows, gpu_size_of(x));
    assert_int_equal(stream_ctx_upload(s->work->ctx, (struct dmat){memory, rows}, &all), GPU_OK);
    assert_int_equal(gpu_work_settle(s->work), GPU_OK);
    there.ptr = (void *)(uintptr_t)memory;
    there.place = ACCEL_DEVICE;
    return there;
}

#endif
