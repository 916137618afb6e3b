/* The lines of a calibration: what is written is read again, and how sections, values and names are
 * found, compared with plain versions. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>

#include "base/host/cpu.h"
#include "dispatch/cost/calibration.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

static struct calibration_section section_of(const char *text)
{
    return (struct calibration_section){text, strlen(text)};
}

static struct calibration file_of(const char *text)
{
    return (struct calibration){(char *)(uintptr_t)text, strlen(text), 0};
}

static bool is_text(const char *at, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(at, text, length) == 0;
}

/* ---- Values ---- */

static void values(void **state)
{
    static const struct {
        const char *line;
        double value;
    } cases[] = {{"up=21.5", 21.5},
                 {"up=3", 3},
                 {"up=0.000065", 0.000065},
                 {"up=007", 7},
                 {"up=999999999999", 999999999999},
                 {"up=0.999999999999", 0.999999999999},
                 {"up=1.05", 1.05},
                 {"up=0", 0},
                 {"up=9:", 0},
                 {"up=9/", 0},
                 {"up=1234567890123", 0},
                 {"up=1.", 0},
                 {"up=.5", 0},
                 {"up=", 0},
                 {"up=-1", 0},
                 {"up=1e3", 0},
                 {"up=1 ", 0},
                 {"up= 1", 0},
                 {"up", 0},
                 {"up 1", 0},
                 {"ups=1", 0},
                 {"u=1", 0},
                 {" up=1", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int n = 0; n < 4; n++) {
            char text[100];
            snprintf(text, sizeof text, "%s%s%s", n & 1 ? "down=4\n\n" : "", cases[i].line,
                     n & 2 ? "\nafter=5\n" : "");
            const struct calibration_section section = section_of(text);
            const double value = calibration_section_value(&section, "up");
            if (fabs(value - cases[i].value) > 1e-12 * cases[i].value)
                fail_msg("%s: %.17g", cases[i].line, value);
        }
}

static void values_are_written_as_they_are_read(void **state)
{
    struct string_buffer body = {NULL, 0, 0, false};
    (void)state;
    calibration_put_value(&body, "up_gbps", 21.5);
    calibration_put_value(&body, "short_up_ms", 0.000065);
    calibration_put_value(&body, "nrhs", 1024);
    assert_string_equal(body.text, "up_gbps=21.5\nshort_up_ms=0.000065\nnrhs=1024\n");
    free(body.text);
}

/* ---- Lines and sections ---- */

/* Random texts of short lines, of which some are headers; the last line may lack its newline. */
static void random_text(char *text, int lines)
{
    static const char letters[] = "[[ab= \n";
    *text = 0;
    for (int i = 0; i < lines; i++) {
        for (int n = rand() % 5; n > 0; n--)
            strncat(text, &letters[rand() % 6], 1);
        strcat(text, i + 1 < lines || rand() % 2 ? "\n" : "");
    }
}

/* Sections begin with "[", and end before the next one. */
static void any_sections(void **state)
{
    static const char *const prefixes[] = {"[", "[a", "[ab", "[[", "[b="};
    int found = 0;
    (void)state;
    srand(6);
    for (int n = 0; n < 20000; n++) {
        char text[200], copy[200];
        const char *const prefix = prefixes[rand() % 5];
        random_text(text, rand() % 12);
        strcpy(copy, text);
        struct calibration rest = file_of(text);
        struct calibration_line header;
        struct calibration_section section;
        bool first = true;
        for (char *at = copy; *at;) { /* by line */
            char *const line = at, *end = strchr(at, '\n');
            at = end ? end + 1 : at + strlen(at);
            if (strncmp(line, prefix, strlen(prefix)) != 0)
                continue;
            const size_t length = end ? (size_t)(end - line) : strlen(line);
            const char *next = at; /* where the next header is */
            while (*next && *next != '[') {
                const char *newline = strchr(next, '\n');
                next = newline ? newline + 1 : next + strlen(next);
            }
            assert_true(calibration_next_section(&rest, prefix, &header, &section));
            assert_true(header.at == text + (line - copy) && header.length == length);
            assert_true(section.text == text + (at - copy) &&
                        section.length == (size_t)(next - at));
            assert_true(rest.text == section.text + section.length &&
                        rest.length == strlen(text) - (size_t)(rest.text - text));
            const struct calibration file = file_of(text);
            if (first) {
                struct calibration_section same;
                assert_true(calibration_find(&file, prefix, true, &same));
                assert_true(same.text == section.text && same.length == section.length);
            }
            first = false;
            found++;
        }
        assert_false(calibration_next_section(&rest, prefix, &header, &section));
        const struct calibration file = file_of(text);
        assert_true(calibration_find(&file, prefix, true, &section) == !first);
        if (strcmp(prefix, "[") == 0)
            assert_true(calibration_has_sections(&file) == !first);
    }
    assert_true(found > 5000);
}

static void a_section_by_its_whole_key(void **state)
{
    const struct calibration file = file_of("accel-model 1\n[ab]\nx=1\n[a]\nx=2\n[abc]\n[b]");
    struct calibration_section section;
    (void)state;
    assert_true(calibration_find(&file, "[a]", false, &section));
    assert_true(is_text(section.text, section.length, "x=2\n"));
    assert_true(calibration_find(&file, "[a", true, &section));
    assert_true(is_text(section.text, section.length, "x=1\n"));
    assert_false(calibration_find(&file, "[a", false, &section));
    assert_true(calibration_find(&file, "[abc]", false, &section) && section.length == 0);
    assert_true(calibration_find(&file, "[b]", false, &section) && section.length == 0);
    assert_false(calibration_find(&file, "accel-model 1", false, &section));
}

static void lines(void **state)
{
    static const char text[] = "one\n\nthree";
    const char *at = text, *const end = text + strlen(text);
    struct calibration_line line;
    const struct calibration_section section =
        section_of("dgemm\ndgemmt 2\ndgemm=3\ndgemm 4\ndgemm 5\n");
    (void)state;
    assert_true(calibration_next_line(&at, end, &line) && is_text(line.at, line.length, "one"));
    assert_true(calibration_begins(&line, "on") && calibration_begins(&line, "one") &&
                calibration_begins(&line, ""));
    assert_false(calibration_begins(&line, "one\n") || calibration_begins(&line, "ne"));
    assert_true(calibration_next_line(&at, end, &line) && line.length == 0);
    assert_true(calibration_next_line(&at, end, &line) && is_text(line.at, line.length, "three"));
    assert_false(calibration_next_line(&at, end, &line));
    assert_true(calibration_find_line(&section, "dgemm", ' ', &line) &&
                is_text(line.at, line.length, "4"));
    assert_true(calibration_find_line(&section, "dgemm", '=', &line) &&
                is_text(line.at, line.length, "3"));
    assert_false(calibration_find_line(&section, "sgemm", ' ', &line));
}

/* ---- Keys ---- */

static void cpus_by_library_and_threads(void **state)
{
    char prefix[CALIBRATION_KEY_BYTES], text[4000] = "accel-model 1\n";
    static const char *const tails[] = {
        " threads=4 library=\"one\"]",       " threads=16 library=\"one\"]",
        " threads=1048576 library=\"one\"]", " threads=1048577 library=\"one\"]",
        " threads=0 library=\"one\"]",       " threads=8 library=\"two\"]",
        " threads=8 library=\"one\"] ",      " threads=x library=\"one\"]",
        " threads= library=\"one\"]",        " thread=8 library=\"one\"]",
        " threads=1 library=\"one\"]",       "x threads=8 library=\"one\"]"};
    static const int found[] = {4, 16, 1 << 20, 1};
    (void)state;
    calibration_cpu_prefix(prefix);
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        sprintf(text + strlen(text), "%s%s\nup=%d\n", prefix, tails[i], (int)i + 1);
    strcat(text, "[cpu \"another\" threads=9 library=\"one\"]\nup=99\n");
    struct calibration rest = file_of(text);
    struct calibration_section section;
    int threads;
    for (int i = 0; i < 4; i++) {
        assert_true(calibration_next_cpu(&rest, prefix, "one", &threads, &section));
        assert_int_equal(threads, found[i]);
        assert_true(calibration_section_value(&section, "up") == (i < 3 ? i + 1 : 11));
    }
    assert_false(calibration_next_cpu(&rest, prefix, "one", &threads, &section));
    rest = file_of(text);
    assert_true(calibration_next_cpu(&rest, prefix, "two", &threads, &section) && threads == 8);
    rest = file_of(text);
    assert_false(calibration_next_cpu(&rest, prefix, "three", &threads, &section));
}

/* A key is found by what it was made of; characters that would end a name or its line are others
 * there. */
static void keys_are_found(void **state)
{
    static const char *const libraries[] = {"libx.so 12", "a\"b",    "tab\there",
                                            "del\x7f",    "space ~", "\xc3\xa9"};
    char key[CALIBRATION_KEY_BYTES], prefix[CALIBRATION_KEY_BYTES], name[CPU_NAME_BYTES], all[400],
        text[700];
    struct calibration_section section;
    int threads;
    (void)state;
    cpu_name(name);
    calibration_cpu_prefix(prefix);
    calibration_cpu_key(key, "libx.so 12", 3);
    snprintf(all, sizeof all, "[cpu \"%s\"", name);
    assert_string_equal(prefix, all);
    strcat(all, " threads=3 library=\"libx.so 12\"]");
    assert_string_equal(key, all);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        calibration_cpu_key(key, libraries[i], 5);
        snprintf(text, sizeof text, "accel-model 1\n%s\nup=1\n", key);
        struct calibration rest = file_of(text);
        assert_true(calibration_next_cpu(&rest, prefix, libraries[i], &threads, &section));
        assert_int_equal(threads, 5);
    }
    calibration_cpu_key(key, "a\"b\tc\x7f~ d", 1);
    assert_non_null(strstr(key, "library=\"a_b_c_~ d\"]"));
    calibration_gpu_key(key, "NVIDIA H200", 12090, 120901);
    assert_string_equal(key, "[gpu \"NVIDIA H200\" cuda=12.9 cublas=120901]");
}

