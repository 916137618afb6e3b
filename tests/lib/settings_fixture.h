/*
 * Settings in a test: an empty environment, a folder with config files, and the messages about
 * them. For one thread; a failure here fails the test.
 */
#ifndef SETTINGS_FIXTURE_H
#define SETTINGS_FIXTURE_H

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatch/settings/settings.h"

extern char folder[];
extern char named[PATH_MAX], users_own[PATH_MAX], systems[PATH_MAX]; /* the files' paths */
extern struct settings_sources sources;

/* Set-up and tear-down of the group, and of each test: no variable but HOME, no file. */
int make_folder(void **state);
int remove_folder(void **state);
int clear(void **state);

/* snprintf() that allows a result to be cut off. */
__attribute__((format(printf, 3, 4))) void print(char *to, size_t size, const char *format, ...);
void write_bytes(const char *path, const void *bytes, size_t size);
void write_file(const char *path, const char *text);

/* Return the settings: as they are; with only this variable; with only this system's file. Keep
 * errno. */
struct accel_settings read_now(void);
struct accel_settings read_with(const char *name, const char *value);
struct accel_settings read_file(const char *text);

/* Returns the output of two calls of complaints_say(), in static memory. */
const char *complaints(void);
int lines_of(const char *text);

#endif
