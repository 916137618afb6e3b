#define _GNU_SOURCE
#include "cuda_api.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/linker.h"
#include "find_cuda.h"
#include "gpu/device/exit_guard.h"
#include "gpu/device/gpu.h"

struct cuda_api cuda_api;

static char reason[256];
static bool tried, opened;
static const char *first_folder; /* constant once CUDA is open */
static int cublas_major;         /* of the cuBLAS in use */

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* ---- The table ---- */

/* Rows in the order of struct cuda_api, which has a pointer for each. They hold no pointers, which
 * the dynamic linker would have to write when a program starts. */
static const struct {
    char name[56];
    enum cuda_library { OF_DRIVER, OF_CUBLAS, OF_CUSOLVER } library;
    enum { OPTIONAL, REQUIRED } need;
} wanted[] = {
#define STRING_(x)                    #x
#define STRING(x)                     STRING_(x)
#define DRIVER(function, need, ...)   {STRING(function), OF_DRIVER, need},
#define CUBLAS(function, need, ...)   {STRING(function), OF_CUBLAS, need},
#define CUSOLVER(function, need, ...) {STRING(function), OF_CUSOLVER, need},
#include "cuda_functions.def"
#undef DRIVER
#undef CUBLAS
#undef CUSOLVER
};

_Static_assert(LENGTH(wanted) * sizeof(void *) == sizeof cuda_api, "one pointer for each row");

const char gpu_interface[] = "12 and 13";

/* Looks up the functions of one library; returns the name of a required one that is missing, or
 * NULL. */
static const char *look_up(void *library, enum cuda_library which, void *function[])
{
    for (size_t i = 0; i < LENGTH(wanted); i++) {
        if (wanted[i].library != which)
            continue;
        function[i] = dlsym(library, wanted[i].name);
        if (!function[i] && wanted[i].need == REQUIRED)
            return wanted[i].name;
    }
    return NULL;
}

static void set_functions(enum cuda_library which, void *const function[])
{
    for (size_t i = 0; i < LENGTH(wanted); i++)
        if (wanted[i].library == which)
            memcpy((char *)&cuda_api + i * sizeof(void *), &function[i], sizeof function[i]);
}

/* Does both, when no other thread does the same. */
static const char *look_up_and_fill(void *library, enum cuda_library which)
{
    void *function[LENGTH(wanted)];
    const char *missing = look_up(library, which, function);
    if (!missing)
        set_functions(which, function);
    return missing;
}

/* ---- Finding a library ---- */

static void *open_library(const char *path, int flags)
{
    linker_enter();
    void *library = dlopen(path, flags);
    linker_leave();
    if (library && !(flags & RTLD_NOLOAD))
        linker_await_forks();
    return library;
}

static void close_library(void *library)
{
    linker_enter();
    exit_guard_before_close();
    dlclose(library);
    exit_guard_after_close();
    linker_leave();
}

static void *open_in(const char *folder, const char *name, int major)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s.so.%d", folder, name, major);
    if (exit_guard_has_begun() || length >= (int)sizeof path)
        return NULL;
    return open_library(path, RTLD_NOW | RTLD_LOCAL);
}

struct library_search {
    /* Without .so; companion: opened first in the same folder, or NULL */
    const char *name, *companion;
    int major[2], majors; /* versions that would do, the best first */
    void *library;        /* that was found, or NULL */
    int found;            /* its version */
};

static bool try_folder(const char *folder, void *context)
{
    struct library_search *search = context;
    for (int i = 0; !search->library && i < search->majors; i++) {
        int major = search->major[i];
        void *companion = search->companion ? open_in(folder, search->companion, major) : NULL;
        search->library = open_in(folder, search->name, major);
        search->found = major;
        if (!search->library && companion)
            close_library(companion);
    }
    return search->library != NULL;
}

static void try_linker(struct library_search *search, int flags)
{
    char soname[32];
    for (int i = 0; !search->library && i < search->majors; i++) {
        snprintf(soname, sizeof soname, "%s.so.%d", search->name, search->major[i]);
        search->library = open_library(soname, flags);
        search->found = search->major[i];
    }
}

/* Looks for a library that the program has not loaded. Tries the program's own environment before
 * the system's copy: the program may open its own later, and would get ours by its name. */
static void try_folders(struct library_search *search, const char *first_dir)
{
    if (!search->library && first_dir)
        try_folder(first_dir, search);
    if (!search->library)
        find_cuda_environment(try_folder, search);
    if (!search->library)
        try_linker(search, RTLD_NOW | RTLD_LOCAL);
    if (!search->library)
        find_cuda_system(try_folder, search);
}

