#define _GNU_SOURCE
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"

static char buffer[CONFIG_BYTES_MAX + 1];
static char *next, *end;
static int lines;
static bool known; /* see config_is_known() */

const char *config_load(const char *path, int *error)
{
    struct stat st;
    *error = 0;
    next = end = buffer;
    lines = 0;
    known = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        *error = errno;
        if (fd >= 0)
            close(fd);
        return "cannot be opened";
    }
    bool regular = S_ISREG(st.st_mode), ours = st.st_uid == geteuid() || st.st_uid == 0;
    /* One more byte than it may have */
    ssize_t length = regular ? file_read(fd, buffer, sizeof buffer) : 0;
    if (length < 0)
        *error = errno;
    close(fd);
    if (!regular)
        return "is not a regular file";
    known = length >= 0 && length <= CONFIG_BYTES_MAX && !memchr(buffer, 0, (size_t)length);
    if (known)
        end = buffer + length;
    if (!ours) /* or a user whose HOME root has kept could tell root what to do */
        return "belongs to another user";
    if (st.st_mode & S_IWOTH) /* a setting may name a library to be loaded */
        return "may be written by all";
    if (length < 0)
        return "cannot be read";
    if (length > CONFIG_BYTES_MAX)
        return "is larger than 64 KiB";
    return known ? NULL : "has a NUL byte in it";
}

bool config_is_known(void)
{
    return known;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Returns the text without the blanks around it, and ends it with a 0. */
static char *trim_blanks(char *from, char *to)
{
    while (from < to && is_blank(*from))
        from++;
    while (from < to && is_blank(to[-1]))
        to--;
    *to = 0;
    return from;
}

static bool is_name(const char *name)
{
    return *name &&
           !name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")];
}

static bool unquote(char **value)
{
    size_t length = strlen(*value);
    if (**value != '"')
        return true;
    if (length < 2 || strchr(*value + 1, '"') != *value + length - 1)
        return false;
    (*value)[length - 1] = 0;
    ++*value;
    return true;
}

bool config_next(struct config_line *line)
{
    while (next < end) {
        char *stop = memchr(next, '\n', (size_t)(end - next));
        if (!stop)
            stop = end;
        char *text = trim_blanks(next, stop);
        next = stop + 1;
        lines++;
        if (!*text || *text == '#')
            continue;
        *line = (struct config_line){.number = lines, .value = text};
        char *equals = strchr(text, '=');
        if (!equals)
            return true;
        char *value = trim_blanks(equals + 1, text + strlen(text)), *name_end = equals;
        while (name_end > text && is_blank(name_end[-1]))
            name_end--;
        char cut = *name_end;
        *name_end = 0;
        if (is_name(text) && unquote(&value)) {
            line->name = text;
            line->value = value;
        } else {
            *name_end = cut;
        }
        return true;
    }
    return false;
}
