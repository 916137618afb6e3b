#define _GNU_SOURCE
#include "compare_text.h"

#include <errno.h>
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

/* Returns the text in front of number i, or behind the last number, without the spaces beside
 * numbers. */
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

/* Whether the lines are the same, except for their numbers' values. If not, sets *a_at and *b_at to
 * where their text parts. */
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
    tally_text(tally, "%s, column %zu: \"%s\", %s \"%s\"", place, a_at + 1,
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
        show_text(tally, place, a, b, a_at, b_at);
        return;
    }
    for (size_t i = 0; i < a->numbers; i++) {
        struct number number = b->number[i];
        number_tell_apart(&a->number[i], a->text + a->number[i].start, &number,
                          b->text + number.start);
        if (tally_number(tally, &a->number[i], &number, noise ? &noise->number[i] : NULL))
            show_number(tally, place, a, b, i);
    }
}

/* ---- A file ---- */

/* Reads a file line by line. */
struct reader {
    const struct contents *contents; /* NULL: there is none */
    size_t next;                     /* where the next line begins */
    int64_t at;                      /* the line's number, from 1 */
    struct text_line line;
    bool failed;
};

/* Finds the next line that is not ignored, and its numbers. False at the file's end, or (failed)
 * with a message on stderr. */
static bool reader_next(struct reader *reader)
{
    const struct contents *contents = reader->contents;
    const char *line;
    size_t length;
    do {
        if (!contents || reader->next == contents->length)
            return false;
        line = contents->bytes + reader->next;
        length = contents->length - reader->next;
        const char *end = memchr(line, '\n', length);
        if (end)
            length = (size_t)(end + 1 - line);
        reader->next += length;
        reader->at++;
        reader->failed = memchr(line, 0, length);
        if (reader->failed)
            return contents_fault(
                contents,
                "line %lld: there is a NUL: this is not text; allowed: FORMAT:FILE with one of %s",
                (long long)reader->at, format_list());
    } while (compared_ignores(contents->compared, line, length - (line[length - 1] == '\n')));
    reader->failed = !text_line_scan(&reader->line, line, length);
    return !reader->failed || contents_fault(contents, "%s", strerror(ENOMEM));
}

static void show_end(struct tally *tally, const struct reader *longer, const char *run)
{
    char shown[4 * SHOWN_MAX + 1];
    tally_text(tally, "line %lld: \"%s\" is there %s alone", (long long)longer->at,
               visible(shown, &longer->line, 0), run);
}

bool compare_text(struct tally *tally, const struct contents *a, const struct contents *b,
                  const struct contents *noise)
{
    struct reader x = {.contents = a}, y = {.contents = b}, z = {.contents = noise};
    for (;;) {
        const bool has_x = reader_next(&x), has_y = reader_next(&y), has_z = reader_next(&z);
        if (x.failed || y.failed || z.failed)
            break;
        if (has_x && !has_y)
            show_end(tally, &x, tally_first(tally));
        if (has_y && !has_x)
            show_end(tally, &y, tally_second(tally));
        if (!has_x || !has_y)
            break;
        char place[64];
        snprintf(place, sizeof place, "line %lld", (long long)x.at);
        text_line_compare(tally, &x.line, &y.line, has_z ? &z.line : NULL, place);
    }
    text_line_free(&x.line);
    text_line_free(&y.line);
    text_line_free(&z.line);
    return !x.failed && !y.failed && !z.failed;
}
