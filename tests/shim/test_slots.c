/* What the entries lead to (shim/elf/slots.h): the test plays the assembler's data, what the
 * dispatcher wants to see, and who finds the originals. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops/op.h"
#include "ops/svm/predict.h"
#include "shim/elf/real_linker.h"
#include "shim/elf/slots.h"

/* ---- The assembler's data ---- */

enum { ENTRIES = ACCEL_ENTRIES_MAX - ACCEL_BOUND_ENTRIES };
enum { GATE = 1, COMPARE, BYCALLER, BYCALLER_GATE }; /* places in the code of any entry */

_Atomic(void *) accel_slot_enter[ENTRIES], accel_slot_forward[ENTRIES];
struct accel_slots accel_bound_slots[ACCEL_BOUND_ENTRIES];
_Atomic uint32_t accel_count_at[ENTRIES];
const char accel_blocks[16], accel_slow_blocks[ENTRIES * ACCEL_SLOW_SIZE],
    accel_bound_blocks[ACCEL_BOUND_ENTRIES * ACCEL_BOUND_BLOCK];
const uint32_t accel_entry_count = ENTRIES;
const struct accel_entry_code accel_code[ENTRIES] = {
    [0 ... ENTRIES - 1] = {GATE, COMPARE, BYCALLER, BYCALLER_GATE}};
_Atomic uint64_t accel_gate;
_Atomic uint64_t accel_site_key[ACCEL_SITES];
_Atomic(void *) accel_site_target[ACCEL_SITES];

static const void *slow_of(uint32_t entry)
{
    return accel_slow_blocks + (size_t)entry * ACCEL_SLOW_SIZE;
}

static const void *bound_of(int index)
{
    return accel_bound_blocks + (size_t)index * ACCEL_BOUND_BLOCK;
}

static const void *enters(uint32_t entry)
{
    return accel_slot_enter[entry];
}

static const void *forwards(uint32_t entry)
{
    return accel_slot_forward[entry];
}

/* ---- The dispatcher ---- */

static struct dispatch_filter filter = {.level = DISPATCH_SEE_ALL};
static bool takes_library = true;

struct dispatch_filter __wrap_dispatch_filter(void);
struct dispatch_filter __wrap_dispatch_filter(void)
{
    return filter;
}

bool __wrap_dispatch_takes_library(const struct accel_routine *routine);
bool __wrap_dispatch_takes_library(const struct accel_routine *routine)
{
    (void)routine;
    return takes_library;
}

static void set_filter(enum dispatch_level level, uint64_t gate, bool matrices)
{
    filter = (struct dispatch_filter){level, gate, matrices};
    accel_slots_follow();
}

/* ---- Who finds the originals ---- */

static char code[1 << 16]; /* of callers, and of originals */
static const struct accel_original *answer;
static unsigned long long unloads;
static int lookups;

const struct accel_original *__wrap_accel_resolve(uint32_t entry, uintptr_t ret);
const struct accel_original *__wrap_accel_resolve(uint32_t entry, uintptr_t ret)
{
    (void)entry;
    (void)ret;
    lookups++;
    return answer;
}

const struct accel_original *__wrap_accel_resolve_unasked(uint32_t entry, void *function);
const struct accel_original *__wrap_accel_resolve_unasked(uint32_t entry, void *function)
{
    (void)entry;
    (void)function;
    lookups++;
    return answer;
}

const struct accel_original *__wrap_accel_resolve_known(uint32_t entry, void *function);
const struct accel_original *__wrap_accel_resolve_known(uint32_t entry, void *function)
{
    (void)entry;
    (void)function;
    lookups++;
    return answer;
}

unsigned long long __wrap_accel_objects_unloads(void);
unsigned long long __wrap_accel_objects_unloads(void)
{
    return unloads;
}

/* Each kilobyte of the code is an object of its own; nothing else is one. */
enum { OBJECT_BYTES = 1024, OBJECTS = sizeof code / OBJECT_BYTES };
static struct link_map objects[OBJECTS];

const struct link_map *__wrap_accel_object_of(const void *address);
const struct link_map *__wrap_accel_object_of(const void *address)
{
    const uintptr_t offset = (uintptr_t)address - (uintptr_t)code;
    return offset < sizeof code ? &objects[offset / OBJECT_BYTES] : NULL;
}

