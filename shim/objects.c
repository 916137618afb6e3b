#define _GNU_SOURCE
#include "objects.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "gpu/linker.h"

/* ---- Counts: they come with every object, the first has them ---- */

struct object_counts {
    unsigned long long loads, unloads;
};

static int first_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct object_counts *counts = data;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *counts = (struct object_counts){info->dlpi_adds, info->dlpi_subs};
    return 1;
}

unsigned long long accel_objects_loads(void)
{
    static _Atomic unsigned long long last;
    struct object_counts counts = {0, 0};
    /* Asked in each call, which shall not wait for a program that forks again and again: the next one asks anew. */
    if (!linker_enter_now())
        return atomic_load_explicit(&last, memory_order_relaxed);
    dl_iterate_phdr(first_object, &counts);
    linker_leave();
    atomic_store_explicit(&last, counts.loads, memory_order_relaxed);
    return counts.loads;
}

unsigned long long accel_objects_unloads(void)
{
    struct object_counts counts = {0, 0};
    linker_enter();
    dl_iterate_phdr(first_object, &counts);
    linker_leave();
    return counts.unloads;
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

/* Header: buckets, first symbol in the table, words of the filter, its shift; filter, buckets, hashes. The lowest bit of a hash
 * ends a bucket. */
static bool in_gnu_hash(const struct symbols *s, const char *symbol)
{
    const uint32_t count = s->gnu_hash[0], first = s->gnu_hash[1], words = s->gnu_hash[2];
    const ElfW(Addr) *filter = (const ElfW(Addr) *)(s->gnu_hash + 4);
    const uint32_t *bucket = (const uint32_t *)(filter + words), *hashes = bucket + count;
    const unsigned bits = 8 * sizeof *filter;
    if (count == 0 || words == 0)
        return false;
    uint32_t h = 5381;
    for (const unsigned char *c = (const unsigned char *)symbol; *c; c++)
        h = h * 33 + *c;
    ElfW(Addr) word = filter[(h / bits) % words];
    if (!(word >> h % bits & word >> (h >> s->gnu_hash[3]) % bits & 1))
        return false;
    uint32_t i = bucket[h % count];
    if (i < first)
        return false;
    do {
        if ((hashes[i - first] | 1) == (h | 1) && is_defined(s, i, symbol))
            return true;
    } while (!(hashes[i++ - first] & 1));
    return false;
}

/* Header: buckets, symbols; buckets, the next in each bucket. */
static bool in_hash(const struct symbols *s, const char *symbol)
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
            return true;
    return false;
}

bool accel_object_defines(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *symbol)
{
    const struct symbols s = symbols_of(base, dynamic);
    if (!s.table || !s.names)
        return false;
    if (s.gnu_hash)
        return in_gnu_hash(&s, symbol);
    return !s.hash || in_hash(&s, symbol);
}

/* ---- The list ---- */

struct search {
    const char *symbol;
    int first, seen;
    struct accel_objects *objects;
};

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

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
    linker_enter();
    dl_iterate_phdr(collect, &search);
    linker_leave();
}
