#define _GNU_SOURCE
#include "calibration.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h> /* rename(2) */
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/held_signals.h"
#include "ops/shape.h"
#include "base/text.h"

static const char version_line[] = "accel-model 1\n";
static const char checksum_name[] = "checksum=";
enum { CHECKSUM_DIGITS = 16 };

const char calibration_missing[] = "there is no such file";
const char calibration_closed[] = "it may not be opened";

/* Of a hundred libraries on ten machines. */
#define FILE_MOST ((size_t)64 << 20)

/* ---- Reading ---- */

static void put_checksum(char digits[CHECKSUM_DIGITS], const char *text, size_t length)
{
    static const char hex[] = "0123456789abcdef";
    XXH64_hash_t hash = XXH3_64bits(text, length);
    for (int i = CHECKSUM_DIGITS; i-- > 0; hash >>= 4)
        digits[i] = hex[hash & 15];
}

/* The length of what the checksum is of, or 0 where the text does not end in one that is right. */
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
    if (st.st_size == 0 || (uintmax_t)st.st_size > FILE_MOST)
        return "its length is not one of a calibration";
    size_t length = (size_t)st.st_size;
    char *text = malloc(length);
    if (!text)
        return "there is no memory for it";
    const char *wrong = NULL;
    if (file_read(fd, text, length) != (ssize_t)length)
        wrong = "it cannot be read";
    else if (length < sizeof version_line || memcmp(text, "accel-model ", 12) != 0)
        wrong = "it is no calibration, or damaged";
    else if (memcmp(text, version_line, sizeof version_line - 1) != 0)
        wrong = "it is of another version of libaccel, or damaged";
    else if ((file->length = checked_length(text, length)) == 0)
        wrong = "it is damaged: its checksum is wrong";
    if (wrong)
        free(text);
    else
        file->text = text;
    return wrong;
}

const char *calibration_open(struct calibration *file, const char *path)
{
    *file = (struct calibration){NULL, 0};
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
    *file = (struct calibration){NULL, 0};
}

/* ---- Keys ---- */

/* In quotes, with nothing in it that would end the quotes or the line. */
static void put_name(struct accel_text *text, const char *name)
{
    text_char(text, '"');
    for (; *name; name++)
        text_char(text, *name < ' ' || *name == '"' || *name == 0x7f ? '_' : *name);
    text_char(text, '"');
}

/* The processor's own name for itself, without the spaces that some have around it. */
static void put_cpu(struct accel_text *text)
{
    unsigned brand[13] = {0};
    bool known = true;
    for (unsigned i = 0; known && i < 3; i++)
        known = __get_cpuid(0x80000002 + i, &brand[4 * i], &brand[4 * i + 1], &brand[4 * i + 2],
                            &brand[4 * i + 3]);
    char *name = (char *)brand;
    while (*name == ' ')
        name++;
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] == ' ')
        name[--length] = 0;
    put_name(text, known ? name : "unknown");
}

static void start_key(struct accel_text *text, char key[MODEL_KEY_BYTES], const char *kind)
{
    text_start(text, key, MODEL_KEY_BYTES - 2); /* room for "]" and the end */
    text_string(text, kind);
}

static void end_key(struct accel_text *text)
{
    text->size = MODEL_KEY_BYTES;
    text_char(text, ']');
    text_end(text);
}

void model_cpu_prefix(char key[MODEL_KEY_BYTES])
{
    struct accel_text text;
    start_key(&text, key, "[cpu ");
    put_cpu(&text);
    text.size = MODEL_KEY_BYTES;
    text_end(&text);
}

void model_cpu_key(char key[MODEL_KEY_BYTES], const char *library, int threads)
{
    struct accel_text text;
    start_key(&text, key, "[cpu ");
    put_cpu(&text);
    text_string(&text, " threads=");
    text_integer(&text, threads);
    text_string(&text, " library=");
    put_name(&text, library);
    end_key(&text);
}

void model_gpu_key(char key[MODEL_KEY_BYTES], const char *name, int cuda_version,
                   int cublas_version)
{
    struct accel_text text;
    start_key(&text, key, "[gpu ");
    put_name(&text, name);
    text_string(&text, " cuda=");
    text_integer(&text, cuda_version / 1000);
    text_char(&text, '.');
    text_integer(&text, cuda_version % 1000 / 10);
    text_string(&text, " cublas=");
    text_integer(&text, cublas_version);
    end_key(&text);
}

/* ---- Sections ---- */

struct line {
    const char *at;
    size_t length;
};

