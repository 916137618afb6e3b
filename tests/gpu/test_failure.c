/*
 * What the statuses of CUDA's libraries mean, and which failures are told: see gpu/cuda/check.c.
 * Without a device, or a driver: the functions of the table are the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "gpu/cuda/check.h"

static const char *name_of_status(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_INVALID_VALUE ? "INVALID VALUE" : "another";
}

static CUresult name_of_error(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_DEINITIALIZED ? "DEINITIALIZED" : "another";
    return CUDA_SUCCESS;
}

static struct failure outer;

static int begin(void **state)
{
    (void)state;
    CUDA(cublasGetStatusName) = name_of_status;
    CUDA(cuGetErrorName) = name_of_error;
    failure_begin(&outer);
    return 0;
}

static int end(void **state)
{
    (void)state;
    failure_end(&outer);
    return 0;
}

static void assert_noted(enum failure_kind kind, const char *text)
{
    assert_int_equal(failure_noted()->kind, kind);
    assert_string_equal(failure_noted()->text, text);
}

/* What a library does not do, and memory that it lacks, is no failure: the call goes elsewhere, and
 * nothing is told. */
static void a_cublas_that_lacks_something_has_not_failed(void **state)
{
    (void)state;
    assert_int_equal(gpu_check_cublas(CUBLAS_STATUS_SUCCESS, "f"), GPU_OK);
    assert_int_equal(gpu_check_cublas(CUBLAS_STATUS_ALLOC_FAILED, "f"), GPU_NO_MEMORY);
    assert_int_equal(gpu_check_cublas(CUBLAS_STATUS_NOT_SUPPORTED, "f"), GPU_UNSUPPORTED);
    assert_int_equal(gpu_check_cublas(CUBLAS_STATUS_ARCH_MISMATCH, "f"), GPU_UNSUPPORTED);
    assert_noted(FAILURE_NONE, "");
}

static void a_cublas_that_fails_is_named(void **state)
{
    (void)state;
    assert_int_equal(gpu_check_cublas(CUBLAS_STATUS_INVALID_VALUE, "cublasDgemm"), GPU_ERROR);
    assert_noted(FAILURE_LIBRARY, "cublasDgemm: INVALID VALUE");
}

/* Its function that names statuses is younger than others. */
static void an_old_cublas_names_no_status(void **state)
{
    (void)state;
    CUDA(cublasGetStatusName) = NULL;
    assert_int_equal(gpu_check_cublas(CUBLAS_STATUS_INVALID_VALUE, "cublasDgemm"), GPU_ERROR);
    assert_noted(FAILURE_LIBRARY, "cublasDgemm: cuBLAS failed");
}

static void statuses_of_cusolver(void **state)
{
    static const struct {
        cusolverStatus_t status;
        enum gpu_status expected;
        const char *text; /* NULL: it is no failure */
    } cases[] = {
        {CUSOLVER_STATUS_SUCCESS, GPU_OK, NULL},
        {CUSOLVER_STATUS_ALLOC_FAILED, GPU_NO_MEMORY, NULL},
        {CUSOLVER_STATUS_NOT_SUPPORTED, GPU_UNSUPPORTED, NULL},
        {CUSOLVER_STATUS_ARCH_MISMATCH, GPU_UNSUPPORTED, NULL},
        {CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED, GPU_UNSUPPORTED, NULL},
        {CUSOLVER_STATUS_INVALID_VALUE, GPU_UNSUPPORTED, NULL},
        {CUSOLVER_STATUS_NOT_INITIALIZED, GPU_ERROR, "f: CUSOLVER_STATUS_NOT_INITIALIZED"},
        {CUSOLVER_STATUS_MAPPING_ERROR, GPU_ERROR, "f: CUSOLVER_STATUS_MAPPING_ERROR"},
        {CUSOLVER_STATUS_EXECUTION_FAILED, GPU_ERROR, "f: CUSOLVER_STATUS_EXECUTION_FAILED"},
        {CUSOLVER_STATUS_INTERNAL_ERROR, GPU_ERROR, "f: CUSOLVER_STATUS_INTERNAL_ERROR"},
        {(cusolverStatus_t)1234, GPU_ERROR, "f: cuSOLVER status 1234"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct failure before;
        failure_begin(&before);
        assert_int_equal(gpu_check_cusolver(cases[i].status, "f"), cases[i].expected);
        assert_noted(cases[i].text ? FAILURE_LIBRARY : FAILURE_NONE,
                     cases[i].text ? cases[i].text : "");
        failure_end(&before);
    }
}

static void only_failures_are_published(void **state)
{
    struct gpu_device device = {.info.index = 0};
    struct failure none = {.kind = FAILURE_NONE}, one = {.kind = FAILURE_DEVICE};
    (void)state;
    strcpy(none.text, "nothing");
    strcpy(one.text, "something");
    failure_publish(&device, &none);
    assert_false(gpu_has_failure(&device));
    assert_string_equal(gpu_failure(&device), "no reason known");
    failure_publish(&device, &one);
    assert_true(gpu_has_failure(&device));
    assert_string_equal(gpu_failure(&device), "something");
}

/* The driver says so once exit() has ended it. It stays so: this is the last test. */
static void a_driver_that_has_ended_is_gone(void **state)
{
    (void)state;
    assert_int_equal(gpu_check(CUDA_ERROR_OUT_OF_MEMORY, "f"), GPU_NO_MEMORY);
    assert_int_equal(gpu_check_final(CUDA_ERROR_UNKNOWN, "f"), GPU_ERROR);
    assert_false(gpu_is_gone());
    assert_int_equal(gpu_check(CUDA_ERROR_DEINITIALIZED, "f"), GPU_ERROR);
    assert_true(gpu_is_gone());
    assert_noted(FAILURE_DEVICE, "f: another"); /* the first one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cublas_that_lacks_something_has_not_failed, begin, end),
        cmocka_unit_test_setup_teardown(a_cublas_that_fails_is_named, begin, end),
        cmocka_unit_test_setup_teardown(an_old_cublas_names_no_status, begin, end),
        cmocka_unit_test_setup_teardown(statuses_of_cusolver, begin, end),
        cmocka_unit_test_setup_teardown(only_failures_are_published, begin, end),
        cmocka_unit_test_setup_teardown(a_driver_that_has_ended_is_gone, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
