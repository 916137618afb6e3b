#define _GNU_SOURCE
#include "objects.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/linker.h"

static int iterate(int (*object)(struct dl_phdr_info *, size_t, void *), void *data)
{
    linker_enter_iteration();
    int result = dl_iterate_phdr(object, data);
    linker_leave_iteration();
    return result;
}

/* ---- Counts: they come with every object, the first has them ---- */

struct object_counts {
    unsigned long long loads, unloads;
    unsigned
        objects; /* of our namespace; the others are of all of them (glibc 2.36, elf/dl-iteratephdr.c) */
};

static void take_counts(struct object_counts *counts, const struct dl_phdr_info *info, size_t size)
{
    if (size < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        return;
    counts->loads = info->dlpi_adds;
    counts->unloads = info->dlpi_subs;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *data)
{
    take_counts(data, info, size);
    return 1;
}

static int each_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct object_counts *counts = data;
    take_counts(counts, info, size);
    counts->objects++;
    return 0;
}

unsigned long long accel_objects_loads(void)
{
    static _Atomic unsigned long long last;
    struct object_counts counts = {0, 0, 0};
    /* Asked in each call, which shall not wait for a program that forks again and again: the next one asks anew. */
    if (!linker_enter_iteration_now())
        return atomic_load_explicit(&last, memory_order_relaxed);
    dl_iterate_phdr(first_object, &counts);
    linker_leave_iteration();
    atomic_store_explicit(&last, counts.loads, memory_order_relaxed);
    return counts.loads;
}

static struct object_counts count_objects(int (*count)(struct dl_phdr_info *, size_t, void *))
{
    struct object_counts counts = {0, 0, 0};
    iterate(count, &counts);
    return counts;
}

unsigned long long accel_objects_unloads(void)
{
    return count_objects(first_object).unloads;
}

unsigned long long accel_objects_changes(void)
{
    const struct object_counts counts = count_objects(each_object);
    return (counts.loads << 24) + counts.objects;
}

static atomic_uint at_start;

void accel_objects_start(void)
{
    atomic_store_explicit(&at_start, count_objects(each_object).objects, memory_order_relaxed);
}

unsigned accel_objects_at_start(void)
{
    return atomic_load_explicit(&at_start, memory_order_relaxed);
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

/* ---- Symbol tables ---- */

struct symbols {
    const ElfW(Sym) * table;
    const char *names;
    const uint32_t *gnu_hash, *hash;
};

/* glibc has the base added to the addresses, but not in the vdso's. */
static const void *address(ElfW(Addr) base, ElfW(Addr) value)
{
    return (const void *)(value < base ? base + value : value);
}

static struct symbols symbols_of(ElfW(Addr) base, const ElfW(Dyn) * dynamic)
{
    struct symbols s = {NULL, NULL, NULL, NULL};
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        const void *at = address(base, dynamic->d_un.d_ptr);
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            s.table = at;
            break;
        case DT_STRTAB:
            s.names = at;
            break;
        case DT_GNU_HASH:
            s.gnu_hash = at;
            break;
        case DT_HASH:
            s.hash = at;
            break;
        default:
            break;
        }
    }
    return s;
}

static bool is_defined(const struct symbols *s, uint32_t index, const char *symbol)
{
    const ElfW(Sym) *found = &s->table[index];
    return found->st_shndx != SHN_UNDEF && strcmp(s->names + found->st_name, symbol) == 0;
}

/* Both look-ups return the symbol's place in the table, STN_UNDEF where it is not defined there. Header: buckets, first symbol in
 * the table, words of the filter, its shift; filter, buckets, hashes. The lowest bit of a hash ends a bucket. */
static uint32_t in_gnu_hash(const struct symbols *s, const char *symbol)
{
    const uint32_t count = s->gnu_hash[0], first = s->gnu_hash[1], words = s->gnu_hash[2];
    const ElfW(Addr) *filter = (const ElfW(Addr) *)(s->gnu_hash + 4);
    const uint32_t *bucket = (const uint32_t *)(filter + words), *hashes = bucket + count;
    const unsigned bits = 8 * sizeof *filter;
    if (count == 0 || words == 0)
        return STN_UNDEF;
    uint32_t h = 5381;
    for (const unsigned char *c = (const unsigned char *)symbol; *c; c++)
        h = h * 33 + *c;
    ElfW(Addr) word = filter[(h / bits) % words];
    if (!(word >> h % bits & word >> (h >> s->gnu_hash[3]) % bits & 1))
        return STN_UNDEF;
    uint32_t i = bucket[h % count];
    if (i < first)
        return STN_UNDEF;
    do {
        if ((hashes[i - first] | 1) == (h | 1) && is_defined(s, i, symbol))
            return i;
    } while (!(hashes[i++ - first] & 1));
    return STN_UNDEF;
}