static void gpus_one_after_the_other(void **state)
{
    char long_name[CALIBRATION_KEY_BYTES + 1], text[2000], name[CALIBRATION_KEY_BYTES];
    struct calibration_section section;
    (void)state;
    for (int length = CALIBRATION_KEY_BYTES - 1; length <= CALIBRATION_KEY_BYTES; length++) {
        memset(long_name, 'n', sizeof long_name);
        long_name[length] = 0;
        snprintf(text, sizeof text,
                 "accel-model 1\n[gpu \"one\" cuda=1]\nup=1\n[cpu \"two\"]\n[gpu \"\"]\n[gpu "
                 "\"three]\n[gpu "
                 "\"%s\"]\n[gpu \"x\"",
                 long_name);
        struct calibration rest = file_of(text);
        assert_true(calibration_next_gpu(&rest, name, &section));
        assert_string_equal(name, "one");
        assert_true(is_text(section.text, section.length, "up=1\n"));
        assert_true(calibration_next_gpu(&rest, name, &section));
        if (length < CALIBRATION_KEY_BYTES) {
            assert_string_equal(name, long_name);
            assert_true(calibration_next_gpu(&rest, name, &section));
        }
        assert_string_equal(name, "x");
        assert_false(calibration_next_gpu(&rest, name, &section));
    }
}

