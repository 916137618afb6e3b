/* The dynamic linker's answers that a running program hardly gets, and what follows from a return
 * address. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/names.h"
#include "shim/elf/objects.h"
#include "shim/elf/outer.h"
#include "shim/elf/real_linker.h"

static const void *no_namespace; /* the object whose namespace dlinfo() does not tell */
static void *opened;             /* what dlmopen() opens instead */
static bool opens_another;

int __real_dlinfo(void *handle, int request, void *result);
int __wrap_dlinfo(void *handle, int request, void *result);
void *__real_dlmopen(Lmid_t space, const char *name, int mode);
void *__wrap_dlmopen(Lmid_t space, const char *name, int mode);

int __wrap_dlinfo(void *handle, int request, void *result)
{
    return handle == no_namespace ? -1 : __real_dlinfo(handle, request, result);
}

void *__wrap_dlmopen(Lmid_t space, const char *name, int mode)
{
    return opens_another ? opened : __real_dlmopen(space, name, mode);
}

static const struct link_map *libc_map(void)
{
    return accel_object_of((const void *)(uintptr_t)getenv);
}

/* The first test: nothing has been looked up yet. */
static void test_before_the_first_look_up(void **state)
{
    struct link_map nowhere = {.l_ld = malloc(16)};
    Dl_info info;
    (void)state;
    assert_false(accel_real_maps());
    assert_int_not_equal(dladdr((const void *)(uintptr_t)getenv, &info), 0);
    assert_ptr_equal(accel_object_begin(libc_map()), info.dli_fbase);
    assert_null(accel_object_begin(&nowhere));
    free(nowhere.l_ld);
}

static void test_where_an_object_begins(void **state)
{
    struct link_map nowhere = {.l_ld = malloc(16)}, copy;
    Dl_info info;
    (void)state;
    accel_real_init();
    assert_int_not_equal(dladdr((const void *)(uintptr_t)getenv, &info), 0);
    assert_ptr_equal(accel_object_begin(libc_map()), info.dli_fbase);
    assert_null(accel_object_begin(&nowhere));
    /* Another object lies there than the one that is asked about. */
    memcpy(&copy, libc_map(), sizeof copy);
    if (accel_real_lookup(RTLD_DEFAULT, "_dl_find_object"))
        assert_null(accel_object_begin(&copy));
    free(nowhere.l_ld);
}

static void test_while_the_linker_maps(void **state)
{
    struct r_debug *debug = dlsym(RTLD_DEFAULT, "_r_debug");
    (void)state;
    accel_real_init();
    assert_non_null(debug);
    assert_false(accel_real_maps());
    debug->r_state = RT_ADD;
    assert_true(accel_real_maps());
    debug->r_state = RT_DELETE;
    assert_true(accel_real_maps());
    debug->r_state = RT_CONSISTENT;
    assert_false(accel_real_maps());
}

static void test_a_namespace_that_cannot_be_told(void **state)
{
    const struct link_map *libc = libc_map();
    (void)state;
    assert_true(accel_is_in_our_namespace(libc));
    assert_non_null(accel_real_lookup_in(libc, "getenv"));
    no_namespace = libc;
    assert_false(accel_is_in_our_namespace(libc));
    assert_null(accel_real_handle(libc));
    assert_null(accel_real_lookup_in(libc, "getenv"));
    no_namespace = NULL;
}

/* Nothing is looked up where a name leads to no object, or to another one. */
static void test_names_that_lead_elsewhere(void **state)
{
    const struct link_map *libc = libc_map();
    (void)state;
    opens_another = true;
    assert_null(accel_real_handle(libc));
    assert_null(accel_real_lookup_in(libc, "getenv"));
    opened = dlopen(NULL, RTLD_LAZY);
    assert_null(accel_real_handle(libc));
    opened = dlopen(NULL, RTLD_LAZY);
    assert_null(accel_real_lookup_in(libc, "getenv"));
    opens_another = false;
    assert_non_null(accel_real_lookup_in(libc, "getenv"));
}

static void test_look_ups_by_name(void **state)
{
    (void)state;
    void *const own = (void *)(uintptr_t)getenv;
    assert_ptr_equal(accel_real_lookup_named("", "getenv"), own); /* the program */
    assert_ptr_equal(accel_real_lookup_named("libc.so.6", "getenv"), own);
    assert_null(accel_real_lookup_named("", "no such name"));
    assert_null(accel_real_lookup_named("/nonexistent/lib.so", "getenv"));
    /* What is found in libaccel's own object, here the test, is none. */
    assert_non_null(dlsym(RTLD_DEFAULT, "svm_predict"));
    assert_null(accel_real_lookup_named("", "svm_predict"));
}

/* ---- The function that the program has called ---- */

__attribute__((noinline, visibility("default"))) int svm_predict(int n);

int svm_predict(int n)
{
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}

static void *answer;
static int asked;

static void *symbol(const struct accel_provider *provider, const char *name)
{
    (void)provider;
    assert_string_equal(name, "svm_predict");
    asked++;
    return answer;
}

/* A library beside the test. */
static void load_and_unload(const char *name)
{
    char self[PATH_MAX], path[PATH_MAX];
    assert_non_null(realpath("/proc/self/exe", self));
    *strrchr(self, '/') = 0;
    assert_true(snprintf(path, sizeof path, "%s/%s", self, name) < (int)sizeof path);
    void *library = dlopen(path, RTLD_NOW);
    assert_non_null(library);
    assert_int_equal(dlclose(library), 0);
}

static void test_the_outer_function(void **state)
{
    static const char unnamed[64];
    static const struct accel_provider provider = {.symbol = symbol};
    const struct accel_routine *const inner = accel_name_called("svm_predict_values");
    const struct accel_routine *const outer = accel_name_called("svm_predict");
    const struct accel_routine *const other = accel_name_called("svm_csr_predict_values");
    const uintptr_t function = (uintptr_t)svm_predict, ret = function + 2;
    char *nowhere = malloc(16);
    (void)state;
    assert_true(inner && outer && other && accel_name_has_outer(inner));
    /* Code in no object, and where no symbol is. */
    assert_ptr_equal(accel_outer_of(inner, &provider, (uintptr_t)nowhere + 8), inner);
    assert_ptr_equal(accel_outer_of(inner, &provider, (uintptr_t)unnamed + 32), inner);
    assert_int_equal(asked, 0);
    /* A function of that name, which is not the provider's. */
    answer = nowhere;
    assert_ptr_equal(accel_outer_of(inner, &provider, ret), inner);
    assert_int_equal(asked, 1);
    answer = (void *)function;
    assert_ptr_equal(accel_outer_of(inner, &provider, ret + 1), outer);
    assert_int_equal(asked, 2);
    /* The last answer serves for this function, until an object is unloaded. */
    assert_ptr_equal(accel_outer_of(inner, &provider, ret + 1), outer);
    assert_int_equal(asked, 2);
    assert_ptr_equal(accel_outer_of(other, &provider, ret + 1), outer);
    assert_int_equal(asked, 3);
    load_and_unload("libhashed_gnu.so");
    answer = nowhere;
    assert_ptr_equal(accel_outer_of(other, &provider, ret + 1), other);
    assert_int_equal(asked, 4);
    free(nowhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_the_first_look_up),
        cmocka_unit_test(test_where_an_object_begins),
        cmocka_unit_test(test_while_the_linker_maps),
        cmocka_unit_test(test_a_namespace_that_cannot_be_told),
        cmocka_unit_test(test_names_that_lead_elsewhere),
        cmocka_unit_test(test_look_ups_by_name),
        cmocka_unit_test(test_the_outer_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
