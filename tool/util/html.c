#define _GNU_SOURCE
#include "html.h"

#include <math.h>
#include <string.h>

#include "base/text/utf8.h"

/* Returns what stands for a character in HTML, NULL for itself. */
static const char *entity_of(const char *at)
{
    switch (*at) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return (unsigned char)*at < ' ' || *at == 127 ? "?" : NULL;
    }
}

/* XML allows tabs and newlines, and no U+FFFE and U+FFFF. */
static const char *in_xml(const char *at)
{
    if (strncmp(at, "\xef\xbf\xbe", 3) == 0 || strncmp(at, "\xef\xbf\xbf", 3) == 0)
        return "???"; /* each byte */
    return strchr("\t\n'\x7f", *at) ? NULL : entity_of(at);
}

/* A string of JSON within a script: `<` could end that. */
static const char *in_json(const char *at)
{
    if (strchr("&>'", *at))
        return NULL;
    return *at == '"' ? "\\\"" : *at == '\\' ? "\\\\" : *at == '<' ? "\\u003c" : entity_of(at);
}

static void put_text(FILE *to, const char *text, const char *(*instead)(const char *at))
{
    while (*text) {
        const int length = utf8_length(text);
        const char *other = length > 0 ? instead(text) : "?";
        if (other)
            fputs(other, to);
        else
            fwrite(text, 1, (size_t)length, to);
        text += length > 0 ? length : 1;
    }
}

void html_text(FILE *to, const char *text)
{
    put_text(to, text, entity_of);
}

void html_xml(FILE *to, const char *text)
{
    put_text(to, text, in_xml);
}

void html_json(FILE *to, const char *text)
{
    fputc('"', to);
    put_text(to, text, in_json);
    fputc('"', to);
}

void html_template(FILE *to, const char *text, const struct html_part *parts, int count,
                   const void *context)
{
    const char *mark;
    while ((mark = strchr(text, '@'))) {
        const struct html_part *found = NULL;
        size_t length = 0;
        for (int i = 0; i < count && !found; i++) {
            length = strlen(parts[i].name);
            if (strncmp(mark + 1, parts[i].name, length) == 0 && mark[1 + length] == '@')
                found = &parts[i];
        }
        fwrite(text, 1, (size_t)(mark - text) + (found ? 0 : 1), to);
        if (found)
            found->write(to, context);
        text = mark + (found ? length + 2 : 1);
    }
    fputs(text, to);
}

const char *html_ms(char text[HTML_NUMBER_BYTES], double ms)
{
    const double s = fabs(ms) * 1e-3, digits = s > 0 ? floor(log10(s)) : 0;
    if (s >= 3600)
        snprintf(text, HTML_NUMBER_BYTES, "%.0f h %.0f min", trunc(ms / 3.6e6),
                 fmod(s, 3600) / 60 - 0.5 < 0 ? 0 : floor(fmod(s, 3600) / 60));
    else if (s >= 1)
        snprintf(text, HTML_NUMBER_BYTES, "%.*f s", s >= 100 ? 0 : s >= 10 ? 1 : 2, ms * 1e-3);
    else if (s >= 1e-3)
        snprintf(text, HTML_NUMBER_BYTES, "%.*f ms", (int)(-1 - digits), ms);
    else
        snprintf(text, HTML_NUMBER_BYTES, "%.3g \u00b5s", ms * 1e3);
    return text;
}

const char *html_count(char text[HTML_NUMBER_BYTES], double count)
{
    static const struct {
        double from;
        const char *unit;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (count >= units[i].from) {
            const double of = units[i].unit[0] == 'k' ? 1e3 : units[i].from;
            snprintf(text, HTML_NUMBER_BYTES, "%.3g %s", count / of, units[i].unit);
            return text;
        }
    snprintf(text, HTML_NUMBER_BYTES, "%.4g", count);
    return text;
}
