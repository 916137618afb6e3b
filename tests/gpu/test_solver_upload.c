/*
 * What a solver brings to the device, or reads on the host: operands with gaps between their
 * columns, triangles, in host memory and on the device; and what it leaves to the original.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>

#include "call/matrix.h"
#include "gpu/exec/lapack/solver_parts.h"
#include "tests/lib/in_solver.h"
#include "tests/lib/watched_memory.h"

static const char parts[] = {0, 'U', 'L', 'u', 'l'};
static const struct {
    const char *name;
    enum accel_dtype dtype;
} types[] = {{"sgels_", ACCEL_FLOAT32},
             {"dgels_", ACCEL_FLOAT64},
             {"cgels_", ACCEL_COMPLEX64},
             {"zgels_", ACCEL_COMPLEX128}};
static int type; /* of the steps under way */

static void in_each_type(void (*steps)(struct solver *s), enum gpu_status expected)
{
    for (type = 0; type < 4; type++)
        assert_int_equal(in_solver(types[type].name, steps), expected);
}

static struct accel_span matrix(int64_t rows, int64_t cols, int64_t ld)
{
    return operand(rows, cols, ld, types[type].dtype);
}

/* What is there is the part of x that counts, with zeros beside it. */
static void assert_same(const struct accel_span *there, const struct accel_span *x, char part,
                        bool real_diagonal)
{
    for (int64_t j = 0; j < there->cols; j++)
        for (int64_t i = 0; i < there->rows; i++) {
            const number own = counts(part, i, j) ? get(x, i, j) : 0;
            assert_true(
                is_same_number(get(there, i, j), real_diagonal && i == j ? creal(own) : own));
        }
}

/* ---- Whole operands ---- */

static void goes_up(struct solver *s)
{
    struct accel_span x = matrix(21, 17, 25);
    for (int p = 0; p < 5; p++)
        for (int device_too = 0; device_too < 2; device_too++) {
            const struct accel_span from = device_too ? on_device(s, &x) : x;
            s->work->host->up_bytes = 0;
            s->largest = 0;
            struct accel_span there = fetched(s, solver_upload(s, &from, parts[p]));
            assert_true(solver_is_well(s));
            assert_same(&there, &x, parts[p], false);
            assert_int_equal(s->work->host->up_bytes, accel_bytes(&x));
            double largest = 0;
            for (int64_t j = 0; j < x.cols; j++)
                for (int64_t i = 0; i < x.rows; i++)
                    if (counts(parts[p], i, j) && creal(get(&x, i, j)) > largest)
                        largest = creal(get(&x, i, j));
            assert_true(s->largest == largest);
            free(there.ptr);
        }
    free(x.ptr);
}

static void hermitian_goes_up(struct solver *s)
{
    struct accel_span x = matrix(19, 19, 19);
    for (int lower = 0; lower < 2; lower++) {
        struct accel_span there = fetched(s, solver_upload_hermitian(s, &x, lower ? 'L' : 'U'));
        assert_same(&there, &x, lower ? 'L' : 'U', true);
        free(there.ptr);
    }
    free(x.ptr);
}

/* To the first rows and columns of an array, whose other elements stay. */
static void goes_up_to(struct solver *s)
{
    struct accel_span x = matrix(12, 9, 14), other = matrix(20, 11, 20);
    for (int shorter = 0; shorter < 2; shorter++) {
        const int64_t rows = shorter ? 7 : 20;
        struct array to = solver_array(s, rows, 11);
        solver_put(s, to, other.ptr);
        struct accel_span before = fetched(s, to);
        solver_upload_to(s, to, &x, 7, 8, 'L');
        struct accel_span there = fetched(s, to);
        assert_true(solver_is_well(s));
        for (int64_t j = 0; j < 11; j++)
            for (int64_t i = 0; i < rows; i++)
                assert_true(is_same_number(get(&there, i, j), i >= 7 || j >= 8 ? get(&before, i, j)
                                                              : i >= j         ? get(&x, i, j)
                                                                               : 0));
        free(before.ptr);
        free(there.ptr);
    }
    free(x.ptr);
    free(other.ptr);
}

static void operands(void **state)
{
    (void)state;
    in_each_type(goes_up, GPU_OK);
    in_each_type(hermitian_goes_up, GPU_OK);
    in_each_type(goes_up_to, GPU_OK);
}

