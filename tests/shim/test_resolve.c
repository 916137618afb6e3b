/* Originals of callers that no program of the tests has, and of libraries that are odd: code in no
 * object, another namespace, both widths at once, few names, memory that has run out. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/elf/provider.h"
#include "shim/elf/real_linker.h"
#include "shim/elf/resolve.h"
#include "tests/lib/beside.h"
#include "tests/lib/fork_waits.h"
#include "tests/lib/sanitized.h"

static bool memory_is_short;
static void (*interrupts)(
    void); /* runs once, within the next allocation, as a signal handler may */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    void (*handler)(void) = interrupts;
    interrupts = NULL;
    if (handler)
        handler();
    return memory_is_short ? NULL : __real_malloc(size);
}

/* What the user has named. */
static const char *named_libraries;
const char *__wrap_dispatch_original_libraries(void);
const char *__wrap_dispatch_original_libraries(void)
{
    return named_libraries;
}

/* How often libraries have been loaded, and how often a fork would have waited for that. */
static int opened, awaited;
void *__real_dlopen(const char *path, int mode);
void *__wrap_dlopen(const char *path, int mode);
void *__wrap_dlopen(const char *path, int mode)
{
    if (!(mode & RTLD_NOLOAD)) {
        opened++;
        awaited += fork_waits();
    }
    return __real_dlopen(path, mode);
}

/* The object that is taken for libaccel; NULL: the program. */
static const struct link_map *own_object;
const struct link_map *__real_accel_own_object(void);
const struct link_map *__wrap_accel_own_object(void);
const struct link_map *__wrap_accel_own_object(void)
{
    return own_object ? own_object : __real_accel_own_object();
}

/* The program is the object that the layers are part of, as libaccel is: this is not a provider. */
void dgemm_(void);
void dgemm_(void)
{
    fail_msg("dgemm_ of the test was called");
}

/* Memory that is in no object, as code is that a program has made while it runs. */
enum { NOWHERE_BYTES = 1 << 16 };
static char *nowhere;

static uint32_t entry_of(const char *symbol)
{
    const int entry = accel_name_find(symbol);
    assert_true(entry >= 0);
    return (uint32_t)entry;
}

static void *open_elsewhere(const char *name)
{
    char path[PATH_MAX];
    path_beside(name, path);
    void *library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    return library;
}

static void *open_installed(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    return library;
}

static void *function_of(void *library, const char *symbol)
{
    void *function = dlsym(library, symbol);
    assert_non_null(function);
    return function;
}

/* ---- Providers ---- */

static void test_an_address_in_no_object_has_no_provider(void **state)
{
    const struct accel_provider provider = accel_resolve_provider(nowhere);
    const uint32_t entry = entry_of("dgemm_");
    (void)state;
    assert_string_equal(provider.path(&provider), "");
    assert_null(provider.symbol(&provider, "dgemm_"));
    assert_false(provider.refers(&provider, "malloc"));
    assert_int_equal(accel_provider_width(entry, nowhere), 0);
    assert_false(accel_provider_may_be(entry, nowhere));
    assert_null(accel_provider_behind(entry, nowhere));
    assert_null(accel_resolve_unasked(entry, nowhere));
}

static void test_a_provider_has_its_own_symbols_alone(void **state)
{
    void *library = open_beside("libhashed_gnu.so");
    void *function = function_of(library, "hashed_a0");
    const struct accel_provider provider = accel_resolve_provider(function);
    (void)state;
    assert_string_equal(strrchr(provider.path(&provider), '/'), "/libhashed_gnu.so");
    assert_ptr_equal(provider.symbol(&provider, "hashed_b1"), function_of(library, "hashed_b1"));
    /* It is found by the library, and is the C library's. */
    assert_non_null(dlsym(library, "rand"));
    assert_null(provider.symbol(&provider, "rand"));
    assert_null(provider.symbol(&provider, "no such name"));
    assert_true(provider.refers(&provider, "rand"));
    assert_false(provider.refers(&provider, "getaddrinfo"));
    /* Another name's look-up has left no message. */
    assert_null(dlerror());
    dlclose(library);
    /* The first of several objects that refer to a name. */
    const struct accel_provider program = accel_resolve_provider((void *)(uintptr_t)open_beside);
    assert_true(program.refers(&program, "malloc"));
    assert_false(program.refers(&program, "no such name"));
}

