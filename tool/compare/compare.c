#define _GNU_SOURCE
#include "compare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"

const char *const run_names[RUNS] = {
    "the run without libaccel", "the run with another number of threads", "the run with libaccel"};

/* ---- Files ---- */

bool contents_fault(const struct contents *contents, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "accel diff: %s of %s: ", contents->compared->name, run_names[contents->run]);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

bool compared_ignores(const struct compared *compared, const char *line, size_t length)
{
    regmatch_t part = {0, (regoff_t)length};
    for (size_t i = 0; i < compared->ignored_count; i++)
        if (regexec(&compared->ignored[i], line, 0, &part, REG_STARTEND) == 0)
            return true;
    return false;
}

long long contents_line(const struct contents *contents, size_t at)
{
    long long line = 1;
    for (size_t i = 0; i < at && i < contents->length; i++)
        line += contents->bytes[i] == '\n';
    return line;
}

/* Maps the file over zeros, of which at least one stays behind it. */
static bool map(struct contents *contents, int fd)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return false;
    contents->length = (size_t)status.st_size;
    char *bytes = mmap(NULL, contents->length + 1, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return false;
    contents->bytes = bytes;
    if (contents->length == 0 ||
        mmap(bytes, contents->length, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED)
        return true;
    /* A file system that maps no files. */
    if (mprotect(bytes, contents->length, PROT_READ | PROT_WRITE) != 0)
        return false;
    const ssize_t length = file_read(fd, bytes, contents->length);
    if (length >= 0 && (size_t)length < contents->length)
        errno = EIO; /* the file has become shorter */
    return length == (ssize_t)contents->length;
}

static bool contents_open(struct contents *contents, const struct format *format)
{
    const int fd = open(contents->compared->path[contents->run], O_RDONLY | O_CLOEXEC);
    const bool mapped = map(contents, fd);
    const int error = errno;
    if (fd >= 0)
        close(fd);
    if (!mapped)
        return contents_fault(contents, "%s", strerror(error));
    return !format->read || format->read(contents);
}

static void contents_close(struct contents *contents, const struct format *format)
{
    if (contents->read)
        format->free(contents->read);
    if (contents->bytes)
        munmap(contents->bytes, contents->length + 1);
}

bool compare_files(struct tally *tally, const struct compared *compared,
                   const struct format *format)
{
    struct contents run[RUNS] = {{.run = 0}};
    bool good = true;
    for (int i = 0; i < RUNS && good; i++) {
        run[i] = (struct contents){.compared = compared, .run = i};
        good = contents_open(&run[i], format);
    }
    good = good && format->compare(tally, &run[RUN_PLAIN], &run[RUN_THREADS], NULL);
    tally->measures_noise = false;
    good = good && format->compare(tally, &run[RUN_PLAIN], &run[RUN_SHIM], &run[RUN_THREADS]);
    for (int i = 0; i < RUNS; i++)
        contents_close(&run[i], format);
    return good;
}

/* ---- Bytes ---- */

static bool compare_bytes(struct tally *tally, const struct contents *a, const struct contents *b,
                          const struct contents *noise)
{
    const size_t n = a->length < b->length ? a->length : b->length;
    size_t at = 0;
    (void)noise;
    while (at < n && a->bytes[at] == b->bytes[at])
        at++;
    if (at < n || a->length != b->length)
        tally_text(tally, "byte %zu is the first that differs; %zu bytes, %s %zu", at + 1,
                   a->length, tally_second(tally), b->length);
    return true;
}

/* ---- Arrays ---- */

/* Where an array is read: its next number, or a place behind all others. */
struct cursor {
    const struct compared_array *array, *like;
    size_t next;
    struct array_place place;
    struct number number;
};

bool place_is_before(const struct array_place *a, const struct array_place *b)
{
    return a->column != b->column ? a->column < b->column : a->row < b->row;
}

static void step_cursor(struct cursor *cursor)
{
    if (cursor->next < cursor->array->count)
        cursor->array->at(cursor->array, cursor->like, cursor->next++, &cursor->place,
                          &cursor->number);
    else
        cursor->place = (struct array_place){UINT64_MAX, UINT64_MAX};
}

/* Reads the number at `place`. The cursor moves behind it. */
static struct number take_number(struct cursor *cursor, const struct array_place *place)
{
    struct number number = cursor->array->zero;
    while (place_is_before(&cursor->place, place))
        step_cursor(cursor);
    if (!place_is_before(place, &cursor->place)) {
        number = cursor->number;
        step_cursor(cursor);
    }
    return number;
}

/* Compares two arrays of one shape, at each place that one of them has. */
static void compare_numbers(struct tally *tally, const struct compared_array *a,
                            const struct compared_array *b, const struct compared_array *noise)
{
    struct cursor x = {.array = a, .like = a}, y = {.array = b, .like = a},
                  z = {.array = noise, .like = a};
    step_cursor(&x);
    step_cursor(&y);
    if (noise)
        step_cursor(&z);
    for (;;) {
        const struct array_place place = place_is_before(&y.place, &x.place) ? y.place : x.place;
        if (place.column == UINT64_MAX)
            return;
        const struct number p = take_number(&x, &place), q = take_number(&y, &place),
                            r = noise ? take_number(&z, &place) : p;
        if (tally_number(tally, &p, &q, noise ? &r : NULL)) {
            char text[SHAPE_BYTES];
            a->print(text, a, &place);
            tally_show_values(tally, text, &p, &q);
        }
    }
}

/* Sets the tally's measures by the numbers of the first run. */
static void measure_first_run(struct tally *tally, const struct compared_array *array)
{
    tally->precision = array->precision;
    for (size_t i = 0; !array->zero.integer && i < array->count; i++) {
        struct array_place place;
        struct number number;
        array->at(array, array, i, &place, &number);
        tally_widen(tally, &number);
    }
}

static bool compare_arrays(struct tally *tally, const struct contents *a, const struct contents *b,
                           const struct contents *noise)
{
    const struct compared_array *x = a->read, *y = b->read, *z = noise ? noise->read : NULL;
    if (!noise)
        measure_first_run(tally, x);
    if (strcmp(x->shape, y->shape) != 0)
        tally_text(tally, "%s, %s %s", x->shape, tally_second(tally), y->shape);
    else
        compare_numbers(tally, x, y, z && strcmp(x->shape, z->shape) == 0 ? z : NULL);
    return true;
}

/* ---- Formats ---- */

static const struct format formats[] = {
    {"text", NULL, NULL, compare_text},
    {"csv", NULL, NULL, compare_text},
    {"json", json_read, json_free, compare_json},
    {"npy", npy_read, free, compare_arrays},
    {"mtx", matrix_market_read, matrix_market_free, compare_arrays},
    {"bytes", NULL, NULL, compare_bytes},
};
enum { FORMATS = sizeof formats / sizeof *formats };

const struct format *format_find(const char *name, size_t length)
{
    for (int i = 0; i < FORMATS; i++)
        if (strlen(formats[i].name) == length && memcmp(formats[i].name, name, length) == 0)
            return &formats[i];
    return NULL;
}

const char *format_list(void)
{
    return "text, csv, json, npy, mtx, bytes";
}

const struct format *format_guess(const char *name, const char *path)
{
    static const struct {
        const char *start, *format;
    } starts[] = {{"\x93NUMPY", "npy"}, {"%%MatrixMarket", "mtx"}};
    char first[16] = "";
    FILE *file = fopen(path, "re");
    if (file && fread(first, 1, sizeof first - 1, file) > 0)
        for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
            if (strncasecmp(first, starts[i].start, strlen(starts[i].start)) == 0)
                name = starts[i].format;
    if (file)
        fclose(file);
    const char *point = strrchr(name, '.');
    const char *end = point ? point + 1 : name;
    for (int i = 0; i < FORMATS; i++)
        if (strcasecmp(end, formats[i].name) == 0)
            return &formats[i];
    return &formats[0];
}

bool format_has_numbers(const struct format *format)
{
    return format->compare != compare_bytes;
}