/* A vector, whatever is between its elements for the program, comes up as one column. */
static void vector_goes_up(struct solver *s)
{
    struct accel_span x = matrix(1, 33, 1);
    x.inc = 1;
    const struct array there = solver_upload(s, &x, 0);
    assert_int_equal(there.rows, 33);
    assert_int_equal(there.cols, 1);
    struct accel_span copy = fetched(s, there);
    assert_memory_equal(copy.ptr, x.ptr, (size_t)accel_bytes(&x));
    free(copy.ptr);
    free(x.ptr);
}

static void vectors(void **state)
{
    (void)state;
    in_each_type(vector_goes_up, GPU_OK);
}

/* An empty operand, or any after a failure, counts as brought. An operand that may not stay is not
 * brought where only those that stay are wanted. */
static void brings(struct solver *s)
{
    struct accel_span x = matrix(8, 8, 8), none = x, empty = x;
    none.rows = 0;
    empty.cols = 0;
    const struct array to = solver_zeros(s, 8, 8);
    assert_true(solver_bring(s, to, &none, 0, false, true));
    assert_true(solver_bring(s, to, &empty, 0, false, true));
    assert_false(solver_bring(s, to, &x, 0, false, true));
    s->status = GPU_ERROR;
    assert_true(solver_bring(s, to, &x, 0, false, true));
    assert_true(solver_bring(s, to, &x, 0, false, false));
    s->status = GPU_OK;
    assert_int_equal(s->work->host->up_bytes, 0);
    assert_true(solver_bring(s, to, &x, 0, false, false));
    assert_int_equal(s->work->host->up_bytes, accel_bytes(&x));
    free(x.ptr);
}

static void what_has_been_brought(void **state)
{
    (void)state;
    in_each_type(brings, GPU_OK);
}

/* ---- On the host ---- */

static void is_read(struct solver *s)
{
    static const char read_parts[] = {0, 'U', 'L'};
    struct accel_span x = matrix(14, 14, 18);
    for (int p = 0; p < 3; p++)
        for (int device_too = 0; device_too < 2; device_too++) {
            const struct accel_span from = device_too ? on_device(s, &x) : x;
            struct accel_span copy = x;
            copy.ld = x.rows;
            copy.ptr = solver_read(s, &from, read_parts[p]);
            assert_true(solver_is_well(s) && copy.ptr);
            for (int64_t j = 0; j < x.cols; j++)
                for (int64_t i = 0; i < x.rows; i++)
                    if (counts(read_parts[p], i, j))
                        assert_true(is_same_number(get(&copy, i, j), get(&x, i, j)));
            s->work->host->up_bytes = 0;
            struct accel_span there =
                fetched(s, solver_upload_packed(s, &x, copy.ptr, read_parts[p]));
            assert_same(&there, &x, read_parts[p], false);
            assert_int_equal(s->work->host->up_bytes, accel_bytes(&x));
            free(there.ptr);
            free(copy.ptr);
        }
    s->status = GPU_ERROR;
    assert_null(solver_read(s, &x, 0));
    s->status = GPU_OK;
    free(x.ptr);
}

static void read_on_the_host(void **state)
{
    (void)state;
    in_each_type(is_read, GPU_OK);
}

/* ---- Pivots ---- */

static struct {
    enum accel_dtype width;
    int64_t values[4], count, limit;
    bool with_signs, well;
} given;

static void pivots_are_read(struct solver *s)
{
    struct accel_span x = integers(given.values, given.count, given.width);
    const struct accel_span there = on_device(s, &x), *const from[] = {&x, &there};
    const enum gpu_status expected = given.well ? GPU_OK : GPU_UNSUPPORTED;
    for (int way = 0; way < 2; way++) {
        int64_t copy[4] = {0};
        s->work->host->up_bytes = 0;
        int64_t *read = solver_read_pivots(s, from[way], given.limit, given.with_signs);
        assert_int_equal(s->status, expected);
        if (given.well)
            assert_memory_equal(read, given.values, (size_t)given.count * sizeof *read);
        free(read);
        s->status = GPU_OK;
        const struct array up = solver_upload_pivots(s, from[way], given.limit, given.with_signs);
        assert_int_equal(s->status, expected);
        assert_int_equal(s->work->host->up_bytes, given.well ? given.count * gpu_size_of(&x) : 0);
        assert_int_equal(up.rows, given.count);
        if (given.well) {
            solver_get(s, copy, up);
            assert_memory_equal(copy, given.values, (size_t)given.count * sizeof *copy);
        }
        s->status = GPU_ERROR;
        assert_null(solver_read_pivots(s, &x, given.limit, given.with_signs));
        s->status = GPU_OK;
    }
    free(x.ptr);
}

