/*
 * Compares two lines of text, number by number.
 */
#ifndef ACCEL_TOOL_COMPARE_TEXT_H
#define ACCEL_TOOL_COMPARE_TEXT_H

#include "tally.h"

/* A line and its numbers. Starts as all zero. */
struct text_line {
    const char *text; /* borrowed; its newline or a NUL ends it */
    size_t length;
    struct number *number; /* allocated */
    size_t numbers, size;
};

/* Finds the numbers of a text, behind which is a NUL or, if it ends with a newline, anything.
 * False if memory runs out. */
bool text_line_scan(struct text_line *line, const char *text, size_t length);
void text_line_free(struct text_line *line);

/* Counts the differences of a and b. noise: the same line of the second run without libaccel, or
 * NULL. place: begins the messages. Text must be the same, except for spaces beside a number. */
void text_line_compare(struct tally *tally, const struct text_line *a, const struct text_line *b,
                       const struct text_line *noise, const char *place);

#endif
