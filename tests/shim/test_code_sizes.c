/* What the code of routines tells of the sizes of INTEGER and of elements, for functions of this
 * program that are called like a BLAS's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>

#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/op.h"
#include "shim/elf/real_linker.h"
#include "shim/elf/sizes.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/whole_function.h"

void *__real_mmap(void *at, size_t length, int access, int flags, int file, off_t offset);
void *__wrap_mmap(void *at, size_t length, int access, int flags, int file, off_t offset);

static bool is_short;

void *__wrap_mmap(void *at, size_t length, int access, int flags, int file, off_t offset)
{
    return is_short ? MAP_FAILED : __real_mmap(at, length, access, flags, file, offset);
}

/* Its code is read from memory, as the program was loaded. */
static struct accel_code own_code(void)
{
    struct accel_code code;
    accel_real_init();
    assert_true(accel_code_of_object(&code, accel_object_of((void *)(uintptr_t)own_code)));
    return code;
}

static struct accel_sizes sizes_by(const char *name, void *function)
{
    const struct accel_code code = own_code();
    const int entry = accel_name_find(name);
    struct accel_sizes sizes = {.integer = 0};
    assert_true(entry >= 0);
    accel_sizes_add_function(&sizes, &code, (uint32_t)entry, function);
    return sizes;
}

/* ---- INTEGERs ---- */

#define GEMM(name, INTEGER, OTHER, T)                                                              \
    FUNCTION INTEGER name(const char *transa, const char *transb, const INTEGER *m,                \
                          const OTHER *n, const INTEGER *k, const T *alpha)
#define SUM (*transa + *transb + (*m > 3) + (*n > 4) + (*k > 5) + (*alpha > 6))

GEMM(all_short, int32_t, int32_t, double)
{
    return SUM;
}
GEMM(all_long, int64_t, int64_t, double)
{
    return SUM;
}
GEMM(mixed, int32_t, int64_t, double)
{
    return SUM;
}

FUNCTION int64_t mixed_values(int layout, int transa, int transb, int32_t m, int64_t n, int32_t k)
{
    return layout + transa + transb + (m > 3 ? 1 : 2) + (n > 4 ? 3 : 4) + (k > 5 ? 5 : 6);
}

/* Arguments that tell different sizes tell none: the code is not understood. */
static void test_integers(void **state)
{
    (void)state;
    assert_int_equal(sizes_by("dgemm_", (void *)(uintptr_t)all_short).integer, 32);
    assert_int_equal(sizes_by("dgemm_", (void *)(uintptr_t)all_long).integer, 64);
    assert_int_equal(sizes_by("dgemm_", (void *)(uintptr_t)mixed).integer, 0);
    assert_int_equal(sizes_by("dgemm_", (void *)(uintptr_t)mixed).double_precision, 8);
    assert_int_equal(sizes_by("cblas_dgemm", (void *)(uintptr_t)mixed_values).integer, 0);
}

/* ---- Elements ---- */

/* Reads alpha as words of a type, at places of theirs. */
#define ALPHA(name, WORD, places)                                                                  \
    FUNCTION void name(const char *transa, const char *transb, const void *m, const void *n,       \
                       const void *k, const WORD *alpha)                                           \
    {                                                                                              \
        (void)transa, (void)transb, (void)m, (void)n, (void)k;                                     \
        places                                                                                     \
    }
#define READ(i) (void)*(const volatile __typeof__(*alpha) *)(alpha + (i));

typedef float four_floats __attribute__((vector_size(16)));

