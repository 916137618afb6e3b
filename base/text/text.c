#include "text.h"

#include <string.h>

#include "utf8.h"

void text_start(struct accel_text *text, char *buffer, size_t size)
{
    text->at = buffer;
    text->size = size;
    text->length = 0;
}

void text_char(struct accel_text *text, char c)
{
    if (text->length < text->size)
        text->at[text->length++] = c;
}

void text_string(struct accel_text *text, const char *s)
{
    while (*s)
        text_char(text, *s++);
}

bool text_end(struct accel_text *text)
{
    const bool fits = text->length < text->size;
    if (fits)
        text->at[text->length] = 0;
    else if (text->size)
        text->at[text->size - 1] = 0;
    return fits;
}

void text_padded(struct accel_text *text, const char *s, int width)
{
    int length = (int)strlen(s);
    for (int i = length; i < width; i++)
        text_char(text, ' ');
    text_string(text, s);
    for (int i = length; i < -width; i++)
        text_char(text, ' ');
}

static void put_digits(struct accel_text *text, uint64_t value, int at_least)
{
    char digits[24];
    int n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value || n < at_least);
    while (n)
        text_char(text, digits[--n]);
}

void text_integer(struct accel_text *text, int64_t value)
{
    if (value < 0)
        text_char(text, '-');
    put_digits(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
}

void text_decimal(struct accel_text *text, double value)
{
    if (value < 0) {
        text_char(text, '-');
        value = -value;
    }
    if (!(value >= 5e-7)) {
        text_char(text, '0');
        return;
    }
    if (value > 1e15) {
        put_digits(text, value < 1e19 ? (uint64_t)value : UINT64_MAX, 1);
        return;
    }
    int decimals = 0;
    uint64_t scale = 1;
    while (decimals < 6 && value * (double)scale < 999.95) {
        decimals++;
        scale *= 10;
    }
    uint64_t fixed = (uint64_t)(value * (double)scale + 0.5);
    while (decimals && fixed % 10 == 0) {
        decimals--;
        fixed /= 10;
        scale /= 10;
    }
    put_digits(text, fixed / scale, 1);
    if (decimals) {
        text_char(text, '.');
        put_digits(text, fixed % scale, decimals);
    }
}

void text_fixed(struct accel_text *text, double value, int decimals)
{
    int64_t scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    const int64_t whole = (int64_t)(value * (double)scale + (value < 0 ? -0.5 : 0.5));
    const int64_t size = whole < 0 ? -whole : whole;
    if (whole < 0)
        text_char(text, '-');
    text_integer(text, size / scale);
    text_char(text, '.');
    for (int64_t digit = scale / 10; digit > 0; digit /= 10)
        text_char(text, (char)('0' + size / digit % 10));
}

/* Years begin in March, so that the day that a leap year adds is their last. 400 years have 146097
 * days; the first day here is 1 March of the year 0, which is 719468 days before 1970. Source: H.
 * Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
void text_date(struct accel_text *text, int64_t seconds)
{
    const int64_t days = (seconds > 0 ? seconds : 0) / 86400 + 719468;
    const int64_t in_era = days % 146097;
    const int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    const int64_t day = in_era - (365 * year + year / 4 - year / 100);
    const int64_t march = (5 * day + 2) / 153, month = march < 10 ? march + 3 : march - 9;
    put_digits(text, (uint64_t)(days / 146097 * 400 + year + (month <= 2)), 4);
    text_char(text, '-');
    put_digits(text, (uint64_t)month, 2);
    text_char(text, '-');
    put_digits(text, (uint64_t)(day - (153 * march + 2) / 5 + 1), 2);
}

void text_json_string(struct accel_text *text, const char *s)
{
    static const char hex[] = "0123456789abcdef";
    text_char(text, '"');
    for (int length = 0; *s; s += length) {
        const unsigned char c = (unsigned char)*s;
        length = 1;
        if (c == '"' || c == '\\') {
            text_char(text, '\\');
            text_char(text, (char)c);
        } else if (c < 0x20) {
            text_string(text, "\\u00");
            text_char(text, hex[c >> 4]);
            text_char(text, hex[c & 15]);
        } else if (c < 0x80) {
            text_char(text, (char)c);
        } else if ((length = utf8_length(s)) > 0) {
            for (int i = 0; i < length; i++)
                text_char(text, s[i]);
        } else {
            text_char(text, '?');
            length = 1;
        }
    }
    text_char(text, '"');
}
