#include "line.h"

void line_start(struct report_line *line, bool json)
{
    text_start(&line->text, line->buffer, sizeof line->buffer - 2); /* room for "}\n" */
    line->json = json;
    line->first = true;
    text_string(&line->text, json ? "{" : "accel ");
}

void line_end(struct report_line *line)
{
    line->text.size = sizeof line->buffer;
    text_string(&line->text, line->json ? "}\n" : "\n");
}

static void separate(struct report_line *line)
{
    if (!line->first)
        text_string(&line->text, line->json ? ", " : " ");
    line->first = false;
}

static void key(struct report_line *line, const char *name)
{
    separate(line);
    if (line->json) {
        text_json_string(&line->text, name);
        text_string(&line->text, ": ");
    } else {
        text_string(&line->text, name);
        text_char(&line->text, '=');
    }
}

static void put_string(struct report_line *line, const char *name, const char *value, bool quoted)
{
    const size_t before = line->text.length;
    const bool first = line->first;
    key(line, name);
    if (quoted)
        text_json_string(&line->text, value);
    else
        text_string(&line->text, value);
    if (line->text.length < line->text.size)
        return;
    line->text.length = before;
    line->first = first;
}

void line_string(struct report_line *line, const char *name, const char *value)
{
    put_string(line, name, value, line->json);
}

static bool is_plain(const char *value)
{
    for (const char *at = value; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == '"' || *at == '\\' || *at == 127)
            return false;
    return *value;
}

void line_words(struct report_line *line, const char *name, const char *value)
{
    put_string(line, name, value, line->json || !is_plain(value));
}

void line_integer(struct report_line *line, const char *name, int64_t value)
{
    key(line, name);
    text_integer(&line->text, value);
}

void line_decimal(struct report_line *line, const char *name, double value)
{
    key(line, name);
    text_decimal(&line->text, value);
}

void line_seconds(struct report_line *line, const char *name, int64_t nanoseconds)
{
    key(line, name);
    text_fixed(&line->text, (double)nanoseconds * 1e-9, 6);
}

void line_list(struct report_line *line, const char *name)
{
    key(line, name);
    text_char(&line->text, '[');
    line->first = true;
}

void line_object(struct report_line *line)
{
    separate(line);
    text_char(&line->text, '{');
    line->first = true;
}

void line_object_end(struct report_line *line)
{
    text_char(&line->text, '}');
    line->first = false;
}

void line_list_end(struct report_line *line)
{
    text_char(&line->text, ']');
    line->first = false;
}
