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

/* The library: what its function says, which function multiplies and in which object, and the name
 * that this object refers to. */
static struct {
    bool has_core;
    const char *core;
    void *product;
    const struct link_map *object;
    const char *import;
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_it_says),
                                       cmocka_unit_test(test_what_it_is_linked_to)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
