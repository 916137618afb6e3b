/* Objects that the dynamic linker need not list on this machine: those of the test, made by
 * hand. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "ops/names.h"
#include "shim/elf/objects.h"

enum { OBJECTS = 160, TAGS = 12 };

/* Its addresses are those of this process: the base is 0. */
struct made {
    const char *name;
    ElfW(Phdr) part[3];
    int parts;
    ElfW(Dyn) dynamic[TAGS];
};

static struct made made[OBJECTS];
static int count;
static bool list_ours;
static size_t info_size = sizeof(struct dl_phdr_info);

int __real_dl_iterate_phdr(int (*object)(struct dl_phdr_info *, size_t, void *), void *data);
int __wrap_dl_iterate_phdr(int (*object)(struct dl_phdr_info *, size_t, void *), void *data);

int __wrap_dl_iterate_phdr(int (*object)(struct dl_phdr_info *, size_t, void *), void *data)
{
    int result = 0;
    if (!list_ours)
        return __real_dl_iterate_phdr(object, data);
    for (int i = 0; i < count && result == 0; i++) {
        struct dl_phdr_info info = {.dlpi_name = made[i].name,
                                    .dlpi_phdr = made[i].part,
                                    .dlpi_phnum = (ElfW(Half))made[i].parts,
                                    .dlpi_adds = 1000,
                                    .dlpi_subs = 7};
        result = object(&info, info_size, data);
    }
    return result;
}

static void add_part(struct made *object, ElfW(Word) type, ElfW(Word) flags, const void *at,
                     size_t size)
{
    object->part[object->parts++] =
        (ElfW(Phdr)){.p_type = type, .p_flags = flags, .p_vaddr = (uintptr_t)at, .p_memsz = size};
}

static struct made *add_object(const char *name)
{
    struct made *object = &made[count++];
    assert_true(count <= OBJECTS);
    *object = (struct made){.name = name};
    return object;
}

/* What its dynamic section says comes in pairs, up to DT_NULL. */
static const ElfW(Dyn) * add_dynamic(const char *name, const ElfW(Dyn) * tags)
{
    struct made *object = add_object(name);
    int i = 0;
    for (; tags[i].d_tag != DT_NULL; i++)
        object->dynamic[i] = tags[i];
    assert_true(i < TAGS);
    add_part(object, PT_DYNAMIC, PF_R, object->dynamic, sizeof object->dynamic);
    return object->dynamic;
}

#define POINTER(tag, at)                                                                           \
    {                                                                                              \
        (tag),                                                                                     \
        {                                                                                          \
            .d_ptr = (uintptr_t)(at)                                                               \
        }                                                                                          \
    }
#define VALUE(tag, value)                                                                          \
    {                                                                                              \
        (tag),                                                                                     \
        {                                                                                          \
            .d_val = (value)                                                                       \
        }                                                                                          \
    }
#define END                                                                                        \
    {                                                                                              \
        DT_NULL,                                                                                   \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* The objects of the start are the program and one library. */
static int set_up(void **state)
{
    static const ElfW(Dyn) none[] = {END};
    (void)state;
    count = 0;
    list_ours = true;
    info_size = sizeof(struct dl_phdr_info);
    add_dynamic("", none);
    add_dynamic("/lib/first.so", none);
    accel_objects_start();
    return 0;
}

static int leave(void **state)
{
    (void)state;
    list_ours = false;
    return 0;
}

static const char names[] = "\0one\0two\0lib.so\0other.so\0mine.so";
enum { ONE = 1, TWO = 5, LIB = 9, OTHER = 16, MINE = 25 };

static const ElfW(Sym) symbols[] = {
    {0},
    {.st_name = ONE, .st_shndx = SHN_UNDEF, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)},
    {.st_name = TWO,
     .st_shndx = 3,
     .st_value = 64,
     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)}};
/* One bucket, three symbols; the second and the third are in the chain. */
static const uint32_t hash[] = {1, 3, 1, 0, 2, 0};

static bool is_one(const char *name)
{
    return strcmp(name, "one") == 0;
}

static bool is_two(const char *name)
{
    return strcmp(name, "two") == 0;
}

