/* libsvm's vectors: their size, their matrix, and the order of their classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <math.h>

#include "ops/svm/sklearn.h"

static double target[3];
static struct libsvm_node nodes[3][6];
static struct libsvm_node *x[3] = {nodes[0], nodes[1], nodes[2]};

static bool is_measured(bool precomputed, struct libsvm_size *size)
{
    const struct libsvm_problem problem = {3, target, x};
    return libsvm_measure(&problem, precomputed, size);
}

static void begin_vectors(int base)
{
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            nodes[i][j] = (struct libsvm_node){base + j * (i + 1), i + 10 * j};
        nodes[i][3].index = -1;
    }
}

static void vectors_are_measured(void **state)
{
    struct libsvm_size size;
    (void)state;
    for (int base = 0; base < 3; base++) {
        begin_vectors(base);
        assert_true(is_measured(false, &size));
        assert_int_equal(size.base, base > 0);
        assert_int_equal(size.features, base + 6 + (base == 0));
        assert_int_equal(size.stored, 9);
    }
#define WRONG(change)                                                                              \
    begin_vectors(1);                                                                              \
    assert_true(is_measured(false, &size));                                                        \
    change;                                                                                        \
    assert_false(is_measured(false, &size))
    WRONG(nodes[1][1].index = nodes[1][0].index);
    WRONG(nodes[1][2].index = INT_MAX);
    WRONG(nodes[1][2].value = NAN);
    WRONG(nodes[1][2].value = INFINITY);
    WRONG(nodes[1][0].index = -2);
    WRONG(x[2] = NULL);
    x[2] = nodes[2];
    for (int i = 0; i < 3; i++)
        nodes[i][0].index = -1;
    assert_false(is_measured(false, &size));
}

/* A vector's first node tells its place in all others. */
static void given_kernels_are_measured(void **state)
{
    static const double wrong[] = {0, 0.5, -1, 4, 1e10, NAN};
    struct libsvm_size size;
    struct svm_matrix m;
    const struct libsvm_problem problem = {3, target, x};
    (void)state;
    for (int n = -1; n < 6; n++) {
        for (int i = 0; i < 3; i++) {
            nodes[i][0] = (struct libsvm_node){0, 3 - i};
            for (int j = 1; j <= 3; j++)
                nodes[i][j] = (struct libsvm_node){j, 10 * i + j};
            nodes[i][4].index = -1;
        }
        if (n >= 0)
            nodes[1][0].value = wrong[n];
        assert_int_equal(is_measured(true, &size), n < 0);
        if (n >= 0)
            continue;
        assert_true(size.features == 3 && size.stored == 9);
        assert_true(libsvm_vectors(&problem, true, &size, &m));
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                assert_true(m.dense[3 * i + j] == 10 * i + 3 - j);
        svm_matrix_free(&m);
    }
    nodes[1][0].value = 2;
    nodes[1][0].index = 1;
    nodes[1][1].index = 2;
    nodes[1][2].index = 3;
    nodes[1][3].index = 4;
    assert_false(is_measured(true, &size));
    nodes[1][0].index = -1; /* empty */
    assert_false(is_measured(true, &size));
    x[1] = NULL;
    assert_false(is_measured(true, &size));
    x[1] = nodes[1];
}

static void vectors_become_matrices(void **state)
{
    const struct libsvm_problem problem = {3, target, x};
    struct libsvm_size size;
    struct svm_matrix m;
    (void)state;
    for (int base = 0; base < 2; base++)
        for (int wide = 0; wide < 2; wide++) {
            begin_vectors(base);
            nodes[2][2].index = wide ? 25 + base : nodes[2][2].index;
            assert_true(is_measured(false, &size));
            assert_int_equal(libsvm_is_dense(3, &size), !wide);
            assert_true(libsvm_vectors(&problem, false, &size, &m));
            assert_int_equal(!m.dense, wide);
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) {
                    const int column = nodes[i][j].index - base, at = 3 * i + j;
                    if (wide)
                        assert_true(m.start[i] == 3 * i && m.column[at] == column &&
                                    m.value[at] == nodes[i][j].value);
                    else
                        assert_true(m.dense[i * m.features + column] == nodes[i][j].value);
                }
            assert_true(!wide || m.start[3] == 9);
            svm_matrix_free(&m);
        }
    /* Eight times as large as its elements is dense still */
    size = (struct libsvm_size){.features = 80, .stored = 100};
    assert_true(libsvm_is_dense(10, &size));
    size.features = 81;
    assert_false(libsvm_is_dense(10, &size));
}

static void classes_have_the_librarys_order(void **state)
{
    static const double y[] = {-1, 1, 1, -1, 1, -1, -1}, z[] = {7, 3, 5, 3, 7, 5, 5};
    static const int rows_of_y[] = {0, 3, 5, 6, 1, 2, 4}, swapped[] = {1, 2, 4, 0, 3, 5, 6};
    static const int rows_of_z[] = {0, 4, 1, 3, 2, 5, 6}, sorted[] = {1, 3, 2, 5, 6, 0, 4};
    const struct {
        struct libsvm library;
        const double *y;
        int label[3];
        const int *row;
    } cases[] = {{{.swaps = false}, y, {-1, 1}, rows_of_y},
                 {{.swaps = true}, y, {1, -1}, swapped},
                 {{.swaps = true}, z, {7, 3, 5}, rows_of_z},
                 {{.sorts = true}, z, {3, 5, 7}, sorted},
                 {{.sorts = true}, y, {-1, 1}, rows_of_y}};
    (void)state;
    for (int n = 0; n < 5; n++) {
        const struct libsvm_rows rows = {7, NULL, cases[n].y};
        struct svm_classes classes;
        assert_true(libsvm_group(&cases[n].library, &rows, true, &classes));
        assert_int_equal(classes.count, cases[n].y == y ? 2 : 3);
        int at = 0;
        for (int c = 0; c < classes.count; c++) {
            assert_int_equal(classes.label[c], cases[n].label[c]);
            assert_int_equal(classes.start[c], at);
            for (int k = 0; k < classes.number[c]; k++, at++) {
                assert_int_equal(classes.row[at], cases[n].row[at]);
                assert_true(cases[n].y[classes.row[at]] == classes.label[c]);
            }
        }
        assert_int_equal(at, 7);
        svm_classes_free(&classes);
        assert_true(libsvm_group(&cases[n].library, &rows, false, &classes));
        assert_true(classes.count == 1 && classes.number[0] == 7 && !classes.label);
        svm_classes_free(&classes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors_are_measured),
                                       cmocka_unit_test(given_kernels_are_measured),
                                       cmocka_unit_test(vectors_become_matrices),
                                       cmocka_unit_test(classes_have_the_librarys_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
