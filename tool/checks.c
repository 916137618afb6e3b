#define _GNU_SOURCE
#include "checks.h"

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

void checks_add(struct checks *checks, enum check_state state, const char *what, const char *fix,
                const char *format, ...)
{
    struct doctor_check *check = &checks->check[checks->count];
    va_list arguments;
    if (checks->count == CHECKS_MAX)
        return;
    *check = (struct doctor_check){state, what, NULL, strdup(fix)};
    va_start(arguments, format);
    if (vasprintf(&check->says, format, arguments) < 0 || !check->fix)
        no_memory();
    va_end(arguments);
    terminal_plain(check->says); /* values may come from damaged files */
    terminal_plain(check->fix);
    checks->count++;
}

bool checks_lack(const struct checks *checks, enum check_state state)
{
    for (int i = 0; i < checks->count; i++)
        if (checks->check[i].state == state)
            return false;
    return true;
}

int checks_print(const struct checks *checks)
{
    const bool coloured = terminal_is_coloured(STDOUT_FILENO);
    for (const struct doctor_check *check = checks->check; check < checks->check + checks->count;
         check++) {
        printf("%s%-4s%s  %-12s  %s\n", coloured ? states[check->state].colour : "",
               states[check->state].word, coloured ? "\033[0m" : "", check->what, check->says);
        if (*check->fix)
            printf("%-4s  %-12s  -> %s\n", "", "", check->fix);
    }
    return stream_flush(stdout);
}

static void put_member(struct json_object *object, const char *name, struct json_object *value)
{
    if (!value || json_object_object_add(object, name, value) != 0)
        no_memory();
}

int checks_print_json(const struct checks *checks)
{
    struct json_object *all = json_object_new_object(), *list = json_object_new_array();
    if (!all)
        no_memory();
    put_member(all, "v", json_object_new_int(1));
    put_member(all, "gpu", json_object_new_boolean(checks_lack(checks, CHECK_FAIL)));
    put_member(all, "rows", list);
    for (const struct doctor_check *check = checks->check; check < checks->check + checks->count;
         check++) {
        struct json_object *one = json_object_new_object();
        if (!one || json_object_array_add(list, one) != 0)
            no_memory();
        put_member(one, "state", json_object_new_string(states[check->state].json));
        put_member(one, "what", utf8_json(check->what));
        put_member(one, "says", utf8_json(check->says));
        if (*check->fix)
            put_member(one, "fix", utf8_json(check->fix));
    }
    puts(json_object_to_json_string_ext(all,
                                        JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(all);
    return stream_flush(stdout);
}

void checks_free(struct checks *checks)
{
    for (int i = 0; i < checks->count; i++) {
        free(checks->check[i].says);
        free(checks->check[i].fix);
    }
}
