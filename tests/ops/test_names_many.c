/* Names are told from others, of which there are many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "ops/names.h"

enum { FOREIGN = 200000 };

static void each_name_is_found(void)
{
    for (uint32_t i = 0; i < accel_name_count; i++)
        if (accel_name_find(accel_names[i].symbol) != (int)i)
            fail_msg("%s", accel_names[i].symbol);
}

/* Names of others, and ours with a letter more, less, or another one. */
static void no_other_is_found(void)
{
    static const char *const others[] = {"",       "d",      "dgemm__",         "xdgemm_",
                                         "malloc", "dgemm ", "PyArg_ParseTuple"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(accel_name_find(others[i]), -1);
    for (uint32_t i = 0; i < accel_name_count; i++) {
        char name[sizeof accel_names[i].symbol + 8];
        assert_true(snprintf(name, sizeof name, "%sq", accel_names[i].symbol) > 0);
        assert_int_equal(accel_name_find(name), -1);
        assert_true(snprintf(name, sizeof name, "q%s", accel_names[i].symbol) > 0);
        assert_int_equal(accel_name_find(name), -1);
        assert_true(snprintf(name, sizeof name, "%s", accel_names[i].symbol) > 0);
        name[strlen(name) / 2] = '?';
        assert_int_equal(accel_name_find(name), -1);
    }
    for (int i = 0; i < FOREIGN; i++) {
        char name[32];
        assert_true(snprintf(name, sizeof name, "_ZN5other%dEv", i) > 0);
        assert_int_equal(accel_name_find(name), -1);
    }
}

static void names_are_told_from_others(void **state)
{
    (void)state;
    each_name_is_found();
    no_other_is_found();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_told_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