/* Header: buckets, symbols; buckets, the next in each bucket. */
static uint32_t in_hash(const struct symbols *s, const char *symbol)
{
    const uint32_t count = s->hash[0];
    const uint32_t *bucket = s->hash + 2, *next = bucket + count;
    uint32_t h = 0;
    for (const unsigned char *c = (const unsigned char *)symbol; *c; c++) {
        h = (h << 4) + *c;
        h ^= (h & 0xf0000000) >> 24;
        h &= 0x0fffffff;
    }
    for (uint32_t i = count ? bucket[h % count] : STN_UNDEF; i != STN_UNDEF; i = next[i])
        if (is_defined(s, i, symbol))
            return i;
    return STN_UNDEF;
}

bool accel_object_defines(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *symbol)
{
    const struct symbols s = symbols_of(base, dynamic);
    if (!s.table || !s.names)
        return false;
    if (s.gnu_hash)
        return in_gnu_hash(&s, symbol) != 0;
    return !s.hash || in_hash(&s, symbol) != 0;
}

/* Whether is() is true of a name that the object defines, or that cannot be told: there is no hash table. The symbols of a GNU hash
 * table lie bucket by bucket; of the other one, the chains are as many as the symbols. */
static bool defines_such(const struct symbols *s, bool (*is)(const char *name))
{
    if (!s->table || !s->names)
        return false;
    if (!s->gnu_hash && !s->hash)
        return true;
    const uint32_t chains = s->gnu_hash ? 0 : s->hash[1];
    for (uint32_t i = 1; i < chains; i++)
        if (s->table[i].st_shndx != SHN_UNDEF && is(s->names + s->table[i].st_name))
            return true;
    if (!s->gnu_hash)
        return false;
    const uint32_t count = s->gnu_hash[0], first = s->gnu_hash[1], words = s->gnu_hash[2];
    const uint32_t *bucket =
        (const uint32_t *)(const void *)((const ElfW(Addr) *)(const void *)(s->gnu_hash + 4) +
                                         words);
    const uint32_t *hashes = bucket + count;
    for (uint32_t b = 0; b < count; b++) {
        if (bucket[b] < first)
            continue;
        uint32_t i = bucket[b];
        do {
            if (s->table[i].st_shndx != SHN_UNDEF && is(s->names + s->table[i].st_name))
                return true;
        } while (!(hashes[i++ - first] & 1));
    }
    return false;
}

/* ---- Relocations: the names that an object has the dynamic linker look up ---- */

struct relocations {
    const ElfW(Rela) * first;
    size_t bytes;
};

/* The table of data, without those at its begin that name no symbol, and that of functions. */
static void relocations_of(ElfW(Addr) base, const ElfW(Dyn) * dynamic, struct relocations tables[2])
{
    size_t relative = 0;
    tables[0] = tables[1] = (struct relocations){NULL, 0};
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        switch (dynamic->d_tag) {
        case DT_RELA:
            tables[0].first = address(base, dynamic->d_un.d_ptr);
            break;
        case DT_RELASZ:
            tables[0].bytes = dynamic->d_un.d_val;
            break;
        case DT_RELACOUNT:
            relative = dynamic->d_un.d_val;
            break;
        case DT_JMPREL:
            tables[1].first = address(base, dynamic->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            tables[1].bytes = dynamic->d_un.d_val;
            break;
        default:
            break;
        }
    }
    if (relative * sizeof *tables[0].first > tables[0].bytes)
        return;
    tables[0].first += relative;
    tables[0].bytes -= relative * sizeof *tables[0].first;
}

/* Calls see() for each name, until it returns true, which is then the answer. */
static bool see_names(ElfW(Addr) base, const ElfW(Dyn) * dynamic,
                      bool (*see)(const char *name, void *data), void *data)
{
    const struct symbols s = symbols_of(base, dynamic);
    struct relocations tables[2];
    relocations_of(base, dynamic, tables);
    for (int t = 0; t < 2 && s.table && s.names; t++) {
        const size_t count = tables[t].first ? tables[t].bytes / sizeof *tables[t].first : 0;
        for (size_t i = 0; i < count; i++) {
            const size_t symbol = ELF64_R_SYM(tables[t].first[i].r_info);
            if (symbol != STN_UNDEF && see(s.names + s.table[symbol].st_name, data))
                return true;
        }
    }
    return false;
}

/* ---- The list ---- */

struct search {
    const char *symbol;
    int first, seen;
    struct accel_objects *objects;
};

/* Under the linker's lock: the object stays. */
static int collect(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *search = data;
    struct accel_objects *objects = search->objects;
    (void)size;
    if (search->seen++ < search->first ||
        !accel_object_defines(info->dlpi_addr, dynamic_of(info), search->symbol))
        return 0;
    size_t length = strlen(info->dlpi_name) + 1;
    if (objects->used + length > sizeof objects->text)
        return 1;
    memcpy(objects->text + objects->used, info->dlpi_name, length);
    objects->used += length;
    objects->next = search->seen;
    return 0;
}