/* Whether the words stand in the text, and neither goes on in a letter or digit. */
static bool plain_has_words(const char *text, const char *words)
{
    const size_t n = strlen(words);
    for (size_t i = 0; i + n <= strlen(text); i++)
        if (strncasecmp(text + i, words, n) == 0 &&
            !(i > 0 && isalnum((unsigned char)text[i - 1]) && isalnum((unsigned char)words[0])) &&
            !(isalnum((unsigned char)text[i + n]) && isalnum((unsigned char)words[n - 1])))
            return true;
    return false;
}

static int plain_find(char names[][40], int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcasecmp(names[i], name) == 0 ||
            (strncasecmp(names[i], "nvidia ", 7) == 0 && strcasecmp(names[i] + 7, name) == 0))
            return i;
    for (int i = 0; i < count; i++)
        if (plain_has_words(names[i], name) &&
            (!plain_has_words(names[i], "mig") || plain_has_words(name, "mig")))
            return i;
    return -1;
}

static void any_gpu_by_name(void **state)
{
    static const char *const words[] = {"NVIDIA", "nvidia", "A1",   "a1", "a1z", "Z9",  "0",
                                        "MIG",    "mig",    "MIGs", "1g", "NVL", "zA1", "9"};
    int found = 0, none = 0;
    (void)state;
    srand(8);
    for (int n = 0; n < 20000; n++) {
        char names[4][40] = {"", "", "", ""}, name[40] = "", text[1000] = "accel-model 1\n";
        for (int i = 0; i < 5; i++) {
            char *const to = i < 4 ? names[i] : name;
            const int most = i < 4 ? 3 : 2;
            for (int w = 1 + rand() % most; w > 0; w--) {
                strcat(to, *to ? rand() % 3 ? " " : "-" : "");
                strcat(to, words[rand() % 14]);
            }
            if (i < 4)
                sprintf(text + strlen(text), "[gpu \"%s\" cuda=1.0 cublas=1]\nup=%d\n", to, i + 1);
        }
        const struct calibration file = file_of(text);
        struct calibration_section section;
        const int expected = plain_find(names, 4, name);
        const bool is = calibration_find_gpu(&file, name, &section);
        if (is != (expected >= 0) ||
            (is && calibration_section_value(&section, "up") != expected + 1))
            fail_msg("\"%s\" in %s", name, text);
        found += is;
        none += !is;
    }
    assert_true(found > 3000 && none > 3000);
}

