/* Sizes that follow from LAPACK's arguments (call/lapack_shape.h), by the documentation of its
 * routines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "call/lapack_shape.h"
#include "call/shape.h"
#include "ops/op.h"
#include "tests/lib/routine.h"

static struct accel_call call_of(const char *name, int64_t m, int64_t n)
{
    struct accel_call call = accel_call_of(routine(name));
    call.blas.size[ACCEL_m] = m;
    call.blas.size[ACCEL_n] = n;
    return call;
}

static void assert_size(const struct accel_call *call, int which, int64_t expected)
{
    if (lapack_size(call, which) != expected)
        fail_msg("%s: size %d is %lld, not %lld", call->routine->name, which,
                 (long long)lapack_size(call, which), (long long)expected);
}

/* K1 + (K2 - K1) |INCX|, as far as that is a number. */
static void exchanges_of_rows(void **state)
{
    static const int64_t most = INT64_MAX;
    static const struct {
        int64_t k1, k2, inc, length;
    } rows[] = {{1, 5, 1, 5},           {1, 5, -1, 5},
                {2, 5, 3, 11},          {2, 5, -3, 11},
                {4, 4, 7, 4},           {1, 1, most, 1},
                {1, 2, most - 1, most}, {1, 2, most, 0},
                {2, 3, most - 2, most}, {2, 3, most - 1, 0},
                {1, 3, most / 2, most}, {1, 3, most / 2 + 1, 0},
                {1, most, 1, most},     {1, 5, 0, 0},
                {0, 5, 1, 0},           {-1, 5, 1, 0},
                {5, 4, 1, 0},           {1, 5, INT64_MIN, 0},
                {1, 1, INT64_MIN, 0},   {1, 2, INT64_MIN + 1, 0}};
    struct accel_call call = call_of("dlaswp", 0, 3);
    (void)state;
    call.span[ACCEL_a].ld = 17;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        call.blas.size[ACCEL_k1] = rows[i].k1;
        call.blas.size[ACCEL_k2] = rows[i].k2;
        call.blas.size[ACCEL_incx] = rows[i].inc;
        assert_size(&call, ACCEL_swaps, rows[i].length);
    }
    assert_size(&call, ACCEL_lda_, 17);
}

static void smaller_and_larger_sides(void **state)
{
    static const int64_t sizes[][2] = {{7, 5}, {5, 7}, {5, 5}, {0, 5}, {5, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1];
        const struct accel_call call = call_of("dgeqrf", m, n);
        assert_size(&call, ACCEL_one, 1);
        assert_size(&call, ACCEL_minmn, m < n ? m : n);
        assert_size(&call, ACCEL_maxmn, m < n ? n : m);
    }
}

/* One column, of all the elements: more than any memory are not counted. */
static void packed_triangles(void **state)
{
    static const int64_t most = INT32_MAX;
    static const int64_t rows[][2] = {{-1, 0},
                                      {0, 0},
                                      {1, 1},
                                      {2, 3},
                                      {5, 15},
                                      {65535, 2147450880},
                                      {most, most * (most + 1) / 2},
                                      {most + 1, INT64_MAX},
                                      {INT64_MAX, INT64_MAX}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct accel_call call = call_of("dppsv", 0, rows[i][0]);
        assert_size(&call, ACCEL_packed, rows[i][1]);
        shape_operands(&call);
        const struct accel_span *const a = &call.span[ACCEL_a];
        assert_int_equal(a->rows, rows[i][1]);
        assert_int_equal(a->cols, 1);
        assert_int_equal(a->ld, accel_max(1, a->rows));
    }
}

/* U is m x m, m x min(m, n) or not there; VT is n x n, min(m, n) x n or not there. Of gesdd, JOBZ =
 * O has the vectors of the longer side in A, and all of the others. */
