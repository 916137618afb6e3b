/*
 * The dynamic symbols of one object, by its dynamic section. The object must stay meanwhile. All
 * functions are thread-safe, take no lock and allocate nothing.
 *
 * (gABI, chapter 5, "Hash Table"; GNU hash: https://sourceware.org/legacy-
 * ml/binutils/2006-10/msg00377.html)
 */
#ifndef ACCEL_SYMBOLS_H
#define ACCEL_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct accel_symbols {
    const ElfW(Sym) * table;
    const char *names;
    const uint32_t *gnu_hash, *hash;
    const ElfW(Versym) * versions; /* NULL: none */
};

/* Header: buckets, first symbol in the table, words of the filter, its shift; then filter,
 * buckets, hashes. The lowest bit of a hash ends a bucket. */
struct accel_gnu_hash {
    uint32_t buckets, first, words, shift;
    const ElfW(Addr) * filter;
    const uint32_t *bucket, *hash;
};

/* Whether glibc has added the base to an address of the dynamic section. It leaves the section as
 * it is where that cannot be written: in the vdso, and in libraries that lld has linked with
 * -z rodynamic. The base of a library that was linked for a higher address is negative. */
static inline bool accel_dynamic_is_relocated(ElfW(Addr) base, ElfW(Addr) address)
{
    return address >= base || (ElfW(Sxword))base < 0;
}

/* Return the value of a dynamic tag, 0 if it is not there; and the same as an address. */
ElfW(Addr) accel_dynamic_value(const ElfW(Dyn) * dynamic, ElfW(Sxword) tag);
const void *accel_dynamic_address(ElfW(Addr) base, const ElfW(Dyn) * dynamic, ElfW(Sxword) tag);

struct accel_symbols accel_symbols_of(ElfW(Addr) base, const ElfW(Dyn) * dynamic);
struct accel_gnu_hash accel_gnu_hash_of(const uint32_t *table);
const char *accel_symbol_name(const struct accel_symbols *s, uint32_t index);

/* Returns the place in the table of the definition that a reference without a version is bound
 * to, STN_UNDEF if there is none or no hash table could tell. */
uint32_t accel_symbols_find(const struct accel_symbols *s, const char *symbol);

/* Whether there are symbols, but no hash table that could tell them. */
bool accel_symbols_untold(const struct accel_symbols *s);

/* Returns whether is() returns true for a name that the object defines, or no hash table could
 * tell. The hash is that of .gnu.hash (ops/names.h). */
bool accel_symbols_have(const struct accel_symbols *s, bool (*is)(const char *name, uint32_t hash));

#endif
