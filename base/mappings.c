#define _GNU_SOURCE
#include "mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1024, LINE_BYTES = 160 };

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static const char *read_hex(const char *at, uint64_t *value)
{
    for (*value = 0; is_hex(*at); at++)
        *value = *value * 16 + (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return at;
}

/* "start-end rwxp offset major:minor inode   name", as proc(5) says. */
static bool parse(const char *line, struct mapping *m)
{
    uint64_t start, end, skipped, inode;
    const char *at = read_hex(line, &start);
    if (*at++ != '-')
        return false;
    at = read_hex(at, &end);
    if (*at++ != ' ' || strnlen(at, 5) < 5)
        return false;
    *m = (struct mapping){.start = (uintptr_t)start,
                          .end = (uintptr_t)end,
                          .is_private = at[3] == 'p',
                          .is_writable = at[0] == 'r' && at[1] == 'w'};
    at = read_hex(at + 5, &skipped);
    at = *at == ' ' ? read_hex(at + 1, &skipped) : at;
    at = *at == ':' ? read_hex(at + 1, &skipped) : at;
    if (*at++ != ' ')
        return false;
    at = read_hex(at, &inode); /* decimal, which matters only for what is 0 */
    m->is_file = inode != 0;
    at += strspn(at, " ");
    const size_t length = strnlen(at, MAPPING_NAME - 1);
    memcpy(m->name, at, length);
    return true;
}

/* The beginning of the line that is being read. */
struct line {
    char text[LINE_BYTES];
    size_t length;
};

/* Returns false at the end: of the wanted ones, or of what can be understood. */
static bool take(struct line *line, char c, bool *good,
                 bool (*see)(void *context, const struct mapping *mapping), void *context)
{
    struct mapping mapping;
    if (c != '\n') {
        if (line->length < LINE_BYTES - 1)
            line->text[line->length++] = c;
        return true;
    }
    line->text[line->length] = 0;
    line->length = 0;
    *good = parse(line->text, &mapping);
    return *good && see(context, &mapping);
}

bool mappings_read(bool (*see)(void *context, const struct mapping *mapping), void *context)
{
    char buffer[BUFFER_BYTES];
    struct line line = {.length = 0};
    bool good = true, more = true;
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (more) {
        const ssize_t n = read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
            continue;
        good = good && n >= 0;
        more = n > 0;
        for (ssize_t i = 0; more && i < n; i++)
            more = take(&line, buffer[i], &good, see, context);
    }
    close(fd);
    return good;
}
