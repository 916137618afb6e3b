#define _GNU_SOURCE
#include "bindings.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread/linker.h"
#include "dispatch/dispatch.h"
#include "objects.h"
#include "ops/names.h"
#include "real_linker.h"
#include "resolve.h"
#include "shim/arch/entry.h"
#include "shim/arch/relocation.h"
#include "slots.h"
#include "symbols.h"

/* ---- The loaded objects ---- */

/* Weak: libaccel is linked to the C library alone. */
extern struct r_debug _r_debug __attribute__((weak));

/* Returns the first object, the program, by the list that it keeps for debuggers, or that of the
 * dynamic linker: lld with -z rodynamic leaves out the program's entry. dl_iterate_phdr() is not
 * called here: a sanitizer's own stands in front of it, which is not ready when libaccel is
 * relocated. */
static const struct link_map *program_start(void)
{
    const ElfW(Phdr) *part = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    const size_t count = part ? getauxval(AT_PHNUM) : 0;
    const ElfW(Dyn) *dynamic = NULL;
    ElfW(Addr) base = 0;
    for (size_t i = 0; i < count; i++) {
        if (part[i].p_type == PT_PHDR)
            base = (ElfW(Addr))part - part[i].p_vaddr;
        if (part[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(base + part[i].p_vaddr);
    }
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_DEBUG && dynamic->d_un.d_ptr)
            return ((const struct r_debug *)dynamic->d_un.d_ptr)->r_map;
    return &_r_debug ? _r_debug.r_map : NULL;
}

/* ---- An object's relocations ---- */

struct image {
    ElfW(Addr) base;
    const ElfW(Dyn) * dynamic;
    const ElfW(Rela) * first, *end;       /* of data, behind those that name no symbol */
    const ElfW(Rela) * calls, *calls_end; /* of calls */
    const ElfW(Sym) * table;
    const char *names;
    const uint32_t *gnu_hash;      /* NULL: none */
    const ElfW(Versym) * versions; /* NULL: none */
};

/* A program's start does this for each of its libraries: so the section is read once. */
static inline void read_image(struct image *image, ElfW(Addr) base, const ElfW(Dyn) * dynamic)
{
    ElfW(Addr) value[DT_JMPREL + 1] = {0}, count = 0, hash = 0, versions = 0;
    image->base = base;
    image->dynamic = dynamic;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if ((ElfW(Xword))dynamic->d_tag <= DT_JMPREL)
            value[dynamic->d_tag] = dynamic->d_un.d_ptr;
        else if (dynamic->d_tag == DT_RELACOUNT)
            count = dynamic->d_un.d_val;
        else if (dynamic->d_tag == DT_GNU_HASH)
            hash = dynamic->d_un.d_ptr;
        else if (dynamic->d_tag == DT_VERSYM)
            versions = dynamic->d_un.d_ptr;
    }
    if (!accel_dynamic_is_relocated(base, value[DT_STRTAB])) {
        value[DT_SYMTAB] += base;
        value[DT_STRTAB] += base;
        value[DT_JMPREL] += value[DT_JMPREL] ? base : 0;
        value[DT_RELA] += value[DT_RELA] ? base : 0;
        hash += hash ? base : 0;
        versions += versions ? base : 0;
    }
    image->table = (const void *)value[DT_SYMTAB];
    image->names = (const void *)value[DT_STRTAB];
    image->gnu_hash = (const void *)hash;
    image->versions = (const void *)versions;
    image->calls = (const void *)value[DT_JMPREL];
    image->calls_end = image->calls + value[DT_PLTRELSZ] / sizeof *image->calls;
    image->first = image->end = NULL;
    if (value[DT_RELA]) {
        image->first = (const ElfW(Rela) *)value[DT_RELA] + count;
        image->end = image->first - count + value[DT_RELASZ] / sizeof *image->first;
    }
}

static inline enum accel_relocation kind_of(const ElfW(Rela) * at)
{
    return accel_relocation_of((uint32_t)ELF64_R_TYPE(at->r_info));
}

static inline bool leads_to_us(uintptr_t address)
{
    return address - (uintptr_t)accel_blocks < (uintptr_t)(accel_bound_blocks - accel_blocks);
}