static bool is_two_hashed(const char *name, uint32_t of)
{
    assert_int_equal(of | 1, accel_name_hash(name) | 1);
    return is_two(name);
}

static void test_a_linker_that_passes_no_counts(void **state)
{
    unsigned long long now = 1;
    (void)state;
    assert_int_equal(accel_objects_loads(), 1000);
    assert_int_equal(accel_objects_unloads(), 7);
    info_size = offsetof(struct dl_phdr_info, dlpi_adds);
    assert_int_equal(accel_objects_loads(), 0);
    assert_int_equal(accel_objects_unloads(), 0);
    assert_int_equal(accel_objects_first_since(0, &now), 2);
    assert_int_equal(now, 0);
    assert_int_equal(accel_objects_changes(), 2);
}

static bool see_any(const char *name, uint32_t of, int object, void *data)
{
    (void)name, (void)of, (void)object;
    ++*(int *)data;
    return true;
}

/* Nothing is read of an object without a dynamic section, and the ones behind it are still seen. */
static void test_no_dynamic_section(void **state)
{
    static const char memory[64];
    const ElfW(Dyn) tags[] = {POINTER(DT_SYMTAB, symbols), POINTER(DT_STRTAB, names),
                              POINTER(DT_HASH, hash), VALUE(DT_SONAME, LIB), END};
    struct accel_object object;
    struct accel_users users = {.next = 0};
    int seen = 0;
    (void)state;
    add_part(add_object("/lib/bare.so"), PT_LOAD, PF_R, memory, sizeof memory);
    const ElfW(Dyn) *behind = add_dynamic("/lib/lib.so", tags);
    assert_int_equal(accel_objects_number(memory), 2);
    assert_int_equal(accel_objects_number(memory + sizeof memory), -1);
    assert_false(accel_objects_at(memory, &object));
    assert_false(accel_object_defines(0, NULL, "two"));
    assert_true(accel_objects_define(is_two_hashed, 2));
    accel_objects_using(see_any, &seen, &users);
    accel_objects_needing(behind, &users);
    assert_int_equal(users.count, 0);
    assert_int_equal(seen, 0);
    assert_true(accel_objects_has(behind));
    assert_ptr_equal(accel_objects_function("two", made[1].dynamic), (const void *)64);
}

static void test_names_that_are_too_long(void **state)
{
    static char memory[2][8], longest[4096], too_long[4097];
    static const ElfW(Dyn) none[] = {END};
    struct accel_object object;
    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    memset(too_long, 'x', sizeof too_long - 1);
    const ElfW(Dyn) *dynamic = add_dynamic(longest, none);
    add_part(&made[count - 1], PT_LOAD, PF_R, memory[0], sizeof memory[0]);
    add_dynamic(too_long, none);
    add_part(&made[count - 1], PT_LOAD, PF_R, memory[1], sizeof memory[1]);
    assert_true(accel_objects_at(memory[0], &object));
    assert_string_equal(object.name, longest);
    assert_ptr_equal(object.dynamic, dynamic);
    assert_int_equal(object.number, 2);
    assert_false(accel_objects_at(memory[1], &object));
    assert_int_equal(accel_objects_number(memory[1]), 3);
}

static void test_what_is_a_variable(void **state)
{
    static const char code[8], data[8];
    static const struct {
        unsigned type, section;
        const void *at;
        bool variable;
    } cases[] = {{STT_FUNC, 3, data, false},      {STT_OBJECT, 3, code, true},
                 {STT_COMMON, 3, code, true},     {STT_TLS, 3, code, true},
                 {STT_FUNC, SHN_ABS, code, true}, {STT_NOTYPE, 3, code, false},
                 {STT_NOTYPE, 3, data, true},     {STT_NOTYPE, 3, cases, true},
                 {STT_GNU_IFUNC, 3, data, false}};
    (void)state;
    add_part(add_object("/lib/parts.so"), PT_LOAD, PF_R | PF_X, code, sizeof code);
    add_part(&made[count - 1], PT_LOAD, PF_R | PF_W, data, sizeof data);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ElfW(Sym)
            symbol = {.st_info = (unsigned char)ELF64_ST_INFO(STB_GLOBAL, cases[i].type),
                      .st_shndx = (ElfW(Half))cases[i].section,
                      .st_value = (uintptr_t)cases[i].at};
        assert_int_equal(accel_object_is_variable(0, &symbol), cases[i].variable);
    }
}

