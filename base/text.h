/*
 * Text built in a fixed buffer: no malloc, no stdio, no locale. What does not fit is cut. Not
 * shared between threads.
 *
 * Of base/, which all else stands on: text, files, time, threads, forks. It includes nothing of the other folders.
 */
#ifndef ACCEL_TEXT_H
#define ACCEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of ASCII's letters alone, in every locale. */
static inline char text_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

struct accel_text {
    size_t length;
    size_t size;
    char *at; /* without a 0 at its end before text_end() */
};

void text_start(struct accel_text *text, char *buffer, size_t size);
void text_char(struct accel_text *text, char c);
void text_string(struct accel_text *text, const char *s);
/* Puts a 0 behind it; where the buffer is full, in the place of the last character. False: something is cut. */
bool text_end(struct accel_text *text);
/* Padded with spaces to `width`: on the left where it is positive, else on the right. */
void text_padded(struct accel_text *text, const char *s, int width);
void text_integer(struct accel_text *text, int64_t value);
/* Four significant digits, at most six decimals, no exponent; "0" for what is below that, and for
 * NaN. */
void text_decimal(struct accel_text *text, double value);
/* A string with the characters escaped that JSON wants escaped, in quotes. */
void text_json_string(struct accel_text *text, const char *s);

#endif
