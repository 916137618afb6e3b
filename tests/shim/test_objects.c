#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops/names.h"
#include "shim/elf/objects.h"
#include "tests/lib/beside.h"

/* The same library once more: an object of its own, whose name has 200 letters and more. */
static void *open_copy(const char *name, int number)
{
    static char contents[1 << 18];
    char path[PATH_MAX], copy[256];
    path_beside(name, path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(contents, 1, sizeof contents, file);
    assert_true(feof(file));
    fclose(file);
    snprintf(copy, sizeof copy, "copy_%0200d_%d.so", number, (int)getpid());
    path_beside(copy, path);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(contents, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    remove(path);
    assert_non_null(library);
    return library;
}

/* Whether the object of a handle defines a symbol, by its hash table. */
static bool defines(void *handle, const char *symbol)
{
    struct link_map *map;
    assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
    return accel_object_defines(map->l_addr, map->l_ld, symbol);
}

static void check_hash_table(const char *name)
{
    void *library = open_beside(name);
    for (const char *x = "abcde"; *x; x++) {
        for (const char *y = "0123456789"; *y; y++) {
            char symbol[] = "hashed_xy";
            symbol[7] = *x;
            symbol[8] = *y;
            assert_int_equal(defines(library, symbol), *y < '2');
        }
    }
    assert_false(defines(library, "rand")); /* it is in the table, but another's */
    assert_non_null(dlsym(library, "hashed_variable"));
    assert_false(defines(library, "hashed_variable"));
    assert_false(defines(library, ""));
    dlclose(library);
}

static void test_gnu_hash(void **state)
{
    (void)state;
    check_hash_table("libhashed_gnu.so");
}

static void test_older_hash(void **state)
{
    (void)state;
    check_hash_table("libhashed_sysv.so");
}

static void test_the_c_library_is_found_as_by_dlsym(void **state)
{
    (void)state;
    static const char *const names[] = {"qsort",     "malloc", "memcpy", "getenv", "strtold",
                                        "nanosleep", "dgemm_", "nonono", "qsort_", "cblas_dgemm"};
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(libc);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(defines(libc, names[i]), dlsym(libc, names[i]) != NULL);
    dlclose(libc);
}

/* How many objects define a symbol, and the last part of one's name. */
static int count_defining(const char *symbol, char *last, size_t size)
{
    struct accel_objects objects = {.next = 0};
    int count = 0;
    do {
        accel_objects_defining(symbol, objects.next, &objects);
        for (size_t at = 0; at < objects.used; at += strlen(objects.text + at) + 1, count++) {
            const char *slash = strrchr(objects.text + at, '/');
            const char *name = slash ? slash + 1 : objects.text + at;
            assert_true(strlen(name) < size);
            strcpy(last, name);
        }
    } while (objects.used > 0);
    return count;
}

static void test_only_those_that_define_it_are_listed(void **state)
{
    (void)state;
    char last[64] = "";
    assert_int_equal(count_defining("hashed_a0", last, sizeof last), 0);
    void *one = open_beside("libhashed_gnu.so");
    assert_int_equal(count_defining("hashed_a0", last, sizeof last), 1);
    assert_string_equal(last, "libhashed_gnu.so");
    void *other = open_beside("libhashed_sysv.so");
    assert_int_equal(count_defining("hashed_a0", last, sizeof last), 2);
    dlclose(one);
    assert_int_equal(count_defining("hashed_a0", last, sizeof last), 1);
    assert_string_equal(last, "libhashed_sysv.so");
    dlclose(other);
    assert_int_equal(count_defining("gnu_get_libc_version", last, sizeof last), 1);
    assert_string_equal(last, "libc.so.6");
    /* The kernel's object has addresses of another kind. */
    assert_true(count_defining("__vdso_clock_gettime", last, sizeof last) <= 1);
}

/* A part begins behind the last object of the one before. */
static void test_parts(void **state)
{
    (void)state;
    struct accel_objects objects;
    char last[64];
    accel_objects_defining("gnu_get_libc_version", 0, &objects);
    assert_true(objects.used > 0);
    int next = objects.next;
    accel_objects_defining("gnu_get_libc_version", next, &objects);
    assert_int_equal(objects.used, 0);
    accel_objects_defining("gnu_get_libc_version", next - 1, &objects);
    assert_int_equal(objects.next, next);
    assert_int_equal(count_defining("no such name", last, sizeof last), 0);
}

/* None is lost or listed twice where one part ends and the next begins. */
static void test_many_parts(void **state)
{
    (void)state;
    enum { COPIES = 100 };
    void *copies[COPIES];
    char last[PATH_MAX];
    for (int i = 0; i < COPIES; i++)
        copies[i] = open_copy("libhashed_gnu.so", i);
    struct accel_objects objects;
    accel_objects_defining("hashed_a0", 0, &objects);
    assert_in_range(objects.used, sizeof objects.text * 3 / 4, sizeof objects.text);
    assert_int_equal(count_defining("hashed_a0", last, sizeof last), COPIES);
    for (int i = 0; i < COPIES; i++)
        assert_int_equal(dlclose(copies[i]), 0);
    assert_int_equal(count_defining("hashed_a0", last, sizeof last), 0);
}

static void test_loads_and_unloads_are_counted(void **state)
{
    (void)state;
    unsigned long long loads = accel_objects_loads(), unloads = accel_objects_unloads();
    void *library = open_beside("libhashed_gnu.so");
    assert_int_equal(accel_objects_loads(), loads + 1);
    assert_int_equal(accel_objects_unloads(), unloads);
    dlclose(library);
    assert_int_equal(accel_objects_loads(), loads + 1);
    assert_int_equal(accel_objects_unloads(), unloads + 1);
}

/* The names in the relocations of one object or all: how many there are, and whether one is
 * "rand". */
struct names_seen {
    int count;
    bool has_rand;
};

/* A hash that is read differs from one that is computed in the lowest bit at most. */
static bool see_hash(const char *name, uint32_t hash, int object, void *data)
{
    struct names_seen *seen = data;
    (void)object;
    if ((accel_name_hash(name) | 1) != (hash | 1))
        fail_msg("%s: %x", name, hash);
    seen->count++;
    seen->has_rand = seen->has_rand || strcmp(name, "rand") == 0;
    return false;
}

static void test_the_hashes_of_names_in_relocations(void **state)
{
    static const char *const libraries[] = {"libhashed_gnu.so", "libhashed_sysv.so",
                                            "libhashed_nothing.so"};
    struct accel_users users = {.next = 0};
    struct names_seen all = {0, false};
    void *handles[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct names_seen seen = {0, false};
        struct link_map *map;
        handles[i] = open_beside(libraries[i]);
        assert_int_equal(dlinfo(handles[i], RTLD_DI_LINKMAP, &map), 0);
        accel_objects_uses_of(map->l_ld, see_hash, &seen);
        assert_true(seen.count > 0 && seen.has_rand);
    }
    accel_objects_using(see_hash, &all, &users);
    assert_int_equal(users.count, 0);
    assert_true(all.count > 100);
    for (int i = 0; i < 3; i++)
        dlclose(handles[i]);
}

static bool is_hashed_b1(const char *name, uint32_t hash)
{
    assert_int_equal(accel_name_hash(name) | 1, hash | 1);
    return strcmp(name, "hashed_b1") == 0;
}

static void test_the_hashes_of_definitions(void **state)
{
    static const char *const libraries[] = {"libhashed_gnu.so", "libhashed_sysv.so"};
    (void)state;
    assert_false(accel_objects_define(is_hashed_b1, 0));
    for (int i = 0; i < 2; i++) {
        void *handle = open_beside(libraries[i]);
        assert_true(accel_objects_define(is_hashed_b1, 0));
        dlclose(handle);
    }
    void *handle = open_beside("libhashed_nothing.so");
    assert_false(accel_objects_define(is_hashed_b1, 0));
    dlclose(handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gnu_hash),
        cmocka_unit_test(test_older_hash),
        cmocka_unit_test(test_the_c_library_is_found_as_by_dlsym),
        cmocka_unit_test(test_only_those_that_define_it_are_listed),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_many_parts),
        cmocka_unit_test(test_loads_and_unloads_are_counted),
        cmocka_unit_test(test_the_hashes_of_names_in_relocations),
        cmocka_unit_test(test_the_hashes_of_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
