#define _GNU_SOURCE
#include "objects.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/thread/linker.h"
#include "ops/names.h"
#include "symbols.h"

static int iterate(int (*object)(struct dl_phdr_info *, size_t, void *), void *data)
{
    linker_enter_iteration();
    int result = dl_iterate_phdr(object, data);
    linker_leave_iteration();
    return result;
}

/* ---- Counts: dl_iterate_phdr() passes them with every object ---- */

struct object_counts {
    unsigned long long loads, unloads; /* of all namespaces (glibc 2.36, elf/dl-iteratephdr.c) */
    unsigned objects;                  /* of our namespace */
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
    /* Each call asks, and must not wait for a program that forks again and again: the next one asks
     * anew. */
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

unsigned accel_objects_first_since(unsigned long long loads, unsigned long long *now)
{
    const struct object_counts counts = count_objects(each_object);
    const unsigned long long since = counts.loads - loads;
    *now = counts.loads;
    return since < counts.objects ? counts.objects - (unsigned)since : 0;
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

/* ---- What one object defines ---- */

/* Returns the segment that an address lies in, or NULL. */
static const ElfW(Phdr) * part_at(const struct dl_phdr_info *info, uintptr_t at)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && at - info->dlpi_addr - part->p_vaddr < part->p_memsz)
            return part;
    }
    return NULL;
}

static int look_for_code(struct dl_phdr_info *info, size_t size, void *address)
{
    const ElfW(Phdr) *part = part_at(info, (uintptr_t)address);
    (void)size;
    return !part ? 0 : part->p_flags & PF_X ? 1 : -1;
}

/* Libraries that open BLAS themselves have variables of such names, with pointers. The assembler's
 * symbols may have no type. */
bool accel_object_is_variable(ElfW(Addr) base, const ElfW(Sym) * symbol)
{
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);
    if (type == STT_OBJECT || type == STT_COMMON || type == STT_TLS || symbol->st_shndx == SHN_ABS)
        return true;
    return type == STT_NOTYPE && iterate(look_for_code, (void *)(base + symbol->st_value)) <= 0;
}

bool accel_object_defines(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *symbol)
{
    const struct accel_symbols s = accel_symbols_of(base, dynamic);
    if (accel_symbols_untold(&s))
        return true;
    const uint32_t place = accel_symbols_find(&s, symbol);
    return place != STN_UNDEF && !accel_object_is_variable(base, &s.table[place]);
}

/* Symbols that are not defined come before those in the GNU hash table; the other one has all. */
bool accel_object_imports(ElfW(Addr) base, const ElfW(Dyn) * dynamic, bool (*is)(const char *name))
{
    const struct accel_symbols s = accel_symbols_of(base, dynamic);
    if (!s.table || !s.names || (!s.gnu_hash && !s.hash))
        return true;
    const uint32_t end = s.gnu_hash ? accel_gnu_hash_of(s.gnu_hash).first : s.hash[1];
    for (uint32_t i = 1; i < end; i++)
        if (s.table[i].st_shndx == SHN_UNDEF && is(accel_symbol_name(&s, i)))
            return true;
    return false;
}

const void *accel_object_function(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *symbol)
{
    const struct accel_symbols s = accel_symbols_of(base, dynamic);
    const uint32_t place = accel_symbols_find(&s, symbol);
    const unsigned type = place != STN_UNDEF ? ELF64_ST_TYPE(s.table[place].st_info) : STT_SECTION;
    return type == STT_FUNC || type == STT_NOTYPE ? (const void *)(base + s.table[place].st_value)
                                                  : NULL;
}

const char *accel_object_slot_name(ElfW(Addr) base, const ElfW(Dyn) * dynamic, uintptr_t slot)
{
    const struct accel_symbols s = accel_symbols_of(base, dynamic);
    const ElfW(Rela) *table = accel_dynamic_address(base, dynamic, DT_JMPREL);
    const size_t count = table ? accel_dynamic_value(dynamic, DT_PLTRELSZ) / sizeof *table : 0;
    /* They lie in the order of their slots, mostly. */
    const size_t first = count ? base + table[0].r_offset : 0, guess = (slot - first) / 8;
    size_t i = guess < count && base + table[guess].r_offset == slot ? guess : 0;
    while (i < count && base + table[i].r_offset != slot)
        i++;
    return i < count && s.table && s.names
               ? accel_symbol_name(&s, (uint32_t)ELF64_R_SYM(table[i].r_info))
               : NULL;
}

