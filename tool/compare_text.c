#define _GNU_SOURCE
#include "compare_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

/* ---- One line ---- */

bool text_line_scan(struct text_line *line, const char *text, size_t length)
{
    struct number number;
    line->text = text;
    line->length = length;
    line->numbers = 0;
    for (size_t at = 0; number_find(text, length, at, &number); at = number.start + number.length) {
        if (line->numbers == line->size) {
            size_t size = line->size ? 2 * line->size : 16;
            struct number *more = realloc(line->number, size * sizeof *more);
            if (!more)
                return false;
            line->number = more;
            line->size = size;
        }
        line->number[line->numbers++] = number;
    }
    return true;
}

void text_line_free(struct text_line *line)
{
    free(line->number);
    *line = (struct text_line){NULL, 0, NULL, 0, 0};
}

/* Returns the text in front of number i, or behind the last number, without the spaces beside numbers. */
static const char *gap(const struct text_line *line, size_t i, size_t *length)
{
    size_t start = 0, end = line->length;
    if (i > 0) {
        start = line->number[i - 1].start + line->number[i - 1].length;
        while (start < end && line->text[start] == ' ')
            start++;
    }
    if (i < line->numbers) {
        end = line->number[i].start;
        while (end > start && line->text[end - 1] == ' ')
            end--;
    }
    *length = end - start;
    return line->text + start;
}

/* Whether the lines are the same, except for their numbers' values. If not, sets *a_at and *b_at to where their text parts. */
static bool same_structure(const struct text_line *a, const struct text_line *b, size_t *a_at,
                           size_t *b_at)
{
    for (size_t i = 0;; i++) {
        size_t a_length, b_length, same = 0;
        const char *x = gap(a, i, &a_length), *y = gap(b, i, &b_length);
        while (same < a_length && same < b_length && x[same] == y[same])
            same++;
        *a_at = (size_t)(x - a->text) + same;
        *b_at = (size_t)(y - b->text) + same;
        if (same < a_length || same < b_length || (i == a->numbers) != (i == b->numbers))
            return false;
        if (i == a->numbers)
            return true;
    }
}

/* Changes the number's value if two long integers have the same value but different digits. */
static void tell_apart(const struct text_line *a, const struct text_line *b, size_t i,
                       struct number *number)
{
    const struct number *x = &a->number[i];
    if (x->integer && number->integer && x->part[0].value == number->part[0].value &&
        fabsl(number->part[0].value) >= 0x1p63L &&
        !number_same_integer(a->text + x->start, x->length, b->text + number->start,
                             number->length))
        number->part[0].value = nextafterl(number->part[0].value, INFINITY);
}

enum { SHOWN_MAX = 60 };

static int shown_length(size_t length)
{
    return length < SHOWN_MAX ? (int)length : SHOWN_MAX;
}

/* Returns a part of a line, with its end and invisible characters in C's notation. */
static const char *visible(char shown[4 * SHOWN_MAX + 1], const struct text_line *line, size_t from)
{
    static const char letters[] = "\n\r\t\"\\", escapes[] = "nrt\"\\";
    char *at = shown;
    for (size_t i = from; i < line->length && i < from + SHOWN_MAX; i++) {
        unsigned char c = (unsigned char)line->text[i];
        const char *letter = c ? strchr(letters, c) : NULL;
        if (letter)
            at += sprintf(at, "\\%c", escapes[letter - letters]);
        else if (c < ' ' || c == 127)
            at += sprintf(at, "\\x%02x", c);
        else
            *at++ = (char)c;
    }
    *at = 0;
    return shown;
}

/* Shows both lines, from a little before the place where they part. */
static void show_text(struct tally *tally, const char *place, const struct text_line *a,
                      const struct text_line *b, size_t a_at, size_t b_at)
{
    char x[4 * SHOWN_MAX + 1], y[4 * SHOWN_MAX + 1];
    size_t before = a_at < b_at ? a_at : b_at;
    before = before < SHOWN_MAX / 2 ? before : SHOWN_MAX / 2;
    tally_show(tally, "%s, column %zu: \"%s\", %s \"%s\"", place, a_at + 1,
               visible(x, a, a_at - before), tally_second(tally), visible(y, b, b_at - before));
}

static void show_number(struct tally *tally, const char *place, const struct text_line *a,
                        const struct text_line *b, size_t i)
{
    char where[512], x[80], y[80];
    snprintf(where, sizeof where, "%s, column %zu", place, a->number[i].start + 1);
    snprintf(x, sizeof x, "%.*s", shown_length(a->number[i].length), a->text + a->number[i].start);
    snprintf(y, sizeof y, "%.*s", shown_length(b->number[i].length), b->text + b->number[i].start);
    tally_show_number(tally, where, x, y);
}

