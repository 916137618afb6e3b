/* What the code of routines tells of the sizes of INTEGER and of elements, for functions of this
 * program that are called like a BLAS's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "ops/op.h"
#include "shim/elf/real_linker.h"
#include "shim/elf/sizes.h"

#define FUNCTION __attribute__((noinline, noclone, used)) static

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static bool is_short;

void *__wrap_calloc(size_t count, size_t size)
{
    return is_short ? NULL : __real_calloc(count, size);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_integers),
                                       cmocka_unit_test(test_elements),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
