#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool terminal_is_coloured(int fd)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(fd) && !(no && *no) && !(terminal && strcmp(terminal, "dumb") == 0);
}

const char *terminal_clean(char *text, size_t size, const char *word)
{
    snprintf(text, size, "%s", word);
    for (char *c = text; *c; c++)
        *c = (unsigned char)*c < ' ' || (unsigned char)*c > 126 ? '?' : *c;
    return text;
}

char *terminal_plain(char *text)
{
    for (char *c = text; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    return text;
}
