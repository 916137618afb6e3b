/* The memory that cuBLAS gets for its emulation of double precision: what is behind it is a number that cuBLAS writes. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(its_end_is_aligned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