ALPHA(one_float, float, READ(0))
ALPHA(two_floats, float, READ(0) READ(1))
ALPHA(one_double, double, READ(0))
ALPHA(two_doubles, double, READ(0) READ(1))
ALPHA(four_doubles, double, READ(0) READ(1) READ(2) READ(3))
ALPHA(vectors, four_floats, READ(0))
ALPHA(two_vectors, four_floats, READ(0) READ(1))
FUNCTION void double_and_more(const char *transa, const char *transb, const void *m, const void *n,
                              const void *k, const volatile double *alpha)
{
    (void)transa, (void)transb, (void)m, (void)n, (void)k;
    (void)*alpha;
    (void)*(const volatile int32_t *)(alpha + 1);
}
static void test_elements(void **state)
{
    /* Bytes of REAL or DOUBLE PRECISION, 0: nothing can be told. */
    static const struct {
        const char *name;
        void *function;
        int real, double_precision;
    } rows[] = {
        {"sgemm_", (void *)one_float, 4, 0},
        /* More than one REAL: it is none, or not the routine's own. */
        {"sgemm_", (void *)two_floats, 0, 0},
        {"sgemm_", (void *)one_double, 8, 0},
        {"dgemm_", (void *)one_double, 0, 8},
        {"dgemm_", (void *)two_doubles, 0, 16},
        {"dgemm_", (void *)double_and_more, 0, 0},
        {"dgemm_", (void *)four_doubles, 0, 0},
        {"dgemm_", (void *)vectors, 0, 16},
        {"cgemm_", (void *)two_floats, 4, 0},
        {"cgemm_", (void *)one_double, 0, 0},
        {"cgemm_", (void *)two_doubles, 8, 0},
        {"zgemm_", (void *)two_doubles, 0, 8},
        {"zgemm_", (void *)four_doubles, 0, 16},
        /* Both parts at once, or one of a promoted type. */
        {"zgemm_", (void *)vectors, 0, 0},
        {"zgemm_", (void *)two_vectors, 0, 16},
    };
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        const struct accel_sizes sizes = sizes_by(rows[row].name, rows[row].function);
        if (sizes.real != rows[row].real || sizes.double_precision != rows[row].double_precision)
            fail_msg("%s, row %zu: REAL of %d, DOUBLE PRECISION of %d", rows[row].name, row,
                     sizes.real, sizes.double_precision);
    }
}

/* ---- One function of a library that has no other ---- */

enum { ARGUMENTS = 7 };

/* Read one argument by reference, 8 bytes; or compute with it as with a number of 8 bytes. */
#define READER(i)                                                                                  \
    FUNCTION void reads_##i(const volatile int64_t *a0, const volatile int64_t *a1,                \
                            const volatile int64_t *a2, const volatile int64_t *a3,                \
                            const volatile int64_t *a4, const volatile int64_t *a5,                \
                            const volatile int64_t *a6)                                            \
    {                                                                                              \
        (void)a0, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6;                      \
        (void)*a##i;                                                                               \
    }                                                                                              \
    FUNCTION int computes_with_##i(int64_t a0, int64_t a1, int64_t a2, int64_t a3, int64_t a4,     \
                                   int64_t a5)                                                     \
    {                                                                                              \
        (void)a0, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5;                                \
        return a##i > 7 ? 1 : 2;                                                                   \
    }
READER(0)
READER(1)
READER(2)
READER(3)
READER(4)
READER(5)
FUNCTION void reads_6(const int64_t *a0, const int64_t *a1, const int64_t *a2, const int64_t *a3,
                      const int64_t *a4, const int64_t *a5, const volatile int64_t *a6)
{
    (void)a0, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5;
    (void)*a6;
}

static void *const readers[ARGUMENTS] = {(void *)reads_0, (void *)reads_1, (void *)reads_2,
                                         (void *)reads_3, (void *)reads_4, (void *)reads_5,
                                         (void *)reads_6};
static void *const computers[ARGUMENTS - 1] = {(void *)computes_with_0, (void *)computes_with_1,
                                               (void *)computes_with_2, (void *)computes_with_3,
                                               (void *)computes_with_4, (void *)computes_with_5};

/* What is told of dgemm_'s library by a function of this name alone. */
static struct accel_sizes told_by(const char *entry, const char *name, void *function)
{
    static const uint32_t hash[] = {1, 2, 1, 0, 0}; /* one bucket, one symbol */
    struct accel_code code = own_code();
    struct accel_sizes sizes = {.integer = 0};
    const int number = accel_name_find(entry);
    char names[64] = "";
    const ElfW(Sym) table[] = {{0},
                               {.st_name = 1,
                                .st_shndx = 3,
                                .st_value = (uintptr_t)function,
                                .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)}};
    ElfW(Dyn) dynamic[4] = {
        {.d_tag = DT_SYMTAB}, {.d_tag = DT_STRTAB}, {.d_tag = DT_HASH}, {.d_tag = DT_NULL}};
    dynamic[0].d_un.d_ptr = (uintptr_t)table;
    dynamic[1].d_un.d_ptr = (uintptr_t)names;
    dynamic[2].d_un.d_ptr = (uintptr_t)hash;
    assert_true(number >= 0);
    snprintf(names + 1, sizeof names - 1, "%s", name);
    code.base = 0;
    code.dynamic = dynamic;
    accel_sizes_add(&sizes, &code, (uint32_t)number, NULL);
    return sizes;
}

/* Of each argument of a helper: i, an INTEGER; r, a scalar of its type; v, neither; x: it may be
 * either. CBLAS's scalars are not among the arguments in general registers. */
