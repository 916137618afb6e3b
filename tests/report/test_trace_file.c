/* A trace's file keeps to its size, stays whole, and counts what does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "report/trace_file.h"

enum { MOST = 2000, PUTS = 100 };

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static void a_full_file_counts_the_rest(void **state)
{
    static const char events[] = "{\"ph\": \"i\", \"n\": 1},\n{\"ph\": \"i\", \"n\": 2}";
    char folder[] = "/tmp/accel-trace-XXXXXX", path[64], text[2 * MOST], left_out[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/t.json", folder);
    trace_file_start(path, MOST);
    for (int i = 0; i < PUTS; i++)
        trace_file_put(events, sizeof events - 1, 2);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = 0;
    fclose(file);
    unlink(path);
    rmdir(folder);
    const int kept = count(text, "\"ph\": \"i\"");
    assert_in_range(length, MOST - 100, MOST);
    assert_in_range(kept, 10, 2 * PUTS - 10);
    snprintf(left_out, sizeof left_out, "; %d events left out: the file has its full size\"}}",
             2 * PUTS - kept);
    assert_non_null(strstr(text, left_out));
    assert_string_equal(text + length - 4, "}\n]\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_full_file_counts_the_rest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
