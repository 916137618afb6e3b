#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tool/log/log_file.h"

#define TEXT                                                                                       \
    "accel pid=7 tid=8 sym=dgemm_ args=N,T m=40 n=50 k=60 ran=gpu0 why=faster est_cpu_ms=112 "     \
    "est_gpu_ms=10.2 ms=9.75 up_mb=268.4\n"
#define JSON                                                                                       \
    "{\"v\":1, \"pid\": 7, \"tid\": 8, \"sym\": \"dgemm_\", \"m\": 40, \"ran\": \"gpu0\", "        \
    "\"why\": \"faster\", \"ms\": 9.750, \"list\": [1,{\"a\":2}]}\n"

/* Reads a file of these bytes. Each line becomes "number:what" in `all`. */
static struct log_counts read_bytes(char all[1000], const char *bytes, size_t length)
{
    char path[] = "/tmp/accel-log-XXXXXX";
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
    struct log_reader *reader = log_open(path);
    struct log_line line;
    size_t n = 0;
    assert_non_null(reader);
    all[0] = 0;
    while (log_next(reader, &line))
        n += (size_t)snprintf(all + n, 1000 - n, "%s%lld:%s", n ? " " : "", (long long)line.number,
                              line.event ? line.event : log_string(&line, "sym"));
    const struct log_counts counts = *log_counts(reader);
    log_close(reader);
    unlink(path);
    return counts;
}

/* Whether these bytes have these lines, and so many damaged and other ones. */
static void is_read(const char *bytes, const char *lines, int damaged, int others)
{
    char all[1000];
    const struct log_counts counts = read_bytes(all, bytes, strlen(bytes));
    assert_string_equal(all, lines);
    assert_int_equal(counts.damaged, damaged);
    assert_int_equal(counts.others, others);
    assert_int_equal(counts.error, 0);
}

static void reads_fields(void **state)
{
    (void)state;
    for (int json = 0; json < 2; json++) {
        char path[] = "/tmp/accel-log-XXXXXX";
        const int fd = mkstemp(path);
        struct log_line line;
        assert_true(write(fd, json ? JSON : TEXT, strlen(json ? JSON : TEXT)) > 0);
        close(fd);
        struct log_reader *reader = log_open(path);
        assert_true(reader && log_next(reader, &line));
        assert_string_equal(line.path, path);
        assert_int_equal(line.number, 1);
        assert_null(line.event);
        assert_string_equal(log_string(&line, "why"), "faster");
        assert_true(log_number(&line, "ms", -1) == 9.75);
        assert_true(log_number(&line, "m", -1) == 40);
        assert_true(log_number(&line, "why", -1) == -1);
        assert_true(log_number(&line, "depth", 0) == 0);
        assert_null(log_string(&line, "depth"));
        assert_int_equal(line.fields, json ? 9 : 13);
        if (json) { /* unknown ones stay, as JSON */
            assert_string_equal(line.field[8].name, "list");
            assert_string_equal(line.field[8].value, "[1,{\"a\":2}]");
        }
        assert_false(log_next(reader, &line));
        log_close(reader);
        unlink(path);
    }
}

/* Values with blanks are in quotes. */
static void reads_quotes(void **state)
{
    static const char text[] =
        "accel pid=7 event=gpu gpu=\"Test \\\"big\\\" GPU\" none=\"\" path=/a=\"b ms=3\n";
    char path[] = "/tmp/accel-log-XXXXXX";
    const int fd = mkstemp(path);
    struct log_line line;
    (void)state;
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    struct log_reader *reader = log_open(path);
    assert_true(reader && log_next(reader, &line));
    assert_string_equal(line.event, "gpu");
    assert_string_equal(log_string(&line, "gpu"), "Test \"big\" GPU");
    assert_string_equal(log_string(&line, "none"), "");
    assert_string_equal(log_string(&line, "path"), "/a=\"b");
    assert_true(log_number(&line, "ms", -1) == 3);
    assert_int_equal(line.fields, 6);
    log_close(reader);
    unlink(path);
    is_read("accel pid=7 event=gpu gpu=\"Test GPU\n" TEXT, "2:dgemm_", 1, 0);
    is_read("accel pid=7 event=gpu gpu=\"Test\\", "", 1, 0);
}

static void passes_over_the_rest(void **state)
{
    (void)state;
    is_read("hello\n\n" TEXT "accel: a message\n{\"other\": 1}\n{\"pid\": {\n" JSON "done\n",
            "3:dgemm_ 7:dgemm_", 1, 5);
    is_read("50 %" TEXT "so far: " JSON, "1:dgemm_ 2:dgemm_", 0, 0);
    is_read("accel pid=7 tid=8 sym=dgemm_ event=pinned ms=3 est_cpu_ms=1\n"
            "{\"v\":1,\"pid\":7,\"event\":\"banner\"}\n",
            "1:pinned 2:banner", 0, 0);
    is_read("", "", 0, 0);
}

