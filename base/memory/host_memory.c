#define _GNU_SOURCE
#include "host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file/file.h"
#include "block_cache.h"
#include "base/text/text.h"

enum { FILE_BYTES = 8192 };

/* Reads the beginning of a file; empty if it cannot be read. */
static void read_text(const char *root, const char *folder, const char *inner, const char *name,
                      char text[FILE_BYTES])
{
    char path[PATH_MAX];
    struct accel_text made;
    text[0] = 0;
    text_start(&made, path, sizeof path);
    text_string(&made, root);
    text_string(&made, folder);
    text_string(&made, inner);
    text_string(&made, name);
    if (!text_end(&made))
        return;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    const ssize_t length = file_read(fd, text, FILE_BYTES - 1);
    text[length > 0 ? length : 0] = 0;
    close(fd);
}

/* Returns the decimal number at `at`, times `unit`; INT64_MAX if there is none ("max"), or it is
 * larger. */
static int64_t number_at(const char *at, int64_t unit)
{
    int64_t value = 0;
    while (*at == ' ')
        at++;
    if (*at < '0' || *at > '9')
        return INT64_MAX;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *at - '0', &value))
            return INT64_MAX;
    return __builtin_mul_overflow(value, unit, &value) ? INT64_MAX : value;
}

/* Returns what stands behind a word that begins a line; NULL without such a line. */
static const char *after_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *line = text; *line; line++) {
        if (strncmp(line, word, length) == 0)
            return line + length;
        line = strchr(line, '\n');
        if (!line)
            break;
    }
    return NULL;
}

static int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- Control groups ---- */

static const struct version {
    const char *controllers; /* in a line of /proc/self/cgroup, between its colons */
    const char *folder, *most, *used, *files;
} versions[] = {
    {"", "/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file "},
    {"memory", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
     "total_inactive_file "},
};

static int64_t left_in_group(const char *root, const struct version *v, const char *group)
{
    char text[FILE_BYTES];
    read_text(root, v->folder, group, v->most, text);
    const int64_t most = number_at(text, 1);
    if (most == INT64_MAX)
        return INT64_MAX;
    read_text(root, v->folder, group, v->used, text);
    const int64_t used = number_at(text, 1);
    if (used == INT64_MAX)
        return INT64_MAX;
    read_text(root, v->folder, group, "/memory.stat", text);
    const char *files = after_word(text, v->files);
    const int64_t dropped = files ? number_at(files, 1) : 0;
    const int64_t taken = dropped < used ? used - dropped : 0;
    return taken < most ? most - taken : 0;
}

/* Of a group and those around it, up to the root of what is mounted. */
static int64_t left_in_groups(const char *root, const struct version *v, char *group)
{
    int64_t left = INT64_MAX;
    for (;;) {
        left = smaller_of(left, left_in_group(root, v, group));
        char *slash = strrchr(group, '/');
        if (!slash)
            return left;
        *slash = 0;
    }
}

/* Returns the version's group in a line "number:controllers:/group", cut off there; NULL: another
 * version's line. */
static char *group_in(char *line, const struct version *v)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return NULL;
    *group++ = 0;
    const bool is_it = strcmp(controllers + 1, v->controllers) == 0;
    return is_it ? group : NULL;
}

static int64_t left_in_version(const char *root, const struct version *v)
{
    char text[FILE_BYTES];
    read_text(root, "/proc/self/cgroup", "", "", text);
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        char *group = group_in(line, v);
        if (group)
            return left_in_groups(root, v, group);
    }
    return INT64_MAX;
}

/* ---- The whole ---- */

int64_t host_memory_below(const char *root)
{
    char text[FILE_BYTES];
    read_text(root, "/proc/meminfo", "", "", text);
    const char *available = after_word(text, "MemAvailable:");
    int64_t left = available ? number_at(available, 1024) : INT64_MAX;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        left = smaller_of(left, left_in_version(root, &versions[i]));
    return left;
}

int64_t host_memory_available(void)
{
    const int64_t available = host_memory_below(""), reused = block_cache_reused_bytes();
    return available == INT64_MAX ? available : available > reused ? available - reused : 0;
}

bool host_memory_has(double bytes)
{
    return bytes <= (double)(host_memory_available() / 8 * 7);
}

/* glibc maps blocks above 32 MiB by themselves, whatever the program has freed before. */
#define LARGE_BYTES (INT64_C(64) << 20)
#define HUGE_BYTES  ((uintptr_t)2 << 20)

void host_memory_prefer_huge(void *memory, int64_t bytes)
{
    const uintptr_t first = ((uintptr_t)memory + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES,
                    end = ((uintptr_t)memory + (uintptr_t)bytes) / HUGE_BYTES * HUGE_BYTES;
    const int before = errno;
    if (!memory || bytes < LARGE_BYTES)
        return;
    madvise((void *)first, end - first, MADV_HUGEPAGE); /* a kernel without them refuses */
    errno = before;
}

bool host_memory_is_there(const void *at)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const int before = errno;
    unsigned char there = 1;
    const bool knows = mincore((void *)((uintptr_t)at & ~(page - 1)), page, &there) == 0;
    errno = before;
    return !knows || there & 1;
}

void *host_memory_take(int64_t bytes)
{
    void *const memory = host_memory_has((double)bytes) ? malloc((size_t)bytes + 1) : NULL;
    host_memory_prefer_huge(memory, bytes);
    return memory;
}

void *host_memory_take_zeros(int64_t bytes)
{
    return host_memory_has((double)bytes) ? calloc((size_t)bytes + 1, 1) : NULL;
}
