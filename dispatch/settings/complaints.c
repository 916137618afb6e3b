#include "complaints.h"

#include <stdatomic.h>

#include "base/output/message.h"
#include "base/text/text.h"

enum { COMPLAINTS_MAX = 16, VALUE_SHOWN = 300, PATH_SHOWN = 400, LINE_BYTES = 1000 };

static char line[COMPLAINTS_MAX][LINE_BYTES];
static int lines; /* complaints, also those that are not kept */
/* Of those that end the program, those that have replaced another one, from the last line on */
static int endings;
static atomic_bool waiting;

void complaints_clear(void)
{
    lines = endings = 0;
    atomic_store(&waiting, false);
}

/* Without control characters, which a damaged file may have. */
static void put_shown(struct accel_text *text, const char *s, int limit)
{
    for (; *s && limit > 0; s++, limit--)
        text_char(text, (unsigned char)*s < ' ' || *s == 127 ? '?' : *s);
    if (*s)
        text_string(text, "…");
}

static void write_line(char *to, const struct complaint *complaint)
{
    struct accel_text text;
    text_start(&text, to, LINE_BYTES);
    if (complaint->place.file) {
        put_shown(&text, complaint->place.file, PATH_SHOWN);
        if (complaint->place.line) {
            text_char(&text, ':');
            text_integer(&text, complaint->place.line);
        }
        text_string(&text, complaint->name || complaint->value ? ": " : "");
    }
    if (complaint->name)
        put_shown(&text, complaint->name, VALUE_SHOWN);
    if (complaint->value) {
        text_string(&text, complaint->name ? "=" : "");
        put_shown(&text, complaint->value, VALUE_SHOWN);
    }
    text_string(&text, complaint->problem);
    text_string(&text, complaint->detail);
    text_string(&text, complaint->outcome);
    text_end(&text);
}

void complaints_add(const struct complaint *complaint)
{
    atomic_store(&waiting, true);
    if (lines++ < COMPLAINTS_MAX)
        write_line(line[lines - 1], complaint);
    else if (complaint->ends_program && endings < COMPLAINTS_MAX)
        write_line(line[COMPLAINTS_MAX - 1 - endings++], complaint);
}

bool complaints_wait(void)
{
    return atomic_load_explicit(&waiting, memory_order_relaxed);
}

const char *complaints_line(int i)
{
    return i < lines && i < COMPLAINTS_MAX ? line[i] : NULL;
}

void complaints_say(void)
{
    if (!complaints_wait() || !atomic_exchange(&waiting, false))
        return;
    for (int i = 0; i < lines && i < COMPLAINTS_MAX; i++)
        accel_message("%s", line[i]);
    if (lines > COMPLAINTS_MAX)
        accel_message("and so on: %d more of the settings are not understood",
                      lines - COMPLAINTS_MAX);
}
