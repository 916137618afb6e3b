#define _GNU_SOURCE
#include "log_file.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/util/complain.h"

/* A longer line is none of ours, nor what stands behind so many objects that do not end: each may
 * be read up to the line's end. */
enum { LINE_MAX_BYTES = 1 << 20, BROKEN_MAX = 64, FIELDS_MAX = 128, JSON_DEPTH = 16, VERSION = 1 };

struct log_reader {
    FILE *file;
    const char *path;
    struct json_tokener *tokener;
    struct json_object *object; /* of the last line */
    struct log_counts counts;
    int64_t number;
    bool ended; /* the last line had a newline */
    size_t length;
    struct log_field field[FIELDS_MAX];
    char text[LINE_MAX_BYTES];
};

/* ---- Lines ---- */

/* Reads a line without its newline. A longer one than there is room for is cut. False at the end of
 * the file. */
static bool read_line(struct log_reader *reader)
{
    int c;
    reader->length = 0;
    while ((c = getc_unlocked(reader->file)) != EOF && c != '\n')
        if (reader->length < LINE_MAX_BYTES - 1)
            reader->text[reader->length++] = (char)c;
    reader->text[reader->length] = 0;
    reader->ended = c == '\n';
    reader->number += reader->length > 0 || reader->ended;
    return reader->length > 0 || reader->ended;
}

const char *log_string(const struct log_line *line, const char *name)
{
    for (int i = 0; i < line->fields; i++)
        if (strcmp(line->field[i].name, name) == 0)
            return line->field[i].value;
    return NULL;
}

double log_number(const struct log_line *line, const char *name, double otherwise)
{
    const char *text = log_string(line, name);
    char *end = NULL;
    const double value = text ? strtod(text, &end) : otherwise;
    return text && (end == text || *end || value - value != 0) ? otherwise : value;
}

/* ---- Their two forms ---- */

/* Cuts a value off, and sets *rest to what is behind it; NULL: it was the last. A value in quotes
 * loses these, and the backslashes before its characters; one without its last quote is damaged:
 * NULL. */
static char *cut_value(char *value, char **rest)
{
    char *end = value;
    if (*value != '"') {
        *rest = value;
        return strsep(rest, " ");
    }
    for (*rest = value + 1; **rest && **rest != '"'; (*rest)++) {
        if (**rest == '\\' && (*rest)[1])
            (*rest)++;
        *end++ = **rest;
    }
    const bool ended = **rest == '"';
    *rest = ended ? *rest + 1 : NULL;
    *end = 0;
    return ended ? value : NULL;
}

/* Cuts the fields of a text line, "name=value name=value", in place. Returns their number; -1 if a
 * word is no field. */
static int split_text(struct log_field field[FIELDS_MAX], char *text)
{
    int fields = 0;
    char *rest = text;
    while (rest) {
        if (*rest == ' ' || *rest == 0) {
            rest = *rest ? rest + 1 : NULL;
            continue;
        }
        char *word = rest, *equals = word + strcspn(word, "= ");
        if (*equals != '=' || equals == word || fields == FIELDS_MAX)
            return -1;
        *equals = 0;
        char *value = cut_value(equals + 1, &rest);
        if (!value)
            return -1;
        field[fields++] = (struct log_field){word, value};
    }
    return fields;
}

/* The same of a JSON object, which may have more behind it; its values stay with reader->object. -1
 * if it is no object, or none that ends. */
static int split_json(struct log_reader *reader, const char *text, const char *end)
{
    int fields = 0;
    json_object_put(reader->object);
    json_tokener_reset(reader->tokener);
    reader->object = json_tokener_parse_ex(reader->tokener, text, (int)(end - text));
    if (!json_object_is_type(reader->object, json_type_object))
        return -1;
    json_object_object_foreach(reader->object, name, value)
    {
        if (fields == FIELDS_MAX)
            return -1;
        reader->field[fields++] = (struct log_field){
            name, json_object_is_type(value, json_type_string)
                      ? json_object_get_string(value)
                      : json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN)};
    }
    return fields;
}

static const char text_start[] = "accel pid=";

enum verdict { NOT_OURS, DAMAGED, LATER, OURS };

static void count_damaged(struct log_reader *reader)
{
    if (reader->counts.damaged++ == 0)
        reader->counts.first_damaged = reader->number;
}

/* A line of text must have its newline, or its last value may lack digits. In JSON of a later
 * version, fields may mean something else. */
static enum verdict classify_line(const struct log_reader *reader, struct log_line *line, bool json)
{
    if (line->fields < 0 || !(json || reader->ended))
        return DAMAGED;
    line->event = log_string(line, "event");
    if (!line->event &&
        !(log_string(line, "sym") && log_string(line, "ran") && log_string(line, "why")))
        return DAMAGED;
    return json && log_number(line, "v", VERSION) > VERSION ? LATER : OURS;
}

/* A line that was cut may have the next one behind it. */
static enum verdict read_text(struct log_reader *reader, struct log_line *line, char *at)
{
    const bool has_nul = strlen(reader->text) < reader->length;
    for (char *next; (next = strstr(at + 1, text_start)); at = next)
        count_damaged(reader);
    line->fields = has_nul ? -1 : split_text(reader->field, at + sizeof "accel " - 1);
    return classify_line(reader, line, false);
}