static const ElfW(Sym) * symbol_of(const struct image *image, const ElfW(Rela) * at)
{
    return &image->table[ELF64_R_SYM(at->r_info)];
}

/* Returns the entry of the symbol's name, -1 if it is none of ours, or has a version. (The C
 * library's have one. The table of our names is elsewhere in the file: a start does not touch
 * it.) */
static int entry_of(const struct image *image, const ElfW(Sym) * symbol)
{
    const char *name = image->names + symbol->st_name;
    if (name[0] == '_' ||
        (image->versions && (image->versions[symbol - image->table] & 0x7fff) > VER_NDX_GLOBAL))
        return -1;
    return accel_name_find(name);
}

/* Whether a place may have a wrong value. The static linker gives a reference the type of what
 * it has found. */
static inline bool is_suspect(const struct image *image, const ElfW(Rela) * at)
{
    if (accel_relocation_is_address((uint32_t)ELF64_R_TYPE(at->r_info))) {
        const uintptr_t *place = (const uintptr_t *)(image->base + at->r_offset);
        if (!leads_to_us(*place - (uintptr_t)at->r_addend))
            return false;
    } else if (!accel_relocation_is_tls(kind_of(at))) {
        return false;
    }
    const ElfW(Sym) *symbol = symbol_of(image, at);
    const bool weak = symbol->st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) == STB_WEAK;
    return ELF64_R_SYM(at->r_info) != STN_UNDEF &&
           (weak || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) && entry_of(image, symbol) >= 0;
}

/* ---- A place, and what it should have ---- */

enum meaning { MEANS_NOTHING, MEANS_FUNCTION, MEANS_VARIABLE, MEANS_THREAD_VARIABLE };

struct definition {
    enum meaning meaning;
    uintptr_t value; /* an address; of a thread's variable, the offset in the object's block */
    const ElfW(Dyn) * dynamic; /* its object's */
};

static bool define(struct definition *found, ElfW(Addr) base, const ElfW(Dyn) * dynamic,
                   const char *name)
{
    const struct accel_symbols s = accel_symbols_of(base, dynamic);
    const uint32_t place = accel_symbols_find(&s, name);
    if (place == STN_UNDEF)
        return false;
    const ElfW(Sym) *symbol = &s.table[place];
    *found = (struct definition){MEANS_FUNCTION, base + symbol->st_value, dynamic};
    if (ELF64_ST_TYPE(symbol->st_info) == STT_TLS) {
        found->meaning = MEANS_THREAD_VARIABLE;
        found->value = symbol->st_value;
    } else if (accel_object_is_variable(base, symbol)) {
        found->meaning = MEANS_VARIABLE;
        if (symbol->st_shndx == SHN_ABS)
            found->value = symbol->st_value;
    }
    return true;
}

/* All of it is copied: the object may go meanwhile. */
struct relocated_slot {
    const ElfW(Dyn) * dynamic; /* the object's */
    uintptr_t *at, was, addend;
    enum accel_relocation kind;
    bool weak, lazy;
    uint32_t entry;
    struct definition own; /* the object's own definition of the name */
    /* What is to be there: */
    uintptr_t value;
};

static bool fill_in(struct relocated_slot *place, const struct image *image, const ElfW(Rela) * at)
{
    const ElfW(Sym) *symbol = symbol_of(image, at);
    const int entry = entry_of(image, symbol);
    if (entry < 0)
        return false;
    *place = (struct relocated_slot){
        .dynamic = image->dynamic,
        .at = (uintptr_t *)(image->base + at->r_offset),
        .addend = (uintptr_t)at->r_addend,
        .kind = kind_of(at),
        .weak = symbol->st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) == STB_WEAK,
        .entry = (uint32_t)entry,
    };
    place->was = *place->at;
    define(&place->own, image->base, image->dynamic, accel_names[entry].symbol);
    return true;
}

/* Of the objects of the program's start, which are searched in the order of loading. */
static struct definition defined_at_start(const struct link_map *object, const char *name)
{
    struct definition found = {MEANS_NOTHING, 0, NULL};
    for (; object; object = object->l_next)
        if (object->l_ld != _DYNAMIC && define(&found, object->l_addr, object->l_ld, name))
            break;
    return found;
}

