/*
 * Quadratic problems of support vector machines (gpu/exec/ml/smo.h) where the kernel matrix fits,
 * against a solver on the CPU; how a solution is checked; what ends one; vectors that stay on the
 * device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/smo_cases.h"

/* ---- Host memory that is short: the linker sends calls here ---- */

static int allocations_left = -1; /* of this thread, until one fails; < 0: none does */

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    return allocations_left >= 0 && allocations_left-- == 0 ? NULL : __real_calloc(count, bytes);
}

/* ---- Solutions ---- */

static void all_kinds_and_kernels(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int k = 0; k < KERNELS; k++) {
            struct data *d = make_data(40, 5);
            struct made *ours = make_kind((enum kind)kind, 0, 40, d->label, 1);
            struct made *theirs = make_kind((enum kind)kind, 0, 40, d->label, 1);
            assert_int_equal(solve(kernels[k], &d->x, k % 2, &ours->p, 1), GPU_OK);
            assert_int_equal(ours->p.rows_computed, 0);
            is_as_good(kernels[k], &d->x, &ours->p, &theirs->p);
            free(ours);
            free(theirs);
            free_data(d);
        }
}

/* From a C that hardly binds to one that separates, from a kernel that tells no vectors apart to
 * one that tells all. */
static void hard_values(void **state)
{
    const double cs[] = {0.1, 100, 1e5}, gammas[] = {1e-4, 0.1, 10};
    (void)state;
    for (int i = 0; i < 9; i++) {
        const struct smo_kernel kernel = {SMO_RBF, 0, gammas[i / 3], 0};
        struct data *d = make_data(30, 3);
        struct made *ours = make_kind(C_SVC, 0, 30, d->label, cs[i % 3]);
        struct made *theirs = make_kind(C_SVC, 0, 30, d->label, cs[i % 3]);
        assert_int_equal(solve(kernel, &d->x, i % 2, &ours->p, 1), GPU_OK);
        is_as_good(kernel, &d->x, &ours->p, &theirs->p);
        free(ours);
        free(theirs);
        free_data(d);
    }
}

static void a_cap_is_kept(void **state)
{
    struct data *d = make_data(60, 4);
    struct made *ours = make_kind(C_SVC, 0, 60, d->label, 1);
    struct made *theirs = make_kind(C_SVC, 0, 60, d->label, 1);
    (void)state;
    ours->p.max_iterations = theirs->p.max_iterations = 7;
    assert_int_equal(solve(kernels[2], &d->x, false, &ours->p, 1), GPU_OK);
    reference_solve(&kernels[2], &d->x, &theirs->p);
    assert_false(ours->p.converged);
    assert_int_equal(ours->p.iterations, 7);
    assert_true(fabs(ours->p.objective - theirs->p.objective) < 1e-9);
    for (int i = 0; i < 60; i++)
        assert_true(fabs(ours->alpha[i] - theirs->alpha[i]) < 1e-9);
    free(ours);
    free(theirs);
    free_data(d);
}

/* Recomputes the conditions of a problem over all rows of the data. */
static enum gpu_status check_again(const struct data *d, struct smo_problem *p)
{
    int32_t of[MOST];
    struct smo s = {.work = &work, .kernel = kernels[2]};
    const struct smo_matrix x = put(&s, &d->x, false);
    const struct svm_rows rows = smo_rows(&s, &x);
    for (int i = 0; i < p->n; i++)
        of[i] = i;
    const struct smo_columns columns = {p->n, of, smo_put(&s, p->row, p->n * 4)};
    smo_check(&s, &rows, p, &columns, 1);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    return s.status;
}

/* Of what a cap has ended, the objective must be that of the variables: the gap says nothing. */
static void an_end_by_a_cap_is_checked(void **state)
{
    struct data *d = make_data(60, 4);
    struct made *m = make_kind(C_SVC, 0, 60, d->label, 1);
    (void)state;
    m->p.max_iterations = 20;
    assert_int_equal(solve(kernels[2], &d->x, false, &m->p, 1), GPU_OK);
    assert_true(!m->p.converged && m->p.gap > 100 * m->p.eps);
    assert_int_equal(check_again(d, &m->p), GPU_OK);
    m->p.objective *= 1 + 1e-5;
    assert_int_equal(check_again(d, &m->p), GPU_UNSUPPORTED);
    m->p.objective = NAN;
    assert_int_equal(check_again(d, &m->p), GPU_UNSUPPORTED);
    free(m);
    free_data(d);
}

/* A kernel value beyond float, in the whole matrix and in rows: the original decides what that
 * means. */
static void values_must_be_finite(void **state)
{
    const struct smo_kernel kernel = {SMO_POLY, 40, 50, 1};
    struct data *d = make_data(60, 4);
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct made *ours = make_kind(C_SVC, 0, 60, d->label, 1);
        memory_left = i ? 120000 : 0;
        enum gpu_status status = solve(kernel, &d->x, false, &ours->p, 1);
        memory_left = 0;
        assert_int_equal(status, GPU_UNSUPPORTED);
        free(ours);
    }
    free_data(d);
}

/* Problems over rows that others have, too, two variables with one row, and a start that is not
 * zero. */