static uintptr_t call_in(int object, int number)
{
    return (uintptr_t)code + (size_t)object * OBJECT_BYTES + (size_t)number;
}

static int said;
void __wrap_accel_message(const char *format, ...);
void __wrap_accel_message(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    vdprintf(STDERR_FILENO, format, words);
    va_end(words);
    said++;
}

static uint32_t entry_of(const char *symbol)
{
    const int entry = accel_name_find(symbol);
    assert_true(entry >= 0 && accel_name_count <= ENTRIES);
    return (uint32_t)entry;
}

/* Each test begins with nothing known. */
static int forget(void **state)
{
    (void)state;
    unloads++;
    accel_slots_drop_if_unloaded();
    answer = NULL;
    takes_library = true;
    said = 0;
    set_filter(DISPATCH_SEE_ALL, 0, false);
    lookups = 0;
    return 0;
}

static const struct accel_original *find(uint32_t entry, uintptr_t ret,
                                         const struct accel_original *original)
{
    answer = original;
    const struct accel_original *found = accel_slots_original(entry, ret);
    accel_slots_follow();
    return found;
}

/* ---- Originals ---- */

static void test_one_original_of_all_callers(void **state)
{
    const struct accel_original blas = {.function = code, .ours = true, .global = true};
    const uint32_t entry = entry_of("dgemm_");
    const unsigned long long before = accel_slots_originals();
    (void)state;
    assert_ptr_equal(enters(entry), NULL);
    assert_ptr_equal(find(entry, call_in(1, 1), &blas), &blas);
    answer = NULL;
    assert_ptr_equal(accel_slots_original(entry, call_in(2, 1)), &blas);
    assert_ptr_equal(accel_slots_original(entry, 0), &blas);
    assert_int_equal(lookups, 1);
    assert_int_equal(accel_slots_originals(), before + 1);
    assert_ptr_equal(enters(entry), slow_of(entry));
    assert_ptr_equal(forwards(entry), code);
    set_filter(DISPATCH_SEE_LARGE, 64, false);
    assert_ptr_equal(enters(entry), accel_blocks + GATE);
    assert_ptr_equal(forwards(entry), code);
    assert_int_equal(accel_gate, 64);
    set_filter(DISPATCH_SEE_NOTHING, 0, false);
    assert_ptr_equal(enters(entry), code);
}

static uint64_t key_of(uint32_t entry, uintptr_t ret)
{
    return ret + ((uint64_t)entry << ACCEL_SITE_ENTRY_SHIFT);
}

/* To what the by-caller stub jumps: it looks at two places (shim/arch/entry.h). NULL: to the slow
 * stub. */
static const void *jumps_to(uint32_t entry, uintptr_t ret)
{
    const uint32_t place =
        ((uint32_t)ret * ACCEL_SITE_HASH >> (32 - ACCEL_SITE_BITS)) + ACCEL_SITE_OFFSET(entry);
    for (uint32_t at = place; at < place + 2; at++)
        if (accel_site_key[at % ACCEL_SITES] == key_of(entry, ret))
            return accel_site_target[at % ACCEL_SITES];
    return NULL;
}

/* An object's calls of a name have one original, which is looked up once. */
static void test_originals_by_caller(void **state)
{
    const struct accel_original one = {.function = code, .ours = true},
                                two = {.function = code + 1, .ours = true};
    const uint32_t entry = entry_of("dgemm_"), other = entry_of("dtrsm_");
    const unsigned long long before = accel_slots_originals();
    (void)state;
    assert_ptr_equal(find(entry, call_in(1, 1), &one), &one);
    assert_ptr_equal(find(entry, call_in(2, 1), &two), &two);
    assert_int_equal(lookups, 2);
    /* The last byte of the call tells whose it is. */
    assert_ptr_equal(find(entry, call_in(2, 0), &two), &one);
    assert_ptr_equal(find(entry, call_in(1, 9), NULL), &one);
    assert_ptr_equal(find(entry, call_in(2, 9), NULL), &two);
    assert_int_equal(lookups, 2);
    assert_ptr_equal(find(other, call_in(1, 1), &two), &two);
    assert_int_equal(lookups, 3);
    /* Code of no object is asked at each place. */
    assert_ptr_equal(find(entry, 0x1000, &two), &two);
    assert_ptr_equal(find(entry, 0x1001, &one), &one);
    assert_int_equal(lookups, 5);
    assert_int_equal(accel_slots_originals(), before + 8);
    answer = NULL;
    assert_ptr_equal(accel_slots_original(entry, call_in(1, 1)), &one);
    assert_ptr_equal(accel_slots_original(entry, call_in(2, 9)), &two);
    assert_ptr_equal(accel_slots_original(entry, 0x1000), &two);
    assert_int_equal(accel_slots_originals(), before + 8);
    assert_ptr_equal(jumps_to(entry, call_in(1, 1)), code);
    assert_ptr_equal(jumps_to(entry, call_in(2, 1)), code + 1);
    assert_ptr_equal(jumps_to(entry, call_in(2, 9)), code + 1);
    assert_ptr_equal(jumps_to(other, call_in(1, 1)), code + 1);
    assert_null(jumps_to(other, call_in(2, 1)));
    assert_ptr_equal(forwards(entry), accel_blocks + BYCALLER);
    set_filter(DISPATCH_SEE_LARGE, 1, false);
    assert_ptr_equal(enters(entry), accel_blocks + BYCALLER_GATE);
    set_filter(DISPATCH_SEE_NOTHING, 0, false);
    assert_ptr_equal(enters(entry), accel_blocks + BYCALLER);
}

