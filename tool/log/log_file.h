/*
 * Reads logs of libaccel (docs/log.md), text and JSON, one file after the other. Lines of other
 * programs between them, and messages, are passed over, also what stands before a line of ours
 * because it had no newline. Not thread-safe, except for different readers.
 */
#ifndef ACCEL_TOOL_LOG_FILE_H
#define ACCEL_TOOL_LOG_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* A field as text: a string's characters, or the JSON of any other value. */
struct log_field {
    const char *name, *value;
};

/* A line: a decision, or with `event` something else that the log tells. Its strings are valid
 * until the next one is read. */
struct log_line {
    const char *path;              /* of its file, as it was given */
    int64_t number;                /* in the file; the first is 1 */
    const char *event;             /* NULL: a decision, which has `sym`, `ran` and `why` */
    const struct log_field *field; /* all of them, in the line's order, also unknown ones */
    int fields;
};

/* Returns a field's value, NULL if the line lacks it; as a number, `otherwise` if it lacks it or
 * has no number there. */
const char *log_string(const struct log_line *line, const char *name);
double log_number(const struct log_line *line, const char *name, double otherwise);

/* What a file had. */
struct log_counts {
    int64_t decisions, events, others; /* others: lines that are not ours, and messages */
    int64_t damaged, first_damaged; /* lines that are cut or unreadable; the number of the first */
    int64_t later, first_later; /* JSON of a later version of the log; the number of the first */
    int error;                  /* errno, if the file could not be read to its end */
};

struct log_reader;

/* Opens a file; "-" is stdin. NULL with errno. log_close() frees the reader. */
struct log_reader *log_open(const char *path);
/* Reads the next line of ours. False at the end. */
bool log_next(struct log_reader *reader, struct log_line *line);
/* What there was up to here. */
const struct log_counts *log_counts(const struct log_reader *reader);
void log_close(struct log_reader *reader);

/* Reads all lines of several files, and tells take() of each. Prints a message "COMMAND: FILE: ..."
 * on stderr for each file that cannot be read, has no line of ours, or has damaged lines or later
 * ones. Returns how many files could be read and had lines of ours; *sum gets the sums over all of
 * them. */
int log_read_all(const char *command, char *const *paths, int count,
                 void (*take)(void *context, const struct log_line *line), void *context,
                 struct log_counts *sum);

#endif
