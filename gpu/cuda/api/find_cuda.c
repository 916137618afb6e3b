#define _GNU_SOURCE
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/file/file.h"
#include "find_cuda.h"

/* How NVIDIA names the machine: in the CUDA Toolkit (Arm servers are "sbsa", the Server Base System
 * Architecture), and in the HPC SDK. */
#ifdef __aarch64__
#    define TARGET  "sbsa-linux"
#    define MACHINE "aarch64"
#else
#    define TARGET  "x86_64-linux"
#    define MACHINE "x86_64"
#endif

struct folder_search {
    bool (*visit)(const char *, void *);
    void *context;
    bool done;
};

/* Visits the folders that match root + pattern, in reverse order of names: cuda-13 before
 * cuda-12. */
static void try_pattern(struct folder_search *search, const char *root, const char *pattern)
{
    char path[PATH_MAX];
    glob_t found;
    if (search->done || !root || !*root ||
        snprintf(path, sizeof path, "%s%s", root, pattern) >= (int)sizeof path)
        return;
    if (glob(path, GLOB_ONLYDIR, NULL, &found) != 0)
        return;
    for (size_t i = found.gl_pathc; i-- > 0 && !search->done;)
        search->done = search->visit(found.gl_pathv[i], search->context);
    globfree(&found);
}

/* Tries the wheels in a folder of packages. Those of CUDA 13 share one folder (nvidia/cu13), those
 * of CUDA 12 have one each. */
static void try_wheels(struct folder_search *search, const char *root, const char *packages)
{
    static const char *const wheels[] = {"/nvidia/cu[0-9]*/lib", "/nvidia/cublas/lib"};
    char pattern[100];
    for (size_t i = 0; i < sizeof wheels / sizeof *wheels; i++) {
        snprintf(pattern, sizeof pattern, "%s%s", packages, wheels[i]);
        try_pattern(search, root, pattern);
    }
}

/* Tries a Python or conda environment. */
static void try_environment(struct folder_search *search, const char *root)
{
    try_wheels(search, root, "/lib/python3*/site-packages");
    try_wheels(search, root, "/lib/python3*/dist-packages");
    try_pattern(search, root, "/targets/" TARGET "/lib");
    try_pattern(search, root, "/lib");
}

/* Tries the environment whose root is the folder above a program's bin/. */
static void try_program(struct folder_search *search, const char *program)
{
    char path[PATH_MAX];
    if (!program || program[0] != '/' || strlen(program) >= sizeof path)
        return; /* a relative path may mean another place by now */
    strcpy(path, program);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = 0;
    }
    if (path[0] && strcmp(path, "/usr") != 0) /* the linker knows /usr/lib */
        try_environment(search, path);
}

/* Tries packages of Python that are in none of its environments: the user's own, the system's. */
static void try_outer_packages(struct folder_search *search)
{
    try_wheels(search, getenv("HOME"), "/.local/lib/python3*/site-packages");
    try_wheels(search, "/usr/local", "/lib/python3*/dist-packages");
}

/* Cuts a file's path behind its folder of packages. False: it is in none. */
static bool cut_behind_packages(char *path)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *at = strstr(path, folders[i]);
        if (!at)
            continue;
        at[strlen(folders[i]) - 1] = 0;
        return true;
    }
    return false;
}

/* Tries the packages beside modules that the program has loaded: it may load PyTorch from there
 * later on, which needs its own cuBLAS, and would get another one that has the same name.
 * Returns whether the program has anything of Python's. */
static bool try_loaded_packages(struct folder_search *search)
{
    char line[PATH_MAX + 200], last[PATH_MAX] = "";
    bool python = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !search->done && fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/');
        python = python || (path && strstr(path, "/python3"));
        if (!path || !cut_behind_packages(path) || strcmp(path, last) == 0 ||
            strlen(path) >= sizeof last)
            continue;
        strcpy(last, path);
        try_wheels(search, path, "");
    }
    if (maps)
        fclose(maps);
    return python;
}

void find_cuda_environment(bool (*visit)(const char *folder, void *context), void *context)
{
    struct folder_search search = {visit, context, false};
    char self[PATH_MAX];
    const bool python = try_loaded_packages(&search);
    /* The interpreter of a virtual environment is a link: the path by which it was started is
     * inside, the file is outside. */
    try_program(&search, (const char *)getauxval(AT_EXECFN));
    try_environment(&search, getenv("VIRTUAL_ENV"));
    try_environment(&search, getenv("CONDA_PREFIX"));
    if (file_program(self))
        try_program(&search, self);
    if (python)
        try_outer_packages(&search);
}

/* Tries the folders of WSL and of containers without ldconfig. */
static void try_driver(struct folder_search *search)
{
    try_pattern(search, "/usr/lib", "/wsl/lib");
    try_pattern(search, "/usr/local/nvidia", "/lib64");
}

void find_cuda_driver(bool (*visit)(const char *folder, void *context), void *context)
{
    struct folder_search search = {visit, context, false};
    try_driver(&search);
}

void find_cuda_system(bool (*visit)(const char *folder, void *context), void *context)
{
    struct folder_search search = {visit, context, false};
    try_pattern(&search, getenv("CUDA_HOME"), "/lib64");
    try_pattern(&search, getenv("CUDA_PATH"), "/lib64");
    try_pattern(&search, "/usr/local", "/cuda/lib64");
    try_pattern(&search, "/usr/local", "/cuda-*/lib64");
    try_pattern(&search, "/opt", "/cuda*/lib64");
    try_pattern(&search, "/opt/nvidia/hpc_sdk/Linux_" MACHINE, "/*/math_libs/lib64");
    try_driver(&search);
    try_outer_packages(&search);
}
