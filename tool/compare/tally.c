#define _GNU_SOURCE
#include "tally.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct float_format precision_half = {11, -13}, precision_single = {24, -125},
                          precision_double = {53, -1021}, precision_extended = {64, -16381};

/* Relative noise above this, and above half of the digits, is not rounding: it comes from a time or
 * a random number. */
static const double ROUNDING_MAX = 1e-4;
/* A unit of the last digit counts as rounding if this many digits were printed. */
enum { DIGITS_MIN = 4 };

/* ---- How far apart two numbers are ---- */

static long double unit_in_last_place(long double x, const struct float_format *precision)
{
    int exponent = precision->least;
    if (x > 0)
        frexpl(x, &exponent);
    return ldexpl(1, (exponent > precision->least ? exponent : precision->least) - precision->bits);
}

static bool same_value(long double a, long double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool is_finite(const struct number *number)
{
    return isfinite(number->part[0].value) && isfinite(number->part[1].value);
}

static long double modulus(const struct number *number)
{
    return number->complex ? hypotl(number->part[0].value, number->part[1].value)
                           : fabsl(number->part[0].value);
}

struct distance distance_between(const struct number *a, const struct number *b,
                                 const struct float_format *precision)
{
    struct distance distance = {0, 0, 0};
    long double re = a->part[0].value - b->part[0].value;
    long double im = a->part[1].value - b->part[1].value;
    if (same_value(a->part[0].value, b->part[0].value) &&
        same_value(a->part[1].value, b->part[1].value))
        return distance;
    if (!is_finite(a) || !is_finite(b))
        return (struct distance){INFINITY, INFINITY, INFINITY};
    long double larger = fmaxl(modulus(a), modulus(b));
    distance.absolute = a->complex || b->complex ? hypotl(re, im) : fabsl(re);
    distance.relative = distance.absolute / larger;
    distance.ulp = a->integer && b->integer
                       ? distance.absolute
                       : distance.absolute / unit_in_last_place(larger, precision);
    return distance;
}

/* ---- Differences that are allowed ---- */

/* Returns the relative difference of two numbers that have this share of their digits in common. */
static double digits_kept(const struct tally *tally, double share)
{
    return exp2(share * (1 - tally->precision.bits));
}

static bool within_given(const struct tolerances *allowed, const struct distance *distance)
{
    return (allowed->relative >= 0 && distance->relative <= (long double)allowed->relative) ||
           (allowed->absolute >= 0 && distance->absolute <= (long double)allowed->absolute) ||
           (allowed->ulp >= 0 && distance->ulp <= (long double)allowed->ulp);
}

/* Whether two printed numbers may be one number, rounded up and down. The finer one tells how many
 * digits were printed. */
static bool within_last_digit(const struct number_part *a, const struct number_part *b)
{
    if (a->value == b->value)
        return true;
    const struct number_part *finer = a->last < b->last ? a : b;
    if (a->last == b->last && b->digits > a->digits)
        finer = b;
    return finer->digits >= DIGITS_MIN &&
           fabsl(a->value - b->value) <= 1.000001L * powl(10, finer->last);
}

static bool within_last_digits(const struct number *a, const struct number *b)
{
    return within_last_digit(&a->part[0], &b->part[0]) &&
           within_last_digit(&a->part[1], &b->part[1]);
}

/* Whether the order of operations alone may make a real number differ this much: relative to itself
 * or, if numbers have cancelled, to those numbers. They are taken to be as large as an array's
 * largest number; in text, where nothing tells, as 1. */
static bool is_rounding(const struct tally *tally, const struct number *a, const struct number *b,
                        const struct distance *distance)
{
    if (!isfinite(distance->absolute) || (a->integer && b->integer))
        return distance->absolute == 0;
    double half = digits_kept(tally, 0.5);
    long double left = tally->scale > 0 ? tally->scale * half : digits_kept(tally, 0.75);
    return distance->relative <= (long double)fmax(ROUNDING_MAX, half) ||
           distance->absolute <= left;
}

static double relative_allowed(const struct tally *tally)
{
    double noise = tally->allowed->noise * (tally->scale > 0 ? 0 : tally->rounding);
    return fmax(digits_kept(tally, 0.5), noise);
}

/* For arrays: relative to the largest magnitude. */
static double scaled_allowed(const struct tally *tally)
{
    return fmax(digits_kept(tally, 0.75), tally->allowed->noise * tally->rounding);
}

static bool within_default(const struct tally *tally, const struct number *a,
                           const struct number *b, const struct number *noise,
                           const struct distance *distance)
{
    if (a->integer && b->integer)
        return false;
    if (noise) {
        struct distance own = distance_between(a, noise, &tally->precision);
        if (is_rounding(tally, a, noise, &own) &&
            distance->absolute <= (long double)tally->allowed->noise * own.absolute)
            return true;
    }
    return distance->relative <= (long double)relative_allowed(tally) ||
           distance->absolute <= tally->scale * (long double)scaled_allowed(tally) ||
           within_last_digits(a, b);
}

static bool is_given(const struct tolerances *allowed)
{
    return allowed->relative >= 0 || allowed->absolute >= 0 || allowed->ulp >= 0;
}

static bool is_allowed(const struct tally *tally, const struct number *a, const struct number *b,
                       const struct number *noise, const struct distance *distance)
{
    if (!isfinite(distance->absolute))
        return false;
    if (is_given(tally->allowed))
        return within_given(tally->allowed, distance);
    return within_default(tally, a, b, noise, distance);
}

/* Whether two runs without libaccel may differ this much: by rounding, or by what is allowed with
 * libaccel. */
static bool is_repeated(const struct tally *tally, const struct number *a, const struct number *b,
                        const struct distance *distance)
{
    if (is_rounding(tally, a, b, distance))
        return true;
    if (!isfinite(distance->absolute))
        return false;
    return within_given(tally->allowed, distance) ||
           (!(a->integer && b->integer) && within_last_digits(a, b));
}

/* ---- Counting ---- */

void tally_start(struct tally *tally, const struct tolerances *allowed, int show)
{
    *tally = (struct tally){
        .allowed = allowed, .precision = precision_double, .measures_noise = true, .show = show};
    tally->noise.shown = calloc((size_t)show + 1, sizeof *tally->noise.shown);
    tally->with.shown = calloc((size_t)show + 1, sizeof *tally->with.shown);
    if (!tally->noise.shown || !tally->with.shown)
        tally->show = 0;
}

static void free_shown(struct tally_sum *sum)
{
    for (int i = 0; i < sum->shown_count; i++)
        free(sum->shown[i]);
    free(sum->shown);
}

void tally_free(struct tally *tally)
{
    free_shown(&tally->noise);
    free_shown(&tally->with);
}

static struct tally_sum *current_sum(struct tally *tally)
{
    return tally->measures_noise ? &tally->noise : &tally->with;
}

static void add_noise(struct tally *tally, const struct distance *distance)
{
    long double relative =
        tally->scale > 0 ? distance->absolute / tally->scale : distance->relative;
    if (relative <= (long double)fmax(ROUNDING_MAX, digits_kept(tally, 0.5)))
        tally->rounding = fmax(tally->rounding, (double)relative);
}

void tally_widen(struct tally *tally, const struct number *number)
{
    long double size = modulus(number);
    if (isfinite(size))
        tally->scale = fmaxl(tally->scale, size);
}

/* Whether the report has room for one more difference. Counts it if not. */
static bool is_shown(const struct tally *tally, struct tally_sum *sum)
{
    if (sum->shown_count < tally->show)
        return true;
    sum->not_shown++;
    return false;
}

bool tally_number(struct tally *tally, const struct number *a, const struct number *b,
                  const struct number *noise)
{
    struct tally_sum *sum = current_sum(tally);
    sum->numbers++;
    tally->last = distance_between(a, b, &tally->precision);
    if (tally->last.absolute == 0)
        return false;
    sum->differ++;
    sum->worst.absolute = fmaxl(sum->worst.absolute, tally->last.absolute);
    sum->worst.relative = fmaxl(sum->worst.relative, tally->last.relative);
    sum->worst.ulp = fmaxl(sum->worst.ulp, tally->last.ulp);
    if (tally->measures_noise)
        add_noise(tally, &tally->last);
    if (tally->measures_noise ? is_repeated(tally, a, b, &tally->last)
                              : is_allowed(tally, a, b, noise, &tally->last))
        return false;
    sum->beyond++;
    return is_shown(tally, sum);
}

void tally_text(struct tally *tally, const char *format, ...)
{
    struct tally_sum *sum = current_sum(tally);
    char *line = NULL;
    va_list arguments;
    va_start(arguments, format);
    sum->texts++;
    if (is_shown(tally, sum) && vasprintf(&line, format, arguments) >= 0)
        sum->shown[sum->shown_count++] = line;
    va_end(arguments);
}

void tally_same(struct tally *tally, int64_t count)
{
    current_sum(tally)->numbers += count;
}

void tally_show_number(struct tally *tally, const char *place, const char *a, const char *b)
{
    struct tally_sum *sum = current_sum(tally);
    char *line = NULL;
    if (asprintf(&line, "%s: %s, %s %s (absolute %.3Lg, relative %.3Lg, %.3Lg ULP)", place, a,
                 tally_second(tally), b, tally->last.absolute, tally->last.relative,
                 tally->last.ulp) >= 0)
        sum->shown[sum->shown_count++] = line;
}

void tally_show_values(struct tally *tally, const char *place, const struct number *a,
                       const struct number *b)
{
    char x[NUMBER_TEXT_BYTES], y[NUMBER_TEXT_BYTES];
    number_print(x, a, &tally->precision);
    number_print(y, b, &tally->precision);
    tally_show_number(tally, place, x, y);
}

const char *tally_first(const struct tally *tally)
{
    return tally->measures_noise ? "with the usual threads" : "without libaccel";
}

const char *tally_second(const struct tally *tally)
{
    return tally->measures_noise ? "with other threads" : "with libaccel";
}

bool tally_failed(const struct tally *tally)
{
    return tally->with.beyond > 0 || tally->with.texts > 0;
}

bool tally_repeatable(const struct tally *tally)
{
    return tally->noise.beyond == 0 && tally->noise.texts == 0;
}

/* ---- Printing ---- */

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_allowed(FILE *file, const struct tally *tally)
{
    const struct tolerances *allowed = tally->allowed;
    const char *between = "";
    fprintf(file, "  allowed       ");
    if (is_given(allowed)) {
        const struct {
            const char *name;
            double value;
        } given[] = {{"absolute", allowed->absolute},
                     {"relative", allowed->relative},
                     {"ULP", allowed->ulp}};
        for (size_t i = 0; i < sizeof given / sizeof *given; i++)
            if (given[i].value >= 0) {
                fprintf(file, "%s%s %.3g", between, given[i].name, given[i].value);
                between = ", or ";
            }
        fprintf(file, "\n");
        return;
    }
    fprintf(file, "relative %.3g", relative_allowed(tally));
    if (tally->scale > 0)
        fprintf(file, ", or absolute %.3Lg (%.3g of the largest number)",
                tally->scale * (long double)scaled_allowed(tally), scaled_allowed(tally));
    fprintf(file, ", or %.3g times the number's own noise\n", allowed->noise);
}

static void print_measure(FILE *file, const char *name, long double with, long double noise)
{
    fprintf(file, "  %-10s  %14.4Lg  %14.4Lg\n", name, with, noise);
}

static void print_counts(FILE *file, const struct tally_sum *sum, const char *than)
{
    fprintf(file, "%lld number%s, %lld differ%s, %lld by more than %s", (long long)sum->numbers,
            plural(sum->numbers), (long long)sum->differ, sum->differ == 1 ? "s" : "",
            (long long)sum->beyond, than);
    if (sum->texts)
        fprintf(file, "; %lld difference%s of text or structure", (long long)sum->texts,
                plural(sum->texts));
    fprintf(file, "\n");
}

static void print_shown(FILE *file, const struct tally_sum *sum)
{
    for (int i = 0; i < sum->shown_count; i++)
        fprintf(file, "  %s\n", sum->shown[i]);
    if (sum->not_shown)
        fprintf(file, "  and %lld more\n", (long long)sum->not_shown);
}

void tally_print(FILE *file, const struct tally *tally, const char *name, const char *format)
{
    const struct tally_sum *with = &tally->with, *noise = &tally->noise;
    if (!tally_repeatable(tally)) {
        fprintf(file, "\n%s (%s): NOT REPEATABLE without libaccel; ", name, format);
        print_counts(file, noise, "rounding");
        print_shown(file, noise);
        fprintf(file,
                "  --ignore leaves out lines of text and members of JSON, --rtol and --atol allow "
                "more\n");
        return;
    }
    fprintf(file, "\n%s (%s): %s; ", name, format, tally_failed(tally) ? "DIFFERS" : "ok");
    print_counts(file, with, "allowed");
    print_shown(file, with);
    if (with->differ || noise->differ) {
        fprintf(file, "  worst       with libaccel     noise floor\n");
        print_measure(file, "absolute", with->worst.absolute, noise->worst.absolute);
        print_measure(file, "relative", with->worst.relative, noise->worst.relative);
        print_measure(file, "ULP", with->worst.ulp, noise->worst.ulp);
        print_allowed(file, tally);
    }
}

void number_print(char text[NUMBER_TEXT_BYTES], const struct number *number,
                  const struct float_format *precision)
{
    /* Digits that tell a number from its neighbours */
    const int telling = 2 + (int)(0.30103 * precision->bits);
    int digits = number->integer ? 21 : telling;
    if (number->complex)
        snprintf(text, NUMBER_TEXT_BYTES, "%.*Lg%+.*Lgi", digits, number->part[0].value, digits,
                 number->part[1].value);
    else
        snprintf(text, NUMBER_TEXT_BYTES, "%.*Lg", digits, number->part[0].value);
}