/* Of a name that has come by callers, another's original may be of the program's start. */
static void test_a_global_original_behind_others(void **state)
{
    const struct accel_original own = {.function = code, .ours = true},
                                blas = {.function = code + 1, .ours = true, .global = true};
    const uint32_t entry = entry_of("dgemm_");
    (void)state;
    assert_ptr_equal(find(entry, call_in(1, 1), &own), &own);
    assert_ptr_equal(find(entry, call_in(2, 1), &blas), &blas);
    assert_ptr_equal(find(entry, call_in(1, 1), NULL), &own);
    assert_ptr_equal(find(entry, call_in(2, 2), NULL), &blas);
    assert_ptr_equal(forwards(entry), accel_blocks + BYCALLER);
    assert_int_equal(lookups, 2);
}

/* More callers and more calls than there is room for at first. */
static void test_many_callers(void **state)
{
    static struct accel_original originals[OBJECTS];
    const uint32_t entry = entry_of("dgemm_"), other = entry_of("dsyrk_");
    (void)state;
    for (int i = 0; i < OBJECTS; i++) {
        originals[i] = (struct accel_original){.function = code + i, .ours = true};
        assert_ptr_equal(find(entry, call_in(i, 1), &originals[i]), &originals[i]);
        assert_ptr_equal(find(other, call_in(i, 1), &originals[i]), &originals[i]);
    }
    assert_int_equal(lookups, 2 * OBJECTS);
    for (int number = 2; number <= OBJECT_BYTES; number++)
        for (int i = 0; i < OBJECTS; i++)
            assert_ptr_equal(find(entry, call_in(i, number), NULL), &originals[i]);
    for (int i = 0; i < OBJECTS; i++) {
        assert_ptr_equal(find(other, call_in(i, 7), NULL), &originals[i]);
        /* The calls that came last are in the table. */
        assert_ptr_equal(find(entry, call_in(i, OBJECT_BYTES), NULL), &originals[i]);
    }
    assert_int_equal(lookups, 2 * OBJECTS);
}

/* Calls of one place of the table: the stub finds the last one, the slow path finds all. */
static void test_calls_of_one_place(void **state)
{
    const struct accel_original one = {.function = code, .ours = true};
    const uint32_t entry = entry_of("dgemm_");
    uintptr_t ret[40];
    int count = 0;
    (void)state;
    for (uint32_t at = 1; count < 40; at++)
        if (at * ACCEL_SITE_HASH >> (32 - ACCEL_SITE_BITS) == 1234)
            ret[count++] = at;
    for (int i = 0; i < count; i++) {
        assert_ptr_equal(find(entry, ret[i], &one), &one);
        if (i < 2 || i >= 16)
            assert_ptr_equal(jumps_to(entry, ret[i]), code);
    }
    assert_int_equal(lookups, count);
    for (int i = 1; i < 16; i++) /* behind the first, which has given way */
        assert_ptr_equal(find(entry, ret[i], NULL), &one);
    assert_ptr_equal(find(entry, ret[count - 1], NULL), &one);
    assert_int_equal(lookups, count);
    assert_ptr_equal(find(entry, ret[0], &one), &one);
    assert_int_equal(lookups, count + 1);
}

