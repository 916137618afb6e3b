/*
 * A triangle that goes up and comes down without what is beside it. The upper triangle of a matrix
 * on the device, whose packed form would have more elements than an int: on the test GPU, with data
 * for an order of some blocks, without for one of 65536.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "call/matrix.h"
#include "gpu/cuda/device.h"
#include "gpu/exec/lapack/solver.h"
#include "ops/names.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "tests/lib/devices.h"

static struct gpu_device *device;

static bool start(void)
{
    device = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.9});
    return device != NULL;
}

static int64_t n; /* of the check under way */
static struct gpu_host host;

/* Runs a check in a solver of a call; returns the solver's status. */
static enum gpu_status in_solver_with(const struct accel_call *call,
                                      void (*check)(struct solver *s))
{
    host = (struct gpu_host){0};
    struct gpu_work work = {.call = call, .host = &host, .device = device};
    struct gpu_scope scope;
    if (gpu_enter(cuda_device_of(device), &scope) != GPU_OK ||
        stream_ctx_acquire(cuda_device_of(device), true, &work.ctx) != GPU_OK)
        return GPU_ERROR;
    enum gpu_status status = solver_run(&work, check, NULL);
    gpu_work_give_back(&work);
    stream_ctx_release(work.ctx, false);
    gpu_leave(&scope);
    return status;
}

/* The same of a routine's type. */
static enum gpu_status in_solver_of(const char *routine, void (*check)(struct solver *s),
                                    int64_t order)
{
    const struct accel_call call = {.routine =
                                        accel_name_routine((uint32_t)accel_name_find(routine))};
    n = order;
    return in_solver_with(&call, check);
}

/* The same in single precision. */
static enum gpu_status in_solver(void (*check)(struct solver *s), int64_t order)
{
    return in_solver_of("sgels_", check, order);
}

static void copy_values(struct solver *s)
{
    float *from = malloc((size_t)(n * n) * sizeof *from),
          *to = malloc((size_t)(n * n) * sizeof *to);
    struct array full = solver_array(s, n, n);
    assert_true(from && to);
    for (int64_t i = 0; i < n * n; i++)
        from[i] = (float)(i % 1009 + 1);
    solver_put(s, full, from);
    solver_get(s, to, solver_upper(s, full));
    assert_int_equal(s->status, GPU_OK);
    int64_t wrong = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            wrong += to[i + j * n] != (i <= j ? from[i + j * n] : 0);
    assert_int_equal(wrong, 0);
    free(from);
    free(to);
}

static void the_triangle_is_copied(void **state)
{
    static const int64_t orders[] = {1, 100, 511, 512, 513, 1300};
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        assert_int_equal(in_solver(copy_values, orders[i]), GPU_OK);
}

static void copy_nothing(struct solver *s)
{
    solver_upper(s, solver_array(s, n, n));
}

/* Packed at once, it has 2^31 + 32768 elements; returns a gpu_status. */
static int without_data(void)
{
    setenv("TESTGPU_DATA", "0", 1);
    setenv("TESTGPU_MEMORY", "64G", 1);
    return start() ? (int)in_solver(copy_nothing, 65536) : (int)GPU_ERROR;
}

static void a_packed_triangle_is_within_an_int(void **state)
{
    const int *status = *state;
    assert_true(WIFEXITED(*status));
    if (is_real_gpu() && WEXITSTATUS(*status) == GPU_NO_MEMORY)
        skip(); /* the matrix and its packed part have 26 GB */
    assert_int_equal(WEXITSTATUS(*status), GPU_OK);
}

/* ---- Up and down in strips ---- */

/* A matrix of more than 16 MB, of which one side of the diagonal counts. */
static struct stripes {
    struct accel_span x;
    char uplo;
    float *values;
} striped;

static float value_at(int64_t i, int64_t j)
{
    return (float)((i * 31 + j * 17) % 1009 + 1);
}

static bool is_stored(int64_t i, int64_t j)
{
    return striped.uplo == 'U'   ? i <= j
           : striped.uplo == 'u' ? i < j
           : striped.uplo == 'L' ? i >= j
                                 : i > j;
}

/* Beside the triangle is what must not go up. */
static void fill_values(void)
{
    for (int64_t j = 0; j < striped.x.cols; j++)
        for (int64_t i = 0; i < striped.x.ld; i++)
            striped.values[i + j * striped.x.ld] =
                i < striped.x.rows && is_stored(i, j) ? value_at(i, j) : -1.0f / 0.0f;
}

static void goes_up_and_down(struct solver *s)
{
    const struct accel_span *x = &striped.x;
    const struct array there = solver_upload(s, x, striped.uplo);
    float *copy = malloc((size_t)(x->rows * x->cols) * sizeof *copy);
    assert_non_null(copy);
    solver_get(s, copy, there);
    assert_int_equal(s->status, GPU_OK);
    int64_t wrong = 0;
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->rows; i++)
            wrong += copy[i + j * x->rows] != (is_stored(i, j) ? value_at(i, j) : 0);
    assert_int_equal(wrong, 0);
    free(copy);
    assert_true(s->largest == 1009);
    const double whole = (double)accel_bytes(x), up = (double)s->work->host->up_bytes;
    assert_true(up > 0.4 * whole && up < 0.64 * whole);
    /* Comes back over other numbers, of which those beside the triangle stay. */
    for (int64_t i = 0; i < x->ld * x->cols; i++)
        striped.values[i] = 7;
    solver_return(s, x, there, striped.uplo);
}

