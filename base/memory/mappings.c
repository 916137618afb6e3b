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
static bool parse_mapping(const char *line, struct mapping *m)
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
struct partial_line {
    char text[LINE_BYTES];
    size_t length;
};

/* Returns false at the end: of the wanted ones, or of what can be understood. */
static bool take_character(struct partial_line *line, char c, bool *good,
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
    *good = parse_mapping(line->text, &mapping);
    return *good && see(context, &mapping);
}

bool mappings_read(bool (*see)(void *context, const struct mapping *mapping), void *context)
{
    char buffer[BUFFER_BYTES];
    struct partial_line line = {.length = 0};
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
            more = take_character(&line, buffer[i], &good, see, context);
    }
    close(fd);
    return good;
}

/* ---- What the kernel tells of one mapping ---- */

/* Linux's include/uapi/linux/fs.h, since 6.11: struct procmap_query and PROCMAP_QUERY, under names
 * that do not meet those of newer headers. */
struct query {
    uint64_t size, flags, address;
    uint64_t start, end, vma_flags, page_size, offset, inode;
    uint32_t major, minor, name_size, id_size;
    uint64_t name, id;
};
#define QUERY _IOWR('f', 17, struct query)
enum { IS_READABLE = 1, IS_WRITABLE = 2, IS_SHARED = 8, OR_NEXT = 16 };

/* The kernel refuses longer names. */
enum { LONGEST_NAME = 1024 };

static atomic_bool is_unknown; /* to this kernel: the question */

/* Asks it, unless this kernel is known not to know it. Returns 0 or an errno value: ENOENT if there
 * is no such mapping, ENOTTY for a kernel that does not know the question. */
static int query_mapping(int maps, struct query *q)
{
    const int before = errno;
    if (atomic_load_explicit(&is_unknown, memory_order_relaxed))
        return ENOTTY;
    const int error = maps < 0 ? EBADF : ioctl(maps, QUERY, q) == 0 ? 0 : errno;
    if (error == ENOTTY)
        atomic_store_explicit(&is_unknown, true, memory_order_relaxed);
    errno = before;
    return error;
}

/* ---- The mapping at an address ---- */

/* The mapping that has an address. */
struct wanted {
    uintptr_t address;
    struct mapping found;
};

static bool is_elsewhere(void *context, const struct mapping *mapping)
{
    struct wanted *wanted = context;
    if (wanted->address >= mapping->end)
        return true;
    wanted->found = *mapping;
    return false;
}

static bool read_until(uintptr_t address, struct mapping *mapping)
{
    struct wanted wanted = {.address = address};
    if (!mappings_read(is_elsewhere, &wanted))
        return false;
    *mapping = wanted.found;
    return wanted.found.end > address;
}

bool mappings_find(uintptr_t address, struct mapping *mapping)
{
    char name[LONGEST_NAME] = "";
    struct query q = {.size = sizeof q,
                      .flags = OR_NEXT,
                      .address = address,
                      .name_size = sizeof name,
                      .name = (uintptr_t)name};
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    const int error = query_mapping(maps, &q);
    if (maps >= 0)
        close(maps);
    if (error != 0)
        return error != ENOENT && read_until(address, mapping);
    *mapping =
        (struct mapping){.start = (uintptr_t)q.start,
                         .end = (uintptr_t)q.end,
                         .is_private = !(q.vma_flags & IS_SHARED),
                         .is_readable = q.vma_flags & IS_READABLE,
                         .is_writable = (q.vma_flags & IS_READABLE) && (q.vma_flags & IS_WRITABLE),
                         .is_file = q.inode != 0};
    memcpy(mapping->name, name, strnlen(name, MAPPING_NAME - 1));
    return true;
}

/* ---- Whether memory may be read ---- */

/* Returns 0 or what query_mapping() does. */
static int ask_all(uintptr_t start, uintptr_t end, bool *can)
{
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    struct query q = {.end = start, .vma_flags = IS_READABLE};
    int error = 0;
    while (error == 0 && q.end < end && (q.vma_flags & IS_READABLE)) {
        q = (struct query){.size = sizeof q, .address = q.end};
        error = query_mapping(maps, &q);
    }
    if (maps >= 0)
        close(maps);
    *can = error == 0 && q.end >= end && (q.vma_flags & IS_READABLE);
    return error;
}

struct readable_range {
    uintptr_t at, end;
    bool can;
};

static bool goes_on(void *context, const struct mapping *m)
{
    struct readable_range *r = context;
    if (m->end <= r->at)
        return true;
    r->can = m->start <= r->at && m->is_readable;
    r->at = m->end;
    return r->can && r->at < r->end;
}

bool mappings_can_be_read(uintptr_t start, uintptr_t end)
{
    struct readable_range r = {.at = start, .end = end};
    bool can;
    const int error = ask_all(start, end, &can);
    if (error == 0 || error == ENOENT)
        return can;
    const int before = errno;
    can = mappings_read(goes_on, &r) && r.can && r.at >= end;
    errno = before;
    return can;
}
