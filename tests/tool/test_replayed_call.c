/* Each row of BLAS and LAPACK: a line of the log gives the call back that it tells, with every
 * letter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ops/op.h"
#include "ops/rules/rules.h"
#include "call/shape.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"
#include "tool/log/replayed_call.h"

/* A line that is made as the log makes it. */
struct made {
    struct accel_fields fields; /* first: the operation has a pointer to it */
    char text[32][64];
    struct log_field field[32];
    struct log_line line;
};

static struct made made;

static void put_string(const struct accel_fields *fields, const char *name, const char *value)
{
    (void)fields;
    snprintf(made.text[made.line.fields], sizeof made.text[0], "%s", value);
    made.field[made.line.fields] = (struct log_field){name, made.text[made.line.fields]};
    made.line.fields++;
}

static void put_integer(const struct accel_fields *fields, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    put_string(fields, name, text);
}

static const struct log_line *line_of(const struct accel_call *call, const char *symbol,
                                      const char *why)
{
    made.fields = (struct accel_fields){put_integer, put_string};
    made.line = (struct log_line){.path = "log", .number = 1, .field = made.field};
    put_string(&made.fields, "sym", symbol);
    accel_describe(call, &made.fields);
    put_string(&made.fields, "ran", "cpu");
    put_string(&made.fields, "why", why);
    return &made.line;
}

static void typical(struct accel_call *call, const struct accel_routine *routine)
{
    const int64_t size[ACCEL_DIMENSIONS] = {30, 20, 15, 4};
    shape_typical(call, routine, size);
}

static const char *read_line(struct replayed_call *told, const char *name, const char *symbol,
                             const char *why)
{
    struct accel_call call;
    typical(&call, routine(name));
    return replayed_call_read(told, line_of(&call, symbol, why));
}

static const char *read_directed(struct replayed_call *told)
{
    struct accel_call call;
    typical(&call, routine("dgemm"));
    line_of(&call, "dgemm_", "unsupported");
    put_string(&made.fields, "arithmetic", "rounds_up");
    return replayed_call_read(told, &made.line);
}

static void assert_same(const struct accel_call *told, const struct accel_call *call)
{
    if (told->routine != call->routine ||
        memcmp(told->blas.size, call->blas.size, ACCEL_DIMENSIONS * sizeof *call->blas.size) != 0 ||
        memcmp(told->blas.flag, call->blas.flag, sizeof call->blas.flag) != 0)
        fail_msg("%s is told as %s", call->routine->name, told->routine->name);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        assert_int_equal(told->span[i].rows, call->span[i].rows);
        assert_int_equal(told->span[i].cols, call->span[i].cols);
    }
}

static void each_row_and_letter(void **state)
{
    static struct replayed_call told;
    int rows = 0, calls = 0;
    (void)state;
    for (uint32_t r = 0; r < accel_routine_count; r++) {
        const struct accel_routine *routine = &accel_routines[r];
        struct accel_call call;
        char symbol[40];
        if (!accel_is_blas(routine) || accel_is_batch(routine))
            continue;
        snprintf(symbol, sizeof symbol, "%s_", routine->name);
        typical(&call, routine);
        for (int i = 0; i <= routine->args; i++) {
            const struct accel_arg *arg = &routine->arg[i];
            if (i < routine->args && arg->kind != ACCEL_ARG_FLAG)
                continue;
            for (const char *letter = i < routine->args ? arg->allowed : "-"; *letter; letter++) {
                struct accel_call other = call;
                if (i < routine->args)
                    other.blas.given[i] = other.blas.flag[arg->slot] = *letter;
                shape_operands(&other);
                if (accel_call_shape_fault(&other) ||
                    *letter == 'I') /* il and iu are not in the line */
                    continue;
                const char *wrong = replayed_call_read(&told, line_of(&other, symbol, "slower"));
                if (wrong)
                    fail_msg("%s %c: %s", routine->name, *letter, wrong);
                if (!accel_rules_of(accel_op_of(routine))->rows)
                    assert_same(&told.call, &other);
                calls++;
            }
        }
        rows++;
    }
    assert_in_range(rows, 200, 1000);
    assert_in_range(calls, 2 * rows, 20 * rows);
}

static void rows_are_columns_of_the_transpose(void **state)
{
    static struct replayed_call told;
    struct accel_call call;
    (void)state;
    typical(&call, routine("dgemm"));
    call.blas.layout = ACCEL_ROW_MAJOR;
    call.blas.given[0] = 'T';
    assert_null(replayed_call_read(&told, line_of(&call, "cblas_dgemm", "faster")));
    assert_int_equal(told.call.blas.size[ACCEL_m], 20);
    assert_int_equal(told.call.blas.size[ACCEL_n], 30);
    assert_int_equal(told.call.blas.flag[ACCEL_transb], 'T');
    assert_int_equal(told.call.span[ACCEL_c].rows, 20);
    assert_int_equal(told.abi, ACCEL_ABI_FORTRAN);
    typical(&call, routine("zhemv"));
    call.blas.layout = ACCEL_ROW_MAJOR;
    assert_null(replayed_call_read(&told, line_of(&call, "cblas_zhemv", "faster")));
    assert_int_equal(told.abi, ACCEL_ABI_CBLAS);
    typical(&call, routine("dgetrf"));
    call.blas.layout = ACCEL_ROW_MAJOR;
    assert_non_null(
        strstr(replayed_call_read(&told, line_of(&call, "LAPACKE_dgetrf", "faster")), "row-major"));
}

