/*
 * The folders that are searched for CUDA, in made-up environments: a virtual environment with
 * wheels, conda, a toolkit, the user's own packages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/cuda/api/find_cuda.h"

static char root[] = "/tmp/accel-find-cuda-XXXXXX";

/* Makes a folder under root, with all above it. */
static void make_folder(const char *path)
{
    char command[PATH_MAX];
    snprintf(command, sizeof command, "mkdir -p '%s/%s'", root, path);
    assert_int_equal(system(command), 0);
}

static void set(const char *name, const char *path)
{
    char value[PATH_MAX];
    snprintf(value, sizeof value, "%s/%s", root, path);
    setenv(name, value, 1);
}

static struct {
    char folder[64][PATH_MAX];
    int count, stop_at;
} seen;

static bool note(const char *folder, void *context)
{
    (void)context;
    assert_true(seen.count < 64);
    snprintf(seen.folder[seen.count++], PATH_MAX, "%s", folder);
    return seen.count == seen.stop_at;
}

/* The place of a folder among those visited, -1 if it was not. */
static int place(const char *path)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (int i = 0; i < seen.count; i++)
        if (strcmp(seen.folder[i], full) == 0)
            return i;
    return -1;
}

static void search(int stop_at)
{
    seen.count = 0;
    seen.stop_at = stop_at;
    find_cuda_environment(note, NULL);
    if (stop_at == 0)
        find_cuda_system(note, NULL);
}

static int setup(void **state)
{
    (void)state;
    static const char *const names[] = {"VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH",
                                        "HOME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    return 0;
}

static void wheels_of_a_virtual_environment(void **state)
{
    (void)state;
    make_folder("venv/lib/python3.12/site-packages/nvidia/cu13/lib");
    make_folder("venv/lib/python3.12/site-packages/nvidia/cublas/lib");
    set("VIRTUAL_ENV", "venv");
    search(0);
    int cu13 = place("venv/lib/python3.12/site-packages/nvidia/cu13/lib");
    int cublas = place("venv/lib/python3.12/site-packages/nvidia/cublas/lib");
    assert_true(cu13 >= 0 && cublas > cu13); /* CUDA 13's layout, then CUDA 12's */
}

static void conda(void **state)
{
    (void)state;
    make_folder("conda/lib");
    set("CONDA_PREFIX", "conda");
    search(0);
    assert_true(place("conda/lib") >= 0);
}

static void toolkit_and_the_users_own(void **state)
{
    (void)state;
    make_folder("cuda/lib64");
    make_folder("home/.local/lib/python3.9/site-packages/nvidia/cublas/lib");
    set("CUDA_HOME", "cuda");
    set("HOME", "home");
    search(0);
    int toolkit = place("cuda/lib64");
    assert_true(toolkit >= 0);
    assert_true(place("home/.local/lib/python3.9/site-packages/nvidia/cublas/lib") > toolkit);
}

static void the_environment_comes_before_the_toolkit(void **state)
{
    (void)state;
    set("VIRTUAL_ENV", "venv");
    set("CUDA_HOME", "cuda");
    search(0);
    assert_true(place("venv/lib/python3.12/site-packages/nvidia/cu13/lib") < place("cuda/lib64"));
}

static void what_does_not_exist_is_not_visited(void **state)
{
    (void)state;
    set("VIRTUAL_ENV", "none");
    set("CUDA_HOME", "none");
    search(0);
    for (int i = 0; i < seen.count; i++)
        assert_int_equal(access(seen.folder[i], F_OK), 0);
    assert_null(strstr(seen.count ? seen.folder[0] : "", "none"));
}

static void the_first_that_serves_ends_the_search(void **state)
{
    (void)state;
    set("VIRTUAL_ENV", "venv");
    set("CONDA_PREFIX", "conda");
    search(1);
    assert_int_equal(seen.count, 1);
}

/* A program that was started inside an environment, by a link to somewhere else, as venv makes
 * them. */
static void the_program_itself_tells_its_environment(void **state)
{
    char self[PATH_MAX], link[PATH_MAX], command[2 * PATH_MAX];
    (void)state;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
    make_folder("venv/bin");
    snprintf(link, sizeof link, "%s/venv/bin/python", root);
    assert_int_equal(symlink(self, link), 0);
    snprintf(command, sizeof command, "%s print | grep -q '^%s/venv/lib/python3.12/.*/cu13/lib$'",
             link, root);
    assert_int_equal(system(command), 0);
}

/* Maps a file, as a module that is loaded. */
static void *load(const char *file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, file);
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 100), 0);
    void *at = mmap(NULL, 100, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    assert_true(at != MAP_FAILED);
    return at;
}

