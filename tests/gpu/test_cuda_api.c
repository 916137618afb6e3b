/* CUDA's libraries are not called while a fork is under way that began before they were loaded: see
 * base/thread/linker.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/cuda/api/cuda_api.h"
#include "base/thread/linker.h"
#include "tests/lib/devices.h"

static atomic_bool forked;

static bool maps_not(void)
{
    return false;
}

static void *open_cuda(void *early)
{
    const char *reason = cuda_api_open(tested_gpu());
    *(bool *)early = !atomic_load(&forked);
    return (void *)(uintptr_t)reason;
}

/* cuBLAS is in memory: its constructor runs, for TESTGPU_LOAD_MS. */
static bool is_loading(void)
{
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (!found && fgets(line, sizeof line, maps))
        found = strstr(line, "/libcublas.so") != NULL;
    fclose(maps);
    return found;
}

/* The fork comes in the middle of cuBLAS's load, does not wait for its constructor, and lasts
 * longer. */
static void test_a_loaded_library_waits_for_forks(void **state)
{
    (void)state;
    pthread_t thread;
    bool early = false;
    void *reason;
    assert_int_equal(pthread_create(&thread, NULL, open_cuda, &early), 0);
    while (!is_loading())
        usleep(10000);
    linker_before_fork(maps_not);
    usleep(1500000);
    atomic_store(&forked, true);
    linker_after_fork();
    assert_int_equal(pthread_join(thread, &reason), 0);
    assert_null(reason);
    assert_false(early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_loaded_library_waits_for_forks),
    };
    setenv("TESTGPU_LOAD_MS", "1000", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