static void check_name(const char *path, const char *wanted, const char *wanted_real)
{
    char name[ACCEL_PROVIDER_NAME_BYTES], real[PATH_MAX];
    errno = EDOM;
    accel_provider_name(name, real, path);
    assert_int_equal(errno, EDOM);
    assert_string_equal(name, wanted);
    assert_string_equal(real, wanted_real);
}

static void test_names_of_providers(void **state)
{
    char self[PATH_MAX], wanted[ACCEL_PROVIDER_NAME_BYTES];
    struct stat st;
    (void)state;
    assert_non_null(realpath("/proc/self/exe", self));
    assert_int_equal(stat(self, &st), 0);
    snprintf(wanted, sizeof wanted, "%s %lld", strrchr(self, '/') + 1, (long long)st.st_size);
    check_name("", wanted, self);
    check_name(self, wanted, self);
    check_name("/no/such/libblas.so.3", "libblas.so.3 0", "/no/such/libblas.so.3");
    check_name("linux-vdso.so.1", "linux-vdso.so.1 0", "linux-vdso.so.1");
}

static const struct accel_routine *routine_of(const char *symbol)
{
    return accel_name_routine(entry_of(symbol));
}

static void test_a_name_unlike_the_others_of_its_library_is_passed_over(void **state)
{
    void *plain = open_beside("libnames_plain.so"), *doubles = open_beside("libnames_doubles.so");
    int width = 0;
    (void)state;
    assert_ptr_equal(accel_provider_find(plain, true, routine_of("dgemm_"), &width),
                     function_of(plain, "dgemm_64_"));
    assert_int_equal(width, 64);
    assert_ptr_equal(accel_provider_find(doubles, true, routine_of("dgemm_"), &width),
                     function_of(doubles, "dgemm_"));
    assert_int_equal(width, 32);
    dlclose(doubles);
    dlclose(plain);
}

static void test_libaccels_own_function_is_not_a_provider(void **state)
{
    void *program = dlopen(NULL, RTLD_NOW);
    int width = 0;
    (void)state;
    assert_ptr_equal(function_of(program, "dgemm_"), (void *)(uintptr_t)dgemm_);
    assert_null(accel_provider_find(program, false, routine_of("dgemm_"), &width));
    dlclose(program);
}

static void test_a_library_with_few_names_is_not_blas(void **state)
{
    void *library = open_beside("libnames_few.so");
    void *function = function_of(library, "cblas_dgemm");
    const uint32_t entry = entry_of("cblas_dgemm");
    (void)state;
    assert_false(accel_provider_may_be(entry, function));
    assert_int_equal(accel_provider_width(entry, function), 0);
    assert_null(accel_resolve_unasked(entry, function));
    dlclose(library);
}

/* The name that a library must have beside one that others use, too. */
static void test_a_common_name_needs_its_sibling(void **state)
{
    void *library = open_beside("libnames_plain.so"), *few = open_beside("libnames_few.so");
    (void)state;
    assert_true(accel_provider_may_be(entry_of("DGEMM"), function_of(library, "dgemm_")));
    assert_false(accel_provider_may_be(entry_of("DGEMM"), function_of(few, "cblas_dgemm")));
    assert_int_equal(accel_provider_width(entry_of("DGEMM"), function_of(few, "cblas_dgemm")), 0);
    dlclose(few);
    dlclose(library);
}

/* One whose code does not tell takes what the program's BLAS has; not in another namespace, whose
 * libraries do not call that. */
static void test_what_a_library_of_another_namespace_would_call(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    void *ours = open_beside("libnames_untold.so"), *other = open_elsewhere("libnames_untold.so");
    (void)state;
    assert_int_equal(accel_provider_width(entry, function_of(ours, "dgemm_")), 0);
    void *global = dlopen("libblas.so.3", RTLD_NOW | RTLD_GLOBAL);
    assert_non_null(global);
    assert_int_equal(accel_provider_width(entry, function_of(ours, "dgemm_")), 32);
    assert_int_equal(accel_provider_width(entry, function_of(other, "dgemm_")), 0);
    assert_null(accel_provider_behind(entry, function_of(other, "dgemm_")));
    dlclose(global);
    dlclose(other);
    dlclose(ours);
}