/* ---- Curves ---- */

/* What is written of a routine's calls is read as the same calls with the same times. */
static void curves_are_read_again(void **state)
{
    int routines = 0;
    (void)state;
    srand(10);
    for (uint32_t r = 0; r < accel_routine_count; r++) {
        const struct accel_routine *const one = &accel_routines[r];
        struct model_work works[5];
        struct model_curve curve = {.device = r % 2}, again = {.device = r % 2};
        struct string_buffer body = {NULL, 0, 0, false};
        double ms[5];
        if (!accel_is_blas(one) && !accel_op_of(one)->cost->typical)
            continue;
        for (int p = 0; p < 5; p++) {
            int64_t size[ACCEL_DIMENSIONS];
            struct accel_call call;
            /* As those of most routines are: m >= n >= k */
            for (int i = ACCEL_DIMENSIONS - 1; i >= 0; i--)
                size[i] = (i < ACCEL_k ? size[i + 1] : 1) + rand() % (p == 4 ? 13000 : 20 << 2 * p);
            shape_typical(&call, one, size);
            model_work_of(&call, curve.device, &works[p]);
            ms[p] = 0.01 + rand() % 100000 / 7.0;
        }
        model_fit(&curve, works, ms, 5);
        calibration_put_curve(&body, one, &curve);
        assert_non_null(body.text);
        assert_true(strlen(body.text) == body.length && body.text[body.length - 1] == '\n');
        const struct calibration_section section = section_of(body.text);
        if (!calibration_section_curve(&section, one, &again))
            fail_msg("not read: %s", body.text);
        if (again.points != 5)
            fail_msg("%d points of %s", again.points, body.text);
        for (int p = 0; p < 5; p++) {
            for (int i = 0; i < MODEL_SIZES; i++)
                assert_true(again.point[p].place[i] == curve.point[p].place[i]);
            assert_true(fabs(model_point_ms(&again, &again.point[p], &works[p]) / ms[p] - 1) <
                        0.002);
        }
        free(body.text);
        routines++;
    }
    assert_true(routines > 100);
}

static void what_of_a_curve_is_written(void **state)
{
    struct model_curve curve = {.ms = {1}, .points = 0};
    struct string_buffer body = {NULL, 0, 0, false};
    (void)state;
    calibration_put_curve(&body, routine("dgemm"), &curve);
    assert_true(body.length == 0 && body.text && !*body.text);
    string_buffer_add_string(&body, "before\n");
    calibration_put_curve(&body, routine("dgemm"), &curve);
    assert_string_equal(body.text, "before\n");
    curve.points = 4;
    curve.point[0] = (struct model_point){.place = {6, 5, 4}, .log2_ratio = -1};
    curve.point[1] = (struct model_point){.place = {6, 5, 4, 0, 3}}; /* of a batch */
    curve.point[2] = (struct model_point){.place = {6, 5, 4}, .log2_ratio = -30};
    curve.point[3] = (struct model_point){.place = {31, 0, 1.5F}, .log2_ratio = 3};
    calibration_put_curve(&body, routine("dgemm"), &curve);
    assert_string_equal(body.text, "before\ndgemm 64x32x16:0.5 2147483647x1x3:8\n");
    const struct calibration_section section = section_of(body.text);
    struct model_curve again = {.points = 0};
    assert_true(calibration_section_curve(&section, routine("dgemm"), &again) && again.points == 2);
    free(body.text);
}