void text_line_compare(struct tally *tally, const struct text_line *a, const struct text_line *b,
                       const struct text_line *noise, const char *place)
{
    size_t a_at, b_at;
    if (a->length == b->length && memcmp(a->text, b->text, a->length) == 0) {
        tally_same(tally, (int64_t)a->numbers);
        return;
    }
    if (noise && !same_structure(a, noise, &a_at, &b_at))
        noise = NULL;
    if (!same_structure(a, b, &a_at, &b_at)) {
        if (tally_text(tally))
            show_text(tally, place, a, b, a_at, b_at);
        return;
    }
    for (size_t i = 0; i < a->numbers; i++) {
        struct number number = b->number[i];
        tell_apart(a, b, i, &number);
        if (tally_number(tally, &a->number[i], &number, noise ? &noise->number[i] : NULL))
            show_number(tally, place, a, b, i);
    }
}

/* ---- A file ---- */

struct reader {
    const struct compared *compared;
    enum run run;
    FILE *file;
    char *line;
    size_t size;
    int64_t at; /* the line's number, from 1 */
    struct text_line scanned;
    bool ended, failed;
};

static void reader_close(struct reader *reader)
{
    if (reader->file)
        fclose(reader->file);
    free(reader->line);
    text_line_free(&reader->scanned);
}

static bool reader_open(struct reader *reader, const struct compared *compared, enum run run)
{
    *reader = (struct reader){.compared = compared, .run = run};
    reader->file = fopen(compared->path[run], "re");
    return reader->file || compared_fault(compared, run, "%s", strerror(errno));
}

/* Whether --ignore leaves out the line. Hides the line's end from the expression. */
static bool is_ignored(const struct reader *reader, size_t length)
{
    bool ends = length && reader->line[length - 1] == '\n';
    if (ends)
        reader->line[length - 1] = 0;
    bool ignored = compared_ignores(reader->compared, reader->line);
    if (ends)
        reader->line[length - 1] = '\n';
    return ignored;
}

/* Reads and scans the next line that is not ignored. False at the file's end, or (failed) with a message on stderr. */
static bool reader_next(struct reader *reader)
{
    ssize_t length;
    if (reader->ended || reader->failed)
        return false;
    do {
        errno = 0;
        length = getline(&reader->line, &reader->size, reader->file);
        if (length < 0) {
            reader->ended = feof(reader->file);
            reader->failed = !reader->ended;
            if (reader->failed)
                compared_fault(reader->compared, reader->run, "line %lld: %s",
                               (long long)reader->at + 1, strerror(errno));
            return false;
        }
        reader->at++;
        if (memchr(reader->line, 0, (size_t)length)) {
            reader->failed = true;
            return compared_fault(
                reader->compared, reader->run,
                "line %lld: there is a NUL: this is not text; allowed: FORMAT:FILE with one of %s",
                (long long)reader->at, format_list());
        }
    } while (reader->compared->ignored_count && is_ignored(reader, (size_t)length));
    if (!text_line_scan(&reader->scanned, reader->line, (size_t)length)) {
        reader->failed = true;
        return compared_fault(reader->compared, reader->run, "%s", strerror(ENOMEM));
    }
    return true;
}

static void compare_ends(struct tally *tally, const struct reader *a, const struct reader *b)
{
    const struct reader *longer = a->ended ? b : a;
    char shown[4 * SHOWN_MAX + 1];
    if (tally_text(tally))
        tally_show(tally, "line %lld: \"%s\" is there %s alone", (long long)longer->at,
                   visible(shown, &longer->scanned, 0),
                   longer == a ? tally_first(tally) : tally_second(tally));
}

/* Compares two files in one pass. noise: reads the second run's file beside them. */
static bool pass(struct tally *tally, const struct compared *compared, enum run second, bool noise)
{
    struct reader a, b, c = {.ended = true};
    bool good = reader_open(&a, compared, RUN_PLAIN);
    good = reader_open(&b, compared, second) && good;
    if (noise)
        good = reader_open(&c, compared, RUN_THREADS) && good;
    while (good) {
        bool has_a = reader_next(&a), has_b = reader_next(&b);
        bool has_c = noise && reader_next(&c);
        good = !a.failed && !b.failed && !c.failed;
        if (!good)
            break;
        if (has_a != has_b)
            compare_ends(tally, &a, &b);
        if (!has_a || !has_b)
            break;
        char place[64];
        snprintf(place, sizeof place, "line %lld", (long long)a.at);
        text_line_compare(tally, &a.scanned, &b.scanned, has_c ? &c.scanned : NULL, place);
    }
    reader_close(&a);
    reader_close(&b);
    if (noise)
        reader_close(&c);
    return good;
}

bool compare_text(struct tally *tally, const struct compared *compared)
{
    if (!pass(tally, compared, RUN_THREADS, false))
        return false;
    tally->measures_noise = false;
    return pass(tally, compared, RUN_SHIM, true);
}