/* The next line of [*at, end), without its newline. */
static bool next_line(const char **at, const char *end, struct line *line)
{
    if (*at >= end)
        return false;
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    line->at = *at;
    line->length = (size_t)((newline ? newline : end) - *at);
    *at = newline ? newline + 1 : end;
    return true;
}

static bool is_header(const struct line *line)
{
    return line->length > 0 && line->at[0] == '[';
}

static bool begins(const struct line *line, const char *with)
{
    size_t n = strlen(with);
    return line->length >= n && memcmp(line->at, with, n) == 0;
}

/* The next section whose key begins so; `rest` is then what follows it. */
static bool next_section(struct calibration *rest, const char *prefix, struct line *header,
                         struct calibration_section *section)
{
    const char *at = rest->text, *end = at + rest->length;
    struct line line;
    while (next_line(&at, end, header)) {
        if (!is_header(header) || !begins(header, prefix))
            continue;
        section->text = at;
        const char *next = at;
        while (next_line(&next, end, &line) && !is_header(&line))
            at = next;
        section->length = (size_t)(at - section->text);
        *rest = (struct calibration){(char *)(uintptr_t)at, (size_t)(end - at)};
        return true;
    }
    return false;
}

bool calibration_find(const struct calibration *file, const char *key, bool prefix,
                      struct calibration_section *section)
{
    struct calibration rest = *file;
    struct line header;
    while (next_section(&rest, key, &header, section))
        if (prefix || header.length == strlen(key))
            return true;
    return false;
}

/* A line that begins with name and `mark`: what follows. */
static bool find_line(const struct calibration_section *section, const char *name, char mark,
                      struct line *rest)
{
    const char *at = section->text, *end = at + section->length;
    size_t n = strlen(name);
    while (next_line(&at, end, rest))
        if (begins(rest, name) && rest->length > n && rest->at[n] == mark) {
            rest->at += n + 1;
            rest->length -= n + 1;
            return true;
        }
    return false;
}

/* ---- Numbers: as the writer has them, and whatever else is refused ---- */

static bool take_integer(struct line *line, int64_t *value)
{
    size_t digits = 0;
    for (*value = 0; digits < line->length && digits < 12; digits++) {
        char c = line->at[digits];
        if (c < '0' || c > '9')
            break;
        *value = 10 * *value + (c - '0');
    }
    line->at += digits;
    line->length -= digits;
    return digits > 0;
}

static bool take_decimal(struct line *line, double *value)
{
    int64_t whole, fraction;
    if (!take_integer(line, &whole))
        return false;
    *value = (double)whole;
    if (line->length == 0 || line->at[0] != '.')
        return true;
    line->at++;
    line->length--;
    size_t before = line->length;
    if (!take_integer(line, &fraction))
        return false;
    double scale = 1;
    for (size_t i = line->length; i < before; i++)
        scale *= 10;
    *value += (double)fraction / scale;
    return true;
}

static bool take_char(struct line *line, char c)
{
    if (line->length == 0 || line->at[0] != c)
        return false;
    line->at++;
    line->length--;
    return true;
}

/* What follows, if the line begins so. */
static bool take_text(struct line *line, const char *text)
{
    if (!begins(line, text))
        return false;
    line->at += strlen(text);
    line->length -= strlen(text);
    return true;
}

bool calibration_next_cpu(struct calibration *rest, const char *prefix, const char *library,
                          int *threads, struct calibration_section *section)
{
    char end[MODEL_KEY_BYTES];
    struct accel_text text;
    struct line header;
    int64_t count;
    start_key(&text, end, " library=");
    put_name(&text, library);
    end_key(&text);
    while (next_section(rest, prefix, &header, section)) {
        bool right = take_text(&header, prefix) && take_text(&header, " threads=") &&
                     take_integer(&header, &count) && count >= 1 && count <= 1 << 20;
        if (right && take_text(&header, end) && header.length == 0) {
            *threads = (int)count;
            return true;
        }
    }
    return false;
}

bool calibration_next_gpu(struct calibration *rest, char name[MODEL_KEY_BYTES],
                          struct calibration_section *section)
{
    struct line header;
    while (next_section(rest, "[gpu \"", &header, section)) {
        take_text(&header, "[gpu \"");
        const char *quote = memchr(header.at, '"', header.length);
        size_t length = quote ? (size_t)(quote - header.at) : 0;
        if (length == 0 || length >= MODEL_KEY_BYTES)
            continue;
        memcpy(name, header.at, length);
        name[length] = 0;
        return true;
    }
    return false;
}