static void a_triangle_alone_is_copied(void **state)
{
    static const int64_t shapes[][2] = {{2100, 2100}, {1950, 2300}, {2300, 1950}};
    (void)state;
    for (size_t k = 0; k < 12; k++) {
        const int64_t rows = shapes[k / 4][0], cols = shapes[k / 4][1], ld = rows + 3;
        striped = (struct stripes){.uplo = "ULul"[k % 4],
                                   .values = malloc((size_t)(ld * cols) * sizeof(float))};
        assert_non_null(striped.values);
        striped.x = (struct accel_span){.name = "a",
                                        .ptr = striped.values,
                                        .rows = rows,
                                        .cols = cols,
                                        .ld = ld,
                                        .dtype = ACCEL_FLOAT32,
                                        .access = ACCEL_READWRITE};
        fill_values();
        assert_int_equal(in_solver(goes_up_and_down, rows), GPU_OK);
        assert_true(host.down_bytes == host.up_bytes);
        int64_t wrong = 0;
        for (int64_t j = 0; j < cols; j++)
            for (int64_t i = 0; i < ld; i++)
                wrong += striped.values[i + j * ld] !=
                         (i < rows && is_stored(i, j) ? value_at(i, j) : 7);
        assert_int_equal(wrong, 0);
        free(striped.values);
    }
}

/* ---- Diagonals ---- */

static double part_at(int64_t i, int part)
{
    return (double)(2 * i + part + 1);
}

static void clear_diagonal(struct solver *s)
{
    const int parts = accel_is_complex(s->dtype) ? 2 : 1;
    double *values = malloc((size_t)(n * n * parts) * sizeof *values);
    const struct array x = solver_array(s, n, n);
    int64_t wrong = 0;
    assert_non_null(values);
    for (int64_t i = 0; i < n * n * parts; i++)
        values[i] = part_at(i / parts, (int)(i % parts));
    solver_put(s, x, values);
    solver_clear_imaginary(s, x);
    solver_get(s, values, x);
    for (int64_t i = 0; i < n * n * parts; i++) {
        const bool cleared = i % parts == 1 && i / parts % (n + 1) == 0;
        wrong += values[i] != (cleared ? 0 : part_at(i / parts, (int)(i % parts)));
    }
    assert_int_equal(wrong, 0);
    free(values);
}

static void a_diagonal_becomes_real(void **state)
{
    static const int64_t orders[] = {1, 2, 37, 300};
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        assert_int_equal(in_solver_of("zgels_", clear_diagonal, orders[i]), GPU_OK);
        assert_int_equal(in_solver_of("dgels_", clear_diagonal, orders[i]), GPU_OK);
    }
}

static void longer_ones_are_refused(struct solver *s)
{
    const struct dmat tile = {0, n};
    assert_int_equal(gpu_kernels(s->work)->pack_triangle(s->work, 'U', n, tile, 0),
                     GPU_UNSUPPORTED);
    assert_int_equal(gpu_kernels(s->work)->unpack_triangle(s->work, 'U', n, 0, tile),
                     GPU_UNSUPPORTED);
}

static void packing_has_a_largest_order(void **state)
{
    (void)state;
    assert_int_equal(in_solver(longer_ones_are_refused, 65536), GPU_OK);
}

/* ---- A packed Hermitian matrix ---- */

enum { ORDER = 3, PACKED = ORDER * (ORDER + 1) / 2 };

static const struct solver_library *library; /* the device's */
static int looked;

/* Of what is factored: LAPACK ignores the imaginary parts of the diagonal, which no page about
 * cuSOLVER says of it. */
static void look_at_diagonal(struct solver *s, char uplo, struct array a)
{
    double values[2 * ORDER * ORDER];
    solver_get(s, values, a);
    for (int i = 0; i < ORDER; i++) {
        assert_true(values[2 * (ORDER + 1) * i] == 5 + i);
        assert_true(values[2 * (ORDER + 1) * i + 1] == 0);
    }
    looked++;
    library->potrf(s, uplo, a);
}

static void its_diagonal_becomes_real(void **state)
{
    double ap[2 * PACKED] = {0};
    const struct accel_routine *const routine =
        accel_name_routine((uint32_t)accel_name_find("zpptrf_"));
    const struct gpu_device_functions *const all = device->functions;
    struct gpu_device_functions functions = *all;
    struct solver_library watched = *functions.solver;
    struct accel_call call;
    (void)state;
    for (const char *uplo = "UL"; *uplo; uplo++) {
        shape_typical(&call, routine, (int64_t[ACCEL_DIMENSIONS]){[ACCEL_n] = ORDER});
        call.blas.flag[ACCEL_uplo] = *uplo;
        call.span[ACCEL_a].ptr = ap;
        for (int i = 0; i < ORDER; i++) {
            double *const at = ap + 2 * triangle_place(*uplo, ORDER, i, i);
            at[0] = 5 + i;
            at[1] = 3;
        }
        library = all->solver;
        watched.potrf = look_at_diagonal;
        functions.solver = &watched;
        device->functions = &functions;
        const enum gpu_status status = in_solver_with(&call, call.op->gpu->steps);
        device->functions = all;
        assert_int_equal(status, GPU_OK);
    }
    assert_int_equal(looked, 2);
}

int main(void)
{
    /* The settings are read once in a process. */
    pid_t child = fork();
    int status = -1;
    if (child == 0)
        _exit(without_data());
    if (child < 0 || waitpid(child, &status, 0) != child || !start())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_packed_triangle_is_within_an_int, &status),
        cmocka_unit_test(the_triangle_is_copied),
        cmocka_unit_test(a_triangle_alone_is_copied),
        cmocka_unit_test(a_diagonal_becomes_real),
        cmocka_unit_test(packing_has_a_largest_order),
        cmocka_unit_test(its_diagonal_becomes_real),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gpu_stop(device);
    return failed;
}
