/*
 * pages bash|zsh|fish, pages man TEMPLATE SETTINGS: the shells' completion for `accel`, and its
 * manual pages, from the tables of the tool: its commands, their options, the settings. `make` runs
 * it. A template is a page with lines @COMMANDS@ and @SETTINGS@, and with @VERSION@. SETTINGS is
 * docs/settings.md, whose table says what each setting means.
 */
#define _GNU_SOURCE
#include "pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void)
{
    fputs("usage: pages bash|zsh|fish | man TEMPLATE SETTINGS\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    bool good = true;
    if (argc == 2 && strcmp(argv[1], "bash") == 0)
        complete_bash();
    else if (argc == 2 && strcmp(argv[1], "zsh") == 0)
        complete_zsh();
    else if (argc == 2 && strcmp(argv[1], "fish") == 0)
        complete_fish();
    else if (argc == 4 && strcmp(argv[1], "man") == 0)
        good = manual_print(argv[2], argv[3]);
    else
        return usage();
    if (fflush(stdout) == 0 && !ferror(stdout))
        return !good;
    fprintf(stderr, "pages: %s\n", strerror(errno));
    return 1;
}
