#define _GNU_SOURCE
#include "calibration_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h> /* rename(2) */
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/memory/hash.h"
#include "base/text/string_buffer.h"
#include "base/thread/signal_mask.h"
#include "base/text/text.h"

static const char version_line[] = "accel-model 1\n";
static const char checksum_name[] = "checksum=";
enum { CHECKSUM_DIGITS = 16 };

const char calibration_missing[] = "there is no such file";
const char calibration_closed[] = "it may not be opened";
const char calibration_when[] = "calibrated";
/* These are replaced by a new one; what another version has written, cannot be read now, or may be
 * the user's for something else, is not. */
static const char empty[] = "it is empty",
                  wrong_checksum[] = "it is damaged: its checksum is wrong";

/* A hundred libraries on ten machines need less. */
#define FILE_MOST ((size_t)64 << 20)

/* ---- Reading ---- */

static void put_checksum(char digits[CHECKSUM_DIGITS], const char *text, size_t length)
{
    static const char hex[] = "0123456789abcdef";
    uint64_t hash = hash_bytes(text, length);
    for (int i = CHECKSUM_DIGITS; i-- > 0; hash >>= 4)
        digits[i] = hex[hash & 15];
}

/* Returns the length of the text before the checksum; 0 if the text does not end in a right one. */
static size_t checked_length(const char *text, size_t length)
{
    const size_t line = sizeof checksum_name - 1 + CHECKSUM_DIGITS + 1;
    char digits[CHECKSUM_DIGITS];
    if (length < line || text[length - 1] != '\n' ||
        memcmp(text + length - line, checksum_name, sizeof checksum_name - 1) != 0)
        return 0;
    put_checksum(digits, text, length - line);
    return memcmp(text + length - 1 - CHECKSUM_DIGITS, digits, sizeof digits) == 0 ? length - line
                                                                                   : 0;
}

static const char *read_file(struct calibration *file, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return "it is no regular file";
    if (st.st_size == 0)
        return empty;
    if ((uintmax_t)st.st_size > FILE_MOST)
        return "it is too long for a calibration";
    size_t length = (size_t)st.st_size;
    char *text = malloc(length);
    if (!text)
        return "there is no memory for it";
    const char *wrong = NULL;
    if (file_read(fd, text, length) != (ssize_t)length)
        wrong = "it cannot be read";
    else if (text[0] == 0 &&
             memcmp(text, text + 1, length - 1) == 0) /* as a power failure leaves it */
        wrong = empty;
    else if (length < sizeof version_line || memcmp(text, "accel-model ", 12) != 0)
        wrong = "it is no calibration";
    else if (memcmp(text, version_line, sizeof version_line - 1) != 0)
        wrong = "it is of another version of libaccel, or damaged";
    else if ((file->length = checked_length(text, length)) == 0)
        wrong = wrong_checksum;
    file->time = st.st_mtime;
    if (wrong)
        free(text);
    else
        file->text = text;
    return wrong;
}

const char *calibration_open(struct calibration *file, const char *path)
{
    *file = (struct calibration){.text = NULL};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? calibration_missing
               : errno == EACCES || errno == EPERM ? calibration_closed
                                                   : "it cannot be opened";
    const char *wrong = read_file(file, fd);
    close(fd);
    return wrong;
}

void calibration_close(struct calibration *file)
{
    free(file->text);
    *file = (struct calibration){.text = NULL};
}

/* ---- Sections ---- */

bool calibration_next_line(const char **at, const char *end, struct calibration_line *line)
{
    if (*at >= end)
        return false;
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    line->at = *at;
    line->length = (size_t)((newline ? newline : end) - *at);
    *at = newline ? newline + 1 : end;
    return true;
}

static bool is_header(const struct calibration_line *line)
{
    return line->length > 0 && line->at[0] == '[';
}

bool calibration_begins(const struct calibration_line *line, const char *with)
{
    size_t n = strlen(with);
    return line->length >= n && memcmp(line->at, with, n) == 0;
}

