#include "number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A real number that the scanner has read. */
struct scanned_number {
    size_t end;
    bool integer;
    bool word; /* nan or inf: no letter may follow */
    struct number_part part;
};

/* The C library's own depend on the locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_sign(char c)
{
    return c == '+' || c == '-';
}

static bool is_word(char c)
{
    return is_digit(c) || is_letter(c) || c == '_';
}

static size_t skip_digits(const char *text, size_t at)
{
    while (is_digit(text[at]))
        at++;
    return at;
}

/* Copies the number: strtold() knows no D, and would read on behind its end. */
static long double value_of(const char *mantissa, size_t length, const char *exponent,
                            size_t exponent_length)
{
    char copy[NUMBER_LENGTH_MAX + 8];
    memcpy(copy, mantissa, length);
    if (exponent_length) {
        copy[length++] = 'e';
        memcpy(copy + length, exponent, exponent_length);
        length += exponent_length;
    }
    copy[length] = 0;
    return strtold(copy, NULL);
}

static bool scan_special(const char *text, size_t at, struct scanned_number *scan)
{
    static const struct {
        const char *name;
        long double value;
    } words[] = {{"infinity", INFINITY}, {"inf", INFINITY}, {"nan", NAN}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncasecmp(text + at, words[i].name, strlen(words[i].name)) == 0) {
            *scan = (struct scanned_number){
                at + strlen(words[i].name), false, true, {words[i].value, 0, 0}};
            return true;
        }
    return false;
}

static bool scan_hexadecimal(const char *text, size_t at, struct scanned_number *scan)
{
    size_t end = at + 2, digits = 0;
    *scan = (struct scanned_number){.integer = true};
    while (is_hex(text[end]))
        end++, digits++;
    if (text[end] == '.' && (digits || is_hex(text[end + 1]))) {
        scan->integer = false;
        for (end++; is_hex(text[end]); end++)
            digits++;
    }
    if (!digits)
        return false;
    if (text[end] == 'p' || text[end] == 'P') {
        size_t exponent = end + 1 + is_sign(text[end + 1]);
        if (is_digit(text[exponent])) {
            scan->integer = false;
            end = skip_digits(text, exponent);
        }
    }
    scan->end = end;
    if (end - at > NUMBER_LENGTH_MAX)
        return false;
    scan->part.value = value_of(text + at, end - at, NULL, 0);
    return true;
}

/* Returns where the digits of the exponent at `at` begin; 0 if there is no exponent. *start: its
 * sign or first digit. */
static size_t find_exponent(const char *text, size_t at, bool has_point, size_t *start)
{
    char c = text[at];
    bool fortran = c == 'd' || c == 'D' || c == 'q' || c == 'Q';
    if (c == 'e' || c == 'E' || (fortran && has_point)) {
        *start = at + 1;
        size_t digits = at + 1 + is_sign(text[at + 1]);
        return is_digit(text[digits]) ? digits : 0;
    }
    /* Fortran leaves the letter out if the exponent needs three digits. */
    if (has_point && is_sign(c) && is_digit(text[at + 1]) && is_digit(text[at + 2]) &&
        is_digit(text[at + 3]) && !is_word(text[at + 4]) && text[at + 4] != '.') {
        *start = at;
        return at + 1;
    }
    return 0;
}

static bool scan_decimal(const char *text, size_t at, struct scanned_number *scan)
{
    size_t end = at, digits = 0, fraction = 0, significant = 0, exponent = 0;
    bool point = false;
    *scan = (struct scanned_number){.integer = true};
    for (;; end++) {
        if (is_digit(text[end])) {
            digits++;
            fraction += point;
            significant += significant || text[end] != '0';
        } else if (text[end] == '.' && !point) {
            point = true;
        } else {
            break;
        }
    }
    /* A chain of numbers and points is a version, an address, a range. */
    if (!digits || (text[end] == '.' && is_digit(text[end + 1])))
        return false;
    size_t mantissa = end - at, digit = find_exponent(text, end, point, &exponent);
    if (digit)
        end = skip_digits(text, digit);
    if (end - at > NUMBER_LENGTH_MAX)
        return false;
    scan->end = end;
    scan->integer = !point && !digit;
    scan->part.value = value_of(text + at, mantissa, text + exponent, digit ? end - exponent : 0);
    scan->part.digits = (int)significant;
    long power = digit ? strtol(text + exponent, NULL, 10) : 0;
    power = power > 100000 ? 100000 : power < -100000 ? -100000 : power;
    scan->part.last = (int)(power - (long)fraction);
    return true;
}