static void several_problems_of_shared_rows(void **state)
{
    enum { COUNT = 3, ROWS = 36 };
    struct data *d = make_data(ROWS, 4);
    struct made *ours[COUNT], *theirs[COUNT];
    struct smo_problem solved[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        const enum kind kind = i == 0 ? C_SVC : i == 1 ? NU_SVR : NU_SVC;
        const int64_t first = i == 0 ? 12 : 0;
        ours[i] = make_kind(kind, first, ROWS - first, d->label, 1);
        theirs[i] = make_kind(kind, first, ROWS - first, d->label, 1);
        solved[i] = ours[i]->p;
    }
    assert_int_equal(solve(kernels[2], &d->x, false, solved, COUNT), GPU_OK);
    for (int i = 0; i < COUNT; i++) {
        is_as_good(kernels[2], &d->x, &solved[i], &theirs[i]->p);
        free(ours[i]);
        free(theirs[i]);
    }
    free_data(d);
}

static void host_memory_that_is_short_is_told(void **state)
{
    struct data *d = make_data(20, 3);
    enum gpu_status status = GPU_NO_MEMORY;
    int failed = 0;
    (void)state;
    for (int i = 0; status == GPU_NO_MEMORY; i++) {
        struct made *ours = make_kind(C_SVC, 0, 20, d->label, 1);
        struct smo s = {.work = &work, .kernel = kernels[2]};
        const struct smo_matrix x = put(&s, &d->x, false);
        allocations_left = i;
        smo_solve(&s, &x, &ours->p, 1);
        const bool refused = allocations_left < 0;
        allocations_left = -1;
        status = s.status;
        assert_int_equal(status, refused ? GPU_NO_MEMORY : GPU_OK);
        failed += refused;
        assert_int_equal(gpu_work_give_back(&work), GPU_OK);
        free(ours);
    }
    assert_true(failed > 5);
    free_data(d);
}

static void a_problem_of_nothing_is_refused(void **state)
{
    struct data *d = make_data(20, 3);
    struct made *none = make_kind(C_SVC, 0, 0, d->label, 1);
    (void)state;
    assert_int_equal(solve(kernels[0], &d->x, false, &none->p, 1), GPU_UNSUPPORTED);
    assert_int_equal(solve(kernels[0], &d->x, false, &none->p, 0), GPU_UNSUPPORTED);
    free(none);
    free_data(d);
}

/* ---- How a solution is checked ---- */

/* A solution whose variables at a bound, of one sign or on one side, are not what they should
 * be: the gap is that of the changed problem. */
static void what_is_no_solution_is_seen(void **state)
{
    struct data *d = make_data(40, 4);
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct made *m = make_kind((enum kind)kind, 0, 40, d->label, 1);
        assert_int_equal(solve(kernels[2], &d->x, false, &m->p, 1), GPU_OK);
        for (int64_t i = 0; i < m->p.n; i++) {
            const double before = m->linear[i];
            for (int side = 0; side < 2; side++) {
                const double change = side ? 0.01 : -0.01;
                m->linear[i] = before + change;
                const double gap = reference_gap(&kernels[2], &d->x, &m->p);
                const enum gpu_status status = check_again(d, &m->p);
                assert_true(fabs(m->p.gap - gap) < 1e-9);
                if (fabs(gap - m->p.eps) > 1e-3)
                    assert_int_equal(status, gap < m->p.eps ? GPU_OK : GPU_UNSUPPORTED);
            }
            m->linear[i] = before;
        }
        assert_int_equal(check_again(d, &m->p), GPU_OK);
        free(m);
    }
    free_data(d);
}

/* ---- Vectors that stay on the device ---- */

enum { ROWS = 19, FEATURES = 6 };

static void values_of(const struct smo_kernel *kernel, const struct data *d, bool sparse)
{
    static uint64_t number_of_key;
    number_of_key++;
    const struct gpu_key key = {{number_of_key, 100 * number_of_key}};
    const double *vector = d->values + ROWS * FEATURES; /* one more */
    double values[ROWS], all = 0;
    struct smo s = {.work = &work, .kernel = *kernel};
    const struct reference_vectors rows = {ROWS, FEATURES, d->values};
    struct smo_matrix found = {.rows = ROWS, .features = FEATURES};
    assert_false(smo_find(&s, &key, sparse, &found));
    const struct smo_matrix x = put(&s, &rows, sparse);
    smo_cache(&s, &key, &x);
    assert_int_equal(s.status, GPU_OK);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    found = (struct smo_matrix){.rows = ROWS, .features = FEATURES};
    assert_true(smo_find(&s, &key, sparse, &found));
    assert_true(found.values == x.values && found.start == x.start && found.column == x.column);
    assert_true(sparse || found.ld == x.ld);
    for (int f = 0; f < FEATURES; f++)
        all += vector[f] * vector[f];
    smo_vector(&s, &found, smo_put(&s, vector, FEATURES * 8), sparse ? all : 0, values);
    assert_int_equal(s.status, GPU_OK);
    for (int i = 0; i < ROWS; i++)
        assert_true(fabs(values[i] - reference_kernel(kernel, &d->x, i, ROWS)) < 1e-12);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
}

static void vectors_stay(void **state)
{
    struct data *d = make_data(ROWS + 1, FEATURES);
    (void)state;
    for (int k = 0; k < KERNELS; k++)
        for (int sparse = 0; sparse < 2; sparse++)
            values_of(&kernels[k], d, sparse);
    free_data(d);
}

int main(void)
{
    setenv("TESTGPU_DELAY_US", "10", 0); /* the library, which is not loaded yet, reads it */
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end_work)
        TEST(all_kinds_and_kernels),
        TEST(hard_values),
        TEST(several_problems_of_shared_rows),
        TEST(a_cap_is_kept),
        TEST(an_end_by_a_cap_is_checked),
        TEST(values_must_be_finite),
        TEST(host_memory_that_is_short_is_told),
        TEST(a_problem_of_nothing_is_refused),
        TEST(what_is_no_solution_is_seen),
        TEST(vectors_stay),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
