/* Libraries that stay loaded as long as the objects that call them (shim/elf/keep.h). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>

#include "shim/elf/keep.h"
#include "shim/elf/objects.h"
#include "shim/elf/real_linker.h"
#include "tests/lib/beside.h"

static void *function_of(void *library, const char *symbol)
{
    void *function = dlsym(library, symbol);
    assert_non_null(function);
    return function;
}

static bool is_loaded(const char *name)
{
    char path[PATH_MAX];
    path_beside(name, path);
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library;
}

static const struct link_map *map_of(void *library)
{
    return library; /* glibc's handles are link maps */
}

static const char user_name[] = "libhashed_gnu.so", other_name[] = "libhashed_sysv.so",
                  provider_name[] = "libnames_doubles.so", third_name[] = "libnames_plain.so";

static void a_library_goes_with_its_user(void **state)
{
    void *user = open_beside(user_name), *provider = open_beside(provider_name);
    const void *const caller = function_of(user, "hashed_a0");
    void *const function = function_of(provider, "dgemm_");
    (void)state;
    assert_null(accel_kept_lookup(map_of(user), "dgemm_"));
    for (int i = 0; i < 3; i++) /* once is enough */
        accel_keep(caller, function);
    assert_ptr_equal(accel_kept_lookup(map_of(user), "dgemm_"), function);
    assert_null(accel_kept_lookup(map_of(provider), "dgemm_"));
    assert_null(accel_kept_lookup(map_of(user), "no such name"));
    dlerror();
    dlclose(provider);
    accel_keep_release();
    assert_true(is_loaded(provider_name));
    assert_ptr_equal(accel_kept_lookup(map_of(user), "dgemm_"), function);
    dlclose(user);
    accel_keep_release();
    assert_false(is_loaded(user_name));
    assert_false(is_loaded(provider_name));
}

/* What nobody has closed stays, whoever has used it. */
static void a_library_that_the_program_has_open(void **state)
{
    void *user = open_beside(user_name), *provider = open_beside(provider_name);
    (void)state;
    accel_keep(function_of(user, "hashed_a0"), function_of(provider, "dgemm_"));
    dlclose(user);
    accel_keep_release();
    assert_true(is_loaded(provider_name));
    dlclose(provider);
    assert_false(is_loaded(provider_name));
}

static void a_library_with_two_users(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        void *user[] = {open_beside(user_name), open_beside(other_name)},
             *provider = open_beside(provider_name);
        for (int i = 0; i < 2; i++)
            accel_keep(function_of(user[i], "hashed_a0"), function_of(provider, "dgemm_"));
        dlclose(provider);
        dlclose(user[first]);
        accel_keep_release();
        assert_true(is_loaded(provider_name));
        assert_non_null(accel_kept_lookup(map_of(user[!first]), "dgemm_"));
        dlclose(user[!first]);
        accel_keep_release();
        assert_false(is_loaded(provider_name));
    }
}

static void a_user_of_two_libraries(void **state)
{
    void *user = open_beside(user_name), *one = open_beside(provider_name),
         *two = open_beside(third_name);
    const void *const caller = function_of(user, "hashed_a0");
    (void)state;
    accel_keep(caller, function_of(one, "dgemm_"));
    accel_keep(caller, function_of(two, "dgemm_64_"));
    dlclose(one);
    dlclose(two);
    accel_keep_release();
    assert_true(is_loaded(provider_name) && is_loaded(third_name));
    assert_non_null(accel_kept_lookup(map_of(user), "dgemm_"));
    assert_non_null(accel_kept_lookup(map_of(user), "dgemm_64_"));
    dlclose(user);
    accel_keep_release();
    assert_false(is_loaded(provider_name) || is_loaded(third_name));
}

/* A library that is kept may itself keep one: all go. */
static void a_chain(void **state)
{
    void *user = open_beside(user_name), *one = open_beside(provider_name),
         *two = open_beside(third_name);
    (void)state;
    accel_keep(function_of(user, "hashed_a0"), function_of(one, "dgemm_"));
    accel_keep(function_of(one, "dgemm_"), function_of(two, "dgemm_64_"));
    dlclose(one);
    dlclose(two);
    accel_keep_release();
    assert_true(is_loaded(provider_name) && is_loaded(third_name));
    dlclose(user);
    accel_keep_release();
    assert_false(is_loaded(provider_name) || is_loaded(third_name));
}

/* An object does not keep itself, nor what is of the program's start, nor memory of no object. */
static void what_is_not_kept(void **state)
{
    static const char nowhere[1];
    void *user = open_beside(user_name), *provider = open_beside(provider_name);
    void *memory = malloc(1);
    const void *const caller = function_of(user, "hashed_a0");
    (void)state;
    assert_non_null(memory);
    accel_keep(caller, function_of(user, "hashed_b1"));
    accel_keep(caller, (const void *)(uintptr_t)qsort);
    accel_keep(caller, nowhere);
    accel_keep(caller, memory);
    accel_keep(memory, function_of(provider, "dgemm_"));
    assert_null(accel_kept_lookup(map_of(user), "qsort"));
    assert_null(accel_kept_lookup(map_of(user), "hashed_b1"));
    dlclose(user);
    dlclose(provider);
    assert_false(is_loaded(user_name) || is_loaded(provider_name));
    free(memory);
}

