#define _GNU_SOURCE
#include "cuda_api.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gpu/ending.h"
#include "find_cuda.h"
#include "base/linker.h"

struct cuda_api cuda_api;

static char reason[256];
static bool tried, opened;

#define DRIVER_SONAME "libcuda.so.1"

/* By preference: what this build was made for first. cuSOLVER has a number of its own. */
static const int majors[] = {13, 12};
static int cusolver_major(int cuda_major)
{
    return cuda_major - 1;
}

enum need { OPTIONAL, REQUIRED };

/* Without pointers, which the dynamic linker would have to write at every program's start. */
struct wanted {
    char name[42];
    uint16_t place; /* of the function pointer in cuda_api, in bytes */
    enum need need;
};

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

#define DRIVER(function, need) {STRING(function), offsetof(struct cuda_api, function##_p), need},
#define CUBLAS(function, need)
#define CUSOLVER(function, need)
static const struct wanted driver_functions[] = {
#include "cuda_functions.def"
};
#undef DRIVER
#undef CUBLAS

#define DRIVER(function, need)
#define CUBLAS(function, need) {STRING(function), offsetof(struct cuda_api, function##_p), need},
static const struct wanted cublas_functions[] = {
#include "cuda_functions.def"
};
#undef CUBLAS
#undef CUSOLVER

#define CUBLAS(function, need)
#define CUSOLVER(function, need) {STRING(function), offsetof(struct cuda_api, function##_p), need},
static const struct wanted cusolver_functions[] = {
#include "cuda_functions.def"
};
#undef DRIVER
#undef CUBLAS
#undef CUSOLVER

#define LENGTH(array) (sizeof(array) / sizeof *(array))

enum { FUNCTIONS_MAX = sizeof cuda_api / sizeof(void *) };

/* Looks the functions up; returns the name of a required one that is missing, or NULL. */
static const char *look_up(void *library, const struct wanted *wanted, size_t count,
                           void *function[])
{
    for (size_t i = 0; i < count; i++) {
        function[i] = dlsym(library, wanted[i].name);
        if (!function[i] && wanted[i].need == REQUIRED)
            return wanted[i].name;
    }
    return NULL;
}

static void fill(const struct wanted *wanted, size_t count, void *const function[])
{
    for (size_t i = 0; i < count; i++)
        memcpy((char *)&cuda_api + wanted[i].place, &function[i], sizeof function[i]);
}

/* Both, where no other thread does the same. */
static const char *look_up_and_fill(void *library, const struct wanted *wanted, size_t count)
{
    void *function[FUNCTIONS_MAX];
    const char *missing = look_up(library, wanted, count, function);
    if (!missing)
        fill(wanted, count, function);
    return missing;
}

static void *open_library(const char *name, int flags)
{
    linker_enter();
    void *library = dlopen(name, flags);
    linker_leave();
    if (library && !(flags & RTLD_NOLOAD))
        linker_await_forks();
    return library;
}

static void close_library(void *library)
{
    linker_enter();
    ending_before_close();
    dlclose(library);
    ending_after_close();
    linker_leave();
}

void *cuda_api_loaded_driver(void)
{
    void *library = open_library(DRIVER_SONAME, RTLD_NOLOAD | RTLD_LAZY);
    if (!library)
        dlerror(); /* that it is not there is no error, least of all the program's */
    return library;
}

static void *open_in(const char *dir, const char *soname)
{
    char path[PATH_MAX];
    if (ending_has_begun() || snprintf(path, sizeof path, "%s/%s", dir, soname) >= (int)sizeof path)
        return NULL;
    return open_library(path, RTLD_NOW | RTLD_LOCAL);
}

static bool try_driver_folder(const char *folder, void *library)
{
    *(void **)library = open_in(folder, DRIVER_SONAME);
    return *(void **)library != NULL;
}

