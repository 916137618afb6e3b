/*
 * libplant.so, preloaded before libaccel.so: what libaccel asks of the C library fails, for libaccel alone.
 *
 *   PLANT         FUNCTION:N[+]: the N-th call of malloc (calloc, realloc, strdup are counted with it), mmap or
 *                 pthread_create by libaccel fails, + all after it
 *   PLANT_REPORT  a path: at exit, how often libaccel called each, how many failed, and how many of its blocks are
 *                 left
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);

enum function { MALLOC, MMAP, PTHREAD_CREATE, FUNCTIONS };
static const char *const names[FUNCTIONS] = {"malloc", "mmap", "pthread_create"};
static _Atomic long calls[FUNCTIONS], failed[FUNCTIONS];
static long nth[FUNCTIONS];
static bool onwards[FUNCTIONS];

/* Where libaccel is; 0 until that is known. */
static uintptr_t first, last;

static bool is_libaccel(const void *caller)
{
    return (uintptr_t)caller >= first && (uintptr_t)caller < last;
}

static bool fails(enum function function)
{
    long call = atomic_fetch_add(&calls[function], 1) + 1;
    if (nth[function] == 0 ||
        !(call == nth[function] || (onwards[function] && call > nth[function])))
        return false;
    atomic_fetch_add(&failed[function], 1);
    return true;
}

/* ---- The blocks that libaccel has ---- */

enum { SLOTS = 1 << 16 };
static uintptr_t blocks[SLOTS]; /* 1: a block that was here has gone */
static atomic_flag busy = ATOMIC_FLAG_INIT;

static size_t slot_of(uintptr_t block)
{
    return (block >> 4) * 0x9e3779b97f4a7c15u >> 48;
}

static void note(void *block)
{
    if (!block)
        return;
    while (atomic_flag_test_and_set(&busy))
        continue;
    size_t at = slot_of((uintptr_t)block);
    while (blocks[at] > 1)
        at = (at + 1) % SLOTS;
    blocks[at] = (uintptr_t)block;
    atomic_flag_clear(&busy);
}

static void forget(const void *block)
{
    if (!block || last == 0)
        return;
    while (atomic_flag_test_and_set(&busy))
        continue;
    for (size_t at = slot_of((uintptr_t)block); blocks[at]; at = (at + 1) % SLOTS)
        if (blocks[at] == (uintptr_t)block) {
            blocks[at] = 1;
            break;
        }
    atomic_flag_clear(&busy);
}

/* ---- The functions ---- */

void *malloc(size_t size)
{
    bool ours = is_libaccel(__builtin_return_address(0));
    if (ours && fails(MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = __libc_malloc(size);
    if (ours)
        note(block);
    return block;
}

void *calloc(size_t count, size_t size)
{
    bool ours = is_libaccel(__builtin_return_address(0));
    if (ours && fails(MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = __libc_calloc(count, size);
    if (ours)
        note(block);
    return block;
}

void *realloc(void *old, size_t size)
{
    bool ours = is_libaccel(__builtin_return_address(0));
    if (ours && fails(MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    forget(old);
    void *block = __libc_realloc(old, size);
    if (ours)
        note(block);
    return block;
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    bool ours = is_libaccel(__builtin_return_address(0));
    if (ours && fails(MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    char *copy = __libc_malloc(size);
    if (copy)
        memcpy(copy, text, size);
    if (ours)
        note(copy);
    return copy;
}

void free(void *block)
{
    forget(block);
    __libc_free(block);
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    if (is_libaccel(__builtin_return_address(0)) && fails(MMAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    long where = syscall(SYS_mmap, address, length, protection, flags, file, offset);
    return where == -1 ? MAP_FAILED : (void *)(uintptr_t)where;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (is_libaccel(__builtin_return_address(0)) && fails(PTHREAD_CREATE))
        return EAGAIN;
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&real, &found, sizeof real);
    }
    return real(thread, attributes, run, argument);
}

/* ---- Start and end ---- */

static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "/libaccel.so"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
            first = info->dlpi_addr + part->p_vaddr;
            last = first + part->p_memsz;
        }
    }
    return 1;
}

static void read_plant(const char *text)
{
    const char *colon = strchr(text, ':');
    char *end = NULL;
    for (int i = 0; colon && i < FUNCTIONS; i++)
        if (strlen(names[i]) == (size_t)(colon - text) &&
            strncmp(names[i], text, (size_t)(colon - text)) == 0) {
            nth[i] = strtol(colon + 1, &end, 10);
            onwards[i] = *end == '+';
        }
    if (!end || (*end != 0 && strcmp(end, "+") != 0)) {
        fprintf(stderr, "libplant: cannot read PLANT=%s\n", text);
        abort();
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *plant = getenv("PLANT");
    if (plant && *plant)
        read_plant(plant);
    dl_iterate_phdr(look, NULL);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("PLANT_REPORT");
    long left = 0;
    for (size_t i = 0; i < SLOTS; i++)
        left += blocks[i] > 1;
    int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (file < 0)
        return;
    for (int i = 0; i < FUNCTIONS; i++)
        dprintf(file, "%s calls=%ld failed=%ld\n", names[i], calls[i], failed[i]);
    dprintf(file, "blocks left=%ld\n", left);
    close(file);
}
