/* What R gets of a package's table of functions (shim/elf/registration.h): the test plays the
 * objects, their functions and the dynamic linker's look-ups. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ops/names.h"
#include "shim/elf/registration.h"

static struct accel_r_method table[8]; /* a package's */

/* libaccel's entries, the objects' functions, and what libaccel hands out for one of these. */
static char entries[4], functions[2][16], handed;
static struct link_map objects[2];
static bool table_is_in_one; /* in the first object */

const struct link_map *__wrap_accel_object_of(const void *address);
const struct link_map *__wrap_accel_object_of(const void *address)
{
    for (int i = 0; i < 2; i++)
        if ((uintptr_t)address - (uintptr_t)functions[i] < sizeof functions[i])
            return &objects[i];
    return address == table && table_is_in_one ? &objects[0] : NULL;
}

bool __wrap_accel_is_own(const void *address);
bool __wrap_accel_is_own(const void *address)
{
    return (uintptr_t)address - (uintptr_t)entries < sizeof entries;
}

/* libaccel's first two entries have names, and something behind the second has none. */
int __wrap_dladdr(const void *address, Dl_info *info);
int __wrap_dladdr(const void *address, Dl_info *info)
{
    static const char *const names[] = {"dgemm_", "dtrsm_", NULL, "no such name"};
    const uintptr_t place = (uintptr_t)address - (uintptr_t)entries;
    if (place >= sizeof entries)
        return 0;
    *info = (Dl_info){.dli_sname = names[place], .dli_saddr = &entries[place]};
    return 1;
}

/* Where names are found: in the global scope behind libaccel, and in the scope of an object, which
 * is the one of the last look-up. */
static void *in_global_scope, *in_scope_of[2];
static const struct link_map *asked;

void *__wrap_accel_real_lookup(void *handle, const char *name);
void *__wrap_accel_real_lookup(void *handle, const char *name)
{
    assert_ptr_equal(handle, RTLD_NEXT);
    assert_string_equal(name, "R_registerRoutines");
    return in_global_scope;
}

void *__wrap_accel_real_lookup_in(const struct link_map *object, const char *name);
void *__wrap_accel_real_lookup_in(const struct link_map *object, const char *name)
{
    assert_true(object == &objects[0] || object == &objects[1]);
    assert_non_null(name);
    asked = object;
    return in_scope_of[object - objects];
}

static bool is_on;
bool __wrap_dispatch_is_on(void);
bool __wrap_dispatch_is_on(void)
{
    return is_on;
}

static uint32_t bound_name;
void *__wrap_accel_slots_bind(uint32_t entry, void *function);
void *__wrap_accel_slots_bind(uint32_t entry, void *function)
{
    assert_non_null(function);
    bound_name = entry;
    return &handed;
}

static bool memory_is_short;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return memory_is_short ? NULL : __real_malloc(size);
}

/* A call that is the last instruction of an object's code. */
static uintptr_t behind(int object)
{
    return (uintptr_t)functions[object] + sizeof functions[object];
}

static int forget(void **state)
{
    (void)state;
    memset(table, 0, sizeof table);
    table_is_in_one = true;
    in_global_scope = in_scope_of[0] = in_scope_of[1] = NULL;
    asked = NULL;
    is_on = memory_is_short = false;
    bound_name = UINT32_MAX;
    return 0;
}

/* ---- Tables ---- */

static void register_as(void *first, void *second)
{
    static unsigned types[] = {1, 2};
    table[0] = (struct accel_r_method){"first", first, 2, types};
    table[1] = (struct accel_r_method){"second", second, -1, NULL};
}

static void check(void *first, void *second)
{
    struct accel_r_method before[3];
    memcpy(before, table, sizeof before);
    struct accel_r_method *copy = accel_registration_of(table, behind(0));
    assert_non_null(copy);
    assert_memory_equal(table, before, sizeof before);
    assert_ptr_equal(copy[0].function, first);
    assert_ptr_equal(copy[1].function, second);
    copy[0].function = before[0].function;
    copy[1].function = before[1].function;
    assert_memory_equal(copy, before, sizeof before); /* with the end */
    free(copy);
}

