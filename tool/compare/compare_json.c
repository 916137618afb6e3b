/*
 * Compares JSON by structure: members in any order, with any white space between them. Holds the
 * whole of each run's JSON in memory, at about a hundred bytes a number.
 */
#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "compare_text.h"
#include "base/text/string_buffer.h"

enum { DEPTH_MAX = 1000, SURE_DIGITS = 18, SHOWN_MAX = 60 };

/* ---- Reading ---- */

/* json-c makes the nearest integer of 64 bits of a longer one, and in 0.18 an error. With an
 * exponent behind it, it is a real number, whose text json-c keeps. */
static const char exponent[] = "e0";

/* Whether this is an integer that may have more than 64 bits. */
static bool is_long_integer(const char *text, size_t length)
{
    const size_t sign = *text == '-';
    return length > sign + SURE_DIGITS && strspn(text + sign, "0123456789") >= length - sign;
}

/* What json-c gets at a time. */
struct json_piece {
    size_t start, end;
    bool is_inner;        /* it is the inner text of a string */
    bool is_long_integer; /* it ends with one */
};

/* Returns where a string's inner text ends that begins at `at`. *plain: whether all of it is
 * ASCII's, without control characters. */
static size_t inner_end(const char *text, size_t at, size_t length, bool *plain)
{
    *plain = true;
    for (; at < length && text[at] != '"'; at++) {
        *plain = *plain && text[at] >= ' ';
        if (text[at] == '\\')
            *plain = text[++at] >= ' ' && *plain;
    }
    return at < length ? at : length;
}

/* Goes on to the piece behind this one. The last one ends behind the NUL that ends the text. */
static void next_piece(struct json_piece *piece, const char *text, size_t length)
{
    const bool was_outside = !piece->is_inner;
    bool plain = true;
    size_t at = piece->end;
    *piece = (struct json_piece){.start = at};
    if (was_outside && at > 0 && text[at - 1] == '"') {
        piece->end = inner_end(text, at, length, &plain);
        piece->is_inner = true;
        return;
    }
    if (!was_outside)
        at++; /* the quote that ends the string */
    while (at < length) {
        const size_t start = at++;
        if (text[start] == '"') {
            piece->end = at;
            at = inner_end(text, at, length, &plain) + 1;
            if (!plain)
                return;
        } else if (text[start] == '-' || isdigit((unsigned char)text[start])) {
            piece->end = at = start + strspn(text + start, "+-.0123456789Ee");
            piece->is_long_integer = is_long_integer(text + start, at - start);
            if (piece->is_long_integer)
                return;
        }
    }
    piece->end = length + 1;
}

/* Parses the text up to its NUL, which ends a number. Returns how many bytes have been parsed. In
 * its strict mode, json-c 0.18 takes no strings that are not plain. */
static size_t parse(struct json_tokener *tokener, struct contents *contents)
{
    struct json_piece piece = {0};
    do {
        next_piece(&piece, contents->bytes, contents->length);
        json_tokener_set_flags(tokener, piece.is_inner ? 0 : JSON_TOKENER_STRICT);
        contents->read = json_tokener_parse_ex(tokener, contents->bytes + piece.start,
                                               (int)(piece.end - piece.start));
        if (json_tokener_get_error(tokener) != json_tokener_continue)
            return piece.start + json_tokener_get_parse_end(tokener);
        if (piece.is_long_integer)
            json_tokener_parse_ex(tokener, exponent, sizeof exponent - 1);
    } while (piece.end <= contents->length &&
             json_tokener_get_error(tokener) == json_tokener_continue);
    return piece.end;
}

bool json_read(struct contents *contents)
{
    bool good = false;
    struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
    if (contents->length >= INT_MAX) {
        contents_fault(contents, "%zu bytes; allowed: less than %d", contents->length, INT_MAX);
    } else if (!tokener) {
        contents_fault(contents, "%s", strerror(ENOMEM));
    } else {
        const size_t parsed = parse(tokener, contents);
        enum json_tokener_error error = json_tokener_get_error(tokener);
        good = error == json_tokener_success;
        if (good && parsed < contents->length)
            good = contents_fault(contents, "line %lld: not JSON: there is a NUL",
                                  contents_line(contents, parsed));
        else if (!good && parsed >= contents->length)
            contents_fault(contents, "the JSON is cut short");
        else if (!good)
            contents_fault(contents, "line %lld: not JSON: %s", contents_line(contents, parsed),
                           json_tokener_error_desc(error));
    }
    if (tokener)
        json_tokener_free(tokener);
    return good;
}

