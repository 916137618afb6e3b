/*
 * Precisions: which there are, and the memory that cuBLAS gets for its emulation of double
 * precision: what is behind it is a number that cuBLAS writes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/plan/precision.h"

static void its_end_is_aligned(void **state)
{
    static const int64_t size[][3] = {
        {40001, 40001, 1000}, {50001, 50001, 512}, {40001, 40003, 64}, {1, 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int is_complex = 0; is_complex < 2; is_complex++)
            assert_int_equal(
                gpu_emulation_bytes(size[i][0], size[i][1], size[i][2], 3, is_complex) % 256, 0);
}

/* By hand, of cuBLAS's formula: the inputs' slices and the sums of the result, or the scan where
 * that is more; a quarter, and 128 MB, besides. */
static void its_bytes(void **state)
{
    static const struct {
        int64_t m, n, k, batch;
        bool is_complex;
        int64_t bytes;
    } known[] = {
        {1024, 1024, 1024, 1, false, 212871168},  {1024, 1024, 1024, 1, true, 396382208},
        {1024, 1024, 1024, 3, false, 370178048},  {1025, 1, 1, 1, false, 244005888},
        {1, 1025, 1, 1, false, 244005888},        {1, 1, 8193, 1, false, 452077568},
        {16384, 16384, 64, 1, false, 5555519488}, /* the sums are kept below 4 GB */
        {16384, 16384, 64, 1, true, 10976821248}, {65536, 65536, 64, 1, false, 21609709568},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(gpu_emulation_bytes(known[i].m, known[i].n, known[i].k, known[i].batch,
                                             known[i].is_complex),
                         known[i].bytes);
}

/* Native precision suits all; integers double precision, the others single precision. */
static void what_suits(void **state)
{
    (void)state;
    for (int in_double = 0; in_double < 2; in_double++) {
        assert_true(gpu_precision_suits(GPU_NATIVE, in_double));
        assert_int_equal(gpu_precision_suits(GPU_EMULATED, in_double), in_double);
        assert_int_equal(gpu_precision_suits(GPU_TF32, in_double), !in_double);
        assert_int_equal(gpu_precision_suits(GPU_BF16X9, in_double), !in_double);
        assert_true(gpu_precision_suits(gpu_precision_proposed(in_double), in_double));
    }
    assert_int_equal(gpu_precision_proposed(true), GPU_EMULATED);
    assert_int_equal(gpu_precision_proposed(false), GPU_BF16X9);
    for (int p = 0; p < GPU_PRECISIONS; p++) {
        assert_true(gpu_precision_exists((enum gpu_precision)p, GPU_GEMM));
        assert_true(gpu_precision_exists((enum gpu_precision)p, GPU_RANK_K));
        assert_int_equal(gpu_precision_exists((enum gpu_precision)p, GPU_OTHERS),
                         p == GPU_NATIVE || p == GPU_TF32);
        assert_int_equal(gpu_precision_needs((enum gpu_precision)p) == NULL, p == GPU_NATIVE);
        assert_non_null(gpu_precision_names[p]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(its_end_is_aligned),
                                       cmocka_unit_test(its_bytes), cmocka_unit_test(what_suits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
