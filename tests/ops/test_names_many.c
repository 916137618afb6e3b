/* Names are told from others, before many have been asked for and after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ops/names.h"

enum { THREADS = 4, MANY = 3000, FOREIGN = 200000 };

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

/* The first look-ups of the process, some thousands, are by several threads at once. */
static void *find_some(void *missed)
{
    for (uint32_t i = 0; i < MANY; i++) {
        const uint32_t entry = i % accel_name_count;
        if (accel_name_find(accel_names[entry].symbol) != (int)entry)
            *(int *)missed += 1;
    }
    return NULL;
}

static void by_threads_at_once(void **state)
{
    pthread_t thread[THREADS];
    int missed[THREADS] = {0};
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, find_some, &missed[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(missed[i], 0);
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
        cmocka_unit_test(by_threads_at_once),
        cmocka_unit_test(names_are_told_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