bool calibration_next_section(struct calibration *rest, const char *prefix,
                              struct calibration_line *header, struct calibration_section *section)
{
    const char *at = rest->text, *end = at + rest->length;
    struct calibration_line line;
    while (calibration_next_line(&at, end, header)) {
        if (!is_header(header) || !calibration_begins(header, prefix))
            continue;
        section->text = at;
        const char *next = at;
        while (calibration_next_line(&next, end, &line) && !is_header(&line))
            at = next;
        section->length = (size_t)(at - section->text);
        *rest = (struct calibration){.text = (char *)(uintptr_t)at, .length = (size_t)(end - at)};
        return true;
    }
    return false;
}

bool calibration_find_line(const struct calibration_section *section, const char *name, char mark,
                           struct calibration_line *rest)
{
    const char *at = section->text, *end = at + section->length;
    size_t n = strlen(name);
    while (calibration_next_line(&at, end, rest))
        if (calibration_begins(rest, name) && rest->length > n && rest->at[n] == mark) {
            rest->at += n + 1;
            rest->length -= n + 1;
            return true;
        }
    return false;
}

bool calibration_find(const struct calibration *file, const char *key, bool prefix,
                      struct calibration_section *section)
{
    struct calibration rest = *file;
    struct calibration_line header;
    while (calibration_next_section(&rest, key, &header, section))
        if (prefix || header.length == strlen(key))
            return true;
    return false;
}

bool calibration_has_sections(const struct calibration *file)
{
    struct calibration_section section;
    return calibration_find(file, "[", true, &section);
}

/* ---- Writing ---- */

struct change {
    const struct calibration *old;
    const char *const *keys, *const *bodies;
    const struct calibration_section *const *seen; /* NULL: whatever is there is replaced */
    int count;
};

/* Returns whether `accel calibrate` measured both at the same time, or neither. b: NULL: there is
 * none. */
static bool is_of_one_calibration(const struct calibration_section *a,
                                  const struct calibration_section *b)
{
    struct calibration_line x, y;
    const bool one = calibration_find_line(a, calibration_when, '=', &x),
               other = b && calibration_find_line(b, calibration_when, '=', &y);
    return one && other ? x.length == y.length && memcmp(x.at, y.at, x.length) == 0 : one == other;
}

/* Returns whether the file's section still is of the calibration that was seen. */
static bool replaces(const struct change *change, int i)
{
    struct calibration_section now = {.text = NULL};
    if (!change->seen)
        return true;
    if (!change->old->text || !calibration_find(change->old, change->keys[i], false, &now))
        return true;
    return is_of_one_calibration(&now, change->seen[i]);
}

static bool is_replaced(const struct calibration_line *line, const struct change *change)
{
    for (int i = 0; i < change->count; i++)
        if (line->length == strlen(change->keys[i]) &&
            memcmp(line->at, change->keys[i], line->length) == 0)
            return replaces(change, i);
    return false;
}

static void keep_others(struct string_buffer *g, const struct change *change)
{
    const struct calibration *old = change->old;
    const char *at = old->text + sizeof version_line - 1, *end = old->text + old->length;
    struct calibration_line line;
    bool kept = true;
    while (calibration_next_line(&at, end, &line)) {
        if (is_header(&line))
            kept = !is_replaced(&line, change);
        if (kept) {
            string_buffer_add(g, line.at, line.length);
            string_buffer_add_string(g, "\n");
        }
    }
}

static void compose(struct string_buffer *g, const struct change *change)
{
    char digits[CHECKSUM_DIGITS];
    string_buffer_add_string(g, version_line);
    if (change->old->text)
        keep_others(g, change);
    for (int i = 0; i < change->count; i++) {
        if (!replaces(change, i))
            continue;
        string_buffer_add_string(g, change->keys[i]);
        string_buffer_add_string(g, "\n");
        string_buffer_add_string(g, change->bodies[i]);
    }
    if (g->failed)
        return;
    put_checksum(digits, g->text, g->length);
    string_buffer_add_string(g, checksum_name);
    string_buffer_add(g, digits, sizeof digits);
    string_buffer_add_string(g, "\n");
}

static int open_draft(char aside[PATH_MAX], const char *path)
{
    struct accel_text text;
    text_start(&text, aside, PATH_MAX);
    text_string(&text, path);
    text_string(&text, ".XXXXXX");
    text_end(&text);
    return mkostemp(aside, O_CLOEXEC);
}

