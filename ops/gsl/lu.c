/*
 * gsl_linalg_LU_decomp(A, p, signum) of a square matrix: P A = L U with partial pivoting; row i of
 * P A is row p[i] of A; signum is the permutation's sign.
 */
#include <stdlib.h>
#include <string.h>

#include "cpu_ref/verify_test.h"
#include "gpu/device/work.h"
#include "gsl.h"

enum { PERMUTATION = GSL_ARGUMENT, SIGN };

static bool parse_lu(struct accel_call *call, const struct accel_passed *passed)
{
    const struct gsl_matrix *a = (const struct gsl_matrix *)(uintptr_t)passed->gpr[0];
    const struct gsl_permutation *p = (const struct gsl_permutation *)(uintptr_t)passed->gpr[1];
    call->own.pointer[PERMUTATION] = p;
    call->own.pointer[SIGN] = (const void *)(uintptr_t)passed->gpr[2];
    if (!gsl_parse(call, a) || a->size1 != a->size2 || !p || !p->data || p->size != a->size1 ||
        !call->own.pointer[SIGN])
        return false;
    call->span[ACCEL_x] = accel_column("p", p->data, (int64_t)p->size, ACCEL_INT64, ACCEL_WRITE);
    return true;
}

static double flops_of_lu(const struct accel_call *call)
{
    const double n = (double)call->own.integer[GSL_SIZES];
    return n * n * n * 2 / 3;
}

static void factor_and_test(struct solver *s, struct array a, struct array pivots)
{
    solver_library(s)->getrf(s, a, pivots);
    solver_refuse_small_pivots(s, a);
}

/* The permutation gets LAPACK's pivots for the moment. */
static void factor_by_getrf(struct solver *s)
{
    gsl_factor(s, factor_and_test);
}

/* Turns exchanges of rows into a permutation; returns its sign. */
static int permute(size_t *permutation, const size_t *pivots, size_t n)
{
    int sign = 1;
    for (size_t i = 0; i < n; i++)
        permutation[i] = i;
    for (size_t i = 0; i < n; i++) {
        const size_t with = pivots[i] - 1, there = permutation[with];
        if (with == i)
            continue;
        permutation[with] = permutation[i];
        permutation[i] = there;
        sign = -sign;
    }
    return sign;
}

static enum gpu_status run_lu(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct gsl_permutation *p = call->own.pointer[PERMUTATION];
    size_t *pivots = malloc(p->size * sizeof *pivots);
    if (!pivots)
        return GPU_NO_MEMORY;
    const enum gpu_status status = solver_run(work, factor_by_getrf, NULL);
    if (status == GPU_OK) {
        memcpy(pivots, p->data, p->size * sizeof *pivots);
        *(int *)(uintptr_t)call->own.pointer[SIGN] = permute(p->data, pivots, p->size);
    }
    free(pivots);
    return status;
}

/* Returns the sign of a permutation, 0 if it is none, -2 without memory. */
static int sign_of(const size_t *permutation, size_t n)
{
    unsigned char *seen = calloc(n, 1);
    int sign = 1;
    if (!seen)
        return -2;
    for (size_t i = 0; i < n; i++) {
        size_t length = 0, at = i;
        for (; at < n && !seen[at]; at = permutation[at], length++)
            seen[at] = 1;
        if (length > 0 && at != i) /* it leads to a cycle that is known, or nowhere */
            sign = 0;
        else if (length > 0 && length % 2 == 0)
            sign = -sign;
    }
    free(seen);
    return sign;
}

/* P A = L U. By columns, L^T with its unit diagonal is in the upper triangle, U^T in the lower
 * one. */
static void check_lu(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a), all = test_result(t, ACCEL_a),
                      l = view_shaped(all, UNIT_TRIANGULAR, 'U'),
                      u = view_shaped(all, TRIANGULAR, 'L');
    const size_t *const p = t->call->span[ACCEL_x].ptr;
    const int *const sign = t->call->own.pointer[SIGN];
    const int right = sign_of(p, (size_t)a.cols);
    if (!test_takes(t, &a) || right == -2)
        return;
    test_note(t, right && right == *sign ? 0 : INFINITY);
    if (!right)
        return;
    const double *r = test_random_vector(t, a.rows), *rows = test_times(t, &a, 'T', r);
    double *y = test_times(t, &l, 'T', test_times(t, &u, 'T', r));
    for (int64_t i = 0; i < a.cols; i++)
        y[i] -= rows[p[i]];
    test_judge(t, y, a.cols, view_norm(&a));
}

const struct accel_op op_gsl_lu = GSL_FUNCTION(0.1, 0.4, parse_lu, flops_of_lu, run_lu, check_lu);
