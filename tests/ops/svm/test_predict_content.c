/*
 * The digest of a model's support vectors (ops/svm/predict_content.c): it changes with each
 * element, index, length and order, and comes back when all is as it was, wherever the vectors lie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "ops/svm/predict.h"

/* Of several parts, which the copy pool shares. */
enum { VECTORS = 3000, FEATURES = 40, CHANGES = 2000 };

struct data {
    struct libsvm_node node[VECTORS][FEATURES + 1];
    const struct libsvm_node *row[VECTORS];
    struct sklearn_node dense[VECTORS];
    double value[VECTORS][FEATURES];
    struct svm_view nodes_view, dense_view;
};

static struct data *make_data(void)
{
    struct data *d = calloc(1, sizeof *d);
    assert_non_null(d);
    for (int i = 0; i < VECTORS; i++) {
        d->row[i] = d->node[i];
        d->dense[i] = (struct sklearn_node){FEATURES, i, d->value[i]};
        for (int k = 0; k < FEATURES; k++) {
            d->node[i][k] = (struct libsvm_node){2 * k + 2, rand() % 1000};
            d->value[i][k] = rand() % 1000;
        }
        d->node[i][FEATURES].index = -1;
    }
    d->nodes_view = (struct svm_view){.vectors = VECTORS, .nodes = d->row};
    d->dense_view = (struct svm_view){.vectors = VECTORS, .dense = d->dense};
    return d;
}

static struct svm_content content_of(const struct svm_view *view)
{
    struct svm_content content;
    assert_int_equal(svm_content_of(view, FEATURES, &content), GPU_OK);
    return content;
}

static bool are_equal(const struct svm_content *a, const struct svm_content *b)
{
    return memcmp(&a->key, &b->key, sizeof a->key) == 0;
}

/* Changes something, and puts back what it was. */
static void change_node(struct data *d, const struct svm_content *first)
{
    struct libsvm_node *node = &d->node[rand() % VECTORS][rand() % FEATURES], before = *node;
    const int what = rand() % 4;
    int64_t stored = first->size.stored;
    if (what == 0)
        node->value += 1;
    else if (what == 1)
        node->value = -node->value - 0.5;
    else if (what == 2)
        node->index -= 1;
    else
        node->index = -1; /* the vector ends here */
    const struct svm_content changed = content_of(&d->nodes_view);
    assert_false(are_equal(first, &changed));
    assert_true(what == 3 ? changed.size.stored < stored : changed.size.stored == stored);
    *node = before;
}

static void a_change_is_seen(void **state)
{
    struct data *d = make_data();
    const struct svm_content first = content_of(&d->nodes_view);
    (void)state;
    assert_int_equal(first.size.features, 2 * FEATURES);
    assert_int_equal(first.size.base, 1);
    assert_int_equal(first.size.stored, VECTORS * FEATURES);
    for (int i = 0; i < CHANGES; i++)
        change_node(d, &first);
    const struct svm_content last = content_of(&d->nodes_view);
    assert_true(are_equal(&first, &last));
    free(d);
}

static void an_exchange_is_seen(void **state)
{
    struct data *d = make_data();
    const struct svm_content first = content_of(&d->nodes_view);
    (void)state;
    for (int i = 0; i < CHANGES / 10; i++) {
        const int a = rand() % VECTORS, b = (a + 1 + rand() % (VECTORS - 1)) % VECTORS;
        const struct libsvm_node *kept = d->row[a];
        d->row[a] = d->row[b];
        d->row[b] = kept;
        const struct svm_content changed = content_of(&d->nodes_view);
        assert_false(are_equal(&first, &changed));
        d->row[b] = d->row[a];
        d->row[a] = kept;
    }
    d->nodes_view.vectors--;
    const struct svm_content fewer = content_of(&d->nodes_view);
    assert_false(are_equal(&first, &fewer));
    free(d);
}

static void a_dense_change_is_seen(void **state)
{
    struct data *d = make_data();
    const struct svm_content first = content_of(&d->dense_view);
    (void)state;
    assert_int_equal(first.size.features, FEATURES);
    for (int i = 0; i < CHANGES; i++) {
        double *value = &d->value[rand() % VECTORS][rand() % FEATURES], before = *value;
        *value += 0.25;
        const struct svm_content changed = content_of(&d->dense_view);
        assert_false(are_equal(&first, &changed));
        *value = before;
    }
    const struct svm_content last = content_of(&d->dense_view);
    assert_true(are_equal(&first, &last));
    free(d);
}

/* Neither does what stands in the nodes' padding, and behind a vector's end. */
static void places_do_not_matter(void **state)
{
    struct data *d = make_data(), *copy = malloc(sizeof *copy);
    (void)state;
    assert_non_null(copy);
    memcpy(copy, d, sizeof *copy);
    for (int i = 0; i < VECTORS; i++) {
        copy->row[i] = copy->node[i];
        copy->node[i][FEATURES].value = i;
        for (int k = 0; k <= FEATURES; k++)
            memset((char *)&copy->node[i][k] + sizeof(int), rand() % 256, sizeof(int));
    }
    copy->nodes_view.nodes = copy->row;
    const struct svm_content one = content_of(&d->nodes_view),
                             other = content_of(&copy->nodes_view);
    assert_true(are_equal(&one, &other));
    free(copy);
    free(d);
}

static void what_is_no_model_is_refused(void **state)
{
    struct data *d = make_data();
    struct svm_content content;
    (void)state;
    d->row[VECTORS - 1] = NULL;
    assert_int_equal(svm_content_of(&d->nodes_view, FEATURES, &content), GPU_UNSUPPORTED);
    d->dense[VECTORS / 2].features--;
    assert_int_equal(svm_content_of(&d->dense_view, FEATURES, &content), GPU_UNSUPPORTED);
    d->dense[VECTORS / 2] = (struct sklearn_node){FEATURES, 0, NULL};
    assert_int_equal(svm_content_of(&d->dense_view, FEATURES, &content), GPU_UNSUPPORTED);
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_seen),
        cmocka_unit_test(an_exchange_is_seen),
        cmocka_unit_test(a_dense_change_is_seen),
        cmocka_unit_test(places_do_not_matter),
        cmocka_unit_test(what_is_no_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