/* Writes a draft. keep: it replaces the old file; else it is a try, which leaves nothing, and has
 * no name if the file system allows that. */
static const char *write_aside(const char *path, int folder, const struct string_buffer *g,
                               bool keep)
{
    char aside[PATH_MAX] = "";
    int fd = keep ? -1 : openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        fd = open_draft(aside, path);
    if (fd < 0)
        return "the file cannot be made";
    struct signal_mask held;
    signals_hold(&held);
    size_t length;
    int error = file_write(fd, g->text, g->length, &length);
    signals_release(&held, error != 0);
    bool written = error == 0;
    if (error)
        errno = error;
    written = written && fchmod(fd, 0644) == 0;
    if (keep) /* or a crash could leave the new name without its text */
        written = written && fsync(fd) == 0;
    written = close(fd) == 0 && written;
    bool moved = written && keep && rename(aside, path) == 0;
    int saved = errno;
    if (!moved && aside[0])
        unlink(aside);
    errno = saved;
    return moved || (written && !keep) ? NULL : "the file cannot be written";
}

/* A folder of that name keeps a draft from being renamed to it. Sets errno then. */
static bool is_folder(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return false;
    errno = EISDIR;
    return true;
}

/* Opens the folder of a path, and makes it and those above it if they are missing. -1 with
 * errno. */
static int open_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *name;
    int error = 0; /* why the first that is missing could not be made */
    if (!file_folder(path, folder, &name))
        return -1;
    for (char *c = folder + 1;; c++)
        if (!*c || *c == '/') {
            char was = *c;
            *c = 0;
            if (mkdir(folder, 0755) != 0 && errno != EEXIST && !error)
                error = errno;
            *c = was;
            if (!was)
                break;
        }
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && error)
        errno = error;
    return fd;
}

/* Another process holds the lock while it writes the file. On file systems without locks (some
 * network ones) the last one to write wins. */
static bool lock_folder(int folder, bool patient)
{
    const struct timespec pause = {0, 2000000};
    for (int tries = patient ? 2500 : 10; tries > 0; tries--) {
        if (flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return true;
        nanosleep(&pause, NULL);
    }
    errno = EWOULDBLOCK;
    return false;
}

/* Returns the path that the new file is to have: the target of a link, which may not be there
 * yet. */
static const char *behind_link(const char *given, char target[PATH_MAX])
{
    char folder[PATH_MAX], link[PATH_MAX];
    const char *name;
    struct accel_text text;
    if (realpath(given, target))
        return target;
    const ssize_t length = readlink(given, link, sizeof link - 1);
    if (length < 0 || !file_folder(given, folder, &name))
        return given;
    link[length] = 0;
    text_start(&text, target, PATH_MAX);
    text_string(&text, *link == '/' ? "" : folder);
    text_string(&text, *link == '/' ? "" : "/");
    text_string(&text, link);
    return text_end(&text) ? target : given;
}

/* Returns NULL if a new file may take the place of what is there. */
static const char *open_old(struct calibration *old, const char *path)
{
    errno = 0;
    const char *const wrong = calibration_open(old, path);
    return wrong == calibration_missing || wrong == empty || wrong == wrong_checksum ? NULL : wrong;
}

const char *calibration_put(const char *given, const char *const keys[], const char *const bodies[],
                            const struct calibration_section *const seen[], int count, bool patient)
{
    struct string_buffer g = {NULL, 0, 0, false};
    struct calibration old;
    char target[PATH_MAX];
    const char *const path = behind_link(given, target);
    int folder = open_folder(path);
    if (folder < 0)
        return "its folder cannot be made";
    const char *wrong = NULL;
    if (!lock_folder(folder, patient)) {
        wrong = "another process writes it";
    } else if (is_folder(path)) {
        wrong = "the file cannot be written";
    } else {
        wrong = open_old(&old, path);
        if (!wrong) {
            compose(&g, &(struct change){&old, keys, bodies, seen, count});
            if (g.failed)
                errno = ENOMEM;
            wrong =
                g.failed ? "there is no memory for it" : write_aside(path, folder, &g, count > 0);
        }
        calibration_close(&old);
    }
    int saved = errno;
    free(g.text);
    close(folder);
    errno = saved;
    return wrong;
}