static void test_our_entries_are_replaced(void **state)
{
    (void)state;
    in_scope_of[0] = &functions[0][3];
    in_scope_of[1] = &functions[1][3];
    register_as(&entries[0], &functions[0][1]);
    check(&functions[0][3], &functions[0][1]);
    assert_int_equal(bound_name, UINT32_MAX);
    is_on = true;
    check(&handed, &functions[0][1]);
    assert_int_equal(bound_name, accel_name_find("dgemm_"));
    register_as(&functions[1][1], &entries[1]); /* other objects' functions stay, too */
    check(&functions[1][1], &handed);
    assert_int_equal(bound_name, accel_name_find("dtrsm_"));
    assert_ptr_equal(asked, &objects[0]);
    register_as(&entries[1], &entries[0]);
    check(&handed, &handed);
}

/* What is none of the package's own functions. */
static void test_entries_that_stay(void **state)
{
    (void)state;
    is_on = true;
    register_as(&entries[0], &entries[1]);
    check(&entries[0], &entries[1]); /* nobody has them */
    in_scope_of[0] = &functions[1][3];
    check(&entries[0], &entries[1]); /* another object has */
    in_scope_of[0] = &functions[0][3];
    register_as(&entries[2], &entries[3]); /* not of these names */
    check(&entries[2], &entries[3]);
    assert_int_equal(bound_name, UINT32_MAX);
}

/* A table in memory of no object is of the one that has called. */
static void test_tables_in_no_object(void **state)
{
    (void)state;
    table_is_in_one = false;
    register_as(&entries[0], &functions[0][1]);
    for (int i = 0; i < 2; i++) {
        in_scope_of[0] = in_scope_of[1] = NULL;
        in_scope_of[i] = &functions[i][3];
        struct accel_r_method *copy = accel_registration_of(table, behind(i));
        assert_non_null(copy);
        assert_ptr_equal(asked, &objects[i]);
        assert_ptr_equal(copy[0].function, &functions[i][3]);
        free(copy);
    }
    assert_null(accel_registration_of(table, (uintptr_t)table));
}

static void test_tables_that_are_not_copied(void **state)
{
    (void)state;
    assert_null(accel_registration_of(NULL, behind(0)));
    assert_null(accel_registration_of(table, behind(0))); /* it is empty */
    register_as(&functions[0][1], &functions[0][2]);
    assert_null(accel_registration_of(table, behind(0))); /* none is ours */
    register_as(&entries[0], &functions[0][2]);
    table[2].function = &functions[0][1]; /* an older R's methods are longer */
    assert_null(accel_registration_of(table, behind(0)));
    table[2].function = NULL;
    memory_is_short = true;
    struct accel_r_method *copy = accel_registration_of(table, behind(0));
    memory_is_short = false;
    assert_null(copy);
    copy = accel_registration_of(table, behind(0));
    assert_non_null(copy);
    free(copy);
}

/* ---- R's own function ---- */

static void test_the_function_behind_ours(void **state)
{
    (void)state;
    assert_null(accel_registration_real(behind(0)));
    assert_ptr_equal(asked, &objects[0]);
    in_scope_of[0] = &functions[0][5];
    in_scope_of[1] = &functions[1][5];
    for (int i = 0; i < 2; i++)
        assert_ptr_equal(accel_registration_real(behind(i)), &functions[i][5]);
    assert_null(accel_registration_real((uintptr_t)table)); /* a caller in no object */
    in_scope_of[0] = &entries[0];
    assert_null(accel_registration_real(behind(0))); /* ours again */
    /* The global scope goes first. */
    in_global_scope = &functions[1][7];
    asked = NULL;
    assert_ptr_equal(accel_registration_real(behind(0)), &functions[1][7]);
    assert_ptr_equal(accel_registration_real((uintptr_t)table), &functions[1][7]);
    assert_null(asked);
    in_global_scope = &entries[0];
    assert_null(accel_registration_real(behind(0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_our_entries_are_replaced, forget),
        cmocka_unit_test_setup(test_entries_that_stay, forget),
        cmocka_unit_test_setup(test_tables_in_no_object, forget),
        cmocka_unit_test_setup(test_tables_that_are_not_copied, forget),
        cmocka_unit_test_setup(test_the_function_behind_ours, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
