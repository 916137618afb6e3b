/* The versions of scikit-learn and of R's packages that are known, by files beside their
 * libraries. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ops/knn/knn.h"
#include "ops/sklearn_version.h"

static char folder[] = "/tmp/versions_XXXXXX", path[PATH_MAX];

static const char *path_of(const struct accel_provider *provider)
{
    (void)provider;
    return path;
}

static const struct accel_provider provider = {.path = path_of};

static int free_file; /* the number that the next file gets: none stays open */

static int next_file(void)
{
    const int file = dup(STDERR_FILENO);
    close(file);
    return file;
}

static int set_up(void **state)
{
    (void)state;
    free_file = next_file();
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    return mkdtemp(folder) ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    assert_int_equal(next_file(), free_file);
    return rmdir(folder);
}

/* ---- scikit-learn ---- */

static bool knows(const char *const *metadata)
{
    char name[8][PATH_MAX];
    int count = 0;
    for (; metadata[count]; count++) {
        snprintf(name[count], sizeof name[count], "%s/%s", folder, metadata[count]);
        assert_int_equal(mkdir(name[count], 0700), 0);
    }
    snprintf(path, sizeof path, "%s/sklearn/svm/_libsvm.cpython-312-x86_64-linux-gnu.so", folder);
    const bool is_known = sklearn_is_known(&provider, "_libsvm.");
    while (count > 0)
        rmdir(name[--count]);
    return is_known;
}

static void versions_of_sklearn(void **state)
{
    static const struct {
        const char *metadata[4];
        bool known;
    } rows[] = {
        {{NULL}, false},
        {{"scikit_learn-1.3.0.dist-info"}, true},
        {{"scikit_learn-1.9.2.dist-info"}, true},
        {{"scikit_learn-1.5.dist-info", "numpy-1.0.dist-info", "sklearn"}, true},
        {{"scikit_learn-1.2.2.dist-info"}, false},
        {{"scikit_learn-1.10.0.dist-info"}, false},
        {{"scikit_learn-0.5.0.dist-info"}, false},
        {{"scikit_learn-2.5.0.dist-info"}, false},
        {{"scikit_learn-1.dist-info"}, false},
        {{"scikit_learn-1-5.dist-info"}, false},
        {{"scikit_learn-1.5.0.egg-info"}, false},
        {{"scikit_learn-1.5.0.dist-info~"}, false},
        {{"scikit_image-1.5.0.dist-info"}, false},
        {{".dist-info"}, false},
        /* An installation that went wrong has left two. */
        {{"scikit_learn-1.4.0.dist-info", "scikit_learn-1.5.0.dist-info"}, true},
        {{"scikit_learn-1.4.0.dist-info", "scikit_learn-1.1.0.dist-info"}, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (knows(rows[i].metadata) != rows[i].known)
            fail_msg("%s, row %zu", rows[i].metadata[0] ? rows[i].metadata[0] : "none", i);
}

static void objects_of_sklearn(void **state)
{
    static const struct {
        const char *object;
        bool known;
    } rows[] = {{"/sklearn/svm/_libsvm.so", true},
                {"/sklearn/svm/_libsvm.cpython-39-x86_64-linux-gnu.so", true},
                {"/sklearn/svm/_libsvm_sparse.so", false},
                {"/sklearn/svm/_liblinear.so", false},
                {"/sklearn/svm/_libsvm.d/other.so", false},
                {"/sklearn/_libsvm.so", false},
                {"/svm/_libsvm.so", false},
                {"/other/sklearn/svm/_libsvm.so", false}};
    char name[PATH_MAX];
    (void)state;
    snprintf(name, sizeof name, "%s/scikit_learn-1.4.0.dist-info", folder);
    assert_int_equal(mkdir(name, 0700), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(path, sizeof path, "%s%s", folder, rows[i].object);
        const bool is_known = sklearn_is_known(&provider, "_libsvm.");
        if (is_known != rows[i].known)
            fail_msg("%s", rows[i].object);
    }
    rmdir(name);
    assert_false(sklearn_is_known(&provider, "_libsvm."));
}

/* ---- R ---- */

static bool is_class_7_3(const char *description, size_t bytes)
{
    char name[PATH_MAX];
    snprintf(path, sizeof path, "%s/libs/class.so", folder);
    snprintf(name, sizeof name, "%s/DESCRIPTION", folder);
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(description, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    const bool is = knn_is_package(&provider, "class", "7.3");
    unlink(name);
    return is;
}

static void descriptions(void **state)
{
    static const struct {
        const char *text;
        bool is;
    } rows[] = {
        {"Package: class\nVersion: 7.3\n", true},
        {"Package: class\nVersion: 7.3-22\nDate: 2023\n", true},
        {"Package: class\nPriority: recommended\nVersion: 7.3.1\n", true},
        {"Package: class\nVersion: 7.3", true}, /* the text ends there */
        {"Package: class\nVersion: 7.30\n", false},
        {"Package: class\nVersion: 7.2-1\n", false},
        {"Package: class\nVersion: 17.3\n", false},
        {"Package: class\nOldVersion: 7.3\n", false},
        {"Package: class\n", false},
        {"Package: classInt\nVersion: 7.3\n", false},
        {"Package: FNN\nVersion: 7.3\n", false},
        {"Version: 7.3\n", false},
        {"", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_class_7_3(rows[i].text, strlen(rows[i].text)) != rows[i].is)
            fail_msg("row %zu: %s", i, rows[i].text);
    assert_false(knn_is_package(&provider, "class", "7.3")); /* there is none */
}

/* As much as there is room for is read of one. */
static void a_long_description(void **state)
{
    static char text[1 << 16];
    const char begin[] = "Package: class\nVersion: 7.3\n";
    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text, begin, sizeof begin - 1);
    assert_true(is_class_7_3(text, sizeof text));
    memset(text, 'x', sizeof text);
    memcpy(text + sizeof text - sizeof begin, begin, sizeof begin - 1);
    assert_false(is_class_7_3(text, sizeof text));
}

static void objects_of_packages(void **state)
{
    static const char *const others[] = {"class.so", "/libs/class.so", "/class/libs/classs.so",
                                         "/class/libs/class.so.1", ""};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "%s", others[i]);
        assert_false(knn_is_package(&provider, "class", "7.3"));
    }
}

#define OF_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_FOLDER(versions_of_sklearn), OF_FOLDER(objects_of_sklearn), OF_FOLDER(descriptions),
        OF_FOLDER(a_long_description), OF_FOLDER(objects_of_packages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
