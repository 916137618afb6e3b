#define _GNU_SOURCE
#include "pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/version.h"
#include "dispatch/settings/setting.h"
#include "tool/commands.h"

/* ---- Text for troff ---- */

static void put_character(char c)
{
    if (c == '\\')
        fputs("\\e", stdout);
    else if (c == '-')
        fputs("\\-", stdout);
    else
        putchar(c);
}

/* Prints a line; `words` in backquotes are bold. Of a link, [text](target), the text. */
static void put_line(const char *text, size_t length)
{
    bool bold = false;
    if (length > 0 && (*text == '.' || *text == '\''))
        fputs("\\&", stdout);
    for (const char *end = text + length; text < end; text++) {
        if (*text == '`') {
            bold = !bold;
            fputs(bold ? "\\fB" : "\\fR", stdout);
        } else if (*text == '[' && memmem(text, (size_t)(end - text), "](", 2)) {
            continue;
        } else if (end - text > 1 && text[0] == ']' && text[1] == '(') {
            text = memchr(text, ')', (size_t)(end - text));
        } else {
            put_character(*text);
        }
    }
}

/* Prints paragraphs, which empty lines separate. */
static void put_paragraphs(const char *text)
{
    for (const char *end; *text; text = end + strspn(end, "\n")) {
        end = strstr(text, "\n\n");
        if (!end)
            end = text + strlen(text);
        puts(".PP");
        while (text < end) {
            const size_t length = strcspn(text, "\n");
            put_line(text, length < (size_t)(end - text) ? length : (size_t)(end - text));
            putchar('\n');
            text += length + (text[length] == '\n');
        }
    }
}

static void put_text(const char *text)
{
    put_line(text, strlen(text));
}

/* ---- The commands ---- */

static void put_option(const struct option_row *option)
{
    printf(".TP\n");
    if (option->letter)
        printf("\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", stdout);
    put_text(option->name);
    fputs("\\fR", stdout);
    if (option->argument) {
        fputs(option->optional ? "[=\\fI" : "=\\fI", stdout);
        put_text(option->argument);
        fputs(option->optional ? "\\fR]" : "\\fR", stdout);
    }
    putchar('\n');
    put_text(option->help);
    putchar('\n');
}

static void put_command(const struct command *command)
{
    const char *behind =
        strchr(command->doc, '\v'); /* the text that --help has behind the options */
    printf(".SS accel %s %s", command->name, command->options ? "[\\fIoption\\fR...] " : "");
    put_text(command->arguments ? command->arguments : "");
    putchar('\n');
    put_line(command->doc, behind ? (size_t)(behind - command->doc) : strlen(command->doc));
    putchar('\n');
    for (const struct option_row *option = command->options; option && option->name; option++)
        put_option(option);
    if (behind)
        put_paragraphs(behind + 1);
}

/* ---- The settings ---- */

/* Cuts the next cell of a row of Markdown's, "| cell | cell |". */
static char *next_cell(char **row)
{
    char *cell = *row + strspn(*row, "| "), *end = strstr(cell, " |");
    if (!end)
        return NULL;
    *end = 0;
    *row = end + 1;
    return cell;
}

/* Prints a row of the table. Counts in seen[] the settings that it names. False if it is none. */
static bool put_setting(char *row, int seen[SETTINGS])
{
    char *names = next_cell(&row), *values = names ? next_cell(&row) : NULL;
    char *meaning = values ? next_cell(&row) : NULL;
    if (!meaning)
        return false;
    puts(".TP");
    put_text(names);
    fputs("\n(", stdout);
    put_text(values);
    fputs(")\n", stdout);
    put_text(meaning);
    putchar('\n');
    for (char *name = strtok(names, "`, "); name; name = strtok(NULL, "`, ")) {
        const int i = setting_named(name);
        if (i < 0)
            return false;
        seen[i]++;
    }
    return true;
}

/* Each setting of the table, once. */
static bool are_whole(const int seen[SETTINGS])
{
    for (int i = 0; i < SETTINGS; i++)
        if (seen[i] != (setting_table[i].scope != INTERNAL))
            return false;
    return true;
}

static bool put_settings(const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    int seen[SETTINGS] = {0};
    bool good = file;
    while (good && getline(&line, &size, file) > 0)
        if (strncmp(line, "| `", 3) == 0)
            good = put_setting(line, seen);
    good = good && are_whole(seen);
    if (!good)
        fprintf(stderr, "pages: %s: its table is not that of dispatch/settings/setting_table.c\n",
                path);
    if (file)
        fclose(file);
    free(line);
    return good;
}

/* ---- A page ---- */

static void put_version(const char *line)
{
    static const char mark[] = "@VERSION@";
    const char *at = strstr(line, mark);
    if (!at) {
        fputs(line, stdout);
        return;
    }
    printf("%.*s%s%s", (int)(at - line), line, accel_version(), at + sizeof mark - 1);
}

bool manual_print(const char *template, const char *settings)
{
    FILE *file = fopen(template, "re");
    char *line = NULL;
    size_t size = 0;
    bool good = true;
    if (!file) {
        fprintf(stderr, "pages: %s: %s\n", template, strerror(errno));
        return false;
    }
    while (getline(&line, &size, file) > 0) {
        if (strcmp(line, "@COMMANDS@\n") == 0)
            for (int i = 0; i < COMMANDS; i++)
                put_command(commands[i]);
        else if (strcmp(line, "@SETTINGS@\n") == 0)
            good = put_settings(settings) && good;
        else
            put_version(line);
    }
    good = !ferror(file) && good;
    fclose(file);
    free(line);
    return good;
}
