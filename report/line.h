/*
 * One line of the log: the same fields as text (key=value) or as JSON. No malloc, no stdio. Not
 * thread-safe.
 */
#ifndef ACCEL_LINE_H
#define ACCEL_LINE_H

#include "base/text/text.h"

/* Of the longest line of JSON, with all operands, a fourth is used. */
enum { LINE_BYTES = 4096 };

struct report_line {
    struct accel_text text;
    bool json;
    bool first; /* the next field is the first of its object */
    char buffer[LINE_BYTES];
};

/* Starts an empty line. */
void line_start(struct report_line *line, bool json);

/* A field that does not fit is left out as a whole. */
void line_string(struct report_line *line, const char *name, const char *value);
/* The same of a value that may have blanks or control characters: text has it in quotes then, as
 * JSON has it. */
void line_words(struct report_line *line, const char *name, const char *value);
void line_integer(struct report_line *line, const char *name, int64_t value);
void line_decimal(struct report_line *line, const char *name, double value);
/* Seconds of a clock with six decimals, from nanoseconds. */
void line_seconds(struct report_line *line, const char *name, int64_t nanoseconds);

/* Lists of objects, in JSON alone: line_list(), then for each object line_object(), fields,
 * line_object_end(); line_list_end(). */
void line_list(struct report_line *line, const char *name);
void line_object(struct report_line *line);
void line_object_end(struct report_line *line);
void line_list_end(struct report_line *line);

/* Ends the line, which then has a newline and no 0: line->text. */
void line_end(struct report_line *line);

#endif
