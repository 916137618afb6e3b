/*
 * The memory that a process may still use: as the files of the kernel say, of both versions of
 * control groups.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory/host_memory.h"

static char root[] = "/tmp/accel-host-memory-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int empty_root(void **state)
{
    char command[PATH_MAX];
    (void)state;
    if (snprintf(command, sizeof command, "rm -rf %s && mkdir %s", root, root) < 0)
        return -1;
    return system(command);
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
    char command[PATH_MAX];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void nothing_is_known(void **state)
{
    (void)state;
    assert_true(host_memory_below(root) == INT64_MAX);
    write_file("/proc/meminfo", "MemTotal: 9 kB\n");
    assert_true(host_memory_below(root) == INT64_MAX);
}

static void of_the_machine(void **state)
{
    (void)state;
    write_file("/proc/meminfo",
               "MemTotal:       32768 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\n");
    assert_true(host_memory_below(root) == 2048 * 1024);
    write_file("/proc/meminfo", "MemAvailable: 99999999999999999999 kB\n");
    assert_true(host_memory_below(root) == INT64_MAX);
}

/* A group's limit counts, and those of the groups around it; files in the page cache are no
 * loss. */
static void of_version_2(void **state)
{
    (void)state;
    write_file("/proc/meminfo", "MemAvailable: 1000000 kB\n");
    write_file("/proc/self/cgroup", "0::/job/step\n");
    write_file("/sys/fs/cgroup/job/step/memory.max", "max\n");
    write_file("/sys/fs/cgroup/job/step/memory.current", "5000\n");
    assert_true(host_memory_below(root) == (int64_t)1000000 * 1024);
    write_file("/sys/fs/cgroup/job/memory.max", "70000\n");
    write_file("/sys/fs/cgroup/job/memory.current", "50000\n");
    assert_true(host_memory_below(root) == 20000);
    write_file("/sys/fs/cgroup/job/memory.stat",
               "anon 3\nactive_file 9\ninactive_file 4000\nslab 1\n");
    assert_true(host_memory_below(root) == 24000);
    write_file("/sys/fs/cgroup/job/step/memory.max", "6000\n");
    assert_true(host_memory_below(root) == 1000);
    write_file("/sys/fs/cgroup/job/step/memory.current", "6001\n");
    assert_true(host_memory_below(root) == 0);
}

static void of_version_1(void **state)
{
    (void)state;
    write_file("/proc/self/cgroup", "12:cpu:/else\n9:memory:/docker/1\n0::/docker/1\n");
    /* The group's folder is not to be seen */
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8000\n");
    write_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
    write_file("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
    assert_true(host_memory_below(root) == 3500);
}

static void is_taken(void **state)
{
    void *little = host_memory_take(4096);
    (void)state;
    assert_non_null(little);
    free(little);
    assert_true(host_memory_available() > 0);
    assert_null(host_memory_take(INT64_MAX / 2));
}

/* Returns whether the kernel knows that the mapping of an address wants huge pages (VmFlags of
 * proc_pid_smaps(5)). */
static bool is_huge(const void *address)
{
    char line[512];
    bool here = false, huge = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            here = start <= (uintptr_t)address && (uintptr_t)address < end;
        else if (here && strncmp(line, "VmFlags:", strlen("VmFlags:")) == 0)
            huge = strstr(line, " hg") != NULL;
    }
    fclose(file);
    return huge;
}

static void large_blocks_have_huge_pages(void **state)
{
    const int64_t large = INT64_C(80) << 20;
    (void)state;
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0)
        skip(); /* this kernel has none */
    char *block = host_memory_take(large), *zeros = host_memory_take_zeros(large);
    if (!block || !zeros)
        skip(); /* this machine is short of memory */
    errno = EDOM;
    host_memory_prefer_huge(block + 1, large); /* once more */
    assert_int_equal(errno, EDOM);
    assert_true(is_huge(block + large / 2));
    assert_false(is_huge(zeros + large / 2));
    memset(block, 1, (size_t)large);
    free(block);
    free(zeros);
    char *small = host_memory_take(1 << 20);
    assert_non_null(small);
    assert_false(is_huge(small));
    free(small);
    host_memory_prefer_huge(NULL, large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_known, empty_root),
        cmocka_unit_test_setup(of_the_machine, empty_root),
        cmocka_unit_test_setup(of_version_2, empty_root),
        cmocka_unit_test_setup(of_version_1, empty_root),
        cmocka_unit_test(is_taken),
        cmocka_unit_test(large_blocks_have_huge_pages),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