static void *open_driver(const char *first_dir)
{
    void *library = cuda_api_loaded_driver();
    if (!library && first_dir)
        library = open_in(first_dir, DRIVER_SONAME);
    if (!library)
        library = open_library(DRIVER_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        find_cuda_driver(try_driver_folder, &library);
    return library;
}

struct cublas_search {
    int driver_version; /* major * 1000 + minor * 10 */
    int newest;         /* major version that still has code for this device */
    void *library;
    int major; /* of the library */
};

static bool fits(const struct cublas_search *search, int major)
{
    return search->driver_version >= major * 1000 && major <= search->newest;
}

/* cuBLAS of a major version needs a driver of that major version (CUDA's compatibility rule). */
static bool try_folder(const char *folder, void *context)
{
    struct cublas_search *search = context;
    char name[32];
    for (size_t i = 0; !search->library && i < LENGTH(majors); i++) {
        if (!fits(search, majors[i]))
            continue;
        /* libcublas finds libcublasLt beside itself only where the folder is on a search path;
         * loaded before, it is found by its name. */
        snprintf(name, sizeof name, "libcublasLt.so.%d", majors[i]);
        void *lt = open_in(folder, name);
        snprintf(name, sizeof name, "libcublas.so.%d", majors[i]);
        search->library = open_in(folder, name);
        search->major = majors[i];
        if (!search->library && lt)
            close_library(lt);
    }
    return search->library != NULL;
}

static void try_linker(struct cublas_search *search, int flags)
{
    char name[32];
    for (size_t i = 0; !search->library && i < LENGTH(majors); i++) {
        if (!fits(search, majors[i]))
            continue;
        snprintf(name, sizeof name, "libcublas.so.%d", majors[i]);
        search->library = open_library(name, flags);
        search->major = majors[i];
    }
}

/* The program's own environment comes before the system's copy: the program may open its own later, and would be
 * given ours by its name. */
static struct cublas_search open_cublas(const char *first_dir, int driver_version, int newest)
{
    struct cublas_search search = {driver_version, newest, NULL, 0};
    try_linker(&search, RTLD_NOLOAD | RTLD_NOW);
    if (!search.library && first_dir)
        try_folder(first_dir, &search);
    if (!search.library)
        find_cuda_environment(try_folder, &search);
    if (!search.library)
        try_linker(&search, RTLD_NOW | RTLD_LOCAL);
    if (!search.library)
        find_cuda_system(try_folder, &search);
    return search;
}

/* CUDA 13 has no code for devices before compute capability 7.5 (CUDA 13.0 release notes). */
static int newest_for_device(void)
{
    CUdevice device;
    int major = 0, minor = 0;
    if (CUDA(cuDeviceGet)(&device, 0) != CUDA_SUCCESS ||
        CUDA(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) !=
            CUDA_SUCCESS ||
        CUDA(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) !=
            CUDA_SUCCESS)
        return majors[0];
    return major * 10 + minor < 75 ? 12 : majors[0];
}

static struct cublas_search cublas;
static const char *first_folder; /* constant once CUDA is open */

static bool open_all(const char *first_dir)
{
    void *driver = open_driver(first_dir);
    if (!driver) {
        snprintf(reason, sizeof reason, DRIVER_SONAME " (the NVIDIA driver) was not found");
        return false;
    }
    const char *missing = look_up_and_fill(driver, driver_functions, LENGTH(driver_functions));
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
    if (ending_has_begun()) {
        snprintf(reason, sizeof reason, "the program has ended");
        return false;
    }
    CUDA(cuDriverGetVersion)(&version);
    cublas = open_cublas(first_dir, version, newest_for_device());
    if (!cublas.library) {
        snprintf(
            reason, sizeof reason,
            "libcublas.so.13 or .12, fit for the device and a driver of CUDA %d.%d, was not found",
            version / 1000, version % 1000 / 10);
        return false;
    }
    missing = look_up_and_fill(cublas.library, cublas_functions, LENGTH(cublas_functions));
    if (missing) {
        snprintf(reason, sizeof reason, "libcublas has no %s", missing);
        return false;
    }
    return true;
}

void cuda_api_describe_cublas(char *text, size_t size)
{
    Dl_info object;
    void *function;
    int version[3] = {0}, driver = 0;
    memcpy(&function, &CUDA(cublasCreate_v2), sizeof function);
    const char *path = dladdr(function, &object) ? object.dli_fname : "libcublas";
    for (int i = 0; CUDA(cublasGetProperty) && i < 3; i++)
        CUDA(cublasGetProperty)((libraryPropertyType)i, &version[i]);
    CUDA(cuDriverGetVersion)(&driver);
    snprintf(text, size, "cuBLAS %d.%d.%d, %s, with a driver for CUDA %d.%d", version[0],
             version[1], version[2], path, driver / 1000, driver % 1000 / 10);
}

/* ---- cuSOLVER ---- */

struct cusolver_search {
    char name[32];
    void *library;
};

static bool try_cusolver_folder(const char *folder, void *context)
{
    struct cusolver_search *search = context;
    search->library = open_in(folder, search->name);
    return search->library != NULL;
}

/* Beside cuBLAS, or, in the wheels of CUDA 12, in a folder of its own beside cuBLAS's. */
static void try_beside_cublas(struct cusolver_search *search)
{
    char folder[PATH_MAX];
    Dl_info info;
    void *function;
    memcpy(&function, &CUDA(cublasCreate_v2), sizeof function);
    if (!dladdr(function, &info) || !strchr(info.dli_fname, '/') ||
        strlen(info.dli_fname) + sizeof "/../../cusolver/lib" > sizeof folder)
        return;
    strcpy(folder, info.dli_fname);
    char *end = strrchr(folder, '/');
    *end = 0;
    if (!try_cusolver_folder(folder, search)) {
        strcpy(end, "/../../cusolver/lib");
        try_cusolver_folder(folder, search);
    }
}

static void *open_cusolver(void)
{
    struct cusolver_search search = {.library = NULL};
    snprintf(search.name, sizeof search.name, "libcusolver.so.%d", cusolver_major(cublas.major));
    search.library = open_library(search.name, RTLD_NOLOAD | RTLD_NOW);
    if (!search.library)
        try_beside_cublas(&search);
    if (!search.library && first_folder)
        try_cusolver_folder(first_folder, &search);
    if (!search.library)
        find_cuda_environment(try_cusolver_folder, &search);
    if (!search.library)
        search.library = open_library(search.name, RTLD_NOW | RTLD_LOCAL);
    if (!search.library)
        find_cuda_system(try_cusolver_folder, &search);
    return search.library;
}

/* No lock is held while the dynamic linker works: it has its own, which this thread may hold already, in a constructor, while
 * another thread that opens cuSOLVER waits for it. So each thread that finds it unopened opens it; they get the same library, the
 * later ones once the first has loaded it, and one of them fills the slots. */
bool cuda_api_open_cusolver(void)
{
    enum { UNTRIED, MISSING, THERE };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static atomic_int state = UNTRIED;
    void *function[LENGTH(cusolver_functions)];
    if (atomic_load(&state) != UNTRIED)
        return atomic_load(&state) == THERE;
    void *library = open_cusolver();
    bool there =
        library && !look_up(library, cusolver_functions, LENGTH(cusolver_functions), function);
    dlerror();
    pthread_mutex_lock(&lock);
    if (atomic_load(&state) == UNTRIED) {
        if (there)
            fill(cusolver_functions, LENGTH(cusolver_functions), function);
        atomic_store(&state, there ? THERE : MISSING);
    }
    pthread_mutex_unlock(&lock);
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
