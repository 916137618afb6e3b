#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool terminal_is_coloured(int fd)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(fd) && !(no && *no) && !(terminal && strcmp(terminal, "dumb") == 0);
}