/* Reads a number without its sign. */
static bool scan_real(const char *text, size_t at, struct scanned_number *scan)
{
    if (text[at] == '0' && (text[at + 1] == 'x' || text[at + 1] == 'X') &&
        scan_hexadecimal(text, at, scan))
        return true;
    if (is_digit(text[at]) || (text[at] == '.' && is_digit(text[at + 1])))
        return scan_decimal(text, at, scan);
    return scan_special(text, at, scan);
}

/* Returns the bytes of the imaginary unit at `at`; 0 if there is none. */
static size_t imaginary_unit(const char *text, size_t at)
{
    if (text[at] == 'i' && text[at + 1] == 'm' && !is_word(text[at + 2]))
        return 2;
    return (text[at] == 'i' || text[at] == 'j') && !is_word(text[at + 1]) ? 1 : 0;
}

static size_t skip_spaces(const char *text, size_t at)
{
    while (text[at] == ' ')
        at++;
    return at;
}

/* Reads on behind a real number what makes it a complex one. */
static void scan_imaginary(const char *text, struct scanned_number *first, struct number *number)
{
    struct scanned_number second;
    size_t unit = imaginary_unit(text, first->end);
    number->part[0] = first->part;
    if (unit) {
        number->complex = true;
        number->part[1] = first->part;
        number->part[0] = (struct number_part){0, 0, 0};
        first->end += unit;
        return;
    }
    size_t sign = skip_spaces(text, first->end);
    if (!is_sign(text[sign]) || !scan_real(text, skip_spaces(text, sign + 1), &second) ||
        !(unit = imaginary_unit(text, second.end)))
        return;
    number->complex = true;
    number->part[1] = second.part;
    if (text[sign] == '-')
        number->part[1].value = -second.part.value;
    first->end = second.end + unit;
    first->word = false;
}

/* Reads the number that begins exactly at `at`. */
static bool scan_number(const char *text, size_t at, struct number *number)
{
    struct scanned_number scan;
    bool sign = is_sign(text[at]);
    if (!scan_real(text, at + sign, &scan))
        return false;
    if (sign && text[at] == '-')
        scan.part.value = -scan.part.value;
    *number = (struct number){.start = at};
    scan_imaginary(text, &scan, number);
    if (scan.word && (is_word(text[scan.end]) || text[scan.end] == '.') && !number->complex)
        return false;
    number->length = scan.end - at;
    number->integer = scan.integer && !number->complex;
    return true;
}

bool number_find(const char *text, size_t length, size_t from, struct number *number)
{
    size_t at = from;
    while (at < length) {
        char c = text[at], before = at ? text[at - 1] : ' ';
        bool within = is_word(before) || before == '.';
        if (is_sign(c)) {
            if (!within && before != ')' && before != ']' && scan_number(text, at, number))
                return true;
            at++;
        } else if (is_word(c) || c == '.') {
            if (!within && scan_number(text, at, number))
                return true;
            while (at < length && (is_word(text[at]) || text[at] == '.'))
                at++;
        } else {
            at++;
        }
    }
    return false;
}

bool number_is(const char *text, size_t length, struct number *number)
{
    return length > 0 && scan_number(text, 0, number) && number->length == length;
}

static const char *skip_zeros(const char *text, const char *end, bool *negative)
{
    *negative = text < end && *text == '-';
    if (text < end && is_sign(*text))
        text++;
    while (text < end - 1 && *text == '0' && is_digit(text[1]))
        text++;
    return text;
}

bool number_same_integer(const char *a, size_t a_length, const char *b, size_t b_length)
{
    bool a_negative, b_negative;
    const char *a_end = a + a_length, *b_end = b + b_length;
    a = skip_zeros(a, a_end, &a_negative);
    b = skip_zeros(b, b_end, &b_negative);
    if (a_end - a == 1 && *a == '0' && b_end - b == 1 && *b == '0')
        return true;
    return a_negative == b_negative && a_end - a == b_end - b &&
           strncasecmp(a, b, (size_t)(a_end - a)) == 0;
}

void number_tell_apart(const struct number *x, const char *x_text, struct number *y,
                       const char *y_text)
{
    if (x->integer && y->integer && x->part[0].value == y->part[0].value &&
        fabsl(y->part[0].value) >= 0x1p63L &&
        !number_same_integer(x_text, x->length, y_text, y->length))
        y->part[0].value = nextafterl(y->part[0].value, INFINITY);
}