static void what_the_line_says_counts(void **state)
{
    static struct replayed_call told;
    struct accel_call call;
    (void)state;
    typical(&call, routine("dgemm"));
    line_of(&call, "dgemm_", "faster");
    put_integer(&made.fields, "lda", 99);
    put_integer(&made.fields, "ldb", 98);
    put_integer(&made.fields, "ldc", 97);
    put_integer(&made.fields, "alpha", -1);
    put_string(&made.fields, "beta", "other");
    assert_null(replayed_call_read(&told, &made.line));
    assert_int_equal(told.call.span[ACCEL_a].ld, 99);
    assert_int_equal(told.call.span[ACCEL_c].ld, 97);
    assert_true(told.call.blas.scalar[ACCEL_alpha].re == -1);
    assert_true(told.call.blas.scalar[ACCEL_beta].re != 0 &&
                told.call.blas.scalar[ACCEL_beta].re != 1);
    assert_string_equal(told.assumed, "");
    /* As JSON tells it. */
    typical(&call, routine("dgemm"));
    call.blas.layout = ACCEL_ROW_MAJOR;
    line_of(&call, "cblas_dgemm", "faster");
    put_string(&made.fields, "operands", "[{\"name\":\"b\",\"ld\":77,\"place\":\"host\"}]");
    assert_null(replayed_call_read(&told, &made.line));
    assert_int_equal(told.call.span[ACCEL_a].ld, 77); /* exchanged */
    put_string(&made.fields, "operands", "[]");
    made.field[made.line.fields - 2].value = "[{\"name\":\"b\",\"ld\":77,\"place\":\"device\"}]";
    assert_non_null(strstr(replayed_call_read(&told, &made.line), "host's memory"));
    typical(&call, routine("dgemv"));
    line_of(&call, "dgemv_", "faster");
    put_integer(&made.fields, "incx", -3);
    assert_null(replayed_call_read(&told, &made.line));
    assert_int_equal(told.call.span[ACCEL_x].inc, -3);
    assert_int_equal(told.call.span[ACCEL_x].ld, 3);
    assert_non_null(strstr(told.assumed, "no gaps"));
    assert_non_null(strstr(told.assumed, "alpha = 1"));
}

static void what_cannot_be_run_again(void **state)
{
    static struct replayed_call told;
    (void)state;
    assert_non_null(strstr(read_line(&told, "dgemm", "dgemm_", "device_data"), "device memory"));
    assert_non_null(strstr(read_line(&told, "dgesv", "dgesv_", "workspace_query"), "workspace"));
    assert_non_null(strstr(read_line(&told, "dgemm", "dgemm_", "bad_argument"), "wrong"));
    assert_non_null(strstr(read_directed(&told), "rounded"));
    assert_non_null(strstr(read_line(&told, "dgemm", "dgemm_", "empty"), "nothing"));
    assert_non_null(strstr(read_line(&told, "dgemm", "dgemmm_", "faster"), "name"));
    assert_non_null(strstr(read_line(&told, "dgemm", "dgesv_", "faster"), "sizes"));
    assert_non_null(strstr(read_line(&told, "dgemm", "svm_train", "faster"), "data"));
    assert_non_null(strstr(read_line(&told, "dgemm", "dgemm_batch_", "faster"), "batch"));
    assert_non_null(strstr(read_line(&told, "dgemm", "dsymm_", "faster"), "letters"));
    struct accel_call call;
    typical(&call, routine("dgemm"));
    line_of(&call, "dgemm_", "faster");
    put_integer(&made.fields, "lda", 3);
    assert_non_null(strstr(replayed_call_read(&told, &made.line), "contradict"));
    /* Sizes and gaps that no memory has. */
    const int64_t large[ACCEL_DIMENSIONS] = {(int64_t)1 << 32, (int64_t)1 << 32, 15, 4};
    shape_typical(&call, routine("dgemm"), large);
    assert_non_null(
        strstr(replayed_call_read(&told, line_of(&call, "dgemm_", "faster")), "larger"));
    typical(&call, routine("dgemv"));
    line_of(&call, "dgemv_", "faster");
    put_integer(&made.fields, "incx", INT64_MIN);
    const char *why = replayed_call_read(&told, &made.line);
    assert_non_null(why);
    assert_non_null(strstr(why, "larger"));
    const int64_t long_rows[ACCEL_DIMENSIONS] = {30, 20, (int64_t)1 << 30, 4};
    shape_typical(&call, routine("dgemm"), long_rows);
    line_of(&call, "dgemm_", "faster");
    put_integer(&made.fields, "lda", (int64_t)1 << 40);
    why = replayed_call_read(&told, &made.line);
    assert_non_null(why);
    assert_non_null(strstr(why, "larger"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_and_letter),
        cmocka_unit_test(rows_are_columns_of_the_transpose),
        cmocka_unit_test(what_the_line_says_counts),
        cmocka_unit_test(what_cannot_be_run_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