/* PyTorch's own cuBLAS is beside it, and is the one to use before PyTorch is loaded. */
static void packages_beside_a_loaded_module(void **state)
{
    static const char wheel[] = "else where/site-packages/nvidia/cu13/lib",
                      own[] = "home/.local/lib/python3.9/site-packages/nvidia/cublas/lib";
    (void)state;
    make_folder(wheel);
    make_folder("else where/site-packages/numpy/core");
    make_folder("lib/python3.9");
    set("VIRTUAL_ENV", "venv");
    set("CUDA_HOME", "cuda");
    set("HOME", "home");
    search(0);
    assert_int_equal(place(wheel), -1);
    assert_true(place(own) > place("cuda/lib64"));
    void *module = load("else where/site-packages/numpy/core/multiarray.so");
    search(0);
    assert_int_equal(place(wheel), 0);
    assert_true(place("venv/lib/python3.12/site-packages/nvidia/cu13/lib") > 0);
    assert_true(place(own) > place("cuda/lib64")); /* it may be no Python */
    /* Another one of the same folder tells nothing new; the first folder that serves ends the
     * search. */
    const int others = seen.count;
    void *second = load("else where/site-packages/numpy/core/umath.so");
    search(0);
    assert_int_equal(seen.count, others);
    search(1);
    assert_int_equal(seen.count, 1);
    assert_int_equal(place(wheel), 0);
    munmap(second, 100);
    void *interpreter = load("lib/python3.9/select.so");
    search(0);
    assert_int_equal(place(wheel), 0);
    assert_true(place(own) > 0 && place(own) < place("cuda/lib64"));
    munmap(module, 100);
    search(0);
    assert_int_equal(place(wheel), -1);
    munmap(interpreter, 100);
}

/* ---- A program that was started by another path, or cannot look ---- */

static const char *started_as; /* NULL: as it was */
static bool looks_in_vain;     /* at its own maps and its own file */

unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
ssize_t __real_readlink(const char *path, char *to, size_t size);
ssize_t __wrap_readlink(const char *path, char *to, size_t size);

unsigned long __wrap_getauxval(unsigned long type)
{
    return type == AT_EXECFN && started_as ? (unsigned long)started_as : __real_getauxval(type);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    return looks_in_vain ? NULL : __real_fopen(path, mode);
}

ssize_t __wrap_readlink(const char *path, char *to, size_t size)
{
    return looks_in_vain ? -1 : __real_readlink(path, to, size);
}

/* A relative path may mean another place by now, and the system's own folders are the linker's. */
static void paths_that_tell_no_environment(void **state)
{
    static const char *const paths[] = {"bin/python", "python", "/python", "/bin/python",
                                        "/usr/bin/python"};
    (void)state;
    started_as = "/nowhere/bin/python";
    search(0);
    const int others = seen.count;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        started_as = paths[i];
        search(0);
        assert_int_equal(seen.count, others);
        assert_int_equal(place("bin"), -1);
    }
    started_as = NULL;
}

/* In a sandbox without /proc the environment's variables still tell. */
static void without_proc(void **state)
{
    (void)state;
    set("CONDA_PREFIX", "conda");
    looks_in_vain = true;
    search(0);
    looks_in_vain = false;
    assert_int_equal(place("conda/lib"), 0);
}

static void variables_that_name_no_folder(void **state)
{
    static char endless[PATH_MAX + 100];
    (void)state;
    search(0);
    const int others = seen.count;
    setenv("VIRTUAL_ENV", "", 1);
    setenv("CUDA_HOME", "", 1);
    memset(endless, '/', sizeof endless - 1);
    setenv("CONDA_PREFIX", endless, 1);
    search(0);
    assert_int_equal(seen.count, others);
}

/* Of several that match, the newest comes first; the search ends there. */
static void the_newest_of_several_ends_the_search(void **state)
{
    (void)state;
    make_folder("many/lib/python3.12/site-packages/nvidia/cu12/lib");
    make_folder("many/lib/python3.12/site-packages/nvidia/cu13/lib");
    set("VIRTUAL_ENV", "many");
    search(1);
    assert_int_equal(seen.count, 1);
    assert_int_equal(place("many/lib/python3.12/site-packages/nvidia/cu13/lib"), 0);
}

static int remove_all(void **state)
{
    char command[PATH_MAX];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static bool print(const char *folder, void *context)
{
    (void)context;
    puts(folder);
    return false;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "print") == 0) {
        setup(NULL);
        find_cuda_environment(print, NULL);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(wheels_of_a_virtual_environment, setup),
        cmocka_unit_test_setup(conda, setup),
        cmocka_unit_test_setup(toolkit_and_the_users_own, setup),
        cmocka_unit_test_setup(the_environment_comes_before_the_toolkit, setup),
        cmocka_unit_test_setup(what_does_not_exist_is_not_visited, setup),
        cmocka_unit_test_setup(the_first_that_serves_ends_the_search, setup),
        cmocka_unit_test_setup(the_program_itself_tells_its_environment, setup),
        cmocka_unit_test_setup(packages_beside_a_loaded_module, setup),
        cmocka_unit_test_setup(paths_that_tell_no_environment, setup),
        cmocka_unit_test_setup(without_proc, setup),
        cmocka_unit_test_setup(variables_that_name_no_folder, setup),
        cmocka_unit_test_setup(the_newest_of_several_ends_the_search, setup),
    };
    if (!mkdtemp(root))
        return 1;
    return cmocka_run_group_tests(tests, NULL, remove_all);
}
