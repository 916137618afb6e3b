/* What a library multiplies with, by what it says and what it is linked to: the look-ups in the
 * library are the test's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "shim/elf/kernels.h"
#include "shim/elf/provider.h"

/* The library: what its function says, which function multiplies and in which object, and the name
 * that this object refers to. */
static struct {
    bool has_core;
    const char *core;
    void *product;
    const struct link_map *object;
    const char *import;
    const char *get, *set; /* its functions of threads */
} library;

static const struct link_map own, multiplying;

static const char *core(void)
{
    return library.core;
}

void *__wrap_accel_real_lookup(void *handle, const char *symbol);
void *__wrap_accel_real_lookup(void *handle, const char *symbol)
{
    (void)handle;
    if (library.get && strcmp(symbol, library.get) == 0)
        return &library.get;
    if (library.set && strcmp(symbol, library.set) == 0)
        return &library.set;
    return library.has_core && strcmp(symbol, "openblas_get_corename64_") == 0
               ? (void *)(uintptr_t)core
               : NULL;
}

void *__wrap_accel_provider_find(void *handle, bool alone, const void *routine, int *width);
void *__wrap_accel_provider_find(void *handle, bool alone, const void *routine, int *width)
{
    (void)handle, (void)alone, (void)routine;
    *width = 32;
    return library.product;
}

bool __real_accel_provider_names_threads(void *handle);
bool __wrap_accel_provider_names_threads(void *handle);
bool __wrap_accel_provider_names_threads(void *handle)
{
    (void)handle;
    return false;
}

const struct link_map *__wrap_accel_object_of(const void *address);
const struct link_map *__wrap_accel_object_of(const void *address)
{
    return address == library.product ? library.object : NULL;
}

bool __wrap_accel_object_imports(ElfW(Addr) base, const ElfW(Dyn) * dynamic,
                                 bool (*is)(const char *name));
bool __wrap_accel_object_imports(ElfW(Addr) base, const ElfW(Dyn) * dynamic,
                                 bool (*is)(const char *name))
{
    (void)base, (void)dynamic;
    return is(library.import);
}

static void test_what_it_says(void **state)
{
    static const char *const good[] = {"Haswell", "CORE2", "neoverse_n1",
                                       "abcdefghijklmnopqrstuvw"};
    static const char *const bad[] = {NULL, "", "abcdefghijklmnopqrstuvwx", "Sky lake", "Zen\n"};
    (void)state;
    memset(&library, 0, sizeof library);
    library.has_core = true;
    library.import = "getenv";
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        library.core = good[i];
        const struct accel_kernels found = accel_kernels_of(NULL, &own);
        assert_string_equal(found.name, good[i]);
        assert_int_equal(found.kernels, kernels_of_core(good[i]));
    }
    /* What is no name is not passed on, and does not make the library a slow one. */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        library.core = bad[i];
        const struct accel_kernels found = accel_kernels_of(NULL, &own);
        assert_string_equal(found.name, "");
        assert_int_equal(found.kernels, KERNELS_TUNED);
    }
}

static void expect(const char *import, bool loops)
{
    library.import = import;
    const struct accel_kernels found = accel_kernels_of(NULL, &own);
    assert_int_equal(found.kernels, loops ? KERNELS_LOOPS : KERNELS_TUNED);
    assert_string_equal(found.name, loops ? KERNELS_REFERENCE : "");
}

/* Whole names are compared as a whole, those with an asterisk by how they begin. */
static void test_what_it_is_linked_to(void **state)
{
    static const char *const tuned[] = {"getenv", "dlsym",          "mmap",    "mmap64",
                                        "_Znwm",  "pthread_create", "memalign"};
    static const char *const loops[] = {"sqrt", "getenvironment", "dlsymbol", "memaligned", "omp"};
    (void)state;
    memset(&library, 0, sizeof library);
    library.product = (void *)(uintptr_t)core;
    library.object = &multiplying;
    for (size_t i = 0; i < sizeof tuned / sizeof *tuned; i++)
        expect(tuned[i], false);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        expect(loops[i], true);
    /* A library without a product is looked at itself. */
    library.product = NULL;
    expect("sqrt", true);
    /* Nothing is known of a product that lies in no object. */
    library.product = (void *)(uintptr_t)core;
    library.object = NULL;
    expect("sqrt", false);
}

/* A library's own functions of threads, and OpenMP's, which any program may have. */
static void test_functions_of_threads(void **state)
{
    static const struct {
        const char *get, *set;
        bool own;
    } rows[] = {
        {"openblas_get_num_threads", "openblas_set_num_threads", true},
        {"openblas_get_num_threads64_", "openblas_set_num_threads64_", true},
        {"openblas_get_num_threads_64", "openblas_set_num_threads_64", true},
        {"scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads", true},
        {"scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_", true},
        {"MKL_Get_Max_Threads", "MKL_Set_Num_Threads", true},
        {"bli_thread_get_num_threads", "bli_thread_set_num_threads", true},
        {"flexiblas_get_num_threads", "flexiblas_set_num_threads", true},
        {"omp_get_max_threads", "omp_set_num_threads", false},
        {"omp_get_num_threads", "omp_set_num_threads", false},
    };
    const size_t last =
        sizeof rows / sizeof *rows - 1; /* it tells of a team, not of the next one */
    (void)state;
    memset(&library, 0, sizeof library);
    assert_false(__real_accel_provider_names_threads(NULL));
    assert_null(accel_provider_threads(NULL).get);
    for (size_t i = 0; i <= last; i++) {
        library.get = rows[i].get;
        library.set = rows[i].set;
        struct accel_thread_functions found = accel_provider_threads(NULL);
        if (__real_accel_provider_names_threads(NULL) != rows[i].own ||
            found.get != (i < last ? &library.get : NULL) ||
            found.set != (i < last ? &library.set : NULL))
            fail_msg("%s", rows[i].get);
        library.set = NULL;
        found = accel_provider_threads(NULL);
        assert_ptr_equal(found.get, i < last ? &library.get : NULL);
        assert_null(found.set);
    }
}

static int count;

static int threads(void)
{
    return count;
}

static void test_number_of_threads(void **state)
{
    static const int told[] = {1, 2, 64, 0, -1}, expected[] = {1, 2, 64, 1, 1};
    (void)state;
    assert_int_equal(accel_provider_thread_count(NULL), 1);
    for (int i = 0; i < 5; i++) {
        count = told[i];
        assert_int_equal(accel_provider_thread_count((void *)(uintptr_t)threads), expected[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_says), cmocka_unit_test(test_what_it_is_linked_to),
        cmocka_unit_test(test_functions_of_threads), cmocka_unit_test(test_number_of_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
