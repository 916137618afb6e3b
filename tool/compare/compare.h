/*
 * Compares what three runs of a program have written. A format's reader makes numbers at places, or
 * texts, of a file; what may differ is the tally's matter.
 */
#ifndef ACCEL_TOOL_COMPARE_H
#define ACCEL_TOOL_COMPARE_H

#include <regex.h>

#include "tally.h"

/* Two runs without libaccel, the second with another number of BLAS threads; then one with it. */
enum run { RUN_PLAIN, RUN_THREADS, RUN_SHIM, RUNS };

/* For messages: "the run with libaccel" ... */
extern const char *const run_names[RUNS];

/* One output of the program. */
struct compared {
    const char *name; /* the user's */
    const char *path[RUNS];
    const regex_t *ignored; /* lines of text, paths of JSON */
    size_t ignored_count;
};

/* What one run has written there. */
struct contents {
    const struct compared *compared;
    enum run run;
    char *bytes; /* mapped: a large file costs no memory; a NUL follows it */
    size_t length;
    void *read; /* what the format's reader has made of it */
};

/* Makes contents->read. False with a message on stderr; what is made until then is freed later. */
typedef bool contents_reader(struct contents *contents);
/* Counts the differences of two runs. noise: the second run without libaccel if b is that with it,
 * else NULL. False with a message on stderr. */
typedef bool comparison(struct tally *tally, const struct contents *a, const struct contents *b,
                        const struct contents *noise);

struct format {
    const char *name;
    contents_reader *read; /* NULL: the bytes are compared as they are */
    void (*free)(void *read);
    comparison *compare;
};

/* Returns the format of this name; NULL if there is none. */
const struct format *format_find(const char *name, size_t length);
/* Guesses the format: by the file's first bytes, then by the end of its name; else it is text. */
const struct format *format_guess(const char *name, const char *path);
/* Returns "text, csv, ...", for messages. */
const char *format_list(void);
/* Whether files of the format may have numbers, which are compared as such. */
bool format_has_numbers(const struct format *format);

/* Compares the runs' files, and counts in *tally. False if a file cannot be read or is damaged: a
 * message is on stderr. */
bool compare_files(struct tally *tally, const struct compared *compared,
                   const struct format *format);

/* ---- For the formats ---- */

/* Prints "accel diff: NAME of the run ...: MESSAGE" on stderr. Returns false. */
__attribute__((format(printf, 2, 3))) bool contents_fault(const struct contents *contents,
                                                          const char *format, ...);
/* Returns the number of the line that holds byte `at`; the first line is 1. */
long long contents_line(const struct contents *contents, size_t at);
/* Whether --ignore leaves out this line of text, or this path of JSON. */
bool compared_ignores(const struct compared *compared, const char *line, size_t length);

/* Places are in order by columns. */
struct array_place {
    uint64_t column, row;
};
bool place_is_before(const struct array_place *a, const struct array_place *b);

enum { SHAPE_BYTES = 1600 };

/* Numbers at places, such as a matrix. A reader's struct begins with it. */
struct compared_array {
    /* Type and size, for messages: if they differ, that is all that is said. */
    char shape[SHAPE_BYTES];
    struct float_format precision;
    struct number zero; /* at a place that is not stored; tells the type of the others */
    size_t count;       /* stored numbers */
    /* Reads stored number i. Places come in the order of `like`, which has the same shape. */
    void (*at)(const struct compared_array *array, const struct compared_array *like, size_t i,
               struct array_place *place, struct number *number);
    /* Prints a place of the array, "(1, 2)", for which there is room. */
    void (*print)(char *text, const struct compared_array *array, const struct array_place *place);
};

contents_reader json_read, npy_read, matrix_market_read;
void json_free(void *read), matrix_market_free(void *read);
comparison compare_text, compare_json;

#endif
