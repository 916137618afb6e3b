#include "tests/lib/settings_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output/output.h"
#include "dispatch/settings/complaints.h"
#include "tests/lib/environment.h"

char folder[] = "/tmp/accel-settings-XXXXXX";
char named[PATH_MAX], users_own[PATH_MAX], systems[PATH_MAX];
struct settings_sources sources = {.system_file = systems, .program = "test"};

void print(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(to, size, format, args);
    va_end(args);
    assert_true(length >= 0 && (size_t)length < size);
}

int make_folder(void **state)
{
    char path[PATH_MAX];
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    print(named, sizeof named, "%s/named", folder);
    print(systems, sizeof systems, "%s/systems", folder);
    print(path, sizeof path, "%s/.config", folder);
    mkdir(path, 0700);
    print(path, sizeof path, "%s/.config/accel", folder);
    mkdir(path, 0700);
    print(users_own, sizeof users_own, "%s/accel.conf", path);
    return 0;
}

int clear(void **state)
{
    (void)state;
    clear_environment();
    setenv("HOME", folder, 1);
    unlink(named);
    unlink(users_own);
    unlink(systems);
    sources = (struct settings_sources){.system_file = systems, .program = "test"};
    return 0;
}

int remove_folder(void **state)
{
    char path[PATH_MAX];
    clear(state);
    print(path, sizeof path, "%s/.config/accel", folder);
    rmdir(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
    return rmdir(folder);
}

struct accel_settings read_now(void)
{
    struct accel_settings settings;
    errno = 77;
    settings_read_from(&settings, &sources);
    assert_int_equal(errno, 77);
    return settings;
}

struct accel_settings read_with(const char *name, const char *value)
{
    clear(NULL);
    setenv(name, value, 1);
    return read_now();
}

void write_bytes(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

void write_file(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

/* Returns the settings with only this file. */
struct accel_settings read_file(const char *text)
{
    clear(NULL);
    write_file(systems, text);
    return read_now();
}

const char *complaints(void)
{
    static char text[32768];
    int ends[2], keep = dup(2);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    close(ends[1]);
    output_start(); /* this is stderr */
    complaints_say();
    complaints_say();
    dup2(keep, 2);
    close(keep);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)n;
    text[length] = 0;
    close(ends[0]);
    return text;
}

int lines_of(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}
