#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fnmatch.h>

#include "dispatch/settings/pattern.h"
#include "ops/names.h"
#include "ops/op.h"
#include "tests/lib/routine.h"

static bool matches(const char *text, const char *name)
{
    struct accel_pattern pattern = {text};
    return pattern_matches(&pattern, routine(name));
}

static void names(void **state)
{
    (void)state;
    assert_true(matches("dgemm", "dgemm"));
    assert_true(matches("DGEMM", "dgemm"));
    assert_true(matches("dgemm_", "dgemm"));
    assert_true(matches(" sgemm , dgemm ", "dgemm"));
    assert_true(matches(",,dgemm,", "dgemm"));
    assert_true(matches("\tdgemm\t", "dgemm"));
    assert_false(matches("dgemm", "dgemv"));
    assert_false(matches("dgem", "dgemm"));
    assert_false(matches("dgemmm", "dgemm"));
    assert_false(matches("sgemm,zgemm", "dgemm"));
    assert_false(matches(NULL, "dgemm"));
    assert_false(matches("", "dgemm"));
    assert_false(matches(" , ,", "dgemm"));
    assert_false(matches("_", "dgemm"));
    assert_false(matches("d gemm", "dgemm"));
}

static void globs(void **state)
{
    (void)state;
    assert_true(matches("*", "dgemm"));
    assert_true(matches("?gemm", "dgemm"));
    assert_true(matches("?gemm_", "zgemm"));
    assert_true(matches("d*", "dpotrf"));
    assert_true(matches("*trf", "dpotrf"));
    assert_true(matches("*o*r*", "dpotrf"));
    assert_false(matches("*t*t*f*", "dgetrf"));
    assert_true(matches("d?????", "dpotrf"));
    assert_false(matches("d????", "dpotrf"));
    assert_true(matches("[ds]gemm", "dgemm"));
    assert_true(matches("[a-d]GEMM", "cgemm"));
    assert_true(matches("[C-D]gemm", "cgemm"));
    assert_false(matches("[a-c]gemm", "dgemm"));
    assert_true(matches("[!a-c]gemm", "dgemm"));
    assert_true(matches("[^sc]gemm", "dgemm"));
    assert_false(matches("[!d]gemm", "dgemm"));
    assert_false(matches("[dgemm", "dgemm"));
    assert_false(matches("[]", "dgemm"));
    assert_false(matches("[!", "dgemm"));
    assert_false(matches("[a-", "dgemm"));
    assert_true(matches("[]d]gemm", "dgemm"));
    assert_true(matches("[d-]gemm", "dgemm"));
    assert_true(matches("[!]d]gemm", "sgemm"));
    assert_false(matches("[!]d]gemm", "dgemm"));
    /* Stars that a careless matcher tries in every combination. */
    assert_false(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "dgemm"));
    /* Longer than any name. */
    assert_false(
        matches("dgemm*****************************************************************", "dgemm"));
}

static void groups(void **state)
{
    (void)state;
    assert_true(matches("blas:*", "dgemm"));
    assert_true(matches("blas:", "dgemv"));
    assert_true(matches("BLAS:d*", "dgemv"));
    assert_false(matches("blas:*", "dgetrf"));
    assert_true(matches("blas2:*", "dgemv"));
    assert_false(matches("blas2:*", "dgemm"));
    assert_true(matches("blas3:*", "dgemm"));
    assert_true(matches("blas3:", "dgemmt"));
    assert_false(matches("blas3:*", "dgemv"));
    assert_false(matches("blas3:*", "dgetrf"));
    assert_true(matches("lapack:*", "dgetrf"));
    assert_true(matches("lapack:d*_", "dgetrf"));
    assert_true(matches("lapack:dgetrf_", "dgetrf"));
    assert_false(matches("lapack:s*", "dgetrf"));
    assert_false(matches("lapack:*", "dgemm"));
    assert_false(matches("cuda:*", "dgemm"));
    assert_false(matches(":dgemm", "dgemm"));
    /* Every routine is in one of the three; functions of other libraries are in none. */
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const char *name = accel_routines[i].name;
        const int groups = accel_is_blas(&accel_routines[i]);
        assert_int_equal(
            matches("blas2:", name) + matches("blas3:", name) + matches("lapack:", name), groups);
        assert_int_equal(matches("blas:", name) + matches("lapack:", name), groups);
        assert_true(matches(name, name));
    }
}

