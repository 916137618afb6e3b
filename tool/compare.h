/*
 * Comparing what three runs of a program have written: each format is read as the numbers that it holds, and whatever lies
 * between them.
 */
#ifndef ACCEL_TOOL_COMPARE_H
#define ACCEL_TOOL_COMPARE_H

#include <regex.h>

#include "tally.h"

/* Two without libaccel, of which the second has another number of BLAS threads; then with it. */
enum run { RUN_PLAIN, RUN_THREADS, RUN_SHIM, RUNS };

/* For messages: "the run with libaccel" ... */
extern const char *const run_names[RUNS];

struct compared {
    const char *name; /* as the user has it */
    const char *path[RUNS];
    const regex_t *ignored; /* lines of text, paths of JSON */
    size_t ignored_count;
};

/* Goes through the runs' files, and counts. False where one cannot be read, or is not what it should be: that is said on
 * stderr. */
typedef bool comparison(struct tally *tally, const struct compared *compared);

struct format {
    const char *name;
    comparison *compare;
};

/* By its name; NULL: there is no such format. */
const struct format *format_find(const char *name, size_t length);
/* By a file's first bytes, else by the end of its name, else text. */
const struct format *format_guess(const char *name, const char *path);
/* "text, csv, ...": for messages. */
const char *format_list(void);

comparison compare_text, compare_json, compare_npy, compare_matrix_market, compare_bytes;

/* For the formats: says "accel diff: NAME of the run ...: what is wrong", and returns false. */
__attribute__((format(printf, 3, 4))) bool compared_fault(const struct compared *compared,
                                                          enum run run, const char *format, ...);
/* Whether a line, or a path, is one of those to be left out. */
bool compared_ignores(const struct compared *compared, const char *line);

/* A whole file in memory, with a NUL behind it. */
struct contents {
    char *bytes;
    size_t length;
    bool mapped;
};
bool contents_open(struct contents *contents, const struct compared *compared, enum run run);
/* The line that a byte is in, from 1. */
long long contents_line(const struct contents *contents, size_t at);
void contents_close(struct contents *contents);

#endif
