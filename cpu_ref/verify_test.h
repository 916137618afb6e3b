/*
 * For the checks of LAPACK's results (checks.h): a call under test, the products and comparisons
 * for it, and the checks of each kind of result. Residuals are multiplied with a random vector r.
 *
 * Matrices are column-major views of the call's memory, or of its contents before the call; they
 * are never written. The test owns its vectors (vectors.h; `parts` doubles for each element): they
 * end with it, or earlier if `vectors.used` is set back. There is room for as many as
 * cpu_ref_verify_lapack() opens. A test belongs to one thread. A function without a test, or with a
 * const one, changes only the vector that it is given.
 */
#ifndef ACCEL_CPU_REF_VERIFY_TEST_H
#define ACCEL_CPU_REF_VERIFY_TEST_H

#include "checks.h"
#include "vectors.h"

/* The call under test. Vectors are as long as the longer of its sizes. */
struct test {
    const struct accel_call *call;
    const void *const *before;
    enum accel_dtype dtype;
    int64_t parts, order; /* the largest size, by which rounding grows */
    struct vectors vectors;
    double worst; /* of the ratios so far; CPU_REF_NOT_JUDGED: none */
    bool open;    /* one ratio could not be judged */
};

/* ---- Operands (verify_test.c) ---- */

/* A matrix of the call as it is now, GENERAL, in the shape of the operand. */
struct view test_result(const struct test *t, enum accel_matrix which);

/* The matrix before the call; as it is, if the call does not write it. */
struct view test_input(const struct test *t, enum accel_matrix which);

/* A square matrix of which the call's triangle is stored: symmetric, or Hermitian if the type or
 * the routine is. */
struct view test_mirrored(const struct test *t, struct view x);

/* The Frobenius norm. */
double view_norm(const struct view *x);

/* Element i of a vector of the call, of real numbers. */
static inline double operand_real(const struct accel_span *x, int64_t i)
{
    return load_real(x->ptr, x->dtype, i);
}

/* ---- Vectors (verify_test.c) ---- */

/* n elements, all zero, or random ones (vector_random()). */
double *test_new_vector(struct test *t, int64_t n);
double *test_random_vector(struct test *t, int64_t n);

/* op(X) in, a new vector. op: as apply()'s. */
double *test_times(struct test *t, const struct view *x, char op, const double *in);

/* The n elements times those of a real vector of the call, or their squares (power 2): a new
 * vector. */
double *test_times_values(struct test *t, const struct accel_span *values, const double *in,
                          int64_t n, int power);

/* x := x - y, n elements. */
void test_subtract(const struct test *t, double *x, const double *y, int64_t n);

/* ---- Judging (verify_test.c) ---- */

/* Returns whether a matrix that goes into the call has no NaN and no very large numbers: results of
 * others are not judged. */
bool test_takes(const struct test *t, const struct view *x);

/* The result is not judged if one part cannot be, unless another part is wrong. */
void test_note(struct test *t, double ratio);

/* The rounding bound for each unit of a scale. */
double test_tolerance(const struct test *t);

/* The length of a residual of n elements divided by its bound for a scale. CPU_REF_NOT_JUDGED if
 * the norm is too large. A NaN is wrong, because the inputs have none. */
double test_ratio_of(const struct test *t, const double *residual, int64_t n, double scale);

/* The same, noted in the test. */
void test_judge(struct test *t, const double *residual, int64_t n, double scale);

/* sqrt() without libm, whatever the compiler's options. */
double test_root(double square);

/* Compares one number with another. */
void test_judge_number(struct test *t, double error, double scale);

/* Judges whether `lower` is at most `upper`. Rounding may put it above by a little, for numbers of
 * the size `scale`. */
void test_judge_ascent(struct test *t, double lower, double upper, double scale);

/* Q^H Q r = r for the columns of Q, Q Q^H r = r for its rows. */
void test_judge_columns(struct test *t, const struct view *q);
void test_judge_rows(struct test *t, const struct view *q);

/* ---- Factored matrices (verify_factored.c) ---- */

/* A square or rectangular matrix that is given by its factors. */
struct factored {
    struct view lu;                     /* L and U, U or L, U and D */
    const struct accel_span *exchanges; /* LU, LDL */
    /* op(A) in, a new vector. */
    double *(*times)(struct test *t, const struct factored *f, char op, const double *in);
    /* x := op(A)^-1 x, up to exchanges of its elements; NULL of a matrix that is not factored. */
    void (*solve)(struct test *t, const struct factored *f, char op, double *x);
    double (*reciprocal)(const struct factored *f); /* of its pivots: largest_reciprocal() */
    double norm;
};

/* The upper triangle or trapezoid after LU or QR, min(rows, cols) x cols. */
struct view factored_upper(const struct view *lu);

/* A matrix as it is stored; a triangle has a solve(). */
struct factored factored_plain(struct view a);

/* f := U^H U or L L^H, the factor in the call's triangle. */
void factored_open_cholesky(struct test *t, struct factored *f, struct view factor);

/* About the norm of the inverse: its length times a random vector. */
double factored_inverse_norm(struct test *t, const struct factored *f);

/* Both are the same matrix, whose norm is that of the one that was given. */
void factored_judge_same(struct test *t, const struct factored *given, const struct factored *made);

/* ---- Elementary reflectors (verify_qr.c) ---- */

/* Q = H(0) ... H(count - 1), each 1 - tau v v^H with tau in the call's operand x. v of H(i) is 0 up
 * to element i + shift, which is 1; the elements behind it are stored in column i, or, by rows, in
 * row i. */
struct reflectors {
    struct view stored;
    int64_t count, shift;
    bool by_rows;
};

/* x := op(Q) x. op: 'N' or 'C'. */
void reflectors_apply(struct test *t, const struct reflectors *q, char op, double *x);

/* ---- Singular values (verify_singular.c) ---- */

/* The min(rows, cols) values of A alone: their order, and that their squares add up to that of the
 * matrix. */
void singular_judge_values(struct test *t, const struct view *a);

/* The `count` values of a matrix of norm `size` descend, and none is negative. Rounding may break
 * both by a little. */
void singular_judge_order(struct test *t, int64_t count, double size);

#endif