/* As the log has them. */
static void interfaces(void **state)
{
    (void)state;
    assert_true(matches("cblas_dgemm", "dgemm"));
    assert_true(matches("blas3:CBLAS_?gemm", "dgemm"));
    assert_true(matches("LAPACKE_dgetrf", "dgetrf"));
    assert_true(matches("cblas_*", "dgemm"));
    assert_false(matches("cblas_*", "dgetrf"));
    assert_true(matches("LAPACKE_*", "dgetrf"));
    assert_false(matches("LAPACKE_*", "dgemm"));
    assert_false(matches("cblas_dgetrf", "dgetrf"));
    assert_false(matches("blas2:cblas_dgemm", "dgemm"));
    assert_false(matches("cblas_", "dgemm"));
}

static const char *fault(const char *text, char *item, size_t size)
{
    struct accel_pattern pattern = {text};
    return pattern_fault(&pattern, accel_routines, accel_routine_count, item, size);
}

static void faults(void **state)
{
    static const char no_name[] =
        "no routine has that name; allowed: names and globs such as ?gemm";
    char item[16];
    (void)state;
    assert_null(fault(NULL, item, sizeof item));
    assert_null(fault("", item, sizeof item));
    assert_null(fault("dgemm,lapack:*, [cz]* ,SGEMV_", item, sizeof item));
    assert_string_equal(fault("sgemm, dgem ,none", item, sizeof item), no_name);
    assert_string_equal(item, "dgem");
    assert_string_equal(fault("blas2:dgemm", item, sizeof item), no_name);
    assert_string_equal(item, "blas2:dgemm");
    assert_string_equal(fault("dgemm,blas1:*", item, sizeof item),
                        "no such group; there are blas, blas2, blas3 and lapack");
    assert_string_equal(item, "blas1:*");
    assert_non_null(fault("a_name_that_is_far_too_long", item, sizeof item));
    assert_string_equal(item, "a_name_that_is_");
}

static void lists(void **state)
{
    (void)state;
    assert_true(pattern_lists("bash,python3*", "sh", "python3.12"));
    assert_true(pattern_lists(" bash , sh ", "", "sh"));
    assert_false(pattern_lists("bash", "sh", "sh"));
    assert_true(pattern_lists("bash,default", "zsh,sh", "sh"));
    assert_true(pattern_lists("default", "sh", "sh"));
    assert_false(pattern_lists("default", "sh", "default"));
    assert_false(pattern_lists("sh", NULL, "Sh")); /* files' names: case counts */
    assert_false(pattern_lists("", "sh", "sh"));
    assert_false(pattern_lists(NULL, "sh", "sh"));
    assert_false(pattern_lists("bash", "sh", ""));
    assert_true(pattern_lists("default", "default", "default"));
    assert_true(pattern_lists("a[b", NULL, "a[b"));
}

/* Returns a random text of some of these characters, shorter than 8. */
static const char *draw(char text[8], const char *characters)
{
    const int length = rand() % 8;
    for (int i = 0; i < length; i++)
        text[i] = characters[(size_t)rand() % strlen(characters)];
    text[length] = 0;
    return text;
}

/* A bracket that is not closed is left to the tests above. */
static bool has_open_bracket(const char *glob)
{
    for (const char *p = glob; (p = strchr(p, '[')) != NULL;) {
        p += p[1] == '!' || p[1] == '^' ? 2 : 1;
        p = *p ? strchr(p + 1, ']') : NULL;
        if (!p)
            return true;
    }
    return false;
}

/* Globs mean what they mean to the C library. */
static void any_globs(void **state)
{
    int compared = 0, matched = 0;
    (void)state;
    srand(5);
    while (compared < 200000) {
        char glob[8], name[8];
        draw(glob, "ab-]!^[[**?c");
        draw(name, "abc-]!^[*");
        if (!glob[0] || has_open_bracket(glob))
            continue;
        const bool expected = fnmatch(glob, name, FNM_NOESCAPE) == 0;
        if (pattern_lists(glob, NULL, name) != expected)
            fail_msg("%s of %s: %s", glob, name, expected ? "no match" : "a match");
        compared++;
        matched += expected;
    }
    assert_in_range(matched, 10000, 190000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),  cmocka_unit_test(globs),      cmocka_unit_test(any_globs),
        cmocka_unit_test(groups), cmocka_unit_test(interfaces), cmocka_unit_test(faults),
        cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