/* Of two that bring each other in, neither keeps the other: both would stay. */
static void what_would_hold_each_other(void **state)
{
    void *user = open_beside(user_name), *provider = open_beside(provider_name);
    const void *const caller = function_of(user, "hashed_a0"), *const function =
                                                                   function_of(provider, "dgemm_");
    (void)state;
    accel_keep_of_root(caller, function);
    accel_keep_of_root(function, caller);
    dlclose(provider);
    accel_keep_release();
    assert_true(is_loaded(provider_name));
    dlclose(user);
    accel_keep_release();
    assert_false(is_loaded(user_name) || is_loaded(provider_name));
}

static void *open_with(const char *name, int flags)
{
    char path[PATH_MAX];
    path_beside(name, path);
    void *library = dlopen(path, flags);
    if (!library)
        fail_msg("%s", dlerror());
    return library;
}

/* To a library of the global scope, if they use its names. */
static void what_objects_are_bound_to(void **state)
{
    void *provider = open_with(provider_name, RTLD_NOW | RTLD_GLOBAL),
         *unused = open_with(third_name, RTLD_NOW | RTLD_GLOBAL), *after[2];
    void *const function = function_of(provider, "dgemm_");
    (void)state;
    accel_keep_bound();
    after[0] = open_with("libcaller_none_too.so", RTLD_LAZY);
    accel_keep_bound();
    after[1] = open_with("libcaller_none64.so", RTLD_LAZY); /* seen by itself */
    accel_keep_bound();
    for (int i = 0; i < 2; i++)
        assert_ptr_equal(accel_kept_lookup(map_of(after[i]), "dgemm_"), function);
    dlerror();
    dlclose(unused);
    dlclose(provider);
    accel_keep_release();
    assert_true(is_loaded(provider_name));
    assert_false(is_loaded(third_name));
    dlclose(after[0]);
    accel_keep_release();
    assert_true(is_loaded(provider_name));
    dlclose(after[1]);
    accel_keep_release();
    assert_false(is_loaded(provider_name));
}

/* Of a library that came with another one that is linked to a BLAS: the user may stay when that one
 * goes, with its BLAS. */
static void what_objects_are_bound_to_by_what_brought_them_in(void **state)
{
    static const char blas_name[] = "libblas64.so.3";
    void *root = open_with("libbringing_wide.so", RTLD_LAZY),
         *user = open_with("libcaller_none64.so", RTLD_LAZY), *blas;
    (void)state;
    blas = dlopen(blas_name, RTLD_LAZY | RTLD_NOLOAD);
    assert_non_null(blas);
    void *const function = function_of(blas, "dgemm_");
    dlclose(blas);
    accel_keep_bound();
    assert_ptr_equal(accel_kept_lookup(map_of(user), "dgemm_"), function);
    assert_null(accel_kept_lookup(map_of(root), "dgemm_")); /* it calls none itself */
    dlclose(root);
    accel_keep_release();
    assert_false(is_loaded("libbringing_wide.so"));
    assert_ptr_equal(accel_kept_lookup(map_of(user), "dgemm_"), function);
    dlclose(user);
    accel_keep_release();
    assert_false(is_loaded("libcaller_none64.so"));
    assert_null(dlopen(blas_name, RTLD_LAZY | RTLD_NOLOAD));
    dlerror();
}

/* A library that the global scope had before goes first; one that has come later does not. */
static void what_the_global_scope_has_beside_what_brought_them_in(void **state)
{
    static const char blas_name[] = "libblas64.so.3";
    (void)state;
    for (int first = 0; first < 2; first++) {
        void *provider = first ? open_with(provider_name, RTLD_LAZY | RTLD_GLOBAL) : NULL;
        void *root = open_with("libbringing_wide.so", RTLD_LAZY),
             *user = open_with("libcaller_none64.so", RTLD_LAZY),
             *blas = dlopen(blas_name, RTLD_LAZY | RTLD_NOLOAD);
        assert_non_null(blas);
        void *const brought = function_of(blas, "dgemm_");
        dlclose(blas);
        if (!first)
            provider = open_with(provider_name, RTLD_LAZY | RTLD_GLOBAL);
        void *const global = function_of(provider, "dgemm_");
        accel_keep_bound();
        assert_ptr_equal(accel_kept_lookup(map_of(user), "dgemm_"), first ? global : brought);
        dlclose(root);
        dlclose(provider);
        accel_keep_release();
        blas = dlopen(blas_name, RTLD_LAZY | RTLD_NOLOAD);
        assert_int_equal(blas != NULL, !first);
        if (blas)
            dlclose(blas);
        assert_int_equal(is_loaded(provider_name), first);
        dlclose(user);
        accel_keep_release();
        assert_false(is_loaded("libcaller_none64.so") || is_loaded(provider_name));
    }
    dlerror();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_goes_with_its_user),
        cmocka_unit_test(a_library_that_the_program_has_open),
        cmocka_unit_test(a_library_with_two_users),
        cmocka_unit_test(a_user_of_two_libraries),
        cmocka_unit_test(a_chain),
        cmocka_unit_test(what_is_not_kept),
        cmocka_unit_test(what_would_hold_each_other),
        cmocka_unit_test(what_objects_are_bound_to),
        cmocka_unit_test(what_objects_are_bound_to_by_what_brought_them_in),
        cmocka_unit_test(what_the_global_scope_has_beside_what_brought_them_in),
    };
    accel_real_init();
    accel_objects_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
