/* The mapping at an address, as the kernel tells of it alone, and as /proc/self/maps lists it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory/mappings.h"

/* ---- The kernel's answers ---- */

static bool is_old; /* it does not know the question */
static int asked, answered;

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    void *argument = va_arg(args, void *);
    va_end(args);
    asked++;
    if (is_old) {
        errno = ENOTTY;
        return -1;
    }
    const int result = (int)syscall(SYS_ioctl, fd, request, argument);
    answered += result == 0 || errno != ENOTTY;
    return result;
}

/* ---- All mappings ---- */

enum { MOST = 1024 };

static struct list {
    struct mapping mapping[MOST];
    int count;
} list;

static bool add(void *context, const struct mapping *mapping)
{
    struct list *all = context;
    assert_true(all->count < MOST);
    all->mapping[all->count++] = *mapping;
    return true;
}

static void read_all(void)
{
    list.count = 0;
    assert_true(mappings_read(add, &list));
    assert_true(list.count > 10);
}

static void is_found(uintptr_t address, const struct mapping *expected)
{
    struct mapping found;
    memset(&found, 0xff, sizeof found);
    assert_true(mappings_find(address, &found));
    assert_int_equal(found.start, expected->start);
    assert_int_equal(found.is_private, expected->is_private);
    assert_int_equal(found.is_readable, expected->is_readable);
    assert_int_equal(found.is_writable, expected->is_writable);
    assert_int_equal(found.is_file, expected->is_file);
    assert_string_equal(found.name, expected->name);
    if (strcmp(expected->name, "[stack]") != 0)
        assert_int_equal(found.end, expected->end);
}

/* Of each: its first and last byte, and the hole before it. */
static void all_are_found(void)
{
    uintptr_t before = 0;
    errno = 4711;
    read_all();
    for (int i = 0; i < list.count; i++) {
        const struct mapping *m = &list.mapping[i];
        if (strcmp(m->name, "[vsyscall]") == 0) /* which is none of the process's */
            continue;
        is_found(m->start, m);
        is_found(m->end - 1, m);
        if (before < m->start)
            is_found(before, m);
        before = m->end;
    }
    assert_int_equal(errno, 4711);
}

static void *map(size_t bytes, int protection, int flags, int fd)
{
    void *memory = mmap(NULL, bytes, protection, flags, fd, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

/* Shared and private memory, files with long names, memory with a name, and some to which there is
 * no access. */
static void map_many(void)
{
    char path[400];
    const int length = snprintf(path, sizeof path, "/tmp/%0200d.XXXXXX", 0);
    assert_true(length > 200 && length < (int)sizeof path);
    const int fd = mkstemp(path), unnamed = memfd_create("unnamed", MFD_CLOEXEC);
    assert_true(fd >= 0 && unnamed >= 0);
    assert_int_equal(ftruncate(fd, 1 << 16), 0);
    assert_int_equal(ftruncate(unnamed, 1 << 16), 0);
    map(1 << 16, PROT_READ, MAP_PRIVATE, fd);
    map(1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    map(1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, unnamed);
    map(1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    map(1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    map(1 << 16, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    void *named = map(1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, named, 1 << 16, "a matrix"); /* not all kernels can */
    unlink(path);
    close(fd);
    close(unnamed);
}

/* ---- Tests ---- */

static void as_the_kernel_tells(void **state)
{
    (void)state;
    map_many();
    asked = answered = 0;
    all_are_found();
    assert_true(asked > 0);
    print_message("the kernel has answered %d of %d\n", answered, asked);
}

static void nothing_is_behind_the_last_one(void **state)
{
    struct mapping found;
    (void)state;
    assert_false(mappings_find(UINTPTR_MAX - 1, &found));
}

/* The last test: the kernel is asked no more. */
static void as_the_list_has_them(void **state)
{
    (void)state;
    is_old = true;
    all_are_found();
    asked = 0;
    all_are_found();
    assert_int_equal(asked, 0);
    nothing_is_behind_the_last_one(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_kernel_tells),
        cmocka_unit_test(nothing_is_behind_the_last_one),
        cmocka_unit_test(as_the_list_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
