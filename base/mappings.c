#define _GNU_SOURCE
#include "mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BUFFER_BYTES = 4096, LINE_BYTES = 160 };

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
                          .is_readable = at[0] == 'r',
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

/* ---- Whether memory may be read ---- */

/* Linux's include/uapi/linux/fs.h, since 6.11: struct procmap_query and PROCMAP_QUERY, under names that do not meet those of newer headers. */
struct query {
    uint64_t size, flags, address;
    uint64_t start, end, vma_flags, page_size, offset, inode;
    uint32_t major, minor, name_size, id_size;
    uint64_t name, id;
};
#define QUERY _IOWR('f', 17, struct query)
enum { IS_READABLE = 1 };

/* Returns false if the kernel does not know the question: errno is neither 0 nor ENOENT then. */
static bool ask_kernel(uintptr_t start, uintptr_t end)
{
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    struct query q = {.end = start, .vma_flags = IS_READABLE};
    errno = fd < 0 ? EBADF : 0;
    while (fd >= 0 && errno == 0 && q.end < end && (q.vma_flags & IS_READABLE)) {
        q = (struct query){.size = sizeof q, .address = q.end};
        ioctl(fd, QUERY, &q);
    }
    const int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return error == 0 && q.end >= end && (q.vma_flags & IS_READABLE);
}

struct wanted {
    uintptr_t at, end;
    bool can;
};

static bool goes_on(void *context, const struct mapping *m)
{
    struct wanted *w = context;
    if (m->end <= w->at)
        return true;
    w->can = m->start <= w->at && m->is_readable;
    w->at = m->end;
    return w->can && w->at < w->end;
}

bool mappings_can_be_read(uintptr_t start, uintptr_t end)
{
    static atomic_bool is_unknown; /* to this kernel: the question */
    struct wanted w = {.at = start, .end = end};
    const int before = errno;
    bool can = false;
    errno = ENOTTY;
    if (!atomic_load_explicit(&is_unknown, memory_order_relaxed))
        can = ask_kernel(start, end);
    if (!can && errno == ENOTTY)
        atomic_store(&is_unknown, true);
    if (!can && errno != 0 && errno != ENOENT)
        can = mappings_read(goes_on, &w) && w.can && w.at >= end;
    errno = before;
    return can;
}
