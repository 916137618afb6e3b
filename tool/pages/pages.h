/*
 * tool/pages/ makes the completion of shells and the manual pages: the program pages, which make
 * runs and does not install.
 */
#ifndef ACCEL_TOOL_PAGES_H
#define ACCEL_TOOL_PAGES_H

#include <stdbool.h>

/* Print to stdout. */
void complete_bash(void);
void complete_zsh(void);
void complete_fish(void);

/* False with a message on stderr: an unreadable file, or settings that are not those of the
 * table. */
bool manual_print(const char *template, const char *settings);

#endif