/* For an object that came later. A thread's variable has no address that a look-up could tell:
 * it is the object's own. */
static struct definition defined_later(const struct relocated_slot *place)
{
    struct definition found = {MEANS_NOTHING, 0, NULL};
    if (place->own.meaning == MEANS_THREAD_VARIABLE)
        return place->own;
    void *address = accel_resolve_scopes(place->entry, (uintptr_t)place->dynamic);
    const struct link_map *object = address ? accel_object_of(address) : NULL;
    if (!address)
        return found;
    if (!object)
        found.meaning = MEANS_VARIABLE; /* a number */
    else if (!define(&found, object->l_addr, object->l_ld, accel_names[place->entry].symbol))
        found.meaning = MEANS_FUNCTION; /* another object's, which an indirect one has chosen */
    found.value = (uintptr_t)address;
    return found;
}

/* ---- Putting it there ---- */

static bool is_object(const struct dl_phdr_info *info, const ElfW(Dyn) * dynamic)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return info->dlpi_addr + info->dlpi_phdr[i].p_vaddr == (uintptr_t)dynamic;
    return false;
}

/* The dynamic linker has closed the pages that it alone writes to (RELRO). */
static void write_to(const struct dl_phdr_info *info, uintptr_t *place, uintptr_t value)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)place;
    bool writable = false, closed = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type == PT_LOAD && part->p_flags & PF_W && at >= begin && at < end)
            writable = true;
        if (part->p_type == PT_GNU_RELRO && at >= begin / page * page && at < end / page * page)
            closed = true;
    }
    void *const first = (void *)(at / page * page);
    const size_t bytes = at % page + sizeof *place;
    if (!writable || (closed && mprotect(first, bytes, PROT_READ | PROT_WRITE) != 0))
        return;
    __atomic_store_n(place, value, __ATOMIC_RELEASE);
    if (closed)
        mprotect(first, bytes, PROT_READ);
}

/* The object may have gone, and another one may be there. */
static int write_place(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct relocated_slot *place = data;
    (void)size;
    if (!is_object(info, place->dynamic))
        return 0;
    if (*place->at == place->was)
        write_to(info, place->at, place->value);
    return 1;
}

static void write_once(struct relocated_slot *place)
{
    linker_enter_iteration();
    dl_iterate_phdr(write_place, place);
    linker_leave_iteration();
}

struct tls_block {
    const ElfW(Dyn) * dynamic;
    size_t module;     /* the object's number, 0: it has no variables of threads */
    const char *begin; /* this thread's; NULL: not there yet */
};

static int find_block(struct dl_phdr_info *info, size_t size, void *data)
{
    struct tls_block *block = data;
    (void)size;
    if (!is_object(info, block->dynamic))
        return 0;
    block->module = info->dlpi_tls_modid;
    block->begin = info->dlpi_tls_data;
    return 1;
}

/* Whether a thread's variable had no place yet when libaccel was relocated. */
static bool threads_wait;

/* A module's number and the offset within it always serve; the offset from the thread pointer,
 * for objects of the start alone: it is the same in all threads. When libaccel is relocated, the
 * first thread's blocks are not there yet. */
static bool find_thread_value(struct relocated_slot *place, const struct definition *meant,
                              bool at_start)
{
    struct tls_block block = {meant->dynamic, 0, NULL};
    linker_enter_iteration();
    dl_iterate_phdr(find_block, &block);
    linker_leave_iteration();
    const uintptr_t offset = meant->value + place->addend;
    if (!block.module)
        return false;
    if (place->kind == ACCEL_RELOCATION_TLS_MODULE) {
        place->value = block.module;
        return true;
    }
    place->value = offset;
    if (place->kind == ACCEL_RELOCATION_TLS_OFFSET)
        return true;
    place->value = (uintptr_t)block.begin + offset - accel_thread_pointer();
    if (place->kind == ACCEL_RELOCATION_TLS_PAIR)
        place->was = *++place->at;
    threads_wait |= at_start && !block.begin;
    return at_start && block.begin;
}