static void singular_vectors(void **state)
{
    static const struct {
        int64_t m, n;
        char jobz, jobu, jobvt;
        int64_t urows, ucols, vtrows, vtcols;
    } rows[] = {{7, 5, 0, 'A', 'A', 7, 7, 5, 5}, {7, 5, 0, 'S', 'S', 7, 5, 5, 5},
                {7, 5, 0, 'A', 'N', 7, 7, 0, 0}, {7, 5, 0, 'O', 'S', 0, 0, 5, 5},
                {5, 7, 0, 'S', 'A', 5, 5, 7, 7}, {5, 7, 0, 'S', 'S', 5, 5, 5, 7},
                {5, 7, 0, 'N', 'S', 0, 0, 5, 7}, {7, 5, 'A', 0, 0, 7, 7, 5, 5},
                {7, 5, 'S', 0, 0, 7, 5, 5, 5},   {7, 5, 'N', 0, 0, 0, 0, 0, 0},
                {7, 5, 'O', 0, 0, 0, 0, 5, 5},   {5, 5, 'O', 0, 0, 0, 0, 5, 5},
                {5, 7, 'O', 0, 0, 5, 5, 0, 0},   {5, 7, 'S', 0, 0, 5, 5, 5, 7},
                {5, 7, 'A', 0, 0, 5, 5, 7, 7},   {0, 5, 'S', 0, 0, 0, 0, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct accel_call call = call_of("dgesvd", rows[i].m, rows[i].n);
        call.blas.flag[ACCEL_jobz] = rows[i].jobz;
        call.blas.flag[ACCEL_jobu] = rows[i].jobu;
        call.blas.flag[ACCEL_jobvt] = rows[i].jobvt;
        assert_size(&call, ACCEL_urows, rows[i].urows);
        assert_size(&call, ACCEL_ucols, rows[i].ucols);
        assert_size(&call, ACCEL_vtrows, rows[i].vtrows);
        assert_size(&call, ACCEL_vtcols, rows[i].vtcols);
    }
}

static void eigenvectors(void **state)
{
    static const int64_t most = INT64_MAX / 2;
    static const struct {
        int64_t n;
        char jobz, range;
        int64_t il, iu, zrows, zcols, supports;
    } rows[] = {{9, 'N', 'A', 0, 0, 0, 0, 0},
                {9, 'V', 'A', 0, 0, 9, 9, 18},
                {9, 'V', 0, 0, 0, 9, 9, 18},
                {9, 'V', 'V', 0, 0, 9, 9, 0},
                {9, 'V', 'I', 1, 9, 9, 9, 18},
                {9, 'V', 'I', 3, 5, 9, 3, 0},
                {9, 'V', 'I', 4, 4, 9, 1, 0},
                {9, 'V', 'I', 9, 9, 9, 1, 0},
                {9, 'N', 'I', 1, 9, 0, 0, 0},
                {9, 'V', 'I', 0, 9, 9, 0, 0},
                {9, 'V', 'I', 5, 4, 9, 0, 0},
                {9, 'V', 'I', 9, 10, 9, 0, 0},
                {1, 'V', 'I', 1, 1, 1, 1, 2},
                {0, 'V', 'A', 0, 0, 0, 0, 0},
                {0, 'V', 'I', 1, 0, 0, 0, 0},
                {most, 'V', 'A', 0, 0, most, most, 2 * most},
                {most + 1, 'V', 'A', 0, 0, most + 1, most + 1, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct accel_call call = call_of("dsyevr", 0, rows[i].n);
        call.blas.flag[ACCEL_jobz] = rows[i].jobz;
        call.blas.flag[ACCEL_range] = rows[i].range;
        call.blas.size[ACCEL_il] = rows[i].il;
        call.blas.size[ACCEL_iu] = rows[i].iu;
        assert_size(&call, ACCEL_zrows, rows[i].zrows);
        assert_size(&call, ACCEL_zcols, rows[i].zcols);
        assert_size(&call, ACCEL_supports, rows[i].supports);
        assert_size(&call, ACCEL_failures, rows[i].zrows);
    }
}

static void left_and_right_eigenvectors(void **state)
{
    struct accel_call call = call_of("dgeev", 0, 6);
    (void)state;
    call.blas.flag[ACCEL_jobvl] = 'V';
    call.blas.flag[ACCEL_jobvr] = 'N';
    assert_size(&call, ACCEL_vlorder, 6);
    assert_size(&call, ACCEL_vrorder, 0);
    call.blas.flag[ACCEL_jobvl] = 'N';
    call.blas.flag[ACCEL_jobvr] = 'V';
    assert_size(&call, ACCEL_vlorder, 0);
    assert_size(&call, ACCEL_vrorder, 6);
}

static void whether_vectors_are_wanted(void **state)
{
    static const enum accel_flag jobs[] = {ACCEL_jobz, ACCEL_jobu, ACCEL_jobvt, ACCEL_jobvl,
                                           ACCEL_jobvr};
    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct accel_call call = call_of("dgesvd", 5, 5);
        call.blas.flag[ACCEL_uplo] = 'L';
        call.blas.flag[ACCEL_range] = 'A'; /* it is no job */
        assert_false(lapack_wants_vectors(&call));
        call.blas.flag[jobs[i]] = 'N';
        assert_false(lapack_wants_vectors(&call));
        call.blas.flag[jobs[i]] = 'V';
        assert_true(lapack_wants_vectors(&call));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exchanges_of_rows),
                                       cmocka_unit_test(smaller_and_larger_sides),
                                       cmocka_unit_test(packed_triangles),
                                       cmocka_unit_test(singular_vectors),
                                       cmocka_unit_test(eigenvectors),
                                       cmocka_unit_test(left_and_right_eigenvectors),
                                       cmocka_unit_test(whether_vectors_are_wanted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
