/* What the log tells of a call of BLAS or LAPACK (ops/describe.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ops/describe.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

static char line[256];

static void put_string(const struct accel_fields *fields, const char *name, const char *value)
{
    const size_t length = strlen(line);
    (void)fields;
    snprintf(line + length, sizeof line - length, " %s=%s", name, value);
}

static void put_integer(const struct accel_fields *fields, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    put_string(fields, name, text);
}

static const struct accel_fields fields = {put_integer, put_string};

static const char *description(const struct accel_call *call)
{
    line[0] = 0;
    blas_describe(call, &fields);
    return line;
}

static const char *scalars(const struct accel_call *call)
{
    line[0] = 0;
    blas_describe_scalars(call, &fields);
    return line;
}

static struct accel_call call_of(const char *name)
{
    struct accel_call call;
    shape_typical(&call, routine(name), (int64_t[ACCEL_DIMENSIONS]){7, 5, 3, 2});
    return call;
}

/* Letters as the caller passed them, and sizes under the routine's own names, in its order. */
static void arguments(void **state)
{
    static const struct {
        const char *name, *expected;
    } rows[] = {{"dgemm", " args=N,N m=7 n=5 k=3"},
                {"zherk", " args=L,N n=5 k=3"},
                {"strsm", " args=L,L,N,N m=7 n=5"},
                {"dger", " m=7 n=5"},
                {"dpotrf", " args=L n=5"},
                {"dgetrf", " m=7 n=5"},
                {"dgesv", " n=5 nrhs=2"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct accel_call call = call_of(rows[i].name);
        assert_string_equal(description(&call), rows[i].expected);
    }
    struct accel_call call = call_of("dgemm");
    call.blas.given[0] = 't';
    call.blas.flag[ACCEL_transa] = 'T';
    call.blas.layout = ACCEL_ROW_MAJOR;
    assert_string_equal(description(&call), " args=t,N layout=row m=7 n=5 k=3");
    call.blas.layout = ACCEL_NO_LAYOUT;
    assert_string_equal(description(&call), " args=t,N m=7 n=5 k=3");
}

static void batches(void **state)
{
    struct accel_call call = call_of("dgemm_batch_strided");
    (void)state;
    for (int i = 0; i < call.routine->args; i++)
        if (call.routine->arg[i].kind == ACCEL_ARG_BATCH)
            call.blas.given[i] = 11;
    assert_non_null(strstr(description(&call), " m=7 n=5 k=3"));
    assert_non_null(strstr(line, "=11"));
    assert_null(strstr(line, "group="));
    call.part = 2;
    call.parts = 1;
    assert_null(strstr(description(&call), "group="));
    call.parts = 4;
    assert_non_null(strstr(description(&call), " group=3"));
}

static void classes_of_scalars(void **state)
{
    static const struct {
        struct accel_complex z;
        const char *text;
    } rows[] = {{{0, 0}, "0"},     {{-0.0, 0}, "0"},       {{1, 0}, "1"},      {{-1, 0}, "other"},
                {{0, 1}, "other"}, {{1, 1e-300}, "other"}, {{0, -1}, "other"}, {{0.5, 0}, "other"}};
    struct accel_call call = call_of("zgemm");
    char expected[64];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        call.blas.scalar[ACCEL_alpha] = rows[i].z;
        call.blas.scalar[ACCEL_beta] = rows[sizeof rows / sizeof *rows - 1 - i].z;
        snprintf(expected, sizeof expected, " alpha=%s beta=%s", rows[i].text,
                 rows[sizeof rows / sizeof *rows - 1 - i].text);
        assert_string_equal(scalars(&call), expected);
    }
    call = call_of("dtrsm");
    assert_string_equal(scalars(&call), " alpha=1");
    call = call_of("dsyevx"); /* other scalars are not told */
    assert_string_equal(scalars(&call), "");
    call = call_of("zherk"); /* real ones of a complex routine are */
    assert_string_equal(scalars(&call), " alpha=1 beta=1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(arguments), cmocka_unit_test(batches),
                                       cmocka_unit_test(classes_of_scalars)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