void accel_objects_defining(const char *symbol, int first, struct accel_objects *objects)
{
    struct search search = {symbol, first, 0, objects};
    objects->used = 0;
    objects->next = first;
    iterate(collect, &search);
}

struct definitions {
    bool (*is)(const char *name);
    unsigned first, seen;
};

static int look_at_definitions(struct dl_phdr_info *info, size_t size, void *data)
{
    struct definitions *definitions = data;
    (void)size;
    if (definitions->seen++ < definitions->first)
        return 0;
    const struct symbols s = symbols_of(info->dlpi_addr, dynamic_of(info));
    return defines_such(&s, definitions->is);
}

bool accel_objects_define(bool (*is)(const char *name), unsigned first)
{
    struct definitions definitions = {is, first, 0};
    int found = iterate(look_at_definitions, &definitions);
    return found != 0;
}

/* ---- One object ---- */

struct place {
    uintptr_t address;
    const ElfW(Dyn) * dynamic;
    struct accel_object *object;
    int seen;
};

static bool is_in(const struct dl_phdr_info *info, uintptr_t at)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && at - info->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

static int at_place(struct dl_phdr_info *info, size_t size, void *data)
{
    struct place *place = data;
    struct accel_object *object = place->object;
    const int number = place->seen++;
    (void)size;
    if (!is_in(info, place->address))
        return 0;
    object->dynamic = dynamic_of(info);
    object->number = number;
    const size_t length = strlen(info->dlpi_name) + 1;
    if (!object->dynamic || length > sizeof object->name)
        return -1;
    memcpy(object->name, info->dlpi_name, length);
    return 1;
}

bool accel_objects_at(const void *address, struct accel_object *object)
{
    struct place place = {.address = (uintptr_t)address, .object = object};
    int found = iterate(at_place, &place);
    return found > 0;
}

static int has_dynamic(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct place *place = data;
    (void)size;
    return dynamic_of(info) == place->dynamic;
}

bool accel_objects_has(const ElfW(Dyn) * dynamic)
{
    struct place place = {.dynamic = dynamic};
    int found = iterate(has_dynamic, &place);
    return found != 0;
}

/* ---- Objects that use names ---- */

struct use {
    bool (*see)(const char *name, int object, void *data);
    void *data;
    struct accel_users *users;
    int seen;
};

struct object_use {
    const struct use *use;
    int number;
};

static bool see_name(const char *name, void *data)
{
    const struct object_use *object = data;
    return object->use->see(name, object->number, object->use->data);
}

static int collect_user(struct dl_phdr_info *info, size_t size, void *data)
{
    struct use *use = data;
    struct accel_users *users = use->users;
    const struct object_use object = {use, use->seen++};
    (void)size;
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    if (object.number < users->next ||
        !see_names(info->dlpi_addr, dynamic, see_name, (void *)(uintptr_t)&object))
        return 0;
    if (users->count == sizeof users->dynamic / sizeof *users->dynamic)
        return 1;
    users->dynamic[users->count++] = dynamic;
    users->next = object.number + 1;
    return 0;
}

void accel_objects_using(bool (*see)(const char *name, int object, void *data), void *data,
                         struct accel_users *users)
{
    struct use use = {see, data, users, 0};
    users->count = 0;
    iterate(collect_user, &use);
}

/* ---- A function of the libraries behind ours ---- */

struct function {
    const char *name;
    const ElfW(Dyn) * after;
    const void *found;
    bool passed;
};

static int function_of(struct dl_phdr_info *info, size_t size, void *data)
{
    struct function *function = data;
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    const struct symbols s = symbols_of(info->dlpi_addr, dynamic);
    (void)size;
    if (dynamic == function->after)
        function->passed = true;
    if (dynamic == function->after || !function->passed || !s.table || !s.names)
        return 0;
    const uint32_t i = s.gnu_hash ? in_gnu_hash(&s, function->name)
                       : s.hash   ? in_hash(&s, function->name)
                                  : STN_UNDEF;
    if (i == STN_UNDEF || ELF64_ST_TYPE(s.table[i].st_info) != STT_FUNC)
        return 0;
    function->found = (const void *)(info->dlpi_addr + s.table[i].st_value);
    return 1;
}

const void *accel_objects_function(const char *name, const ElfW(Dyn) * after)
{
    struct function function = {name, after, NULL, false};
    iterate(function_of, &function);
    return function.found;
}

struct question {
    bool (*is)(const char *path);
};

static int answer(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct question *question = data;
    (void)size;
    return question->is(info->dlpi_name);
}

bool accel_objects_any(bool (*is)(const char *path))
{
    struct question question = {is};
    int found = iterate(answer, &question);
    return found != 0;
}
