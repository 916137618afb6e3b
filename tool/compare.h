/*
 * Compares what three runs of a program have written. Each format is read as numbers and the text between them.
 */
#ifndef ACCEL_TOOL_COMPARE_H
#define ACCEL_TOOL_COMPARE_H

#include <regex.h>

#include "tally.h"

/* Two runs without libaccel, the second with another number of BLAS threads; then one with libaccel. */
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

/* Compares the runs' files, and counts in *tally. False if a file cannot be read or is damaged: a message is on stderr. */
typedef bool comparison(struct tally *tally, const struct compared *compared);

struct format {
    const char *name;
    comparison *compare;
};

/* Returns the format of this name; NULL if there is none. */
const struct format *format_find(const char *name, size_t length);
/* Guesses the format: by the file's first bytes, then by the end of its name; else it is text. */
const struct format *format_guess(const char *name, const char *path);
/* Returns "text, csv, ...", for messages. */
const char *format_list(void);

comparison compare_text, compare_json, compare_npy, compare_matrix_market, compare_bytes;

/* Prints "accel diff: NAME of the run ...: MESSAGE" on stderr. Returns false. */
__attribute__((format(printf, 3, 4))) bool compared_fault(const struct compared *compared,
                                                          enum run run, const char *format, ...);
/* Whether --ignore leaves out this line of text, or this path of JSON. */
bool compared_ignores(const struct compared *compared, const char *line);

/* A whole file in memory; a NUL follows it. */
struct contents {
    char *bytes;
    size_t length;
    bool mapped;
};
/* False with a message on stderr. Else the caller closes it. */
bool contents_open(struct contents *contents, const struct compared *compared, enum run run);
/* Returns the number of the line that holds byte `at`; the first line is 1. */
long long contents_line(const struct contents *contents, size_t at);
void contents_close(struct contents *contents);

#endif