/* ---- Objects that define names ---- */

struct symbol_search {
    const char *symbol;
    int first, seen;
    struct accel_objects *objects;
};

static int collect(struct dl_phdr_info *info, size_t size, void *data)
{
    struct symbol_search *search = data;
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
    struct symbol_search search = {symbol, first, 0, objects};
    objects->used = 0;
    objects->next = first;
    iterate(collect, &search);
}

struct question {
    bool (*is)(const char *name, uint32_t hash);
    bool (*is_path)(const char *path);
    unsigned first, seen;
};

static int look_at_definitions(struct dl_phdr_info *info, size_t size, void *data)
{
    struct question *question = data;
    (void)size;
    if (question->seen++ < question->first)
        return 0;
    const struct accel_symbols s = accel_symbols_of(info->dlpi_addr, dynamic_of(info));
    return accel_symbols_have(&s, question->is);
}

bool accel_objects_define(bool (*is)(const char *name, uint32_t hash), unsigned first)
{
    struct question question = {.is = is, .first = first};
    return iterate(look_at_definitions, &question) != 0;
}

static int look_at_path(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct question *question = data;
    (void)size;
    return question->is_path(info->dlpi_name);
}

bool accel_objects_any(bool (*is)(const char *path))
{
    struct question question = {.is_path = is};
    return iterate(look_at_path, &question) != 0;
}

/* ---- One object ---- */

struct address_lookup {
    uintptr_t address;
    struct accel_object *object; /* NULL: only the number is wanted */
    int seen;
};

/* Returns 1; -1 if the name is too long, or there is no dynamic section. */
static int fill_in(struct accel_object *object, const struct dl_phdr_info *info, int number)
{
    const size_t length = strlen(info->dlpi_name) + 1;
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    if (!dynamic || length > sizeof object->name)
        return -1;
    object->dynamic = dynamic;
    object->number = number;
    memcpy(object->name, info->dlpi_name, length);
    return 1;
}

static int at_place(struct dl_phdr_info *info, size_t size, void *data)
{
    struct address_lookup *place = data;
    const int number = place->seen++;
    (void)size;
    if (!part_at(info, place->address))
        return 0;
    return place->object ? fill_in(place->object, info, number) : 1;
}

bool accel_objects_at(const void *address, struct accel_object *object)
{
    struct address_lookup place = {.address = (uintptr_t)address, .object = object};
    return iterate(at_place, &place) > 0;
}

int accel_objects_number(const void *address)
{
    struct address_lookup place = {.address = (uintptr_t)address};
    return iterate(at_place, &place) > 0 ? place.seen - 1 : -1;
}

static int has_dynamic(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    return dynamic_of(info) == data;
}

struct header_lookup {
    const ElfW(Dyn) * dynamic;
    void (*take)(const struct dl_phdr_info *, void *);
    void *data;
};

static int look_for_headers(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct header_lookup *headers = data;
    (void)size;
    if (dynamic_of(info) != headers->dynamic)
        return 0;
    headers->take(info, headers->data);
    return 1;
}

bool accel_objects_headers(const ElfW(Dyn) * dynamic,
                           void (*take)(const struct dl_phdr_info *, void *), void *data)
{
    struct header_lookup headers = {dynamic, take, data};
    return iterate(look_for_headers, &headers) != 0;
}

bool accel_objects_has(const ElfW(Dyn) * dynamic)
{
    return iterate(has_dynamic, (void *)(uintptr_t)dynamic) != 0;
}

/* ---- What brought an object in, and what needs it ---- */

/* Returns 1 if there is no more place. */
static int add_user(struct accel_users *users, const ElfW(Dyn) * dynamic, int number)
{
    if (users->count == sizeof users->dynamic / sizeof *users->dynamic)
        return 1;
    users->dynamic[users->count++] = dynamic;
    users->next = number + 1;
    return 0;
}

struct needing {
    const ElfW(Dyn) * needed;
    const char *soname, *file; /* by which others may need it; NULL: none */
    struct accel_object *object;
    struct accel_users *users;
    int seen;
    bool at_start;
};

