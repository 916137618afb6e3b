/*
 * Text in a fixed buffer: no malloc, no stdio, no locale. Text that does not fit is cut. Not
 * thread-safe.
 *
 * base/ has text, files, time, threads and forks; all other folders stand on it. It includes
 * nothing of them.
 */
#ifndef ACCEL_TEXT_H
#define ACCEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes ASCII letters only, in every locale. */
static inline char text_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline char text_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

struct accel_text {
    size_t length;
    size_t size;
    char *at; /* no 0 at its end before text_end() */
};

void text_start(struct accel_text *text, char *buffer, size_t size);
void text_char(struct accel_text *text, char c);
void text_string(struct accel_text *text, const char *s);
/* Appends a 0; in a full buffer it replaces the last character. False if text was cut. */
bool text_end(struct accel_text *text);
/* Pads with spaces to |width|: on the left if width > 0, else on the right. */
void text_padded(struct accel_text *text, const char *s, int width);
void text_integer(struct accel_text *text, int64_t value);
/* Four significant digits, at most six decimals, no exponent; "0" for smaller values and for
 * NaN. */
void text_decimal(struct accel_text *text, double value);
/* With so many decimals. The value fits into int64_t times 10^decimals. */
void text_fixed(struct accel_text *text, double value, int decimals);
/* The day of this second since 1970, UTC: "2026-11-20". Reads no file of a time zone, as
 * gmtime_r(3) does. */
void text_date(struct accel_text *text, int64_t seconds);
/* A JSON string: in quotes, escaped, with `?` for each byte that is no UTF-8. */
void text_json_string(struct accel_text *text, const char *s);

#endif
