/*
 * Sizes beyond 32 bits, and functions that this cuSOLVER lacks: the solver says that they are not
 * supported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>

#include "gpu/exec/lapack/solver.h"
#include "tests/lib/refusing_driver.h"

static struct solver solver_of(enum accel_dtype dtype)
{
    return (struct solver){
        .work = &work, .call = &call, .dtype = dtype, .real = accel_real_dtype(dtype)};
}

/* The first time, its functions come into the table. */
static void use_solver(void)
{
    assert_int_equal(stream_ctx_use_solver(work.ctx), GPU_OK);
    real = cuda_api;
}

static struct array shape(int64_t rows, int64_t cols)
{
    return (struct array){{0x1000, accel_max(1, rows)}, rows, cols, ACCEL_FLOAT64};
}

static void sizes_beyond_32_bits_are_unsupported(void **state)
{
    const int64_t large = (int64_t)INT_MAX + 1;
    const struct array one = shape(1, 1), tall = shape(large, 1);
    struct array sparse = one;
    struct solver s;
    (void)state;
    sparse.at.ld = large;
    use_solver();
    for (int i = 0; i < 3; i++) {
        s = solver_of(ACCEL_FLOAT64);
        if (i < 2)
            solver_library(&s)->potri(&s, 'L', i ? tall : sparse);
        else
            solver_library(&s)->sytrd(&s, 'L', shape(50000, 50000), one, one, one);
        assert_int_equal(s.status, GPU_UNSUPPORTED);
    }
    s = solver_of(ACCEL_FLOAT64);
    assert_false(solver_library(&s)->gesvdj(&s, false, true, sparse, one, one, one));
    assert_int_equal(s.status, GPU_UNSUPPORTED);
    /* Of nothing, there is nothing to do. */
    s = solver_of(ACCEL_FLOAT64);
    solver_library(&s)->ormqr(&s, 'L', 'N', tall, one, shape(0, 3));
    solver_library(&s)->ormqr(&s, 'L', 'N', tall, one, shape(3, 0));
    assert_int_equal(s.status, GPU_OK);
    solver_library(&s)->ormqr(&s, 'L', 'N', tall, one, shape(3, 3));
    assert_int_equal(s.status, GPU_UNSUPPORTED);
}

static void what_this_solver_lacks_is_unsupported(void **state)
{
    const struct array one = shape(1, 1);
    (void)state;
    use_solver();
    for (int i = 0; i < 2; i++) {
        struct solver s = solver_of(ACCEL_FLOAT64);
        if (i == 0)
            CUDA(cusolverDnCreateGesvdjInfo) = NULL;
        else
            CUDA(cusolverDnDestroyGesvdjInfo) = NULL;
        assert_false(solver_library(&s)->gesvdj(&s, false, true, one, one, one, one));
        assert_int_equal(s.status, GPU_UNSUPPORTED);
        cuda_api = real;
    }
    assert_true(cuda_solver.has_hetrf());
    CUDA(cusolverDnXhetrs) = NULL;
    assert_false(cuda_solver.has_hetrf());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(sizes_beyond_32_bits_are_unsupported),
        TEST(what_this_solver_lacks_is_unsupported),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