static const char *soname_of(const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    const struct accel_symbols s = accel_symbols_of(info->dlpi_addr, dynamic);
    const ElfW(Addr) soname = accel_dynamic_value(dynamic, DT_SONAME);
    return soname && s.names ? s.names + soname : NULL;
}

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int look_at_needed(struct dl_phdr_info *info, size_t size, void *data)
{
    struct needing *needing = data;
    (void)size;
    if (dynamic_of(info) != needing->needed)
        return 0;
    needing->soname = soname_of(info);
    needing->file = file_of(info->dlpi_name);
    return 1;
}

static bool needs(const struct needing *needing, const char *name)
{
    return (needing->soname && strcmp(name, needing->soname) == 0) ||
           strcmp(file_of(name), needing->file) == 0;
}

/* Whether an earlier object answers to the names: then it is what others need. */
static int look_for_twin(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct needing *needing = data;
    const char *soname = soname_of(info);
    (void)size;
    if (dynamic_of(info) == needing->needed)
        return -1;
    return (soname && needs(needing, soname)) ||
           (info->dlpi_name[0] && needs(needing, info->dlpi_name));
}

static bool is_linked_to(const struct needing *needing, const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    const struct accel_symbols s = accel_symbols_of(info->dlpi_addr, dynamic);
    for (const ElfW(Dyn) *at = dynamic; at && s.names && at->d_tag != DT_NULL; at++)
        if (at->d_tag == DT_NEEDED && needs(needing, s.names + at->d_un.d_val))
            return true;
    return false;
}

/* Those of the start are left out: they are searched anyway, and first, and need no others. */
static bool has_needed(const struct needing *needing, const struct dl_phdr_info *info, int number)
{
    return (unsigned)number >= accel_objects_at_start() && is_linked_to(needing, info);
}

static int look_at_needs(struct dl_phdr_info *info, size_t size, void *data)
{
    struct needing *needing = data;
    const int number = needing->seen++;
    (void)size;
    if (dynamic_of(info) == needing->needed)
        return -1;
    return has_needed(needing, info, number) ? fill_in(needing->object, info, number) : 0;
}

/* Another thread may close libraries: their names stay as long as an iteration is under way, within
 * which there may be others (glibc's lock is recursive). */
static int find_root(struct dl_phdr_info *first, size_t size, void *data)
{
    struct needing *needing = data;
    bool found = false;
    (void)first;
    (void)size;
    /* Each one comes before the last, so this ends. */
    while (iterate(look_at_needed, needing)) {
        needing->seen = 0;
        if (iterate(look_for_twin, needing) > 0 || iterate(look_at_needs, needing) <= 0)
            break;
        found = true;
        needing->needed = needing->object->dynamic;
    }
    return found ? 1 : -1;
}

bool accel_objects_root(const ElfW(Dyn) * dynamic, struct accel_object *root)
{
    struct needing needing = {.needed = dynamic, .object = root};
    return accel_objects_at_start() > 0 && iterate(find_root, &needing) > 0;
}

static int collect_needing(struct dl_phdr_info *info, size_t size, void *data)
{
    struct needing *needing = data;
    struct accel_users *users = needing->users;
    const int number = needing->seen++;
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    (void)size;
    if (number < users->next || !has_needed(needing, info, number))
        return 0;
    return add_user(users, dynamic, number);
}

static int find_needing(struct dl_phdr_info *first, size_t size, void *data)
{
    struct needing *needing = data;
    (void)first;
    (void)size;
    if (iterate(look_at_needed, needing) && iterate(look_for_twin, needing) <= 0)
        iterate(collect_needing, needing);
    return 1;
}

void accel_objects_needing(const ElfW(Dyn) * dynamic, struct accel_users *users)
{
    struct needing needing = {.needed = dynamic, .users = users};
    users->count = 0;
    iterate(find_needing, &needing);
}

static int look_at_needs_of_start(struct dl_phdr_info *info, size_t size, void *data)
{
    struct needing *needing = data;
    const unsigned number = (unsigned)needing->seen++, start = accel_objects_at_start();
    (void)size;
    if (start > 0 && number >= start)
        return 0;
    if (dynamic_of(info) == needing->needed)
        needing->at_start = number > 0; /* the first one is the program */
    return is_linked_to(needing, info);
}