/* Where integers of two widths may be meant, every call is looked at; the original is found. */
static void test_an_original_of_two_widths(void **state)
{
    const struct accel_original wide = {.function = code + 1, .ours = true, .width = 64},
                                both = {.function = code, .ours = true, .wide = &wide};
    const uint32_t entry = entry_of("dgemm_");
    (void)state;
    assert_ptr_equal(find(entry, call_in(1, 1), &both), &both);
    assert_null(jumps_to(entry, call_in(1, 1)));
    assert_ptr_equal(find(entry, call_in(1, 1), NULL), &both);
    assert_int_equal(lookups, 1);
}

static void test_what_is_not_blas(void **state)
{
    const struct accel_original other = {.function = code, .global = true};
    const struct accel_original by_caller = {.function = code + 1};
    const uint32_t entry = entry_of("dgemm_"), second = entry_of("dtrsm_");
    (void)state;
    find(entry, call_in(1, 1), &other);
    find(second, call_in(1, 1), &by_caller);
    assert_ptr_equal(enters(entry), slow_of(entry)); /* a log sees it */
    assert_null(jumps_to(second, call_in(1, 1)));
    set_filter(DISPATCH_SEE_LARGE, 1, true);
    assert_ptr_equal(enters(entry), code);
    set_filter(DISPATCH_SEE_NOTHING, 0, false);
    assert_ptr_equal(enters(entry), code);
    /* Nor does a library that is turned off matter to a gate. */
    takes_library = false;
    find(second, call_in(2, 1), &by_caller);
    assert_ptr_equal(jumps_to(second, call_in(2, 1)), code + 1);
    filter.level = DISPATCH_SEE_LARGE;
    accel_slots_follow();
    assert_ptr_equal(enters(second), accel_blocks + BYCALLER);
}

/* Level 2 pays at any size or none, unless its matrix may be on the device. */
static void test_levels_of_routines(void **state)
{
    static const struct {
        const char *name;
        bool large, large_with_matrices;
    } rows[] = {{"dgemm_", true, true},
                {"dgemv_", false, true},
                {"dtrsv_", false, true},
                {"dger_", false, false},
                {"dpotrf_", true, true}};
    const struct accel_original blas = {.function = code, .ours = true, .global = true};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t entry = entry_of(rows[i].name);
        find(entry, call_in(1, 1), &blas);
        for (int matrices = 0; matrices < 2; matrices++) {
            const bool large = matrices ? rows[i].large_with_matrices : rows[i].large;
            set_filter(DISPATCH_SEE_LARGE, 64, matrices);
            if (enters(entry) != (large ? (const void *)(accel_blocks + GATE) : code))
                fail_msg("%s, %s matrices", rows[i].name, matrices ? "with" : "without");
        }
        set_filter(DISPATCH_SEE_ALL, 0, false);
        assert_ptr_equal(enters(entry), slow_of(entry));
    }
}

/* A library that has been told to use the GPU is guided to its end, whatever pays. */
static void test_a_library_that_is_guided(void **state)
{
    const struct accel_original original = {
        .function = code, .ours = true, .global = true, .layout = 1};
    uint32_t entry = accel_blas_name_count;
    (void)state;
    while (entry < accel_name_count && !accel_op_of(accel_name_routine(entry))->foreign->guide)
        entry++;
    assert_true(entry < accel_name_count);
    find(entry, call_in(1, 1), &original);
    set_filter(DISPATCH_SEE_NOTHING, 0, false);
    assert_ptr_equal(enters(entry), slow_of(entry));
    takes_library = false;
    filter.gate = 1;
    accel_slots_follow();
    assert_ptr_equal(enters(entry), code);
}

/* The gate of a library's function reads a count where the first layout has it: others go the slow
 * way. */