/* Takes a name out of libaccel's own symbol table: from now on the dynamic linker does not bind
 * it to libaccel. */
static void take_back(const char *name)
{
    const struct link_map *own = program_start();
    while (own && own->l_ld != _DYNAMIC)
        own = own->l_next;
    if (!own)
        return;
    const struct accel_symbols s = accel_symbols_of(own->l_addr, own->l_ld);
    const uint32_t place = accel_symbols_find(&s, name);
    if (place == STN_UNDEF)
        return;
    ElfW(Sym) *symbol = (ElfW(Sym) *)(uintptr_t)&s.table[place];
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)symbol;
    void *const first = (void *)(at / page * page);
    const size_t bytes = at % page + sizeof *symbol;
    if (mprotect(first, bytes, PROT_READ | PROT_WRITE) != 0)
        return;
    symbol->st_shndx = SHN_UNDEF;
    symbol->st_value = 0;
    mprotect(first, bytes, PROT_READ);
}

static void put_right(struct relocated_slot *place, struct definition meant, bool at_start)
{
    const bool is_address = place->kind == ACCEL_RELOCATION_ADDRESS;
    switch (meant.meaning) {
    case MEANS_FUNCTION:
        return;
    case MEANS_NOTHING:
        if (!place->weak || !is_address)
            return;
        place->value = place->addend;
        break;
    case MEANS_VARIABLE:
        if (!is_address)
            return;
        take_back(accel_names[place->entry].symbol);
        place->value = meant.value + place->addend;
        break;
    case MEANS_THREAD_VARIABLE:
        if (is_address)
            return;
        take_back(accel_names[place->entry].symbol);
        if (!find_thread_value(place, &meant, at_start))
            return;
        break;
    }
    write_once(place);
}

/* ---- Functions whose names are words ---- */

/* The name, and one that the same library must define. */
static const struct word {
    const char *name, *with;
} words[] = {
#define WORD(name, with, ...) {#name, #with},
#define FUNCTION(...)
#include "functions.def"
#undef FUNCTION
#undef WORD
};

/* Whether an object that has been looked at defines one. */
static atomic_bool words_are_there;

static bool may_define(const uint32_t *table, const char *name)
{
    const uint32_t hash = accel_name_hash(name), words_of_filter = table[2], shift = table[3];
    const ElfW(Addr) *filter = (const ElfW(Addr) *)(const void *)(table + 4);
    const unsigned bits = 8 * sizeof *filter;
    const ElfW(Addr) at = filter[hash / bits & (words_of_filter - 1)];
    return at >> hash % bits & at >> (hash >> shift) % bits & 1;
}

static bool defines_word(const struct image *image, const struct word *word)
{
    return accel_object_defines(image->base, image->dynamic, word->name) &&
           accel_object_defines(image->base, image->dynamic, word->with);
}

static inline void look_for_words(const struct image *image)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if ((!image->gnu_hash || may_define(image->gnu_hash, words[i].name)) &&
            defines_word(image, &words[i]))
            atomic_store_explicit(&words_are_there, true, memory_order_release);
}

/* ---- The program's start ---- */

static void look_at_copies(const struct image *image)
{
    for (const ElfW(Rela) *at = image->first; at < image->end; at++)
        if (kind_of(at) == ACCEL_RELOCATION_COPY && entry_of(image, symbol_of(image, at)) >= 0)
            take_back(image->names + symbol_of(image, at)->st_name);
}

static void look_at_suspect(const struct image *image, const ElfW(Rela) * at,
                            const struct link_map *start)
{
    struct relocated_slot place;
    if (fill_in(&place, image, at))
        put_right(&place, defined_at_start(start, accel_names[place.entry].symbol), true);
}

/* Of a library of C++ there are thousands, at each start. Static linkers put those that name one
 * symbol side by side: no constructor has run yet, so they are all alike. */