/* What another program has written without a newline stands before a line of ours. */
static void passes_over_objects(void **state)
{
    (void)state;
    is_read("{\"other\": 1} " TEXT "{\"pid\": 3, \"a\": {\"b\": 1}}" TEXT "{\"cut\": " TEXT,
            "1:dgemm_ 2:dgemm_ 3:dgemm_", 0, 0);
    is_read("{\"other\": {\"pid\": 1}}{\"v\": 2, \"x\": 3} " JSON "{\"cut\": [" JSON,
            "1:dgemm_ 2:dgemm_", 1, 0);
    is_read("{\"v\": 1, \"pid\": 7, \"sym\": \"dge" JSON "{\"v\": 1, \"pid\": 7, \"sy" TEXT,
            "1:dgemm_ 2:dgemm_", 2, 0);
    is_read("{\"log\": \"accel pid=7 tid=8 sym=dgemm_ ran=cpu why=small ms=1\", \"n\": 3}\n" TEXT,
            "2:dgemm_", 0, 1);
    is_read("{\"other\": 1} \"pid\": 3\n", "", 0, 1);
}

static void leaves_out_later_versions(void **state)
{
    static const char later[] =
        "{\"v\": 2, \"pid\": 7, \"sym\": \"a\", \"ran\": \"cpu\", \"why\": \"small\"}\n"
        "{\"v\": 3, \"pid\": 7, \"event\": \"gpu\"}\n";
    char all[1000], bytes[1000];
    (void)state;
    const size_t length = (size_t)snprintf(bytes, sizeof bytes, JSON "%s" JSON, later);
    const struct log_counts counts = read_bytes(all, bytes, length);
    assert_string_equal(all, "1:dgemm_ 4:dgemm_");
    assert_int_equal(counts.later, 2);
    assert_int_equal(counts.first_later, 2);
    assert_int_equal(counts.damaged, 0);
}

static void knows_damage(void **state)
{
    char all[1000];
    (void)state;
    is_read("accel pid=7 tid=8 sym=dge\n" TEXT, "2:dgemm_", 1, 0);
    is_read("accel pid=7 tid=8 sym=dgemm_ ran=cpu why=small ms=1", "", 1, 0);
    is_read("accel pid=7 tid=8 sym=dgemm_ ran=cpu why=small m x\n", "", 1, 0);
    is_read("accel pid=7 tid=8 sym=dgem" TEXT, "1:dgemm_", 1, 0);
    is_read("{\"pid\": 7, \"sym\": \"dgemm_\", \"ran\": \"cp", "", 1, 0);
    is_read("{\"pid\": 7, \"sym\": \"dgemm_\"}\n" JSON, "2:dgemm_", 1, 0);
    is_read("{\"pid\": 7, \"sym\": \"dgemm_\", \"ran\": \"cpu\", \"why\": \"small\"}", "1:dgemm_",
            0, 0);
    const char nul[] = "accel pid=7 sym=a ran=cpu why=small\0\0 m=3\n" TEXT;
    struct log_counts counts = read_bytes(all, nul, sizeof nul - 1);
    assert_string_equal(all, "2:dgemm_");
    assert_int_equal(counts.damaged, 1);
    assert_int_equal(counts.first_damaged, 1);
}

/* A line of 3 MB is cut off, and the next one is read; a line with too many fields is damaged, as
 * is one of many objects without an end. */
static void bounds_lines(void **state)
{
    enum { LONG = 3000000 };
    char all[1000], *bytes = malloc(LONG + sizeof TEXT);
    (void)state;
    memset(bytes, 'x', LONG);
    bytes[LONG - 1] = '\n';
    memcpy(bytes + LONG, TEXT, sizeof TEXT);
    struct log_counts counts = read_bytes(all, bytes, LONG + sizeof TEXT - 1);
    assert_string_equal(all, "2:dgemm_");
    assert_int_equal(counts.others, 1);
    size_t n = (size_t)sprintf(bytes, "accel pid=1 sym=a ran=cpu why=small");
    for (int i = 0; i < 1000; i++)
        n += (size_t)sprintf(bytes + n, " f%d=1", i);
    bytes[n++] = '\n';
    counts = read_bytes(all, bytes, n);
    assert_int_equal(counts.damaged, 1);
    /* Each of these may be read up to the line's end. */
    for (n = 0; n < LONG / 3 - 6;)
        n += (size_t)sprintf(bytes + n, "{\"a\":/*");
    n += (size_t)sprintf(bytes + n, "\"pid\":1\n");
    counts = read_bytes(all, bytes, n);
    assert_int_equal(counts.damaged, 1);
    free(bytes);
}

static void says_why_not(void **state)
{
    char all[1000];
    (void)state;
    assert_null(log_open("/nowhere/log"));
    struct log_reader *reader = log_open("/");
    struct log_line line;
    assert_non_null(reader);
    assert_false(log_next(reader, &line));
    assert_int_equal(log_counts(reader)->error, EISDIR);
    log_close(reader);
    assert_int_equal(read_bytes(all, "\377\376\0\1", 4).others, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_fields),
        cmocka_unit_test(reads_quotes),
        cmocka_unit_test(passes_over_the_rest),
        cmocka_unit_test(passes_over_objects),
        cmocka_unit_test(leaves_out_later_versions),
        cmocka_unit_test(knows_damage),
        cmocka_unit_test(bounds_lines),
        cmocka_unit_test(says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