static void test_layouts_of_structs(void **state)
{
    const struct accel_original libsvm = {.function = code, .ours = true, .layout = 1},
                                same = {.function = code + 1, .ours = true, .layout = 1},
                                sklearn = {
                                    .function = code + 2, .ours = true, .layout = SVM_VIEW_SKLEARN};
    const uint32_t entry = entry_of("svm_predict_values");
    const int offset = accel_op_of(accel_name_routine(entry))->foreign->count_at(1);
    (void)state;
    find(entry, call_in(1, 1), &libsvm);
    find(entry, call_in(2, 1), &same);
    find(entry, call_in(3, 1), &sklearn);
    assert_int_equal(accel_count_at[entry - accel_blas_name_count], offset + 1);
    assert_ptr_equal(jumps_to(entry, call_in(1, 1)), code);
    assert_ptr_equal(jumps_to(entry, call_in(2, 1)), code + 1);
    assert_null(jumps_to(entry, call_in(3, 1)));
    set_filter(DISPATCH_SEE_LARGE, 64, false);
    assert_ptr_equal(enters(entry), accel_blocks + BYCALLER_GATE);
    /* One without a count has no gate. */
    const uint32_t train = entry_of("svm_train");
    if (!accel_op_of(accel_name_routine(train))->foreign->count_at) {
        find(train, call_in(1, 1), &libsvm);
        assert_ptr_equal(enters(train), slow_of(train));
    }
}

/* An address may be another library's, after one has gone. */
static void test_nothing_is_known_after_an_unload(void **state)
{
    const struct accel_original own = {.function = code, .ours = true},
                                global = {.function = code, .ours = true, .global = true},
                                next = {.function = code + 1, .ours = true};
    const uint32_t entry = entry_of("dgemm_"), other = entry_of("dtrsm_");
    (void)state;
    find(entry, call_in(1, 1), &own);
    find(other, call_in(1, 1), &global);
    set_filter(DISPATCH_SEE_NOTHING, 0, false);
    accel_slots_drop_if_unloaded();
    assert_ptr_equal(jumps_to(entry, call_in(1, 1)), code);
    assert_int_equal(lookups, 2);
    unloads++;
    accel_slots_drop_if_unloaded();
    assert_null(jumps_to(entry, call_in(1, 1)));
    assert_ptr_equal(enters(entry), slow_of(entry));
    assert_ptr_equal(enters(other), slow_of(other));
    assert_ptr_equal(find(entry, call_in(1, 1), &next), &next);
    assert_ptr_equal(find(other, call_in(1, 1), &next), &next);
    assert_int_equal(lookups, 4);
    assert_ptr_equal(find(entry, call_in(1, 2), NULL), &next);
    assert_ptr_equal(jumps_to(entry, call_in(1, 2)), code + 1);
    assert_ptr_equal(enters(entry), accel_blocks + BYCALLER);
}