static const ElfW(Rela) * next_suspect(const struct image *image, const ElfW(Rela) * at)
{
    const ElfW(Rela) *const end = image->end;
    const uintptr_t base = image->base, begin = (uintptr_t)accel_blocks,
                    bytes = (uintptr_t)(accel_bound_blocks - accel_blocks);
    for (ElfW(Xword) good = 0; at < end; at++) {
        if (at->r_info == good)
            continue;
        if (accel_relocation_is_address((uint32_t)ELF64_R_TYPE(at->r_info))) {
            const uintptr_t value = *(const uintptr_t *)(base + at->r_offset);
            if (value - (uintptr_t)at->r_addend - begin < bytes && is_suspect(image, at))
                break;
        } else if (is_suspect(image, at)) {
            break;
        }
        good = at->r_info;
    }
    return at;
}

/* Behind the calls there may be descriptors of threads' variables: GNU ld puts them there. */
static void look_at_places(const struct image *image, const struct link_map *start)
{
    for (const ElfW(Rela) *at = image->first; (at = next_suspect(image, at)) < image->end; at++)
        look_at_suspect(image, at, start);
    const ElfW(Rela) *at = image->calls_end;
    while (at > image->calls && !accel_relocation_is_call((uint32_t)ELF64_R_TYPE((--at)->r_info)))
        if (is_suspect(image, at))
            look_at_suspect(image, at, start);
}

/* How many objects there were. A constructor that ran before ours may have opened more. */
static unsigned relocated;

void accel_bindings_relocate(void)
{
    const struct link_map *const program = program_start();
    struct image image;
    if (!program)
        return;
    read_image(&image, program->l_addr, program->l_ld);
    look_at_copies(&image);
    look_for_words(&image);
    relocated = 1;
    for (const struct link_map *at = program->l_next; at; at = at->l_next) {
        relocated++;
        read_image(&image, at->l_addr, at->l_ld);
        if (at->l_ld == _DYNAMIC)
            continue;
        look_at_places(&image, program);
        look_for_words(&image);
    }
}

/* ---- Places of objects, some at a time ---- */

enum { SOME = 32 };

/* Of the objects from number `first` on; the next look goes on at relocation `done` of that
 * object. */
struct look {
    bool (*takes)(struct relocated_slot *, const struct image *, const ElfW(Rela) *,
                  const struct dl_phdr_info *);
    unsigned first, seen;
    size_t done;
    int count;
    struct relocated_slot place[SOME];
};

static bool look_at_table(struct look *look, const struct image *image,
                          const struct dl_phdr_info *info, const ElfW(Rela) * first,
                          const ElfW(Rela) * end, size_t before)
{
    for (const ElfW(Rela) *at = first; at < end; at++) {
        const size_t number = before + (size_t)(at - first);
        if (number < look->done)
            continue;
        if (look->count == SOME) {
            look->done = number;
            return true;
        }
        if (look->takes(&look->place[look->count], image, at, info))
            look->count++;
    }
    return false;
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct look *look = data;
    const ElfW(Dyn) *dynamic = NULL;
    struct image image;
    (void)size;
    if (look->seen++ < look->first)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    look->first = look->seen - 1;
    if (dynamic && dynamic != _DYNAMIC) {
        read_image(&image, info->dlpi_addr, dynamic);
        look_for_words(&image);
        const size_t before = (size_t)(image.end - image.first);
        if (look_at_table(look, &image, info, image.first, image.end, 0) ||
            look_at_table(look, &image, info, image.calls, image.calls_end, before))
            return 1;
    }
    look->done = 0;
    look->first = look->seen;
    return 0;
}

/* Returns false if there are no more. */
static bool look_on(struct look *look)
{
    look->seen = 0;
    look->count = 0;
    linker_enter_iteration();
    dl_iterate_phdr(look_at_object, look);
    linker_leave_iteration();
    return look->count > 0;
}

static bool takes_suspect(struct relocated_slot *place, const struct image *image,
                          const ElfW(Rela) * at, const struct dl_phdr_info *info)
{
    (void)info;
    return is_suspect(image, at) && fill_in(place, image, at);
}

