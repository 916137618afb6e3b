#define _GNU_SOURCE
#include "rows.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/util/complain.h"
#include "tool/util/stream.h"
#include "tool/util/terminal.h"
#include "tool/util/utf8_json.h"

static const struct {
    const char *word, *colour, *json;
} states[] = {{"OK", "\033[32m", "ok"}, {"WARN", "\033[33m", "warn"}, {"FAIL", "\033[31m", "fail"}};

static _Noreturn void no_memory(void)
{
    exit(complain(2, "accel doctor: %s\n", strerror(ENOMEM)));
}

void rows_add(struct rows *rows, enum row_state state, const char *what, const char *fix,
              const char *format, ...)
{
    struct row *row = &rows->row[rows->count];
    va_list arguments;
    if (rows->count == ROWS_MAX)
        return;
    *row = (struct row){state, what, NULL, strdup(fix)};
    va_start(arguments, format);
    if (vasprintf(&row->says, format, arguments) < 0 || !row->fix)
        no_memory();
    va_end(arguments);
    terminal_plain(row->says); /* values may come from damaged files */
    terminal_plain(row->fix);
    rows->count++;
}

bool rows_lack(const struct rows *rows, enum row_state state)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i].state == state)
            return false;
    return true;
}

int rows_print(const struct rows *rows)
{
    const bool coloured = terminal_is_coloured(STDOUT_FILENO);
    for (const struct row *row = rows->row; row < rows->row + rows->count; row++) {
        printf("%s%-4s%s  %-12s  %s\n", coloured ? states[row->state].colour : "",
               states[row->state].word, coloured ? "\033[0m" : "", row->what, row->says);
        if (*row->fix)
            printf("%-4s  %-12s  -> %s\n", "", "", row->fix);
    }
    return stream_flush(stdout);
}

static void put(struct json_object *object, const char *name, struct json_object *value)
{
    if (!value || json_object_object_add(object, name, value) != 0)
        no_memory();
}

int rows_print_json(const struct rows *rows)
{
    struct json_object *all = json_object_new_object(), *list = json_object_new_array();
    if (!all)
        no_memory();
    put(all, "v", json_object_new_int(1));
    put(all, "gpu", json_object_new_boolean(rows_lack(rows, ROW_FAIL)));
    put(all, "rows", list);
    for (const struct row *row = rows->row; row < rows->row + rows->count; row++) {
        struct json_object *one = json_object_new_object();
        if (!one || json_object_array_add(list, one) != 0)
            no_memory();
        put(one, "state", json_object_new_string(states[row->state].json));
        put(one, "what", utf8_json(row->what));
        put(one, "says", utf8_json(row->says));
        if (*row->fix)
            put(one, "fix", utf8_json(row->fix));
    }
    puts(json_object_to_json_string_ext(all,
                                        JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(all);
    return stream_flush(stdout);
}

void rows_free(struct rows *rows)
{
    for (int i = 0; i < rows->count; i++) {
        free(rows->row[i].says);
        free(rows->row[i].fix);
    }
}