/* As the dynamic linker says it, and ends the process. */
static void test_no_original(void **state)
{
    const uint32_t entry = entry_of("dgemm_");
    char told[128] = "";
    int end[2], status;
    (void)state;
    assert_int_equal(pipe(end), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(end[1], STDERR_FILENO);
        accel_slots_original(entry, call_in(1, 1));
        _exit(0);
    }
    close(end[1]);
    assert_true(read(end[0], told, sizeof told - 1) > 0);
    close(end[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 127);
    assert_string_equal(told, "symbol lookup error: undefined symbol: dgemm_");
}

/* ---- Bound entries ---- */

static void assert_bound(int index, const void *enter, const void *forward)
{
    assert_ptr_equal(accel_bound_slots[index].enter, enter);
    assert_ptr_equal(accel_bound_slots[index].forward, forward);
    assert_ptr_equal(accel_bound_slots[index].slow,
                     accel_bound_blocks + ACCEL_BOUND_SLOW + (size_t)index * ACCEL_BOUND_BLOCK);
    assert_ptr_equal(accel_bound_slots[index].compare, accel_blocks + COMPARE);
}

static const void *bind(uint32_t entry, void *function, const struct accel_original *original)
{
    answer = original;
    return accel_slots_bind(entry, function);
}

/* One for each name and function; asked at the first call. */
static void test_bound_entries(void **state)
{
    const struct accel_original unasked = {.function = code, .unasked = true},
                                ours = {.function = code, .ours = true},
                                second = {.function = code + 1, .unasked = true},
                                not_ours = {.function = code + 1};
    const uint32_t entry = entry_of("dgemm_"), other = entry_of("dtrsm_");
    (void)state;
    /* What cannot be BLAS stays as it is. */
    assert_ptr_equal(bind(entry, code + 9, NULL), code + 9);
    assert_int_equal(lookups, 1);
    assert_ptr_equal(bind(entry, code, &unasked), bound_of(0));
    assert_bound(0, accel_bound_slots[0].slow, code);
    assert_ptr_equal(bind(entry, code, NULL), bound_of(0));
    assert_int_equal(lookups, 2);
    assert_ptr_equal(bind(entry, code + 1, &second), bound_of(1));
    assert_ptr_equal(bind(other, code, &unasked), bound_of(2));
    assert_int_equal(accel_slots_exported(ENTRIES), entry);
    assert_int_equal(accel_slots_exported(ENTRIES + 2), other);
    assert_int_equal(accel_slots_exported(entry), entry);
    assert_int_equal(lookups, 4);

    /* Until somebody asks, each call comes here. */
    set_filter(DISPATCH_SEE_LARGE, 64, false);
    assert_bound(0, accel_bound_slots[0].slow, code);
    assert_ptr_equal(find(ENTRIES, 0, &ours), &ours);
    assert_ptr_equal(find(ENTRIES, 0, NULL), &ours);
    assert_ptr_equal(find(ENTRIES + 1, 0, &not_ours), &not_ours);
    assert_int_equal(lookups, 6);
    assert_bound(0, accel_bound_blocks + ACCEL_BOUND_GATE, code);
    assert_bound(1, code + 1, code + 1);
    set_filter(DISPATCH_SEE_NOTHING, 0, false);
    assert_bound(0, code, code);
    assert_bound(2, code, code);
    set_filter(DISPATCH_SEE_ALL, 0, false);
    assert_bound(0, accel_bound_slots[0].slow, code);
    assert_bound(1, code + 1, code + 1);

    /* If nobody knows, it is asked again. */
    assert_ptr_equal(find(ENTRIES + 2, 0, NULL), &unasked);
    assert_ptr_equal(find(ENTRIES + 2, 0, &ours), &ours);
    assert_int_equal(lookups, 8);

    /* After an unload, an address may be another library's. */
    unloads++;
    accel_slots_drop_if_unloaded();
    assert_ptr_equal(bind(entry, code, &unasked), bound_of(0));
    assert_ptr_equal(bind(entry, code, NULL), bound_of(0));
    assert_int_equal(lookups, 9);
    assert_ptr_equal(find(ENTRIES, 0, &ours), &ours);
    assert_int_equal(lookups, 10);
}

/* Must be the last test. */
static void test_more_functions_than_bound_entries(void **state)
{
    static struct accel_original unasked[ACCEL_BOUND_ENTRIES + 2];
    const uint32_t entry = entry_of("dsymm_");
    int handed = 0;
    (void)state;
    for (int i = 0; i < ACCEL_BOUND_ENTRIES + 2; i++) {
        unasked[i] = (struct accel_original){.function = code + i, .unasked = true};
        const void *pointer = bind(entry, code + i, &unasked[i]);
        if (pointer == code + i)
            break;
        assert_ptr_equal(pointer, bound_of(3 + i));
        handed++;
    }
    assert_int_equal(handed, ACCEL_BOUND_ENTRIES - 3);
    assert_int_equal(said, 1);
    assert_ptr_equal(bind(entry, code + handed + 1, &unasked[handed + 1]), code + handed + 1);
    assert_int_equal(said, 1);
    assert_ptr_equal(bind(entry, code, NULL), bound_of(3));
    assert_ptr_equal(bind(entry, code + handed - 1, NULL), bound_of(ACCEL_BOUND_ENTRIES - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_one_original_of_all_callers, forget),
        cmocka_unit_test_setup(test_originals_by_caller, forget),
        cmocka_unit_test_setup(test_a_global_original_behind_others, forget),
        cmocka_unit_test_setup(test_many_callers, forget),
        cmocka_unit_test_setup(test_calls_of_one_place, forget),
        cmocka_unit_test_setup(test_an_original_of_two_widths, forget),
        cmocka_unit_test_setup(test_what_is_not_blas, forget),
        cmocka_unit_test_setup(test_levels_of_routines, forget),
        cmocka_unit_test_setup(test_a_library_that_is_guided, forget),
        cmocka_unit_test_setup(test_layouts_of_structs, forget),
        cmocka_unit_test_setup(test_nothing_is_known_after_an_unload, forget),
        cmocka_unit_test_setup(test_no_original, forget),
        cmocka_unit_test_setup(test_bound_entries, forget),
        cmocka_unit_test_setup(test_more_functions_than_bound_entries, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
