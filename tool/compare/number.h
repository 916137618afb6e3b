/*
 * Numbers within text, as programs print them: 12, -0.5, .5, 1e-3, 1.0D+00, 1.0-101 (Fortran's
 * exponents of three digits), 0x1.8p+3, inf, nan, 1+2j, 3 - 4i. A part of a word or of a dotted
 * chain (x1, 1.2.3, v2) is text; so is the sign in 2024-01-01. A unit may follow directly (1.5ms).
 * Pure functions: thread-safe.
 */
#ifndef ACCEL_TOOL_NUMBER_H
#define ACCEL_TOOL_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

/* A longer number is text, which is compared exactly. */
enum { NUMBER_LENGTH_MAX = 1024 };

struct number_part {
    long double value;
    int digits; /* significant digits that were printed; 0: it was not printed in decimal */
    int last;   /* the power of ten of the last digit */
};

struct number {
    size_t start, length; /* its place in the text */
    bool integer;         /* it has neither a point nor an exponent */
    bool complex;
    struct number_part part[2]; /* real, imaginary */
};

/* Finds the first number that begins at `from` or later. The text must end with a newline, or a NUL
 * must follow it. False if there is none. */
bool number_find(const char *text, size_t length, size_t from, struct number *number);

/* Whether the whole text is one number, which is read. text[length] must be a NUL. */
bool number_is(const char *text, size_t length, struct number *number);

/* Whether two integers, of any length, are the same: compares their digits, without leading
 * zeros. */
bool number_same_integer(const char *a, size_t a_length, const char *b, size_t b_length);

/* Changes y's value if two long integers have the same value but different digits. The texts begin
 * with the numbers. */
void number_tell_apart(const struct number *x, const char *x_text, struct number *y,
                       const char *y_text);

#endif
