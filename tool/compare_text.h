/*
 * Two or three lines of text, number by number.
 */
#ifndef ACCEL_TOOL_COMPARE_TEXT_H
#define ACCEL_TOOL_COMPARE_TEXT_H

#include "tally.h"

/* A line, and the numbers in it, which are allocated. Starts as all zero. */
struct text_line {
    const char *text; /* somebody else's; a NUL ends it */
    size_t length;
    struct number *number;
    size_t numbers, size;
};

/* Finds the numbers. False without memory. */
bool text_line_scan(struct text_line *line, const char *text, size_t length);
void text_line_free(struct text_line *line);

/* Counts what differs between a and b; noise: the line of the second run without libaccel, NULL: none. place: what messages
 * begin with. Text is compared exactly, but for spaces beside a number. */
void text_line_compare(struct tally *tally, const struct text_line *a, const struct text_line *b,
                       const struct text_line *noise, const char *place);

#endif
