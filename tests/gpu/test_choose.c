/* Which devices a process may use, and in which order it tries them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/device/choose.h"

static bool all_can(int device)
{
    (void)device;
    return true;
}

static bool even_can(int device)
{
    return device % 2 == 0;
}

static void assert_choice(const struct gpu_config *config, int there, bool (*can)(int), int count,
                          int share, int sharers, const int *order)
{
    struct device_choice choice;
    choose_devices(&choice, config, there, can);
    assert_int_equal(choice.count, count);
    assert_int_equal(choice.share, share);
    assert_int_equal(choice.sharers, sharers);
    for (int i = 0; i < count; i++)
        assert_int_equal(choice.device[i], order[i]);
}

static void one_for_each_process(void **state)
{
    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        const struct gpu_config config = {.local_rank = rank, .local_size = 4};
        assert_choice(&config, 4, all_can, 4, 1, 1,
                      (int[]){rank, (rank + 1) % 4, (rank + 2) % 4, (rank + 3) % 4});
        assert_choice(&config, 2, all_can, 2, 1, 2, (int[]){rank % 2, (rank + 1) % 2});
        assert_choice(&config, 0, all_can, 0, 1, 1, NULL);
    }
}

static void several_for_one_process(void **state)
{
    const struct gpu_config all = {.several = true};
    const struct gpu_config list = {.several = true, .devices = (int[]){3, 1}, .device_count = 2};
    (void)state;
    assert_choice(&all, 3, all_can, 3, 3, 1, (int[]){0, 1, 2});
    assert_choice(&all, 4, even_can, 2, 2, 1, (int[]){0, 2});
    assert_choice(&all, 0, all_can, 0, 1, 1, NULL);
    assert_choice(&list, 4, all_can, 2, 2, 1, (int[]){3, 1});
    assert_choice(&list, 3, all_can, 1, 1, 1, (int[]){1});
}

static void ranks_keep_to_their_shares(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        const struct gpu_config config = {.several = true, .local_rank = rank, .local_size = 3};
        int order[8];
        for (int i = 0; i < 8; i++)
            order[i] = (2 * rank + i) % 8;
        assert_choice(&config, 8, all_can, 8, 2, 1, order); /* two are left over */
        assert_choice(&config, 2, all_can, 2, 1, 2, (int[]){rank % 2, (rank + 1) % 2});
        assert_choice(&config, 3, all_can, 3, 1, 1, (int[]){rank, (rank + 1) % 3, (rank + 2) % 3});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_for_each_process),
        cmocka_unit_test(several_for_one_process),
        cmocka_unit_test(ranks_keep_to_their_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