/* What nothing can be told of may do anything. */
static void test_hash_tables_that_are_missing(void **state)
{
    /* No bucket is used: the header's first symbol is behind all. */
    static const uint32_t gnu_hash[] = {1, 3, 1, 0, 0, 0, 0};
    static const uint32_t gnu_early[] = {1, 1, 1, 0, 0, 0, 0};
    const ElfW(Dyn) no_names[] = {POINTER(DT_SYMTAB, symbols), POINTER(DT_HASH, hash), END};
    const ElfW(Dyn) no_table[] = {POINTER(DT_STRTAB, names), POINTER(DT_HASH, hash), END};
    const ElfW(Dyn) no_hash[] = {POINTER(DT_SYMTAB, symbols), POINTER(DT_STRTAB, names), END};
    const ElfW(Dyn) by_hash[] = {POINTER(DT_SYMTAB, symbols), POINTER(DT_STRTAB, names),
                                 POINTER(DT_HASH, hash), END};
    const ElfW(Dyn) by_gnu[] = {POINTER(DT_SYMTAB, symbols), POINTER(DT_STRTAB, names),
                                POINTER(DT_GNU_HASH, gnu_hash), END};
    const ElfW(Dyn) by_early[] = {POINTER(DT_SYMTAB, symbols), POINTER(DT_STRTAB, names),
                                  POINTER(DT_GNU_HASH, gnu_early), END};
    (void)state;
    assert_true(accel_object_imports(0, no_names, is_two));
    assert_true(accel_object_imports(0, no_table, is_two));
    assert_true(accel_object_imports(0, no_hash, is_two));
    assert_true(accel_object_imports(0, by_hash, is_one));
    assert_false(accel_object_imports(0, by_hash, is_two)); /* defined here */
    assert_true(accel_object_imports(0, by_gnu, is_one));
    assert_false(accel_object_imports(0, by_gnu, is_two));
    assert_false(accel_object_imports(0, by_early, is_one));
    assert_false(accel_object_defines(0, no_names, "two"));
    assert_false(accel_object_defines(0, no_table, "two"));
    assert_true(accel_object_defines(0, no_hash, "two"));
    assert_true(accel_object_defines(0, by_hash, "two"));
    assert_false(accel_object_defines(0, by_hash, "one"));
}