static int find_preload(struct dl_phdr_info *first, size_t size, void *data)
{
    struct needing *needing = data;
    (void)first;
    (void)size;
    return iterate(look_at_needed, needing) > 0 && iterate(look_at_needs_of_start, needing) == 0 &&
                   needing->at_start
               ? 1
               : -1;
}

bool accel_objects_preloaded(const ElfW(Dyn) * dynamic)
{
    struct needing needing = {.needed = dynamic};
    return iterate(find_preload, &needing) > 0;
}

/* ---- Objects whose relocations name symbols ---- */

struct use {
    accel_see *see;
    void *data;
    struct accel_users *users;
    int seen;
};

/* Returns from which symbol on .gnu.hash has the hashes. If it is empty, nothing can be told from
 * its header (bfd writes 1). */
static uint32_t hashed_from(const struct accel_gnu_hash *g)
{
    for (uint32_t b = 0; b < g->buckets; b++)
        if (g->bucket[b])
            return g->first;
    return UINT32_MAX;
}

/* Calls see() for the names in an object's relocations, of functions and of data, until it returns
 * true. */
static bool sees_a_name(const struct use *use, ElfW(Addr) base, const ElfW(Dyn) * dynamic,
                        int number)
{
    static const ElfW(Sxword) tables[2][2] = {{DT_JMPREL, DT_PLTRELSZ}, {DT_RELA, DT_RELASZ}};
    const struct accel_symbols s = accel_symbols_of(base, dynamic);
    const struct accel_gnu_hash g =
        s.gnu_hash ? accel_gnu_hash_of(s.gnu_hash) : (struct accel_gnu_hash){0};
    const uint32_t hashed = hashed_from(&g);
    for (int t = 0; t < 2 && s.table && s.names; t++) {
        const ElfW(Rela) *table = accel_dynamic_address(base, dynamic, tables[t][0]);
        const size_t count = table ? accel_dynamic_value(dynamic, tables[t][1]) / sizeof *table : 0;
        /* Those at the begin of the second table name no symbol. */
        for (size_t i = t == 1 ? accel_dynamic_value(dynamic, DT_RELACOUNT) : 0; i < count; i++) {
            const uint32_t symbol = ELF64_R_SYM(table[i].r_info);
            if (symbol == STN_UNDEF)
                continue;
            const char *const name = accel_symbol_name(&s, symbol);
            const uint32_t hash =
                symbol < hashed ? accel_name_hash(name) : g.hash[symbol - g.first];
            if (use->see(name, hash, number, use->data))
                return true;
        }
    }
    return false;
}

static int collect_user(struct dl_phdr_info *info, size_t size, void *data)
{
    struct use *use = data;
    struct accel_users *users = use->users;
    const int number = use->seen++;
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    (void)size;
    if (number < users->next || !sees_a_name(use, info->dlpi_addr, dynamic, number))
        return 0;
    return add_user(users, dynamic, number);
}

void accel_objects_using(accel_see *see, void *data, struct accel_users *users)
{
    struct use use = {see, data, users, 0};
    users->count = 0;
    iterate(collect_user, &use);
}

struct one {
    const ElfW(Dyn) * dynamic;
    struct use use;
};

static int look_at_uses(struct dl_phdr_info *info, size_t size, void *data)
{
    struct one *one = data;
    const int number = one->use.seen++;
    (void)size;
    if (dynamic_of(info) != one->dynamic)
        return 0;
    sees_a_name(&one->use, info->dlpi_addr, one->dynamic, number);
    return 1;
}

void accel_objects_uses_of(const ElfW(Dyn) * dynamic, accel_see *see, void *data)
{
    struct one one = {dynamic, {see, data, NULL, 0}};
    iterate(look_at_uses, &one);
}

/* ---- A function of the objects behind one ---- */

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
    const struct accel_symbols s = accel_symbols_of(info->dlpi_addr, dynamic);
    (void)size;
    if (dynamic == function->after)
        function->passed = true;
    if (dynamic == function->after || !function->passed)
        return 0;
    const uint32_t i = accel_symbols_find(&s, function->name);
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