static bool lies_in(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && address - info->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

/* A place with the function's address: for calls, too. One of those that leads back into its own
 * object has not been bound yet; any other place may have been set to a function there. */
static bool takes_word(struct relocated_slot *place, const struct image *image,
                       const ElfW(Rela) * at, const struct dl_phdr_info *info)
{
    const char *name = image->names + symbol_of(image, at)->st_name;
    bool is_word = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is_word = is_word || (name[0] == words[i].name[0] && strcmp(name, words[i].name) == 0);
    if (!is_word || accel_relocation_is_tls(kind_of(at)) || !fill_in(place, image, at))
        return false;
    place->lazy = accel_relocation_is_call((uint32_t)ELF64_R_TYPE(at->r_info)) &&
                  lies_in(info, place->was) && place->was != place->own.value;
    return true;
}

/* Returns the function of a library that has the word and the name with it, NULL if the place is
 * bound to another one. */
static void *function_of(const struct relocated_slot *place)
{
    const char *name = accel_names[place->entry].symbol;
    void *function = (void *)(place->was - place->addend);
    if (place->lazy) {
        function = accel_real_lookup(RTLD_DEFAULT, name);
        if (!function)
            function = accel_resolve_scopes(place->entry, (uintptr_t)place->dynamic);
    }
    const struct link_map *object = function ? accel_object_of(function) : NULL;
    struct definition found;
    struct image image;
    if (!object || !define(&found, object->l_addr, object->l_ld, name) ||
        found.value != (uintptr_t)function)
        return NULL;
    read_image(&image, object->l_addr, object->l_ld);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i].name) == 0 && defines_word(&image, &words[i]))
            return function;
    return NULL;
}

static inline bool binds_words(void)
{
    return atomic_load_explicit(&words_are_there, memory_order_acquire) && dispatch_is_on();
}

static void bind_words(unsigned first)
{
    struct look look = {.takes = takes_word, .first = first};
    while (look_on(&look))
        for (int i = 0; i < look.count; i++) {
            void *const function = function_of(&look.place[i]);
            void *const bound = function ? accel_slots_bind(look.place[i].entry, function) : NULL;
            look.place[i].value = (uintptr_t)bound + look.place[i].addend;
            if (bound != function)
                write_once(&look.place[i]);
        }
}

/* ---- Later ---- */

static _Atomic unsigned long long loads_seen;

static void look_at_new(unsigned first)
{
    struct look look = {.takes = takes_suspect, .first = first};
    while (look_on(&look))
        for (int i = 0; i < look.count; i++)
            put_right(&look.place[i], defined_later(&look.place[i]), false);
    if (binds_words())
        bind_words(first);
    dlerror(); /* drops our look-ups' messages */
}

void accel_bindings_start(void)
{
    const struct link_map *const program = program_start();
    struct image image;
    if (!program)
        return;
    /* Those before libaccel have been relocated behind it. */
    const struct link_map *at = program;
    for (unsigned i = 0; i < relocated && (threads_wait || at->l_ld != _DYNAMIC); i++) {
        read_image(&image, at->l_addr, at->l_ld);
        if (at->l_ld != _DYNAMIC)
            look_at_places(&image, program);
        at = at->l_next;
    }
    atomic_store_explicit(&loads_seen, accel_objects_loads(), memory_order_release);
    if (binds_words())
        bind_words(0);
    if (accel_objects_at_start() > relocated)
        look_at_new(relocated);
}

static _Atomic(const void *) last_handle;

void accel_bindings_forget(void)
{
    atomic_store_explicit(&last_handle, NULL, memory_order_release);
}

void accel_bindings_follow(const void *handle)
{
    const unsigned long long seen = atomic_load_explicit(&loads_seen, memory_order_acquire);
    unsigned long long loads;
    /* Before our constructor: it looks at all. A sanitizer's runtime asks for functions while its
     * own dl_iterate_phdr has none to call yet. */
    if (seen == 0 || relocated == 0 ||
        (handle && handle == atomic_load_explicit(&last_handle, memory_order_acquire)))
        return;
    atomic_store_explicit(&last_handle, handle, memory_order_release);
    if (accel_objects_loads() == seen)
        return;
    const unsigned first = accel_objects_first_since(seen, &loads);
    look_at_new(first > relocated ? first : relocated);
    atomic_store_explicit(&loads_seen, loads, memory_order_release);
}