void json_free(void *read)
{
    json_object_put(read);
}

/* ---- Comparing ---- */

struct json_comparison {
    struct tally *tally;
    const struct contents *first, *second;
    struct string_buffer path; /* of the values that are compared: .a[3].b */
    bool failed;               /* no memory; a message is on stderr */
};

static void no_memory(struct json_comparison *walk)
{
    if (!walk->failed)
        contents_fault(walk->second, "%s", strerror(ENOMEM));
    walk->failed = true;
}

static const char *path_of(const struct json_comparison *walk)
{
    return walk->path.length ? walk->path.text : ".";
}

static bool is_number(const struct json_object *value)
{
    return json_object_is_type(value, json_type_int) ||
           json_object_is_type(value, json_type_double);
}

/* A number, and its text in the file; that of a short integer is printed anew. */
struct json_number {
    struct number number;
    const char *text;
    bool is_text; /* it is too long for a number, and is compared as text */
    char copy[NUMBER_LENGTH_MAX + sizeof exponent];
};

/* Reads what json-c has kept the text of: without the exponent that parse() has added. */
static void read_written(struct json_number *read, const char *written)
{
    size_t length = strlen(written);
    read->text = written;
    read->is_text = length >= sizeof read->copy;
    if (read->is_text)
        return;
    memcpy(read->copy, written, length + 1);
    length -= length >= sizeof exponent ? sizeof exponent - 1 : 0;
    if (strcmp(written + length, exponent) == 0 && is_long_integer(written, length))
        read->copy[length] = 0;
    read->text = read->copy;
    read->is_text = !number_is(read->copy, strlen(read->copy), &read->number);
}

static void read_number(struct json_number *read, struct json_object *value)
{
    const bool integer = json_object_is_type(value, json_type_int);
    const char *written = integer ? NULL : json_object_get_userdata(value);
    if (written) {
        read_written(read, written);
        return;
    }
    *read = (struct json_number){.number.integer = integer, .text = read->copy};
    read->number.part[0].value = integer ? (long double)json_object_get_int64(value)
                                         : (long double)json_object_get_double(value);
    number_print(read->copy, &read->number, &precision_double);
}

static void show_values(struct json_comparison *walk, const char *a, const char *b)
{
    tally_text(walk->tally, "%s: %.*s, %s %.*s", path_of(walk), SHOWN_MAX, a,
               tally_second(walk->tally), SHOWN_MAX, b);
}

static void compare_numbers(struct json_comparison *walk, struct json_object *a,
                            struct json_object *b, struct json_object *noise)
{
    struct json_number x, y, z = {.is_text = true};
    read_number(&x, a);
    read_number(&y, b);
    if (is_number(noise))
        read_number(&z, noise);
    if (x.is_text || y.is_text) {
        tally_same(walk->tally, 1);
        if (strcmp(x.text, y.text) != 0)
            show_values(walk, x.text, y.text);
        return;
    }
    number_tell_apart(&x.number, x.text, &y.number, y.text);
    if (tally_number(walk->tally, &x.number, &y.number, z.is_text ? NULL : &z.number))
        tally_show_number(walk->tally, path_of(walk), x.text, y.text);
}

/* Compares strings as text: numbers within them are numbers. */
static void compare_strings(struct json_comparison *walk, struct json_object *a,
                            struct json_object *b, struct json_object *noise)
{
    struct json_object *value[RUNS] = {a, noise, b};
    struct text_line line[RUNS] = {{NULL, 0, NULL, 0, 0}};
    bool has_noise = json_object_is_type(noise, json_type_string);
    for (int i = 0; i < RUNS; i++)
        if (json_object_is_type(value[i], json_type_string) &&
            !text_line_scan(&line[i], json_object_get_string(value[i]),
                            (size_t)json_object_get_string_len(value[i])))
            no_memory(walk);
    if (!walk->failed)
        text_line_compare(walk->tally, &line[RUN_PLAIN], &line[RUN_SHIM],
                          has_noise ? &line[RUN_THREADS] : NULL, path_of(walk));
    for (int i = 0; i < RUNS; i++)
        text_line_free(&line[i]);
}