static const struct {
    const char *real, *double_precision; /* names */
    const char *arguments, *of_cblas;    /* "": CBLAS's is not asked */
} helpers[] = {
    {"srotg", "drotg", "rrxxvvv", "rrxxvv"},   {"sscal", "dscal", "irvivvv", "ivivvv"},
    {"saxpy", "daxpy", "irviviv", "iviviv"},   {"srot", "drot", "ivivirr", "iviviv"},
    {"csscal", "zdscal", "irvivvv", "ivivvv"}, {"csrot", "zdrot", "ivivirr", ""},
    {"isamax", "idamax", "ivivvvv", "ivivvv"}, {"snrm2", "dnrm2", "ivivvvv", "ivivvv"},
    {"sdot", "ddot", "ivivivv", "iviviv"},     {"scopy", "dcopy", "ivivivv", "iviviv"},
    {"slartg", "dlartg", "rrrrrvv", ""},       {"slapy2", "dlapy2", "rrvvvvv", ""},
    {"slarfg", "dlarfg", "irvixvv", ""},       {"slaset", "dlaset", "viirrvi", ""},
};

static void assert_told(const char *name, char argument, int place, const struct accel_sizes *sizes,
                        bool is_double, bool by_reference)
{
    const int size = is_double ? sizes->double_precision : sizes->real,
              other = is_double ? sizes->real : sizes->double_precision;
    if (argument == 'x')
        return;
    if (sizes->integer != (argument == 'i' ? 64 : 0) ||
        size != (argument == 'r' && by_reference ? 8 : 0) || other)
        fail_msg("%s, argument %d: INTEGER of %d, REAL of %d, DOUBLE PRECISION of %d", name, place,
                 sizes->integer, sizes->real, sizes->double_precision);
}

static void test_helpers(void **state)
{
    char name[64];
    (void)state;
    SKIP_SANITIZED("the code of helpers");
    for (size_t row = 0; row < sizeof helpers / sizeof *helpers; row++)
        for (int is_double = 0; is_double < 2; is_double++) {
            const char *helper = is_double ? helpers[row].double_precision : helpers[row].real;
            snprintf(name, sizeof name, "%s_", helper);
            for (int i = 0; i < ARGUMENTS; i++) {
                const struct accel_sizes sizes = told_by("dgemm_", name, readers[i]);
                assert_told(name, helpers[row].arguments[i], i, &sizes, is_double, true);
            }
            snprintf(name, sizeof name, "cblas_%s", helper);
            for (int i = 0; helpers[row].of_cblas[i]; i++) {
                struct accel_sizes sizes = told_by("cblas_dgemm", name, readers[i]);
                const char by_reference = helpers[row].of_cblas[i];
                assert_told(name, by_reference == 'i' ? 'v' : by_reference, i, &sizes, is_double,
                            true);
                sizes = told_by("cblas_dgemm", name, computers[i]);
                assert_told(name, helpers[row].of_cblas[i], i, &sizes, is_double, false);
            }
        }
    for (int i = 0; i < ARGUMENTS; i++) {
        const struct accel_sizes sizes = told_by("dgemm_", "ilaver_", readers[i]);
        assert_told("ilaver_", i < 3 ? 'i' : 'v', i, &sizes, true, true);
    }
}