static void are_pivots(bool well, const int64_t *values, int64_t count, bool with_signs)
{
    given.limit = 9;
    given.count = count;
    given.with_signs = with_signs;
    given.well = well;
    memcpy(given.values, values, (size_t)count * sizeof *values);
    assert_int_equal(in_solver("dgels_", pivots_are_read), GPU_OK);
}

static void pivots(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        given.width = wide ? ACCEL_INT64 : ACCEL_INT32;
        are_pivots(true, (int64_t[]){1, 9, 4}, 3, false);
        are_pivots(true, (int64_t[]){1, -9, -1, 9}, 4, true);
        for (int at = 0; at < 3; at++) {
            static const int64_t bad[] = {10, 0, -1, 0, 10, -10};
            for (int b = 0; b < 6; b++) {
                int64_t values[3] = {2, 3, 4};
                values[at] = bad[b];
                are_pivots(false, values, 3, b > 2);
            }
        }
    }
}

/* ---- Left to the original ---- */

static int64_t row, col; /* of the number that is none */
static double wrong;
static char part;
static bool reads;

/* With such a number, in its real part or its imaginary one. */
static void has_wrong(struct solver *s)
{
    const bool is_complex = accel_is_complex(s->dtype);
    for (int imaginary = 0; imaginary <= is_complex; imaginary++) {
        struct accel_span x = matrix(9, 9, 11);
        set(&x, row, col, imaginary ? CMPLX(1, wrong) : wrong);
        if (reads)
            free(solver_read(s, &x, part));
        else
            solver_upload(s, &x, part);
        free(x.ptr);
        assert_int_equal(s->status, counts(part, row, col) && row < 9 ? GPU_UNSUPPORTED : GPU_OK);
        if (!imaginary && is_complex)
            s->status = GPU_OK;
    }
    s->status = GPU_OK;
}

/* Only where it counts. */
static void not_finite(void **state)
{
    static const int64_t places[][2] = {{0, 0}, {8, 8}, {8, 0}, {0, 8}, {4, 4}, {9, 3}};
    (void)state;
    for (int p = 0; p < 6; p++)
        for (int w = 0; w < 6; w++) {
            row = places[p][0];
            col = places[p][1];
            wrong = w % 2 ? NAN : -INFINITY;
            part = parts[w / 2];
            for (int way = 0; way < 2; way++) {
                reads = way;
                in_each_type(has_wrong, GPU_OK);
            }
        }
}

static void zeros_are_found(struct solver *s)
{
    const struct accel_span x = matrix(6, 5, 7), there = on_device(s, &x);
    const bool is_complex = accel_is_complex(s->dtype);
    const number zeros[] = {0, -0.0, CMPLX(-0.0, is_complex ? -0.0 : 0)};
    solver_refuse_zero_diagonal(s, &x);
    solver_refuse_zero_diagonal(s, &there);
    assert_true(solver_is_well(s));
    for (int64_t i = 0; i < 5; i++)
        for (int z = 0; z < 3; z++) {
            const number kept = get(&x, i, i);
            set(&x, i, i, zeros[z]);
            assert_true(solver_has_zero(s, (char *)x.ptr + i * 8 * gpu_size_of(&x), 1));
            assert_false(solver_has_zero(s, (char *)x.ptr + i * 8 * gpu_size_of(&x), 0));
            solver_refuse_zero_diagonal(s, &x);
            assert_int_equal(s->status, GPU_UNSUPPORTED);
            s->status = GPU_OK;
            set(&x, i, i, CMPLX(FLT_MIN, 0));
            solver_refuse_zero_diagonal(s, &x);
            set(&x, i, i, is_complex ? CMPLX(0, FLT_MIN) : 1);
            solver_refuse_zero_diagonal(s, &x);
            assert_true(solver_is_well(s));
            set(&x, i, i, kept);
        }
    assert_false(solver_has_zero(s, x.ptr, 6));
    set(&x, 5, 0, 0);
    assert_true(solver_has_zero(s, x.ptr, 6));
    assert_false(solver_has_zero(s, x.ptr, 5));
    free(x.ptr);
}

static void zeros_on_the_diagonal(void **state)
{
    (void)state;
    in_each_type(zeros_are_found, GPU_OK);
}