static void test_functions_by_type(void **state)
{
    static const struct {
        unsigned type;
        bool found, function;
    } cases[] = {{STT_FUNC, true, true},
                 {STT_NOTYPE, true, false},
                 {STT_OBJECT, false, false},
                 {STT_GNU_IFUNC, false, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ElfW(Sym) table[3];
        memcpy(table, symbols, sizeof table);
        table[2].st_info = (unsigned char)ELF64_ST_INFO(STB_GLOBAL, cases[i].type);
        const ElfW(Dyn) tags[] = {POINTER(DT_SYMTAB, table), POINTER(DT_STRTAB, names),
                                  POINTER(DT_HASH, hash), END};
        const void *at = (const void *)64;
        assert_int_equal(accel_object_function(0, tags, "two") == at, cases[i].found);
        assert_null(accel_object_function(0, tags, "three"));
        /* Among the objects behind one, the first that has a function of the name. */
        count = 2;
        add_dynamic("/lib/behind.so", tags);
        assert_int_equal(accel_objects_function("two", made[1].dynamic) == at, cases[i].function);
        assert_null(accel_objects_function("two", made[2].dynamic));
    }
}

static void test_slots(void **state)
{
    static const ElfW(Rela) table[] = {{.r_offset = 8, .r_info = ELF64_R_INFO(1, 7)},
                                       {.r_offset = 16, .r_info = ELF64_R_INFO(2, 7)},
                                       {.r_offset = 160, .r_info = ELF64_R_INFO(0, 7)}};
    const ElfW(Dyn) whole[] = {POINTER(DT_SYMTAB, symbols), POINTER(DT_STRTAB, names),
                               POINTER(DT_JMPREL, table), VALUE(DT_PLTRELSZ, sizeof table), END};
    (void)state;
    assert_string_equal(accel_object_slot_name(0, whole, 8), "one");
    assert_string_equal(accel_object_slot_name(0, whole, 16), "two");
    assert_string_equal(accel_object_slot_name(0, whole, 160), "");
    assert_null(accel_object_slot_name(0, whole, 24));
    assert_null(accel_object_slot_name(0, whole + 1, 8)); /* without symbols */
    const ElfW(Dyn) nameless[] = {whole[0], whole[2], whole[3], END};
    assert_null(accel_object_slot_name(0, nameless, 8));
    const ElfW(Dyn) none[] = {whole[0], whole[1], END};
    assert_null(accel_object_slot_name(0, none, 8));
}

/* Names of which some still fit where others do not: the list stays in the order of the objects. */
static void test_names_that_do_not_fit(void **state)
{
    enum { LISTED = 60, LONG = 3000 };
    static char text[LISTED][LONG];
    const ElfW(Dyn) tags[] = {POINTER(DT_SYMTAB, symbols), POINTER(DT_STRTAB, names),
                              POINTER(DT_HASH, hash), END};
    struct accel_objects objects = {.next = 0};
    int found = 0, parts = 0;
    (void)state;
    for (int i = 0; i < LISTED; i++) {
        const int length = i % 3 == 2 ? 5 : LONG - 1;
        snprintf(text[i], sizeof text[i], "%0*d", length, i);
        add_dynamic(text[i], tags);
    }
    do {
        accel_objects_defining("two", objects.next, &objects);
        for (size_t at = 0; at < objects.used; at += strlen(objects.text + at) + 1)
            assert_string_equal(objects.text + at, text[found++]);
        parts++;
    } while (objects.used > 0);
    assert_int_equal(found, LISTED);
    assert_int_equal(parts, 21); /* each has three names, 6006 of 8192 bytes; the last is empty */
}

/* More objects than one part has: none is lost, none comes twice, and each look over all objects
 * fills a part, but the last ones. */
static void test_many_users(void **state)
{
    enum { MANY = 150, PARTS = 4 }; /* 64, 64, 22 and none */
    static const ElfW(Rela) table[] = {{.r_offset = 8, .r_info = ELF64_R_INFO(1, 7)}};
    const ElfW(Dyn) uses[] = {POINTER(DT_SYMTAB, symbols), POINTER(DT_STRTAB, names),
                              POINTER(DT_JMPREL, table),   VALUE(DT_PLTRELSZ, sizeof table),
                              VALUE(DT_NEEDED, LIB),       END};
    const ElfW(Dyn) needed[] = {POINTER(DT_STRTAB, names), VALUE(DT_SONAME, LIB), END};
    struct accel_users users = {.next = 0};
    int seen = 0, found = 0, parts = 0;
    (void)state;
    const ElfW(Dyn) *library = add_dynamic("/lib/lib.so", needed);
    for (int i = 0; i < MANY; i++)
        add_dynamic("/lib/user.so", uses);
    do {
        accel_objects_using(see_any, &seen, &users);
        for (int i = 0; i < users.count; i++)
            assert_ptr_equal(users.dynamic[i], made[3 + found++].dynamic);
        parts++;
    } while (users.count > 0);
    assert_int_equal(found, MANY);
    assert_int_equal(parts, PARTS);
    users.next = found = parts = 0;
    do {
        accel_objects_needing(library, &users);
        for (int i = 0; i < users.count; i++)
            assert_ptr_equal(users.dynamic[i], made[3 + found++].dynamic);
        parts++;
    } while (users.count > 0);
    assert_int_equal(found, MANY);
    assert_int_equal(parts, PARTS);
}

/* Relocations of an object whose symbols or names are not there are not read. */
static void test_uses_that_have_no_names(void **state)
{
    static const ElfW(Rela) table[] = {{.r_offset = 8, .r_info = ELF64_R_INFO(1, 7)}};
    const ElfW(Dyn) no_names[] = {POINTER(DT_SYMTAB, symbols),      POINTER(DT_JMPREL, table),
                                  VALUE(DT_PLTRELSZ, sizeof table), VALUE(DT_NEEDED, LIB),
                                  VALUE(DT_SONAME, MINE),           END};
    const ElfW(Dyn) no_table[] = {POINTER(DT_STRTAB, names), POINTER(DT_JMPREL, table),
                                  VALUE(DT_PLTRELSZ, sizeof table), END};
    const ElfW(Dyn) library[] = {POINTER(DT_STRTAB, names), VALUE(DT_SONAME, LIB), END};
    struct accel_users users = {.next = 0};
    int seen = 0;
    (void)state;
    const ElfW(Dyn) *needed = add_dynamic("/lib/lib.so", library);
    const ElfW(Dyn) *nameless = add_dynamic("/lib/mine.so", no_names);
    add_dynamic("/lib/untabled.so", no_table);
    accel_objects_using(see_any, &seen, &users);
    assert_int_equal(users.count + seen, 0);
    accel_objects_uses_of(nameless, see_any, &seen);
    assert_int_equal(seen, 0);
    users.next = 0;
    accel_objects_needing(needed, &users);
    assert_int_equal(users.count, 0);
    accel_objects_needing(nameless, &users);
    assert_int_equal(users.count, 0);
}

/* An earlier object that answers to the same name is what others need. */
static void test_roots_and_needs(void **state)
{
    const ElfW(Dyn) library[] = {POINTER(DT_STRTAB, names), VALUE(DT_SONAME, LIB), END};
    const ElfW(Dyn) user[] = {POINTER(DT_STRTAB, names), VALUE(DT_NEEDED, LIB), END};
    struct accel_object root;
    struct accel_users users = {.next = 0};
    (void)state;
    const ElfW(Dyn) *bringing = add_dynamic("/lib/user.so", user);
    const ElfW(Dyn) *brought = add_dynamic("/lib/lib.so", library);
    const ElfW(Dyn) *twin = add_dynamic("/twin/lib.so", library);
    assert_true(accel_objects_root(brought, &root));
    assert_ptr_equal(root.dynamic, bringing);
    assert_string_equal(root.name, "/lib/user.so");
    assert_false(accel_objects_root(bringing, &root));
    assert_false(accel_objects_root(twin, &root));
    accel_objects_needing(brought, &users);
    assert_int_equal(users.count, 1);
    assert_ptr_equal(users.dynamic[0], bringing);
    users.next = 0;
    accel_objects_needing(twin, &users);
    assert_int_equal(users.count, 0);
    /* One that has gone. */
    assert_false(accel_objects_has(library));
    assert_false(accel_objects_root(library, &root));
    assert_false(accel_objects_preloaded(library));
    users.next = 0;
    accel_objects_needing(library, &users);
    assert_int_equal(users.count, 0);
}

/* Nothing tells yet what is of the program's start: no object counts as brought in. */
static void test_before_the_start(void **state)
{
    const ElfW(Dyn) library[] = {POINTER(DT_STRTAB, names), VALUE(DT_SONAME, LIB), END};
    const ElfW(Dyn) user[] = {POINTER(DT_STRTAB, names), VALUE(DT_NEEDED, LIB), END};
    struct accel_object root;
    (void)state;
    list_ours = true;
    add_dynamic("/lib/user.so", user);
    const ElfW(Dyn) *brought = add_dynamic("/lib/lib.so", library);
    assert_int_equal(accel_objects_at_start(), 0);
    assert_false(accel_objects_root(brought, &root));
}

static void test_preloaded(void **state)
{
    const ElfW(Dyn) library[] = {POINTER(DT_STRTAB, names), VALUE(DT_SONAME, LIB), END};
    const ElfW(Dyn) other[] = {POINTER(DT_STRTAB, names), VALUE(DT_SONAME, OTHER), END};
    const ElfW(Dyn) program[] = {POINTER(DT_STRTAB, names), VALUE(DT_NEEDED, LIB), END};
    (void)state;
    count = 0;
    add_dynamic("", program);
    const ElfW(Dyn) *preload = add_dynamic("/lib/other.so", other);
    const ElfW(Dyn) *linked = add_dynamic("/lib/lib.so", library);
    accel_objects_start();
    const ElfW(Dyn) *later = add_dynamic("/lib/mine.so", other);
    assert_true(accel_objects_preloaded(preload));
    assert_false(accel_objects_preloaded(linked));
    assert_false(accel_objects_preloaded(made[0].dynamic)); /* the program itself */
    assert_false(accel_objects_preloaded(later));
}

struct taken {
    int count, parts;
};

static void take_headers(const struct dl_phdr_info *info, void *data)
{
    struct taken *taken = data;
    taken->count++;
    taken->parts = info->dlpi_phnum;
}

/* The headers of one object, by its dynamic section; of one that is not there, none. */
static void test_headers(void **state)
{
    static const char memory[8];
    static const ElfW(Dyn) none[] = {END}, elsewhere[] = {END};
    struct taken taken = {0, 0};
    (void)state;
    const ElfW(Dyn) *two = add_dynamic("/lib/two.so", none);
    add_part(&made[count - 1], PT_LOAD, PF_R, memory, sizeof memory);
    add_dynamic("/lib/behind.so", none);
    assert_true(accel_objects_headers(two, take_headers, &taken));
    assert_int_equal(taken.count, 1);
    assert_int_equal(taken.parts, 2);
    assert_true(accel_objects_headers(made[0].dynamic, take_headers, &taken));
    assert_int_equal(taken.count, 2);
    assert_int_equal(taken.parts, 1);
    assert_false(accel_objects_headers(elsewhere, take_headers, &taken));
    assert_int_equal(taken.count, 2);
}

/* Where an object lies, and which one: none has the bytes beside its segments. */
static void test_places(void **state)
{
    static const char memory[32];
    static const ElfW(Dyn) none[] = {END};
    struct accel_object object;
    (void)state;
    for (int i = 0; i < 2; i++) {
        add_dynamic(i ? "/lib/b.so" : "/lib/a.so", none);
        add_part(&made[count - 1], PT_LOAD, PF_R, memory + 16 * i, 8);
        add_part(&made[count - 1], PT_NOTE, PF_R, memory + 16 * i + 8, 8);
    }
    for (int at = 0; at < 32; at++) {
        const bool lies = at % 16 < 8;
        const int number = lies ? 2 + at / 16 : -1;
        assert_int_equal(accel_objects_number(memory + at), number);
        assert_int_equal(accel_objects_at(memory + at, &object), lies);
        if (!lies)
            continue;
        assert_int_equal(object.number, number);
        assert_ptr_equal(object.dynamic, made[number].dynamic);
        assert_string_equal(object.name, made[number].name);
    }
}

static bool is_lib_path(const char *path)
{
    return strcmp(path, "/lib/first.so") == 0;
}

static bool is_no_path(const char *path)
{
    (void)path;
    return false;
}

static void test_paths(void **state)
{
    (void)state;
    assert_true(accel_objects_any(is_lib_path));
    assert_false(accel_objects_any(is_no_path));
}

#define OF_LIST(test) cmocka_unit_test_setup_teardown(test, set_up, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_before_the_start, leave), /* the first one */
        OF_LIST(test_a_linker_that_passes_no_counts),
        OF_LIST(test_no_dynamic_section),
        OF_LIST(test_names_that_are_too_long),
        OF_LIST(test_what_is_a_variable),
        OF_LIST(test_hash_tables_that_are_missing),
        OF_LIST(test_functions_by_type),
        OF_LIST(test_slots),
        OF_LIST(test_names_that_do_not_fit),
        OF_LIST(test_many_users),
        OF_LIST(test_uses_that_have_no_names),
        OF_LIST(test_roots_and_needs),
        OF_LIST(test_preloaded),
        OF_LIST(test_headers),
        OF_LIST(test_places),
        OF_LIST(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