/* A function of another mangling, or of another name, is not asked. */
static void test_names_of_helpers(void **state)
{
    static const struct {
        const char *entry, *name;
        int integer;
    } rows[] = {{"dgemm_", "idamax_", 64},
                {"dgemm_", "idamax", 0},
                {"dgemm_", "scipy_idamax_", 0},
                {"scipy_dgemm_64_", "scipy_idamax_64_", 64},
                {"scipy_dgemm_64_", "idamax_64_", 0},
                {"dgemm_64_", "idamax_64_", 64},
                {"dgemm_", "izamax_", 0},
                {"dgemm_", "idamin_", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct accel_sizes sizes = told_by(rows[i].entry, rows[i].name, readers[0]);
        if (sizes.integer != rows[i].integer)
            fail_msg("%s, by %s: %d", rows[i].entry, rows[i].name, sizes.integer);
    }
}

/* A library's other routines of the table tell, too: those that are called by the same
 * convention. */
static void test_other_routines(void **state)
{
    static const struct {
        const char *entry, *name;
        void *function;
        int integer, real, double_precision;
    } rows[] = {
        /* TRANS, M, N, ALPHA: by reference. */
        {"dgemm_", "dgemv_", (void *)reads_0, 0, 0, 0},
        {"dgemm_", "dgemv_", (void *)reads_1, 64, 0, 0},
        {"dgemm_", "dgemv_", (void *)reads_2, 64, 0, 0},
        {"dgemm_", "dgemv_", (void *)reads_3, 0, 0, 8},
        {"dgemm_", "sgemv_", (void *)reads_3, 0, 8, 0},
        {"DGEMM", "dgemv_", (void *)reads_1, 64, 0, 0},
        {"dgemm_", "dgemv_64_", (void *)reads_1, 0, 0, 0},
        {"dgemm_64_", "dgemv_64_", (void *)reads_1, 64, 0, 0},
        {"dgemm_64_", "dgemv_", (void *)reads_1, 0, 0, 0},
        {"dgemm_", "dgetrf_", (void *)reads_0, 64, 0, 0},
        /* Behind the order, by value. */
        {"cblas_dgemm", "cblas_dgemv", (void *)computes_with_1, 0, 0, 0},
        {"cblas_dgemm", "cblas_dgemv", (void *)computes_with_2, 64, 0, 0},
        {"cblas_dgemm", "dgemv_", (void *)reads_1, 0, 0, 0},
        {"LAPACKE_dgetrf", "LAPACKE_dpotrf", (void *)computes_with_2, 64, 0, 0},
        {"cblas_dgemm", "LAPACKE_dpotrf", (void *)computes_with_2, 0, 0, 0},
        {"LAPACKE_dgetrf", "cblas_dgemv", (void *)computes_with_2, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct accel_sizes sizes = told_by(rows[i].entry, rows[i].name, rows[i].function);
        if (sizes.integer != rows[i].integer || sizes.real != rows[i].real ||
            sizes.double_precision != rows[i].double_precision)
            fail_msg("%s, by %s, row %zu: INTEGER of %d, REAL of %d, DOUBLE PRECISION of %d",
                     rows[i].entry, rows[i].name, i, sizes.integer, sizes.real,
                     sizes.double_precision);
    }
}

static void test_fit(void **state)
{
    static const struct {
        const char *name;
        int real, double_precision, fit;
    } rows[] = {{"sgemm_", 4, 16, 1}, {"sgemm_", 8, 8, 0},  {"sgemm_", 0, 8, -1},
                {"cgemm_", 4, 0, 1},  {"cgemm_", 8, 0, 0},  {"cgemm_", 0, 8, -1},
                {"dgemm_", 4, 8, 1},  {"dgemm_", 8, 16, 0}, {"dgemm_", 4, 0, -1},
                {"dgemm_", 4, 4, 0},  {"zgemm_", 0, 8, 1},  {"zgemm_", 0, 10, 0},
                {"zgemm_", 4, 0, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct accel_sizes sizes = {0, rows[i].real, rows[i].double_precision};
        const uint32_t entry = (uint32_t)accel_name_find(rows[i].name);
        assert_int_equal(accel_sizes_fit(&sizes, accel_name_routine(entry)), rows[i].fit);
    }
}

/* ---- Other functions of the library ---- */

/* What a program has of a BLAS beside its products. The link exports it. */
void drotg_(double *a, double *b);

void drotg_(double *a, double *b)
{
    *a = *b = *a + *b;
}

/* Short memory leaves unknown what it was too short for, whichever function would have told. */
static void test_no_memory(void **state)
{
    const struct accel_code code = own_code();
    const uint32_t entry = (uint32_t)accel_name_find("dgemm_");
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        struct accel_sizes sizes = {.integer = 0};
        is_short = turn == 0;
        accel_sizes_add(&sizes, &code, entry, (void *)(uintptr_t)all_short);
        assert_int_equal(sizes.integer, turn == 0 ? 0 : 32);
        assert_int_equal(sizes.double_precision, turn == 0 ? 0 : 8);
        sizes = (struct accel_sizes){.integer = 0};
        accel_sizes_add(&sizes, &code, entry, NULL);
        is_short = false;
        assert_int_equal(sizes.integer, 0);
        assert_int_equal(sizes.double_precision, turn == 0 ? 0 : 8);
        assert_int_equal(accel_sizes_fit(&sizes, accel_name_routine(entry)), turn == 0 ? -1 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),       cmocka_unit_test(test_elements),
        cmocka_unit_test(test_helpers),        cmocka_unit_test(test_names_of_helpers),
        cmocka_unit_test(test_other_routines), cmocka_unit_test(test_fit),
        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