/* ---- What is in use ---- */

static struct gpu_library_file in_use[GPU_LIBRARIES];
static atomic_bool is_open[GPU_LIBRARIES];

const struct gpu_library_file *gpu_library(enum gpu_library which)
{
    return atomic_load_explicit(&is_open[which], memory_order_acquire) ? &in_use[which] : NULL;
}

/* The file that has a function of the table, given by the address of its pointer; NULL: not
 * known. */
static const char *file_of_function(const void *pointer)
{
    Dl_info object;
    void *function;
    memcpy(&function, pointer, sizeof function);
    return function && dladdr(function, &object) ? object.dli_fname : NULL;
}

/* Call it once for each library. */
static void note_open(enum gpu_library which, const void *pointer, int version)
{
    struct gpu_library_file *file = &in_use[which];
    const char *path = file_of_function(pointer);
    if (!path || !realpath(path, file->path))
        file->path[0] = 0;
    file->version = version;
    atomic_store_explicit(&is_open[which], true, memory_order_release);
}

/* As cuBLAS and cuSOLVER write it: 130100 is 13.1.0. */
static int version_of(const int part[3])
{
    return part[0] * 10000 + part[1] * 100 + part[2];
}

/* ---- The driver and cuBLAS ---- */

#define DRIVER_SONAME "libcuda.so.1"

void *cuda_api_loaded_driver(void)
{
    void *library = open_library(DRIVER_SONAME, RTLD_NOLOAD | RTLD_LAZY);
    if (!library)
        dlerror(); /* a driver that is not there is no error, least of all the program's */
    return library;
}

static void *open_driver(const char *first_dir)
{
    struct library_search search = {.name = "libcuda", .major = {1}, .majors = 1};
    search.library = cuda_api_loaded_driver();
    if (!search.library && first_dir)
        try_folder(first_dir, &search);
    if (!search.library)
        try_linker(&search, RTLD_NOW | RTLD_LOCAL);
    if (!search.library)
        find_cuda_driver(try_folder, &search);
    return search.library;
}

