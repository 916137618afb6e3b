#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ops/names.h"

static void every_name_is_found(void **state)
{
    (void)state;
    assert_true(accel_name_count > 0);
    for (uint32_t i = 0; i < accel_name_count; i++)
        assert_int_equal(accel_name_find(accel_names[i].symbol), i);
}

static void other_names_are_not(void **state)
{
    static const char *const others[] = {"",       "a",           "dgemm__", "dgem",   "zzzz",
                                         "daxpy_", "malloc",      "dlsym",   "Dgemm_", "dgemm_ ",
                                         "cblas_", "scipy_dgemm", "DGEMM__"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(accel_name_find(others[i]), -1);
}

/* By the hash that the linker writes, whose lowest bit ends a row there. */
static void every_name_is_found_by_its_hash(void **state)
{
    (void)state;
    assert_int_equal(accel_name_hash(""), 5381);
    assert_int_equal(accel_name_hash("printf"), 0x156b2bb8);
    assert_int_equal(accel_name_hash("syscall"), 0xbac212a0);
    for (uint32_t i = 0; i < accel_name_count; i++) {
        const char *const symbol = accel_names[i].symbol;
        const uint32_t hash = accel_name_hash(symbol);
        assert_int_equal(accel_name_find_hashed(symbol, hash | 1), i);
        assert_int_equal(accel_name_find_hashed(symbol, hash & ~1u), i);
        assert_int_equal(accel_name_find_hashed("malloc", hash), -1);
    }
}

/* Functions that call another one, which libaccel stands in front of, have rows, and no entries. */
static void functions_that_call_others(void **state)
{
    static const char *const outer[] = {"svm_predict", "svm_predict_probability", "svm_csr_predict",
                                        "svm_csr_predict_probability"};
    const struct accel_routine *const values = accel_name_called("svm_predict_values"),
                                      *const train = accel_name_called("svm_train"),
                                      *const product = accel_name_called("cblas_dgemm");
    (void)state;
    assert_string_equal(values->name, "svm_predict_values");
    assert_string_equal(product->name, "dgemm");
    assert_true(accel_name_has_outer(values));
    assert_false(accel_name_has_outer(train) || accel_name_has_outer(product));
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++) {
        const struct accel_routine *const one = accel_name_called(outer[i]);
        assert_int_equal(accel_name_find(outer[i]), -1);
        assert_string_equal(one->name, outer[i]);
        assert_int_equal(one->op, values->op);
        assert_ptr_equal(accel_name_outer(values, outer[i]), one);
        assert_null(accel_name_outer(train, outer[i]));
    }
    assert_null(accel_name_outer(values, "svm_train"));
    assert_null(accel_name_outer(values, "svm_predict_values"));
    assert_null(accel_name_called("svm_predictor"));
}

/* The table of names that users' programs call: the field's manglings, spelled out once. */
static void manglings(void **state)
{
    static const struct {
        const char *symbol;
        enum accel_abi abi;
        int width;
        bool trusted;
        const char *probe;
    } expected[] = {
        {"dgemm_", ACCEL_ABI_FORTRAN, 0, true, "isamax_"},
        {"dgemm", ACCEL_ABI_FORTRAN, 0, false, "isamax_"},
        {"DGEMM", ACCEL_ABI_FORTRAN, 0, false, "isamax_"},
        {"dgemm_64_", ACCEL_ABI_FORTRAN, 64, true, "isamax_64_"},
        {"scipy_dgemm_", ACCEL_ABI_FORTRAN, 32, true, "scipy_isamax_"},
        {"scipy_dgemm_64_", ACCEL_ABI_FORTRAN, 64, true, "scipy_isamax_64_"},
        {"cblas_dgemm", ACCEL_ABI_CBLAS, 0, true, "cblas_isamax"},
        {"cblas_dgemm64_", ACCEL_ABI_CBLAS, 64, true, "cblas_isamax64_"},
        {"cblas_dgemm_64", ACCEL_ABI_CBLAS, 64, true, "cblas_isamax_64"},
        {"scipy_cblas_dgemm", ACCEL_ABI_CBLAS, 32, true, "scipy_cblas_isamax"},
        {"scipy_cblas_dgemm64_", ACCEL_ABI_CBLAS, 64, true, "scipy_cblas_isamax64_"},
        {"dgemm_internal_", ACCEL_ABI_FORTRAN, 0, false, "isamax_"},
        {"dgemm_internal_64_", ACCEL_ABI_FORTRAN, 64, false, "isamax_64_"},
        {"dgesv_", ACCEL_ABI_FORTRAN, 0, true, "isamax_"},
        {"scipy_dgesv_64_", ACCEL_ABI_FORTRAN, 64, true, "scipy_isamax_64_"},
        {"LAPACKE_dgesv", ACCEL_ABI_LAPACKE, 0, true, "LAPACKE_isamax"},
        {"LAPACKE_dgesv64_", ACCEL_ABI_LAPACKE, 64, true, "LAPACKE_isamax64_"},
        {"LAPACKE_dgesv_64", ACCEL_ABI_LAPACKE, 64, true, "LAPACKE_isamax_64"},
        {"scipy_LAPACKE_dgesv64_", ACCEL_ABI_LAPACKE, 64, true, "scipy_LAPACKE_isamax64_"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int entry = accel_name_find(expected[i].symbol);
        assert_true(entry >= 0);
        const struct accel_mangling *m = accel_name_mangling((uint32_t)entry);
        assert_int_equal(m->abi, expected[i].abi);
        assert_int_equal(m->width, expected[i].width);
        assert_int_equal(m->trusted, expected[i].trusted);
        assert_string_equal(m->probe, expected[i].probe);
        const char *name = accel_name_routine((uint32_t)entry)->name;
        assert_string_equal(name, strstr(expected[i].symbol, "gesv") ? "dgesv" : "dgemm");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_found), cmocka_unit_test(every_name_is_found_by_its_hash),
        cmocka_unit_test(other_names_are_not), cmocka_unit_test(functions_that_call_others),
        cmocka_unit_test(manglings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
