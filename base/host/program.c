#define _GNU_SOURCE
#include "program.h"

#include <errno.h>

#include "base/text/text.h"

static char name[PROGRAM_BYTES]; /* empty: not noted, or it has none */

void program_note(void)
{
    struct accel_text text;
    text_start(&text, name, sizeof name);
    text_string(&text, program_invocation_short_name);
    text_end(&text);
}

const char *program_name(void)
{
    return name[0] ? name : program_invocation_short_name;
}