/* member() and element() return the noise's value at the same place; NULL if there is none. */
static struct json_object *member(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;
    if (json_object_is_type(object, json_type_object))
        json_object_object_get_ex(object, key, &value);
    return value;
}

static struct json_object *element(struct json_object *array, size_t i)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_get_idx(array, i) : NULL;
}

static void compare_values(struct json_comparison *walk, struct json_object *a,
                           struct json_object *b, struct json_object *noise);

/* Compares what lies one step further, at .NAME or [NAME]. */
static void compare_member(struct json_comparison *walk, const char *name, bool quoted,
                           struct json_object *a, struct json_object *b, struct json_object *noise,
                           bool has_a, bool has_b)
{
    size_t length = walk->path.length;
    string_buffer_add_string(&walk->path, quoted ? "." : "[");
    string_buffer_add_string(&walk->path, name);
    string_buffer_add_string(&walk->path, quoted ? "" : "]");
    if (walk->path.failed)
        no_memory(walk);
    else if (!compared_ignores(walk->first->compared, walk->path.text, walk->path.length)) {
        if (has_a && has_b)
            compare_values(walk, a, b, noise);
        else
            tally_text(walk->tally, "%s is there %s alone", path_of(walk),
                       has_a ? tally_first(walk->tally) : tally_second(walk->tally));
    }
    if (!walk->path.failed) {
        walk->path.length = length;
        walk->path.text[length] = 0;
    }
}

static void compare_objects(struct json_comparison *walk, struct json_object *a,
                            struct json_object *b, struct json_object *noise)
{
    json_object_object_foreach(a, key, value)
    {
        if (walk->failed)
            return;
        struct json_object *other = NULL;
        bool has = json_object_object_get_ex(b, key, &other);
        compare_member(walk, key, true, value, other, member(noise, key), true, has);
    }
    json_object_object_foreach(b, other_key, other_value)
    {
        if (!json_object_object_get_ex(a, other_key, NULL))
            compare_member(walk, other_key, true, NULL, other_value, NULL, false, true);
    }
}

static void compare_arrays(struct json_comparison *walk, struct json_object *a,
                           struct json_object *b, struct json_object *noise)
{
    size_t a_length = json_object_array_length(a), b_length = json_object_array_length(b);
    for (size_t i = 0; i < a_length && i < b_length && !walk->failed; i++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        compare_member(walk, name, false, json_object_array_get_idx(a, i),
                       json_object_array_get_idx(b, i), element(noise, i), true, true);
    }
    if (a_length != b_length)
        tally_text(walk->tally, "%s: %zu elements, %s %zu", path_of(walk), a_length,
                   tally_second(walk->tally), b_length);
}

/* A long integer is json-c's double. */
static const char *type_name(struct json_object *value)
{
    struct json_number read;
    if (!is_number(value))
        return json_type_to_name(json_object_get_type(value));
    read_number(&read, value);
    return json_type_to_name(!read.is_text && read.number.integer ? json_type_int
                                                                  : json_type_double);
}

static void compare_values(struct json_comparison *walk, struct json_object *a,
                           struct json_object *b, struct json_object *noise)
{
    enum json_type type = json_object_get_type(a), other = json_object_get_type(b);
    if (is_number(a) && is_number(b))
        compare_numbers(walk, a, b, noise);
    else if (type != other)
        show_values(walk, type_name(a), type_name(b));
    else if (type == json_type_object)
        compare_objects(walk, a, b, noise);
    else if (type == json_type_array)
        compare_arrays(walk, a, b, noise);
    else if (type == json_type_string)
        compare_strings(walk, a, b, noise);
    else if (type == json_type_boolean && json_object_get_boolean(a) != json_object_get_boolean(b))
        show_values(walk, json_object_get_string(a), json_object_get_string(b));
}

bool compare_json(struct tally *tally, const struct contents *a, const struct contents *b,
                  const struct contents *noise)
{
    struct json_comparison walk = {.tally = tally, .first = a, .second = b};
    compare_values(&walk, a->read, b->read, noise ? noise->read : NULL);
    free(walk.path.text);
    return !walk.failed;
}
