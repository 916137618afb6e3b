/* Dynamic sections and symbol tables that no linker on this machine writes: an object without one,
 * tables that are empty or missing, versions, and bases below zero. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "ops/names.h"
#include "shim/elf/symbols.h"

/* Symbols 1 and 2 are the object's own, 3 is another's. */
static const char names[] = "\0dgemm_\0dgesv_\0rand";
enum { DGEMM = 1, DGESV, RAND, SYMBOLS };
static const ElfW(Sym) table[SYMBOLS] = {{.st_name = 0},
                                         {.st_name = 1, .st_shndx = 1},
                                         {.st_name = 8, .st_shndx = 1},
                                         {.st_name = 15, .st_shndx = SHN_UNDEF}};

/* One bucket with all symbols, one word of the filter, which lets all pass. */
static _Alignas(8) uint32_t gnu_hash[4 + 2 + 1 + SYMBOLS] = {1, DGEMM, 1, 0, ~0u, ~0u, DGEMM};
/* Also one bucket: 1, 2, 3. */
static const uint32_t older_hash[2 + 1 + SYMBOLS] = {1, SYMBOLS, DGEMM, 0, DGESV, RAND, 0};

static void fill_gnu_hash(void)
{
    for (int i = DGEMM; i < SYMBOLS; i++)
        gnu_hash[7 + i - DGEMM] = (accel_name_hash(names + table[i].st_name) & ~1u) | (i == RAND);
}

static struct accel_symbols with(const uint32_t *gnu, const uint32_t *older)
{
    return (struct accel_symbols){
        .table = table, .names = names, .gnu_hash = gnu, .hash = older, .versions = NULL};
}

static bool is_dgesv(const char *name, uint32_t hash)
{
    assert_int_equal(accel_name_hash(name) | 1, hash | 1);
    return strcmp(name, "dgesv_") == 0;
}

static bool is_rand(const char *name, uint32_t hash)
{
    (void)hash;
    return strcmp(name, "rand") == 0;
}

static void test_either_hash_table_tells_what_is_defined(void **state)
{
    const struct accel_symbols each[] = {with(gnu_hash, NULL), with(NULL, older_hash)};
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(accel_symbols_find(&each[i], "dgemm_"), DGEMM);
        assert_int_equal(accel_symbols_find(&each[i], "dgesv_"), DGESV);
        assert_int_equal(accel_symbols_find(&each[i], "rand"), STN_UNDEF);
        assert_int_equal(accel_symbols_find(&each[i], "sgemm_"), STN_UNDEF);
        assert_true(accel_symbols_have(&each[i], is_dgesv));
        assert_false(accel_symbols_have(&each[i], is_rand));
        assert_false(accel_symbols_untold(&each[i]));
    }
}

static void test_empty_hash_tables(void **state)
{
    static const _Alignas(8) uint32_t no_buckets[] = {0, 1, 1, 0, ~0u, ~0u};
    static const uint32_t no_words[] = {1, 1, 0, 0, DGEMM};
    static const uint32_t none[] = {0, 1, 0};
    const struct accel_symbols each[] = {with(no_buckets, NULL), with(no_words, NULL),
                                         with(NULL, none)};
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(accel_symbols_find(&each[i], "dgemm_"), STN_UNDEF);
        assert_false(accel_symbols_untold(&each[i]));
    }
    assert_false(accel_symbols_have(&each[0], is_dgesv));
    assert_false(accel_symbols_have(&each[2], is_dgesv));
}

/* Without a hash table nothing can be found, and everything may be there. */
static void test_symbols_without_a_hash_table(void **state)
{
    const struct accel_symbols untold = with(NULL, NULL);
    (void)state;
    assert_int_equal(accel_symbols_find(&untold, "dgemm_"), STN_UNDEF);
    assert_true(accel_symbols_have(&untold, is_dgesv));
    assert_true(accel_symbols_untold(&untold));
}

/* An object that has no symbols or no names of them defines nothing. */
static void test_no_symbols(void **state)
{
    struct accel_symbols none = with(gnu_hash, older_hash);
    (void)state;
    for (int i = 0; i < 2; i++) {
        none.table = i == 0 ? NULL : table;
        none.names = i == 0 ? names : NULL;
        assert_int_equal(accel_symbols_find(&none, "dgemm_"), STN_UNDEF);
        assert_false(accel_symbols_have(&none, is_dgesv));
        struct accel_symbols untold = none;
        untold.gnu_hash = untold.hash = NULL;
        assert_false(accel_symbols_untold(&untold));
        assert_false(accel_symbols_have(&untold, is_dgesv));
    }
}

/* glibc binds a reference without a version to the object's first one, hidden or not, and to a
 * later one if that is the default. */
static void test_versions(void **state)
{
    enum { HIDDEN = 0x8000 };
    struct accel_symbols s = with(gnu_hash, NULL);
    const struct {
        ElfW(Versym) version;
        bool is_found;
    } cases[] = {{VER_NDX_GLOBAL, true}, {2, true},          {2 | HIDDEN, true}, {3, true},
                 {3 | HIDDEN, false},    {4 | HIDDEN, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ElfW(Versym) versions[SYMBOLS] = {0, cases[i].version, VER_NDX_GLOBAL, 0};
        s.versions = versions;
        assert_int_equal(accel_symbols_find(&s, "dgemm_"), cases[i].is_found ? DGEMM : STN_UNDEF);
        assert_int_equal(accel_symbols_find(&s, "dgesv_"), DGESV);
    }
}

static void test_no_dynamic_section(void **state)
{
    const struct accel_symbols s = accel_symbols_of(0x1000, NULL);
    (void)state;
    assert_int_equal(accel_dynamic_value(NULL, DT_SYMTAB), 0);
    assert_null(accel_dynamic_address(0x1000, NULL, DT_SYMTAB));
    assert_null(s.table);
    assert_int_equal(accel_symbols_find(&s, "dgemm_"), STN_UNDEF);
    assert_false(accel_symbols_untold(&s));
}

/* An address below the base has not been relocated; where the base is negative, each one has. */
static void test_addresses_of_the_section(void **state)
{
    const ElfW(Dyn) section[] = {{.d_tag = DT_SYMTAB, .d_un.d_ptr = 0x5000}, {.d_tag = DT_NULL}};
    const ElfW(Addr) bases[] = {0, 0x4000, 0x5000, 0x10000, (ElfW(Addr)) - 0x10000};
    const uintptr_t wanted[] = {0x5000, 0x5000, 0x5000, 0x15000, 0x5000};
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal((uintptr_t)accel_dynamic_address(bases[i], section, DT_SYMTAB), wanted[i]);
        assert_null(accel_dynamic_address(bases[i], section, DT_STRTAB));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_either_hash_table_tells_what_is_defined),
        cmocka_unit_test(test_empty_hash_tables),
        cmocka_unit_test(test_symbols_without_a_hash_table),
        cmocka_unit_test(test_no_symbols),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_no_dynamic_section),
        cmocka_unit_test(test_addresses_of_the_section),
    };
    fill_gnu_hash();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