/* A packed triangle's, on the host and on the device: what is beside the diagonal may be 0. */
static void zeros_of_packed_are_found(struct solver *s)
{
    enum { ORDER = 5, LENGTH = ORDER * (ORDER + 1) / 2 };
    call.blas.size[ACCEL_n] = ORDER;
    for (const char *uplo = "UL"; *uplo; uplo++)
        for (int64_t i = 0; i < LENGTH; i++) {
            bool is_diagonal = false;
            for (int64_t k = 0; k < ORDER; k++)
                is_diagonal = is_diagonal || triangle_place(*uplo, ORDER, k, k) == i;
            struct accel_span x = operand(LENGTH, 1, LENGTH, s->dtype);
            call.blas.flag[ACCEL_uplo] = *uplo;
            set(&x, i, 0, 0);
            const struct accel_span both[] = {x, on_device(s, &x)};
            for (int k = 0; k < 2; k++) {
                call.span[ACCEL_a] = both[k];
                solver_refuse_zero_diagonal(s, &call.span[ACCEL_a]);
                assert_int_equal(s->status, is_diagonal ? GPU_UNSUPPORTED : GPU_OK);
                s->status = GPU_OK;
            }
            free(x.ptr);
        }
}

static void zeros_of_packed(void **state)
{
    (void)state;
    assert_int_equal(in_solver("dpptri_", zeros_of_packed_are_found), GPU_OK);
    assert_int_equal(in_solver("cpptri_", zeros_of_packed_are_found), GPU_OK);
}

/* Inputs that LAPACK would scale: beyond sqrt(safe minimum) / eps, and its inverse. */
static void extremes_are_refused(struct solver *s)
{
    const double least = accel_is_double(s->dtype) ? sqrt(DBL_MIN) / DBL_EPSILON
                                                   : sqrt((double)FLT_MIN) / (double)FLT_EPSILON;
    const struct {
        double largest;
        bool well;
    } cases[] = {{least * 1.05, true},
                 {least * 0.95, false},
                 {1 / least * 0.95, true},
                 {1 / least * 1.05, false},
                 {1, true},
                 {0, false},
                 {INFINITY, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s->largest = cases[i].largest;
        solver_refuse_extremes(s);
        assert_int_equal(s->status, cases[i].well ? GPU_OK : GPU_UNSUPPORTED);
        s->status = GPU_OK;
    }
    s->status = GPU_LOST;
    solver_refuse_extremes(s);
    assert_int_equal(s->status, GPU_LOST);
    s->status = GPU_OK;
}

static void extremes(void **state)
{
    (void)state;
    in_each_type(extremes_are_refused, GPU_OK);
}

/* ---- Memory ---- */

static struct accel_span of_device, pivots_of_device;

/* Memory for copies of what is on the device, and for what is read. */
static void takes_memory(struct solver *s)
{
    for (int way = 0; way < 5; way++)
        for (int n = 1, short_of_memory = 1; short_of_memory; n++) {
            watch(n);
            if (way == 0)
                solver_upload(s, &of_device, 0);
            else if (way == 1)
                free(solver_read(s, &of_device, 'L'));
            else if (way == 2)
                free(solver_read_pivots(s, &pivots_of_device, 9, false));
            else if (way == 3)
                solver_upload_pivots(s, &pivots_of_device, 9, false);
            else
                solver_refuse_zero_diagonal(s, &of_device);
            stop_watching();
            short_of_memory = requests >= n;
            assert_int_equal(s->status, short_of_memory ? GPU_NO_MEMORY : GPU_OK);
            assert_int_equal(live, 0);
            assert_true(n > 1 || short_of_memory);
            s->status = GPU_OK;
        }
}

static void takes_memory_of_the_host(struct solver *s)
{
    struct accel_span x = operand(9, 9, 9, ACCEL_FLOAT64),
                      p = integers((int64_t[]){1, 2, 9}, 3, ACCEL_INT32);
    of_device = on_device(s, &x);
    pivots_of_device = on_device(s, &p);
    takes_memory(s);
    free(x.ptr);
    free(p.ptr);
}

static void without_host_memory(void **state)
{
    (void)state;
    assert_int_equal(in_solver("dgels_", takes_memory_of_the_host), GPU_OK);
}

#define TEST(TEST) cmocka_unit_test_setup_teardown(TEST, begin_work, end_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(operands),
        TEST(vectors),
        TEST(what_has_been_brought),
        TEST(read_on_the_host),
        TEST(pivots),
        TEST(not_finite),
        TEST(extremes),
        TEST(zeros_on_the_diagonal),
        TEST(zeros_of_packed),
        TEST(without_host_memory),
    };
    return cmocka_run_group_tests(tests, start_with_solver, stop_device);
}
