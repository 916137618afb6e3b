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

static const struct format formats[] = {
    {"text", compare_text}, {"csv", compare_text},          {"json", compare_json},
    {"npy", compare_npy},   {"mtx", compare_matrix_market}, {"bytes", compare_bytes},
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

bool compared_fault(const struct compared *compared, enum run run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "accel diff: %s of %s: ", compared->name, run_names[run]);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

bool compared_ignores(const struct compared *compared, const char *line)
{
    for (size_t i = 0; i < compared->ignored_count; i++)
        if (regexec(&compared->ignored[i], line, 0, NULL, 0) == 0)
            return true;
    return false;
}

/* Maps the file, so that a large one costs no memory. Reads it if it fills its last page: the NUL must fit. */
bool contents_open(struct contents *contents, const struct compared *compared, enum run run)
{
    struct stat status;
    *contents = (struct contents){NULL, 0, false};
    int fd = open(compared->path[run], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        goto failed;
    contents->length = (size_t)status.st_size;
    if (contents->length % (size_t)sysconf(_SC_PAGESIZE) != 0) {
        contents->bytes = mmap(NULL, contents->length, PROT_READ, MAP_PRIVATE, fd, 0);
        contents->mapped = contents->bytes != MAP_FAILED;
    }
    if (!contents->mapped) {
        contents->bytes = malloc(contents->length + 1);
        ssize_t length = contents->bytes ? file_read(fd, contents->bytes, contents->length) : -1;
        if (length != (ssize_t)contents->length) {
            if (length >= 0)
                errno = EIO; /* the file has become shorter */
            free(contents->bytes);
            contents->bytes = NULL;
            goto failed;
        }
        contents->bytes[contents->length] = 0;
    }
    close(fd);
    return true;
failed:
    compared_fault(compared, run, "%s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return false;
}

long long contents_line(const struct contents *contents, size_t at)
{
    long long line = 1;
    for (size_t i = 0; i < at && i < contents->length; i++)
        line += contents->bytes[i] == '\n';
    return line;
}

void contents_close(struct contents *contents)
{
    if (contents->mapped)
        munmap(contents->bytes, contents->length);
    else
        free(contents->bytes);
    *contents = (struct contents){NULL, 0, false};
}

/* Sets *at to the first byte that differs, or to the end of the shorter file. False if the files are the same. */
static bool find_difference(const struct contents *a, const struct contents *b, size_t *at)
{
    size_t n = a->length < b->length ? a->length : b->length;
    for (*at = 0; *at < n && a->bytes[*at] == b->bytes[*at];)
        ++*at;
    return *at < n || a->length != b->length;
}

static void compare_contents(struct tally *tally, const struct contents *a,
                             const struct contents *b)
{
    size_t at;
    if (find_difference(a, b, &at) && tally_text(tally))
        tally_show(tally, "byte %zu is the first that differs; %zu bytes, %s %zu", at + 1,
                   a->length, tally_second(tally), b->length);
}

bool compare_bytes(struct tally *tally, const struct compared *compared)
{
    struct contents run[RUNS] = {{NULL, 0, false}};
    bool good = true;
    for (int i = 0; i < RUNS && good; i++)
        good = contents_open(&run[i], compared, i);
    if (good) {
        compare_contents(tally, &run[RUN_PLAIN], &run[RUN_THREADS]);
        tally->measures_noise = false;
        compare_contents(tally, &run[RUN_PLAIN], &run[RUN_SHIM]);
    }
    for (int i = 0; i < RUNS; i++)
        contents_close(&run[i]);
    return good;
}