static void sizes_within_32_bits(void **state)
{
    static const char *const bodies[] = {"dgemm 2147483647x1x1:1", "dgemm 2147483648x1x1:1",
                                         "dgemm 1x0x1:1",          "dgemm 1x1x1:1x",
                                         "dgemm 1x1x1:1 2x2x2:2x", "dgemm 1x1x1:1 "};
    (void)state;
    for (int i = 0; i < 6; i++) {
        const struct calibration_section section = section_of(bodies[i]);
        struct model_curve curve = {.points = 0};
        assert_int_equal(calibration_section_curve(&section, routine("dgemm"), &curve), i == 0);
    }
}

/* ---- Algorithms, paces and names ---- */

static void any_orders_of_svd(void **state)
{
    (void)state;
    srand(12);
    for (int n = 0; n < 2000; n++) {
        int order[4], kind[4], count = 1 + rand() % 4;
        char text[300] = "svd_c_values";
        enum gpu_svd algorithm[GPU_SVD_OCTAVES];
        for (int i = 0; i < count; i++) {
            order[i] = 1 + rand() % (2 << rand() % 20);
            kind[i] = rand() % GPU_SVDS;
            sprintf(text + strlen(text), " %d:%s", order[i], gpu_svd_names[kind[i]]);
        }
        const struct calibration_section section = section_of(text);
        assert_true(calibration_section_svd(&section, ACCEL_COMPLEX64, false, algorithm));
        for (int octave = 0; octave < GPU_SVD_OCTAVES; octave++) {
            int nearest = 0; /* the first of several */
            for (int i = 1; i < count; i++)
                if (abs(gpu_svd_octave(order[i]) - octave) <
                    abs(gpu_svd_octave(order[nearest]) - octave))
                    nearest = i;
            assert_int_equal(algorithm[octave], kind[nearest]);
        }
    }
}

static void limits_of_paces(void **state)
{
    struct block_paces paces;
    const struct calibration_section section = section_of("pace_z 640:0.5 4096:2");
    (void)state;
    assert_true(calibration_section_paces(&section, ACCEL_COMPLEX128, &paces));
    assert_true(paces.of[0] == 0.5F && paces.of[PACES - 1] == 2 && paces.of[1] == 0);
    assert_true(block_pace_highest(&paces) == 2);
}

static void names(void **state)
{
    static const enum accel_dtype types[] = {ACCEL_FLOAT32, ACCEL_FLOAT64, ACCEL_COMPLEX64,
                                             ACCEL_COMPLEX128};
    (void)state;
    for (int i = 0; i < 4; i++) {
        char name[40], expected[40];
        for (int either = 0; either < 2; either++) {
            calibration_svd_name(name, types[i], either);
            snprintf(expected, sizeof expected, "svd_%c_%s", "sdcz"[i],
                     either ? "vectors" : "values");
            assert_string_equal(name, expected);
            const struct calibration_solve_names solve = calibration_solve_names(types[i], either);
            snprintf(expected, sizeof expected, "solve_%c_%s_gbps", "sdcz"[i],
                     either ? "own" : "blas");
            assert_string_equal(solve.gbps, expected);
            snprintf(expected, sizeof expected, "solve_%c_%s_row_ms", "sdcz"[i],
                     either ? "own" : "blas");
            assert_string_equal(solve.row_ms, expected);
            snprintf(expected, sizeof expected, "solve_%c_%s_nrhs", "sdcz"[i],
                     either ? "own" : "blas");
            assert_string_equal(solve.nrhs, expected);
        }
        calibration_pace_name(name, types[i]);
        snprintf(expected, sizeof expected, "pace_%c", "sdcz"[i]);
        assert_string_equal(name, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(values_are_written_as_they_are_read),
        cmocka_unit_test(any_sections),
        cmocka_unit_test(a_section_by_its_whole_key),
        cmocka_unit_test(lines),
        cmocka_unit_test(cpus_by_library_and_threads),
        cmocka_unit_test(keys_are_found),
        cmocka_unit_test(gpus_one_after_the_other),
        cmocka_unit_test(any_gpu_by_name),
        cmocka_unit_test(curves_are_read_again),
        cmocka_unit_test(what_of_a_curve_is_written),
        cmocka_unit_test(sizes_within_32_bits),
        cmocka_unit_test(any_orders_of_svd),
        cmocka_unit_test(limits_of_paces),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