static bool is_part(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Not within a word: "L4" is not in "L40S". */
static bool has_words(const char *text, const char *words)
{
    size_t length = strlen(words);
    for (const char *at = text; (at = strcasestr(at, words)); at++) {
        bool begins = at == text || !is_part(at[-1]) || !is_part(words[0]);
        bool ends = length == 0 || !is_part(at[length]) || !is_part(words[length - 1]);
        if (begins && ends)
            return true;
        if (!*at)
            break;
    }
    return false;
}

bool calibration_find_gpu(const struct calibration *file, const char *name,
                          struct calibration_section *section)
{
    static const char maker[] = "NVIDIA ";
    struct calibration rest = *file;
    char found[MODEL_KEY_BYTES];
    while (calibration_next_gpu(&rest, found, section)) {
        const char *card =
            strncasecmp(found, maker, sizeof maker - 1) == 0 ? found + sizeof maker - 1 : found;
        if (strcasecmp(found, name) == 0 || strcasecmp(card, name) == 0)
            return true;
    }
    /* A slice of a card is not the card. */
    rest = *file;
    while (calibration_next_gpu(&rest, found, section))
        if (has_words(found, name) && (!has_words(found, "MIG") || has_words(name, "MIG")))
            return true;
    return false;
}

bool calibration_has_sections(const struct calibration *file)
{
    struct calibration_section section;
    return calibration_find(file, "[", true, &section);
}

double calibration_section_value(const struct calibration_section *section, const char *name)
{
    struct line line;
    double value;
    return find_line(section, name, '=', &line) && take_decimal(&line, &value) && line.length == 0
               ? value
               : 0;
}

static bool take_call(struct line *line, const struct accel_routine *routine,
                      struct model_work *work, double *ms)
{
    int64_t size[ACCEL_DIMENSIONS] = {0};
    bool first = true;
    for (int i = 0; i < ACCEL_DIMENSIONS; i++) {
        if (!accel_has_size(routine, (enum accel_size)i))
            continue;
        if ((!first && !take_char(line, 'x')) || !take_integer(line, &size[i]) || size[i] < 1 ||
            size[i] > INT32_MAX)
            return false;
        first = false;
    }
    struct accel_call call;
    if (!take_char(line, ':') || !take_decimal(line, ms) || !(*ms > 0))
        return false;
    shape_typical(&call, routine, size);
    model_work_of(&call, work);
    return true;
}

bool calibration_section_curve(const struct calibration_section *section,
                               const struct accel_routine *routine, struct model_curve *curve)
{
    struct model_work works[MODEL_POINTS];
    double ms[MODEL_POINTS];
    struct line line;
    int count = 0;
    if (!find_line(section, routine->name, ' ', &line))
        return false;
    do {
        if (count == MODEL_POINTS || !take_call(&line, routine, &works[count], &ms[count]))
            return false;
        count++;
    } while (take_char(&line, ' '));
    if (line.length > 0)
        return false;
    model_fit(curve, works, ms, count);
    return true;
}

/* ---- Algorithms ---- */

static const char svd_prefix[] = "svd_";

void model_svd_name(char name[MODEL_SVD_NAME_BYTES], enum accel_dtype dtype, bool vectors)
{
    static const char letters[ACCEL_DTYPES] = {'s', 'd', 'c', 'z'};
    struct accel_text text;
    text_start(&text, name, MODEL_SVD_NAME_BYTES);
    text_string(&text, svd_prefix);
    text_char(&text, letters[dtype]);
    text_string(&text, vectors ? "_vectors" : "_values");
    text_end(&text);
}

static bool take_algorithm(struct line *line, enum gpu_svd *algorithm)
{
    size_t length = 0;
    while (length < line->length && line->at[length] != ' ')
        length++;
    for (int i = 0; i < GPU_SVDS; i++)
        if (strlen(gpu_svd_names[i]) == length && memcmp(line->at, gpu_svd_names[i], length) == 0) {
            line->at += length;
            line->length -= length;
            *algorithm = (enum gpu_svd)i;
            return true;
        }
    return false;
}

bool calibration_section_svd(const struct calibration_section *section, enum accel_dtype dtype,
                             bool vectors, enum gpu_svd algorithm[GPU_SVD_OCTAVES])
{
    char name[MODEL_SVD_NAME_BYTES];
    int nearest[GPU_SVD_OCTAVES];
    struct line line;
    for (int octave = 0; octave < GPU_SVD_OCTAVES; octave++)
        nearest[octave] = GPU_SVD_OCTAVES;
    model_svd_name(name, dtype, vectors);
    if (!find_line(section, name, ' ', &line))
        return false;
    do {
        int64_t order;
        enum gpu_svd named;
        if (!take_integer(&line, &order) || order < 1 || !take_char(&line, ':') ||
            !take_algorithm(&line, &named))
            return false;
        for (int octave = 0; octave < GPU_SVD_OCTAVES; octave++) {
            int away = abs(gpu_svd_octave(order) - octave);
            if (away >= nearest[octave])
                continue;
            nearest[octave] = away;
            algorithm[octave] = named;
        }
    } while (take_char(&line, ' '));
    return line.length == 0;
}

void calibration_section_keep_svd(const struct calibration_section *section, struct grown *body)
{
    const char *at = section->text, *end = at + section->length;
    struct line line;
    while (next_line(&at, end, &line))
        if (begins(&line, svd_prefix)) {
            grown_add(body, line.at, line.length);
            grown_string(body, "\n");
        }
}

/* ---- Writing ---- */

static bool is_among(const struct line *line, const char *const keys[], int count)
{
    for (int i = 0; i < count; i++)
        if (line->length == strlen(keys[i]) && memcmp(line->at, keys[i], line->length) == 0)
            return true;
    return false;
}

static void keep_others(struct grown *g, const struct calibration *old, const char *const keys[],
                        int count)
{
    const char *at = old->text + sizeof version_line - 1, *end = old->text + old->length;
    struct line line;
    bool kept = true;
    while (next_line(&at, end, &line)) {
        if (is_header(&line))
            kept = !is_among(&line, keys, count);
        if (kept) {
            grown_add(g, line.at, line.length);
            grown_string(g, "\n");
        }
    }
}

static void compose(struct grown *g, const struct calibration *old, const char *const keys[],
                    const char *const bodies[], int count)
{
    char digits[CHECKSUM_DIGITS];
    grown_string(g, version_line);
    if (old->text)
        keep_others(g, old, keys, count);
    for (int i = 0; i < count; i++) {
        grown_string(g, keys[i]);
        grown_string(g, "\n");
        grown_string(g, bodies[i]);
    }
    if (g->failed)
        return;
    put_checksum(digits, g->text, g->length);
    grown_string(g, checksum_name);
    grown_add(g, digits, sizeof digits);
    grown_string(g, "\n");
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

/* keep: in place of the old file; otherwise it is a try, of which nothing stays, and where the file system can, it has no
 * name. */
static const char *write_aside(const char *path, int folder, const struct grown *g, bool keep)
{
    char aside[PATH_MAX] = "";
    int fd = keep ? -1 : openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        fd = open_draft(aside, path);
    if (fd < 0)
        return "the file cannot be made";
    struct held_signals held;
    signals_hold(&held);
    size_t length;
    int error = file_write(fd, g->text, g->length, &length);
    signals_release(&held, error != 0);
    bool written = error == 0;
    if (error)
        errno = error;
    written = written && fchmod(fd, 0644) == 0;
    if (keep) /* else a crash could leave the new name without its text */
        written = written && fsync(fd) == 0;
    written = close(fd) == 0 && written;
    bool moved = written && keep && rename(aside, path) == 0;
    int saved = errno;
    if (!moved && aside[0])
        unlink(aside);
    errno = saved;
    return moved || (written && !keep) ? NULL : "the file cannot be written";
}

/* A draft would not get its name. */
static bool is_folder(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return false;
    errno = EISDIR;
    return true;
}

/* Opens the folder of a path, and makes it and those above it where need be. */
static int open_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *name;
    if (!file_folder(path, folder, &name))
        return -1;
    for (char *c = folder + 1;; c++)
        if (!*c || *c == '/') {
            char was = *c;
            *c = 0;
            mkdir(folder, 0755); /* what fails shows when it is opened */
            *c = was;
            if (!was)
                break;
        }
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Somebody may hold it for as long as a file takes to write. Where there are no locks (some network file systems), the
 * last one to write wins. */
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

const char *calibration_put(const char *path, const char *const keys[], const char *const bodies[],
                            int count, bool patient)
{
    struct grown g = {NULL, 0, 0, false};
    struct calibration old;
    int folder = open_folder(path);
    if (folder < 0)
        return "its folder cannot be made";
    const char *wrong = NULL;
    if (!lock_folder(folder, patient)) {
        wrong = "another process writes it";
    } else if (is_folder(path)) {
        wrong = "the file cannot be written";
    } else {
        calibration_open(&old, path); /* one that is damaged is replaced */
        compose(&g, &old, keys, bodies, count);
        calibration_close(&old);
        if (g.failed)
            errno = ENOMEM;
        wrong = g.failed ? "there is no memory for it" : write_aside(path, folder, &g, count > 0);
    }
    int saved = errno;
    free(g.text);
    close(folder);
    errno = saved;
    return wrong;
}
