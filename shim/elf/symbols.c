#include "symbols.h"

#include <string.h>

#include "ops/names.h"

ElfW(Addr) accel_dynamic_value(const ElfW(Dyn) * dynamic, ElfW(Sxword) tag)
{
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == tag)
            return dynamic->d_un.d_ptr;
    return 0;
}

const void *accel_dynamic_address(ElfW(Addr) base, const ElfW(Dyn) * dynamic, ElfW(Sxword) tag)
{
    const ElfW(Addr) value = accel_dynamic_value(dynamic, tag);
    return (const void *)(value && !accel_dynamic_is_relocated(base, value) ? base + value : value);
}

struct accel_symbols accel_symbols_of(ElfW(Addr) base, const ElfW(Dyn) * dynamic)
{
    return (struct accel_symbols){.table = accel_dynamic_address(base, dynamic, DT_SYMTAB),
                                  .names = accel_dynamic_address(base, dynamic, DT_STRTAB),
                                  .gnu_hash = accel_dynamic_address(base, dynamic, DT_GNU_HASH),
                                  .hash = accel_dynamic_address(base, dynamic, DT_HASH),
                                  .versions = accel_dynamic_address(base, dynamic, DT_VERSYM)};
}

static bool is_defined_at(const struct accel_symbols *s, uint32_t index)
{
    return s->table[index].st_shndx != SHN_UNDEF;
}

const char *accel_symbol_name(const struct accel_symbols *s, uint32_t index)
{
    return s->names + s->table[index].st_name;
}

/* Versions from number 3 on are other than the object's first: one that is hidden is for
 * references to that version alone (glibc, elf/dl-lookup.c, check_match). */
static bool is_hidden(const struct accel_symbols *s, uint32_t index)
{
    const unsigned version = s->versions ? s->versions[index] : VER_NDX_GLOBAL;
    return (version & 0x7fff) > VER_NDX_GLOBAL + 1 && version & 0x8000;
}

static bool is_defined(const struct accel_symbols *s, uint32_t index, const char *symbol)
{
    return is_defined_at(s, index) && !is_hidden(s, index) &&
           strcmp(accel_symbol_name(s, index), symbol) == 0;
}

struct accel_gnu_hash accel_gnu_hash_of(const uint32_t *table)
{
    struct accel_gnu_hash g = {table[0], table[1], table[2], table[3], NULL, NULL, NULL};
    g.filter = (const ElfW(Addr) *)(const void *)(table + 4);
    g.bucket = (const uint32_t *)(const void *)(g.filter + g.words);
    g.hash = g.bucket + g.buckets;
    return g;
}

static uint32_t in_gnu_hash(const struct accel_symbols *s, const char *symbol)
{
    const struct accel_gnu_hash g = accel_gnu_hash_of(s->gnu_hash);
    const unsigned bits = 8 * sizeof *g.filter;
    if (g.buckets == 0 || g.words == 0)
        return STN_UNDEF;
    const uint32_t h = accel_name_hash(symbol);
    const ElfW(Addr) word = g.filter[(h / bits) % g.words];
    if (!(word >> h % bits & word >> (h >> g.shift) % bits & 1))
        return STN_UNDEF;
    uint32_t i = g.bucket[h % g.buckets];
    if (i < g.first)
        return STN_UNDEF;
    do {
        if ((g.hash[i - g.first] | 1) == (h | 1) && is_defined(s, i, symbol))
            return i;
    } while (!(g.hash[i++ - g.first] & 1));
    return STN_UNDEF;
}

/* Header: buckets, symbols; then buckets, the next symbol of each in its bucket. */
static uint32_t in_hash(const struct accel_symbols *s, const char *symbol)
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

uint32_t accel_symbols_find(const struct accel_symbols *s, const char *symbol)
{
    if (!s->table || !s->names)
        return STN_UNDEF;
    return s->gnu_hash ? in_gnu_hash(s, symbol) : s->hash ? in_hash(s, symbol) : STN_UNDEF;
}

bool accel_symbols_untold(const struct accel_symbols *s)
{
    return s->table && s->names && !s->gnu_hash && !s->hash;
}

static bool gnu_hash_has(const struct accel_symbols *s, bool (*is)(const char *name, uint32_t hash))
{
    const struct accel_gnu_hash g = accel_gnu_hash_of(s->gnu_hash);
    for (uint32_t b = 0; b < g.buckets; b++) {
        uint32_t i = g.bucket[b];
        if (i < g.first)
            continue;
        do {
            if (is_defined_at(s, i) && is(accel_symbol_name(s, i), g.hash[i - g.first]))
                return true;
        } while (!(g.hash[i++ - g.first] & 1));
    }
    return false;
}

/* The other hash table has as many chains as there are symbols. */
bool accel_symbols_have(const struct accel_symbols *s, bool (*is)(const char *name, uint32_t hash))
{
    if (!s->table || !s->names)
        return false;
    if (s->gnu_hash)
        return gnu_hash_has(s, is);
    for (uint32_t i = 1; s->hash && i < s->hash[1]; i++)
        if (is_defined_at(s, i) &&
            is(accel_symbol_name(s, i), accel_name_hash(accel_symbol_name(s, i))))
            return true;
    return !s->hash;
}
