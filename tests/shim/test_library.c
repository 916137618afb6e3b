/* The library of a function where it cannot be told, cannot be opened or memory is short: what the
 * dynamic linker answers is the test's. */
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

#include "shim/elf/kernels.h"
#include "shim/elf/library.h"
#include "tests/lib/fork_waits.h"

static struct {
    const struct link_map *object;
    void *handle; /* of each dlopen(); NULL: it fails */
    Lmid_t space;
    int opened, closed;
    int awaited;      /* times at which a fork would have waited for that */
    const char *path; /* that was opened last, NULL: the program */
    int allocations;  /* that succeed before all fail; negative: all do */
} linker;

static bool may_allocate(void)
{
    return linker.allocations < 0 || linker.allocations-- > 0;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? __real_calloc(count, size) : NULL;
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    return may_allocate() ? __real_strdup(text) : NULL;
}

const struct link_map *__wrap_accel_object_of(const void *address);
const struct link_map *__wrap_accel_object_of(const void *address)
{
    (void)address;
    return linker.object;
}

void *__wrap_accel_real_handle(const struct link_map *object);
void *__wrap_accel_real_handle(const struct link_map *object)
{
    (void)object;
    linker.opened += linker.handle != NULL;
    linker.awaited += linker.handle && fork_waits();
    return linker.handle;
}

void *__wrap_dlmopen(Lmid_t space, const char *path, int flags);
void *__wrap_dlmopen(Lmid_t space, const char *path, int flags)
{
    (void)flags;
    assert_int_equal(space, linker.space);
    linker.opened += linker.handle != NULL;
    linker.awaited += linker.handle && fork_waits();
    linker.path = path;
    return linker.handle;
}

int __wrap_dlinfo(void *handle, int request, void *answer);
int __wrap_dlinfo(void *handle, int request, void *answer)
{
    assert_ptr_equal(handle, linker.handle);
    assert_int_equal(request, RTLD_DI_LMID);
    memcpy(answer, &linker.space, sizeof linker.space);
    return 0;
}

int __wrap_accel_real_dlclose(void *handle);
int __wrap_accel_real_dlclose(void *handle)
{
    assert_ptr_equal(handle, linker.handle);
    linker.closed++;
    return 0;
}

void *__wrap_accel_provider_find(void *handle, bool alone, const void *routine, int *width);
void *__wrap_accel_provider_find(void *handle, bool alone, const void *routine, int *width)
{
    (void)alone, (void)routine;
    assert_ptr_equal(handle, linker.handle);
    *width = 32;
    return NULL;
}

static int function;

static void set(const char *path, struct link_map *object)
{
    memset(object, 0, sizeof *object);
    memset(&linker, 0, sizeof linker);
    object->l_name = (char *)(uintptr_t)path;
    linker.object = object;
    linker.allocations = -1;
}

static void assert_unknown(const struct dispatch_library *library)
{
    const struct accel_call call = {.routine = NULL};
    assert_string_equal(library->name, "unknown");
    assert_int_equal(library->threads(library), 1);
    assert_false(library->run(library, &call));
}

static void test_no_object(void **state)
{
    struct link_map object;
    (void)state;
    set("", &object);
    linker.object = NULL;
    assert_unknown(accel_library_at(&function, true));
}

/* It is known when there is memory again. */
static void test_no_memory(void **state)
{
    struct link_map object;
    (void)state;
    for (int works = 0; works < 3; works++) {
        set("/nowhere/libshort.so", &object);
        linker.allocations = works;
        assert_unknown(accel_library_at(&function, true));
    }
    linker.allocations = -1;
    assert_string_equal(accel_library_at(&function, true)->path, "/nowhere/libshort.so");
}

/* One that cannot be opened has a name, one thread, and no routine that could be called. */
static void test_not_opened(void **state)
{
    struct link_map object;
    const struct accel_call call = {.routine = NULL};
    (void)state;
    set("/nowhere/libgone.so", &object);
    const struct dispatch_library *library = accel_library_at(&function, true);
    assert_string_equal(library->name, "libgone.so 0");
    assert_int_equal(library->threads(library), 1);
    assert_false(library->run(library, &call));
    assert_int_equal(linker.opened, 0);
}

/* The same file in another namespace is another library. */
static void test_namespaces(void **state)
{
    struct link_map object;
    int handle;
    (void)state;
    set("/nowhere/libtwice.so", &object);
    linker.handle = &handle;
    const struct dispatch_library *first = accel_library_at(&function, false);
    linker.space = 3;
    const struct dispatch_library *other = accel_library_at(&function, false);
    assert_ptr_not_equal(other, first);
    assert_string_equal(other->path, first->path);
    assert_ptr_equal(accel_library_at(&function, false), other);
    linker.space = LM_ID_BASE;
    assert_ptr_equal(accel_library_at(&function, false), first);
    assert_int_equal(linker.closed, linker.opened);
    assert_int_equal(linker.awaited, linker.opened);
    assert_false(fork_waits());
}

/* The program has no path; and a routine that is not there is not called. */
static void test_the_program(void **state)
{
    struct link_map object;
    const struct accel_call call = {.routine = NULL};
    int handle;
    (void)state;
    set("", &object);
    linker.handle = &handle;
    const struct dispatch_library *library = accel_library_at(&function, false);
    linker.path = "";
    assert_false(library->run(library, &call));
    assert_null(linker.path);
    assert_int_equal(linker.opened, 2);
    assert_int_equal(linker.closed, 2);
    assert_int_equal(linker.awaited, 2);
    assert_false(fork_waits());
    assert_int_equal(strncmp(library->name, "test_library ", 13), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_object),   cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_not_opened),  cmocka_unit_test(test_namespaces),
        cmocka_unit_test(test_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