int cuda_attribute(CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    return CUDA(cuDeviceGetAttribute)(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

/* CUDA 13 has no code for devices before compute capability 7.5 (CUDA 13.0 release notes). */
static bool has_code_for_device(int cuda_major)
{
    CUdevice device;
    if (cuda_major < 13 || CUDA(cuDeviceGet)(&device, 0) != CUDA_SUCCESS)
        return true;
    int major = cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    int minor = cuda_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return major == 0 || major * 10 + minor >= 75;
}

/* Returns the library, or NULL. A cuBLAS of one major version needs a driver of that major version
 * (CUDA's compatibility rule). libcublas finds libcublasLt beside itself only if the folder is on a
 * search path; loaded before, libcublasLt is found by its name. */
static void *open_cublas(const char *first_dir, int driver_version)
{
    static const int majors[] = {13, 12}; /* the newest comes first */
    struct library_search search = {.name = "libcublas", .companion = "libcublasLt"};
    for (size_t i = 0; i < LENGTH(majors); i++)
        if (driver_version >= majors[i] * 1000 && has_code_for_device(majors[i]))
            search.major[search.majors++] = majors[i];
    try_linker(&search, RTLD_NOLOAD | RTLD_NOW);
    try_folders(&search, first_dir);
    cublas_major = search.found;
    return search.library;
}

static bool open_all(const char *first_dir)
{
    void *driver = open_driver(first_dir);
    if (!driver) {
        snprintf(reason, sizeof reason, DRIVER_SONAME " (the NVIDIA driver) was not found");
        return false;
    }
    const char *missing = look_up_and_fill(driver, OF_DRIVER);
    if (missing) {
        snprintf(reason, sizeof reason, DRIVER_SONAME " has no %s: the driver is too old", missing);
        return false;
    }
    int version = 0;
    CUresult result = CUDA(cuInit)(0);
    if (result != CUDA_SUCCESS) {
        const char *name = NULL;
        CUDA(cuGetErrorName)(result, &name);
        snprintf(reason, sizeof reason, "cuInit: %s", name ? name : "unknown error");
        return false;
    }
    if (exit_guard_has_begun()) {
        snprintf(reason, sizeof reason, "the program has ended");
        return false;
    }
    CUDA(cuDriverGetVersion)(&version);
    void *cublas = open_cublas(first_dir, version);
    if (!cublas) {
        char cuda[24] = "unknown version";
        if (version > 0)
            snprintf(cuda, sizeof cuda, "CUDA %d.%d", version / 1000, version % 1000 / 10);
        snprintf(reason, sizeof reason,
                 "libcublas.so.13 or .12, fit for the device and a driver of %s, was not found",
                 cuda);
        return false;
    }
    missing = look_up_and_fill(cublas, OF_CUBLAS);
    if (missing) {
        snprintf(reason, sizeof reason, "libcublas has no %s", missing);
        return false;
    }
    int part[3];
    cuda_api_cublas_version(part);
    note_open(GPU_DRIVER, &CUDA(cuInit), version);
    note_open(GPU_BLAS, &CUDA(cublasCreate_v2), version_of(part));
    return true;
}

void cuda_api_cublas_version(int version[3])
{
    for (int i = 0; i < 3; i++) {
        version[i] = 0;
        if (CUDA(cublasGetProperty))
            CUDA(cublasGetProperty)((libraryPropertyType)i, &version[i]);
    }
}

void cuda_api_describe_cublas(char *text, size_t size)
{
    int version[3], driver = 0;
    const char *path = file_of_function(&CUDA(cublasCreate_v2));
    cuda_api_cublas_version(version);
    CUDA(cuDriverGetVersion)(&driver);
    snprintf(text, size, "cuBLAS %d.%d.%d, %s, with a driver for CUDA %d.%d", version[0],
             version[1], version[2], path ? path : "libcublas", driver / 1000, driver % 1000 / 10);
}

/* ---- cuSOLVER ---- */

/* Beside cuBLAS, or, in the wheels of CUDA 12, in a folder of its own beside cuBLAS's. */
static void try_beside_cublas(struct library_search *search)
{
    char folder[PATH_MAX];
    const char *path = file_of_function(&CUDA(cublasCreate_v2));
    if (!path || !strchr(path, '/') || strlen(path) + sizeof "/../../cusolver/lib" > sizeof folder)
        return;
    strcpy(folder, path);
    char *end = strrchr(folder, '/');
    *end = 0;
    if (!try_folder(folder, search)) {
        strcpy(end, "/../../cusolver/lib");
        try_folder(folder, search);
    }
}

/* Its version is one less than CUDA's. */
static void *open_cusolver(void)
{
    struct library_search search = {
        .name = "libcusolver", .major = {cublas_major - 1}, .majors = 1};
    try_linker(&search, RTLD_NOLOAD | RTLD_NOW);
    if (!search.library)
        try_beside_cublas(&search);
    try_folders(&search, first_folder);
    return search.library;
}

void cuda_api_cusolver_version(int version[3])
{
    for (int i = 0; i < 3; i++) {
        version[i] = 0;
        if (CUDA(cusolverGetProperty))
            CUDA(cusolverGetProperty)((libraryPropertyType)i, &version[i]);
    }
}

static void note_cusolver(void)
{
    int part[3];
    cuda_api_cusolver_version(part);
    note_open(GPU_SOLVER, &CUDA(cusolverDnCreate), version_of(part));
}

/* Holds no lock while the dynamic linker works: the linker has its own, which this thread may hold
 * already, in a constructor, while another thread that opens cuSOLVER waits for it. So each thread
 * that finds cuSOLVER unopened opens it. All get the same library, the later ones once the first
 * has loaded it, and one of them fills the table. */
bool cuda_api_open_cusolver(void)
{
    enum { UNTRIED, MISSING, THERE };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static atomic_int state = UNTRIED;
    void *function[LENGTH(wanted)];
    if (atomic_load(&state) != UNTRIED)
        return atomic_load(&state) == THERE;
    void *library = open_cusolver();
    bool there = library && !look_up(library, OF_CUSOLVER, function);
    dlerror();
    pthread_mutex_lock(&lock);
    const bool first = atomic_load(&state) == UNTRIED;
    if (first) {
        if (there)
            set_functions(OF_CUSOLVER, function);
        atomic_store(&state, there ? THERE : MISSING);
    }
    pthread_mutex_unlock(&lock);
    if (first && there)
        note_cusolver();
    return atomic_load(&state) == THERE;
}

const char *cuda_api_open(const char *first_dir)
{
    if (!tried) {
        tried = true;
        first_folder = first_dir;
        opened = open_all(first_dir);
        dlerror();
    }
    return opened ? NULL : reason;
}
