/*
 * LAPACK's operations on matrices above the device's memory: of the whole table, each goes through
 * it in panels or by inner calls, or is on the list of docs/limits.md with its reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "ops/lapack/in_panels.h"
#include "ops/rules/lapack_rules.h"
#include "ops/names.h"
#include "call/shape.h"
#include "ops/typical.h"

static char page[1 << 20]; /* docs/limits.md */
static char memory[64];    /* nobody reads it */

static bool needs_device_memory(const struct accel_op *op)
{
    return op->gpu && !op->traits.moves;
}

/* A call in host memory with these sizes. */
static struct accel_call call_of(const struct accel_routine *routine, int64_t m, int64_t n)
{
    struct accel_call call;
    shape_typical(&call, routine, (int64_t[ACCEL_DIMENSIONS]){m, n, accel_min(m, n), 100});
    shape_operands(&call);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call.span[i].rows * call.span[i].cols > 0)
            call.span[i].ptr = memory;
    return call;
}

static void in_panels_or_for_a_reason(void **unused)
{
    int in_panels = 0, whole = 0;
    (void)unused;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const struct accel_routine *routine = &accel_routines[i];
        const struct accel_op *op = accel_op_of(routine);
        if (!accel_is_lapack(routine))
            continue;
        if (!needs_device_memory(op)) {
            assert_null(accel_gpu_of(op)->in_panels);
            assert_null(accel_gpu_of(op)->whole);
            continue;
        }
        if ((op->gpu->in_panels != NULL) + (op->gpu->decompose != NULL) +
                (op->gpu->whole != NULL) !=
            1)
            fail_msg("%s: in panels, by inner calls, or for a reason not", routine->name);
        in_panels += op->gpu->in_panels != NULL;
        whole += op->gpu->whole != NULL;
    }
    assert_true(in_panels > 40 && whole > 30);
}

/* Square, tall, and wide where that may be; with half of the memory for the operands, and with a
 * tenth. */
static void fits_in_panels(void **unused)
{
    static const int64_t sizes[][2] = {{8000, 8000}, {9000, 5000}, {5000, 9000}};
    (void)unused;
    for (uint32_t i = 0; i < accel_routine_count; i++)
        for (int s = 0; s < 3; s++) {
            const struct accel_routine *routine = &accel_routines[i];
            const struct accel_op *op = accel_op_of(routine);
            if (!accel_is_lapack(routine) || !needs_device_memory(op))
                continue;
            const struct accel_call call = call_of(routine, sizes[s][0], sizes[s][1]);
            if (accel_rules_of(op)->fault && op->rules->fault(&call))
                continue;
            const int64_t bytes = (int64_t)lapack_gpu_bytes(&call);
            assert_true(bytes > 50 << 20);
            assert_int_equal(lapack_fits_in_panels(&call, bytes / 2), op->gpu->in_panels != NULL);
            assert_int_equal(lapack_fits_in_panels(&call, bytes / 10), op->gpu->in_panels != NULL);
        }
}

/* ---- docs/limits.md ---- */

/* Returns the row of a reason, up to its end. */
static char *row_of(const char *reason)
{
    static char row[4096];
    char beginning[512];
    snprintf(beginning, sizeof beginning, "\n  | %s | ", reason);
    const char *at = strstr(page, beginning);
    if (!at)
        fail_msg("docs/limits.md has no row: %s", reason);
    snprintf(row, sizeof row, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
    return row;
}

/* The name without its type; sy stands for he. */
static void named_as(const struct accel_routine *routine, char name[32])
{
    const char *rest = routine->name + 1;
    snprintf(name, 32, "`?%s%s`", strncmp(rest, "he", 2) == 0 ? "sy" : "",
             strncmp(rest, "he", 2) == 0 ? rest + 2 : rest);
}

static void each_is_in_the_row_of_its_reason(void **unused)
{
    (void)unused;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const struct accel_routine *routine = &accel_routines[i];
        const char *reason = accel_gpu_of(accel_op_of(routine))->whole;
        char name[32];
        if (!reason)
            continue;
        named_as(routine, name);
        if (!strstr(row_of(reason), name))
            fail_msg("docs/limits.md does not have %s in the row: %s", name, reason);
    }
}

static bool is_whole(const char *reason, const char *name)
{
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        const char *own = accel_gpu_of(accel_op_of(&accel_routines[i]))->whole;
        char other[32];
        named_as(&accel_routines[i], other);
        if (own && strcmp(own, reason) == 0 && strcmp(other, name) == 0)
            return true;
    }
    return false;
}

static void the_rows_have_no_others(void **unused)
{
    static const char *const reasons[] = {LAPACK_CONDENSES, LAPACK_PIVOTS_BOTH_SIDES,
                                          LAPACK_UNPACKS};
    (void)unused;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        int names = 0;
        for (char *word = strtok(row_of(reasons[i]), " ,|"); word; word = strtok(NULL, " ,|"))
            if (word[0] == '`') {
                names++;
                if (!is_whole(reasons[i], word))
                    fail_msg("docs/limits.md has %s in the row: %s", word, reasons[i]);
            }
        assert_true(names > 2);
    }
}

static bool read_page(void)
{
    FILE *file = fopen("docs/limits.md", "r");
    const size_t bytes = file ? fread(page, 1, sizeof page - 1, file) : 0;
    if (file)
        fclose(file);
    return bytes > 1000 && bytes < sizeof page - 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_panels_or_for_a_reason),
        cmocka_unit_test(fits_in_panels),
        cmocka_unit_test(each_is_in_the_row_of_its_reason),
        cmocka_unit_test(the_rows_have_no_others),
    };
    if (!read_page()) {
        puts("docs/limits.md cannot be read: run the test where the repository begins");
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