/* A copy of a library whose program headers lie at the end of the file, which is not in memory. */
static void *open_with_headers_at_the_end(const char *name)
{
    static char contents[1 << 18];
    char path[PATH_MAX], copy[64];
    ElfW(Ehdr) header;
    path_beside(name, path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(contents, 1, sizeof contents / 2, file);
    assert_true(feof(file));
    fclose(file);
    memcpy(&header, contents, sizeof header);
    const size_t bytes = (size_t)header.e_phnum * header.e_phentsize, from = header.e_phoff;
    header.e_phoff = (size + 63) / 64 * 64;
    memcpy(contents + header.e_phoff, contents + from, bytes);
    memset(contents + from, 0, bytes);
    memcpy(contents, &header, sizeof header);
    size = header.e_phoff + bytes;
    snprintf(copy, sizeof copy, "headers_at_the_end_%d.so", (int)getpid());
    path_beside(copy, path);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(contents, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    void *library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
    remove(path);
    if (!library)
        fail_msg("%s", dlerror());
    return library;
}

/* The dynamic linker tells where the code of another namespace's library is to code there alone,
 * and the file's header leads nowhere. */
static void test_code_that_cannot_be_found(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    void *readable = open_elsewhere("libnames_doubles.so"),
         *other = open_with_headers_at_the_end("libnames_doubles.so");
    (void)state;
    assert_int_equal(accel_provider_width(entry, function_of(readable, "dgemm_")), 32);
    for (int i = 0; i < 2; i++)
        assert_int_equal(accel_provider_width(entry, function_of(other, "dgemm_")), 0);
    dlclose(other);
    dlclose(readable);
}

/* ---- Originals ---- */

static void test_a_caller_that_is_in_no_scope_of_ours(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    void *elsewhere = open_elsewhere("libhashed_gnu.so");
    const uintptr_t callers[] = {(uintptr_t)nowhere + 1, (uintptr_t)open_beside + 1,
                                 (uintptr_t)function_of(elsewhere, "hashed_a0") + 1};
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_null(accel_resolve(entry, callers[i]));
    void *library = open_installed("libblas.so.3");
    for (int i = 0; i < 3; i++) {
        const struct accel_original *original = accel_resolve(entry, callers[i]);
        assert_non_null(original);
        assert_ptr_equal(original->function, function_of(library, "dgemm_"));
        assert_int_equal(original->width, 32);
        assert_true(original->ours);
        assert_false(original->global);
        assert_null(original->wide);
    }
    assert_null(dlerror());
    dlclose(library);
    dlclose(elsewhere);
}

/* What a caller is linked to goes before a library that is loaded, and nothing else has. */
static void test_a_caller_with_a_scope_of_its_own(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    void *other = open_beside("libnames_doubles.so"), *lapack = open_installed("liblapack.so.3");
    void *own = function_of(lapack, "dgemm_"), *others = function_of(other, "dgemm_");
    const uintptr_t caller = (uintptr_t)function_of(lapack, "dsytrd_") + 1;
    (void)state;
    assert_ptr_not_equal(own, others);
    assert_ptr_equal(accel_resolve_scopes(entry, caller), own);
    assert_null(accel_resolve_scopes(entry, (uintptr_t)nowhere + 1));
    assert_null(accel_resolve_scopes(entry, 0));
    const struct accel_original *original = accel_resolve(entry, caller);
    assert_non_null(original);
    assert_ptr_equal(original->function, own);
    assert_false(original->global);
    assert_int_equal(original->width, 32);
    /* Code in no scope has the first one that was loaded. */
    original = accel_resolve(entry, (uintptr_t)nowhere + 1);
    assert_non_null(original);
    assert_ptr_equal(original->function, others);
    dlclose(lapack);
    dlclose(other);
}

/* The global scope goes before both, and all callers have the same. */
static void test_a_library_of_the_global_scope(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    void *lapack = open_installed("liblapack.so.3"), *beside = open_beside("libnames_doubles.so");
    void *function = function_of(beside, "dgemm_");
    const uintptr_t callers[] = {(uintptr_t)nowhere + 1, (uintptr_t)open_beside + 1,
                                 (uintptr_t)function_of(lapack, "dsytrd_") + 1};
    char path[PATH_MAX];
    path_beside("libnames_doubles.so", path);
    void *global = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    (void)state;
    assert_non_null(global);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(accel_resolve_scopes(entry, callers[i]), function);
        const struct accel_original *original = accel_resolve(entry, callers[i]);
        assert_non_null(original);
        assert_ptr_equal(original->function, function);
        assert_true(original->global);
        assert_null(original->wide);
    }
    assert_ptr_equal(accel_resolve_scopes(entry, 0), function);
    dlclose(global);
    dlclose(beside);
    dlclose(lapack);
}

static void test_two_widths_where_nothing_tells_the_callers(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    const uintptr_t caller = (uintptr_t)nowhere + 1;
    (void)state;
    for (int first = 0; first < 2; first++) {
        void *library[2] = {NULL};
        static const char *const names[] = {"libblas.so.3", "libblas64.so.3"};
        library[first] = open_installed(names[first]);
        library[!first] = open_installed(names[!first]);
        const struct accel_original *original = accel_resolve(entry, caller);
        assert_non_null(original);
        assert_ptr_equal(original->function, function_of(library[0], "dgemm_"));
        assert_int_equal(original->width, 32);
        assert_non_null(original->wide);
        assert_ptr_equal(original->wide->function, function_of(library[1], "dgemm_"));
        assert_int_equal(original->wide->width, 64);
        assert_null(original->wide->wide);
        assert_ptr_equal(accel_resolve(entry, caller), original);
        dlclose(library[0]);
        dlclose(library[1]);
    }
}

/* A library that chooses another one's function (IFUNC) is not one more provider. */
static void test_one_function_under_two_libraries(void **state)
{
    static const char *const names[] = {"libblas.so.3", "libblas64.so.3", "libnames_untold.so"};
    static const int widths[] = {32, 64, 0};
    const uint32_t entry = entry_of("dgemm_");
    (void)state;
    for (int i = 0; i < 3; i++) {
        void *library = i < 2 ? open_installed(names[i]) : open_beside(names[i]);
        void *function = function_of(library, "dgemm_");
        void *chosen = open_beside("libnames_chosen.so");
        *(void **)function_of(chosen, "names_chosen") = function;
        assert_ptr_equal(function_of(chosen, "dgemm_"), function);
        const struct accel_original *original = accel_resolve(entry, (uintptr_t)nowhere + 1);
        assert_non_null(original);
        assert_ptr_equal(original->function, function);
        assert_int_equal(original->width, widths[i]);
        assert_null(original->wide);
        dlclose(chosen);
        dlclose(library);
    }
}

static void test_a_pointer_is_unasked_until_its_first_call(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    void *library = open_beside("libnames_untold.so");
    void *function = function_of(library, "dgemm_");
    (void)state;
    const struct accel_original *unasked = accel_resolve_unasked(entry, function);
    assert_non_null(unasked);
    assert_true(unasked->unasked);
    assert_ptr_equal(unasked->function, function);
    const struct accel_original *known = accel_resolve_known(entry, function);
    assert_non_null(known);
    assert_false(known->unasked);
    assert_false(known->ours);
    assert_int_equal(known->width, 0);
    assert_ptr_equal(accel_resolve_unasked(entry, function), unasked);
    assert_ptr_equal(accel_resolve_known(entry, function), known);
    dlclose(library);
}

static void test_a_pointer_to_what_has_not_the_name(void **state)
{
    void *library = open_beside("libhashed_gnu.so");
    (void)state;
    assert_null(accel_resolve_unasked(entry_of("dgemm_"), function_of(library, "hashed_a0")));
    dlclose(library);
}

/* ---- Libraries that the user has named ---- */

static bool is_loaded(const char *path)
{
    void *library = __real_dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library != NULL;
}

/* Those that cannot be opened or have no such function are passed over, and only the one that is
 * used stays. Forks wait while a library is opened, and not later. */
static void test_libraries_that_the_user_has_named(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    const uintptr_t caller = (uintptr_t)nowhere + 1;
    char other[PATH_MAX], named[2 * PATH_MAX];
    (void)state;
    path_beside("libhashed_gnu.so", other);
    snprintf(named, sizeof named, ":/no/such/library.so:%s::libblas.so.3:libblas64.so.3", other);
    assert_false(is_loaded("libblas.so.3") || is_loaded(other));
    named_libraries = named;
    opened = awaited = 0;
    const struct accel_original *original = accel_resolve(entry, caller);
    named_libraries = NULL;
    assert_int_equal(opened, 3);
    assert_int_equal(awaited, 3);
    assert_false(fork_waits());
    assert_false(is_loaded(other) || is_loaded("libblas64.so.3"));
    void *library = open_installed("libblas.so.3");
    assert_non_null(original);
    assert_ptr_equal(original->function, function_of(library, "dgemm_"));
    assert_int_equal(original->width, 32);
    dlclose(library);
    assert_true(is_loaded("libblas.so.3"));
    dlclose(library); /* as the resolver opened it */
    assert_false(is_loaded("libblas.so.3"));
}

/* They are asked where nothing tells the callers of two widths apart, and not where there is one
 * library. */
static void test_named_libraries_beside_loaded_ones(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    const uintptr_t caller = (uintptr_t)nowhere + 1;
    void *one = open_beside("libnames_doubles.so");
    (void)state;
    named_libraries = "libblas64.so.3";
    opened = 0;
    const struct accel_original *original = accel_resolve(entry, caller);
    assert_int_equal(opened, 0);
    assert_non_null(original);
    assert_ptr_equal(original->function, function_of(one, "dgemm_"));
    dlclose(one);
    void *narrow = open_installed("libblas.so.3"), *wide = open_installed("libblas64.so.3");
    original = accel_resolve(entry, caller);
    named_libraries = NULL;
    assert_non_null(original);
    assert_ptr_equal(original->function, function_of(wide, "dgemm_"));
    assert_null(original->wide);
    dlclose(wide);
    dlclose(wide);
    dlclose(narrow);
}

/* ---- Objects before libaccel ---- */

static const struct link_map *map_of(void *library)
{
    struct link_map *map = NULL;
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    return map;
}

/* The first address behind an object. */
static uintptr_t end_of(const struct link_map *object)
{
    uintptr_t at = (uintptr_t)object->l_ld;
    while (accel_object_of((const void *)at) == object)
        at += 4096;
    while (accel_object_of((const void *)(at - 1)) != object)
        at--;
    return at;
}

/* A call may be an object's last instruction: it returns to an address in no object. */
static void test_who_comes_before_libaccel(void **state)
{
    void *first = open_beside("libnames_doubles.so"), *second = open_beside("libhashed_gnu.so");
    const uintptr_t end = end_of(map_of(first)), begin = map_of(first)->l_addr,
                    in_second = (uintptr_t)function_of(second, "hashed_a0") + 1;
    (void)state;
    assert_null(accel_object_of((const void *)end));
    assert_false(accel_resolve_is_before_us(end)); /* libaccel is the program, which is the first */
    own_object = map_of(second);
    assert_true(accel_resolve_is_before_us(end));
    assert_true(accel_resolve_is_before_us(begin + 1));
    assert_true(accel_resolve_is_before_us((uintptr_t)open_beside + 1));
    assert_false(accel_resolve_is_before_us(in_second));
    assert_false(accel_resolve_is_before_us((uintptr_t)nowhere + 1));
    own_object = map_of(first);
    assert_false(accel_resolve_is_before_us(end));
    assert_false(accel_resolve_is_before_us(in_second));
    assert_true(accel_resolve_is_before_us((uintptr_t)open_beside + 1));
    own_object = NULL;
    dlclose(second);
    dlclose(first);
}

/* Of the objects between a caller and libaccel, the first that defines the name itself. */
static void test_what_comes_between_a_caller_and_libaccel(void **state)
{
    void *first = open_beside("libnames_doubles.so"), *second = open_beside("libnames_untold.so"),
         *last = open_beside("libhashed_gnu.so");
    const uintptr_t caller = (uintptr_t)open_beside + 1;
    (void)state;
    own_object = map_of(last);
    assert_ptr_equal(accel_resolve_between("dgemm_", caller), function_of(first, "dgemm_"));
    assert_ptr_equal(accel_resolve_between("dgemm_", end_of(map_of(first))),
                     function_of(second, "dgemm_"));
    assert_null(accel_resolve_between("dgemm_", end_of(map_of(second))));
    assert_null(accel_resolve_between("no such name", caller));
    own_object = map_of(first);
    assert_null(accel_resolve_between("dgemm_", caller));
    own_object = NULL;
    dlclose(last);
    dlclose(second);
    dlclose(first);
}

static const struct accel_original *within[2];

static void resolve_within(void)
{
    const uint32_t entry = entry_of("dgemm_");
    within[0] = accel_resolve_known(entry, nowhere + 1);
    memory_is_short = true;
    within[1] = accel_resolve_known(entry, nowhere + 1);
    memory_is_short = false;
}

/* A signal handler that calls BLAS while its thread stores an original: it gets one as well, or
 * NULL where memory is short, and does not wait for its own thread. */
static void test_an_interrupted_call(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    (void)state;
    interrupts = resolve_within;
    const struct accel_original *original = accel_resolve_known(entry, nowhere);
    assert_null(interrupts);
    assert_non_null(original);
    assert_ptr_equal(original->function, nowhere);
    assert_ptr_equal(accel_resolve_known(entry, nowhere), original);
    assert_non_null(within[0]);
    assert_ptr_equal(within[0]->function, nowhere + 1);
    assert_null(within[1]);
}

/* A call still needs its original: some hundred are kept for that. Must be the last test. */
static void test_memory_that_has_run_out(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    const struct accel_original *first = NULL, *original = NULL;
    char *const functions = nowhere + 2; /* others than in the test before */
    int count = 0;
    (void)state;
    memory_is_short = true;
    for (; count < NOWHERE_BYTES - 2; count++) {
        original = accel_resolve_known(entry, functions + count);
        first = first ? first : original;
        if (!original || original->function != functions + count || original->ours)
            break;
    }
    const struct accel_original *again = accel_resolve_known(entry, functions);
    memory_is_short = false;
    assert_null(original);
    assert_in_range(count, 100, NOWHERE_BYTES - 3);
    assert_non_null(first);
    assert_ptr_equal(again, first);
    assert_ptr_equal(again->function, functions);
    original = accel_resolve_known(entry, functions + count);
    assert_non_null(original);
    assert_ptr_equal(original->function, functions + count);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_address_in_no_object_has_no_provider),
        cmocka_unit_test(test_a_provider_has_its_own_symbols_alone),
        cmocka_unit_test(test_names_of_providers),
        cmocka_unit_test(test_a_name_unlike_the_others_of_its_library_is_passed_over),
        cmocka_unit_test(test_libaccels_own_function_is_not_a_provider),
        cmocka_unit_test(test_a_library_with_few_names_is_not_blas),
        cmocka_unit_test(test_a_common_name_needs_its_sibling),
        cmocka_unit_test(test_what_a_library_of_another_namespace_would_call),
        cmocka_unit_test(test_code_that_cannot_be_found),
        cmocka_unit_test(test_a_caller_that_is_in_no_scope_of_ours),
        cmocka_unit_test(test_a_caller_with_a_scope_of_its_own),
        cmocka_unit_test(test_a_library_of_the_global_scope),
        cmocka_unit_test(test_two_widths_where_nothing_tells_the_callers),
        cmocka_unit_test(test_one_function_under_two_libraries),
        cmocka_unit_test(test_a_pointer_is_unasked_until_its_first_call),
        cmocka_unit_test(test_a_pointer_to_what_has_not_the_name),
        cmocka_unit_test(test_libraries_that_the_user_has_named),
        cmocka_unit_test(test_named_libraries_beside_loaded_ones),
        cmocka_unit_test(test_who_comes_before_libaccel),
        cmocka_unit_test(test_what_comes_between_a_caller_and_libaccel),
        cmocka_unit_test(test_an_interrupted_call),
        cmocka_unit_test(test_memory_that_has_run_out),
    };
    SKIP_ALL_SANITIZED(tests, "where libraries are, and what they call");
    nowhere = mmap(NULL, NOWHERE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nowhere == MAP_FAILED)
        return 1;
    accel_real_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
