/*
 * Compares JSON by structure: members in any order, with any white space between them. Holds the
 * whole of each run's JSON in memory, at about a hundred bytes a number.
 */
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

enum { DEPTH_MAX = 1000 };

/* ---- Reading ---- */

bool json_read(struct contents *contents)
{
    bool good = false;
    struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
    if (contents->length >= INT_MAX) {
        contents_fault(contents, "%zu bytes; allowed: less than %d", contents->length, INT_MAX);
    } else if (!tokener) {
        contents_fault(contents, "%s", strerror(ENOMEM));
    } else {
        json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
        /* The NUL behind the text ends a number. */
        contents->read = json_tokener_parse_ex(tokener, contents->bytes, (int)contents->length + 1);
        enum json_tokener_error error = json_tokener_get_error(tokener);
        good = error == json_tokener_success;
        if (!good && json_tokener_get_parse_end(tokener) == contents->length)
            contents_fault(contents, "the JSON is cut short");
        else if (!good)
            contents_fault(contents, "line %lld: not JSON: %s",
                           contents_line(contents, json_tokener_get_parse_end(tokener)),
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
    bool failed; /* no memory, or a number that cannot be compared; a message is on stderr */
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

/* Reads a number and its text: for a real number, the text in the file. */
static void read_number(struct number *number, char text[NUMBER_TEXT_BYTES],
                        struct json_object *value)
{
    const char *written =
        json_object_is_type(value, json_type_double) ? json_object_get_userdata(value) : NULL;
    if (written && number_is(written, strlen(written), number)) {
        snprintf(text, NUMBER_TEXT_BYTES, "%s", written);
        return;
    }
    *number = (struct number){.integer = json_object_is_type(value, json_type_int)};
    if (!number->integer)
        number->part[0].value = (long double)json_object_get_double(value);
    else if (json_object_get_int64(value) < 0)
        number->part[0].value = (long double)json_object_get_int64(value);
    else
        number->part[0].value = (long double)json_object_get_uint64(value);
    number_print(text, number, &precision_double);
}

/* Whether an integer may have more than 64 bits: json-c replaces such a one by the largest or least
 * that it has. */
static bool is_too_long(struct json_object *value)
{
    return json_object_is_type(value, json_type_int) &&
           (json_object_get_uint64(value) == UINT64_MAX ||
            json_object_get_int64(value) == INT64_MIN);
}

static void compare_numbers(struct json_comparison *walk, struct json_object *a,
                            struct json_object *b, struct json_object *noise)
{
    struct number x, y, z;
    char x_text[NUMBER_TEXT_BYTES], y_text[NUMBER_TEXT_BYTES], z_text[NUMBER_TEXT_BYTES];
    if (is_too_long(a) || is_too_long(b)) {
        walk->failed = true;
        contents_fault(is_too_long(a) ? walk->first : walk->second,
                       "%s: an integer of 64 bits or more; allowed: shorter ones", path_of(walk));
        return;
    }
    read_number(&x, x_text, a);
    read_number(&y, y_text, b);
    if (is_number(noise))
        read_number(&z, z_text, noise);
    if (tally_number(walk->tally, &x, &y, is_number(noise) ? &z : NULL))
        tally_show_number(walk->tally, path_of(walk), x_text, y_text);
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

static void show_values(struct json_comparison *walk, const char *a, const char *b)
{
    tally_text(walk->tally, "%s: %s, %s %s", path_of(walk), a, tally_second(walk->tally), b);
}

static void compare_values(struct json_comparison *walk, struct json_object *a,
                           struct json_object *b, struct json_object *noise)
{
    enum json_type type = json_object_get_type(a), other = json_object_get_type(b);
    if (is_number(a) && is_number(b))
        compare_numbers(walk, a, b, noise);
    else if (type != other)
        show_values(walk, json_type_to_name(type), json_type_to_name(other));
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