/* Returns where `wanted` stands from `at` on; found: the same for a place before. Each byte is
 * looked at once. */
static char *find_from(char *found, char *at, const char *wanted)
{
    return found && found < at ? strstr(at, wanted) : found;
}

/* The JSON of another program may stand in the file, too, and before a line of ours, as may one
 * that was cut. An object is passed over as a whole: text in its strings is no line. */
static enum verdict read_ours(struct log_reader *reader, struct log_line *line)
{
    enum verdict verdict = NOT_OURS;
    char *at = reader->text, *const end = at + strlen(at);
    char *text = strstr(at, text_start), *json = strstr(at, "{\""), *pid = strstr(at, "\"pid\":");
    bool cut = false;
    int broken = 0;
    while (json && (!text || json < text) && (text || pid) && verdict < LATER &&
           broken < BROKEN_MAX) {
        line->fields = split_json(reader, json, end);
        broken += line->fields < 0;
        at = line->fields < 0 ? json + 1 : json + json_tokener_get_parse_end(reader->tokener);
        if (line->fields < 0 && pid)
            verdict = DAMAGED;
        else if (pid && pid < at)
            verdict = classify_line(reader, line, true);
        if (verdict >= LATER && cut)
            count_damaged(reader);
        cut = cut || (line->fields < 0 && pid);
        text = find_from(text, at, text_start);
        json = find_from(json, at, "{\"");
        pid = find_from(pid, json ? json : end, "\"pid\":");
    }
    if (verdict >= LATER || !text)
        return verdict;
    if (cut)
        count_damaged(reader);
    return read_text(reader, line, text);
}

bool log_next(struct log_reader *reader, struct log_line *line)
{
    struct log_counts *counts = &reader->counts;
    while (read_line(reader)) {
        *line = (struct log_line){
            .path = reader->path, .number = reader->number, .field = reader->field};
        switch (read_ours(reader, line)) {
        case OURS:
            counts->events += line->event != NULL;
            counts->decisions += line->event == NULL;
            return true;
        case LATER:
            if (counts->later++ == 0)
                counts->first_later = reader->number;
            break;
        case DAMAGED:
            count_damaged(reader);
            break;
        default:
            counts->others++;
        }
    }
    if (ferror(reader->file))
        counts->error = errno;
    return false;
}

/* ---- Files ---- */

struct log_reader *log_open(const char *path)
{
    struct log_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->path = path;
    reader->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    reader->tokener = json_tokener_new_ex(JSON_DEPTH);
    if (reader->file && reader->tokener)
        return reader;
    const int error = reader->file ? ENOMEM : errno;
    log_close(reader);
    errno = error;
    return NULL;
}

const struct log_counts *log_counts(const struct log_reader *reader)
{
    return &reader->counts;
}

void log_close(struct log_reader *reader)
{
    if (reader->file && reader->file != stdin)
        fclose(reader->file);
    json_object_put(reader->object);
    if (reader->tokener)
        json_tokener_free(reader->tokener);
    free(reader);
}

/* Says what is wrong with a file. Returns whether it had lines of ours. */
static bool say(const char *command, const char *path, const struct log_counts *counts)
{
    const bool any = counts->decisions + counts->events > 0;
    if (counts->error)
        complain(0, "%s: %s: %s\n", command, path, strerror(counts->error));
    else if (counts->damaged)
        complain(0, "%s: %s: %lld damaged or cut line%s left out, the first is line %lld\n",
                 command, path, (long long)counts->damaged, counts->damaged == 1 ? "" : "s",
                 (long long)counts->first_damaged);
    if (counts->later)
        complain(0,
                 "%s: %s: %lld line%s of a later version of the log left out, the first is line "
                 "%lld; a later accel reads them\n",
                 command, path, (long long)counts->later, counts->later == 1 ? "" : "s",
                 (long long)counts->first_later);
    else if (!any && !counts->error && !counts->damaged)
        complain(0, "%s: %s: %s; a log is what ACCEL_LOG=1 or json writes\n", command, path,
                 counts->others ? "no line of libaccel's log" : "empty");
    return any;
}

static void add_counts(struct log_counts *sum, const struct log_counts *one)
{
    sum->decisions += one->decisions;
    sum->events += one->events;
    sum->others += one->others;
    sum->damaged += one->damaged;
    sum->later += one->later;
}

int log_read_all(const char *command, char *const *paths, int count,
                 void (*take)(void *context, const struct log_line *line), void *context,
                 struct log_counts *sum)
{
    int read = 0;
    *sum = (struct log_counts){0};
    for (int i = 0; i < count; i++) {
        struct log_line line;
        struct log_reader *reader = log_open(paths[i]);
        if (!reader) {
            complain(0, "%s: %s: %s\n", command, paths[i], strerror(errno));
            continue;
        }
        while (log_next(reader, &line))
            take(context, &line);
        read += say(command, paths[i], log_counts(reader));
        add_counts(sum, log_counts(reader));
        log_close(reader);
    }
    return read;
}
