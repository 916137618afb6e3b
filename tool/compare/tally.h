/*
 * Counts the numbers of two runs that differ, how far they are apart, and whether that is more than
 * allowed. Each output is compared twice: the two runs without libaccel give the noise floor; then
 * the first of them is compared with the run with libaccel. Not thread-safe.
 */
#ifndef ACCEL_TOOL_TALLY_H
#define ACCEL_TOOL_TALLY_H

#include <stdint.h>
#include <stdio.h>

#include "number.h"

/* The differences that are allowed; negative: not given. If any is given, the given ones alone
 * count; a number must meet one of them. */
struct tolerances {
    double relative, absolute, ulp;
    double noise; /* by default, how many times the noise floor is allowed */
};

/* A format of numbers. */
struct float_format {
    int bits;  /* of the significand */
    int least; /* exponent of the least normal number, by frexp() */
};

extern const struct float_format precision_half, precision_single, precision_double,
    precision_extended;

struct distance {
    long double absolute;
    long double relative; /* to the larger number */
    long double ulp; /* units in the last place of the larger number; of integers, the difference */
};

/* Returns how far apart two numbers are; complex ones by moduli. Two NaNs are the same; a NaN or an
 * infinity is infinitely far from anything else. */
struct distance distance_between(const struct number *a, const struct number *b,
                                 const struct float_format *precision);

/* The result of one comparison. */
struct tally_sum {
    int64_t numbers, differ;
    /* Numbers that differ by more than allowed; without libaccel, by more than rounding */
    int64_t beyond;
    int64_t texts;         /* other differences: text between numbers, structure */
    struct distance worst; /* of each measure */
    char **shown;          /* lines for the report, on what is beyond and on texts; allocated */
    int shown_count;
    int64_t not_shown;
};

struct tally {
    const struct tolerances *allowed;
    struct float_format precision;
    long double scale;   /* the largest magnitude of an array; 0: the numbers are of many kinds */
    bool measures_noise; /* true in the first comparison */
    struct tally_sum noise, with;
    double rounding;      /* the largest relative noise that may be rounding */
    int show;             /* lines kept of each comparison */
    struct distance last; /* of the last call of tally_number() */
};

/* show: how many differences of each comparison are kept for the report. */
void tally_start(struct tally *tally, const struct tolerances *allowed, int show);
void tally_free(struct tally *tally);

/* Raises the scale to the number's magnitude, if that is finite. */
void tally_widen(struct tally *tally, const struct number *number);

/* Compares two numbers of one place. noise: that of the second run without libaccel, or NULL. True
 * if the caller must call tally_show_number(). */
bool tally_number(struct tally *tally, const struct number *a, const struct number *b,
                  const struct number *noise);
void tally_show_number(struct tally *tally, const char *place, const char *a, const char *b);

/* Like tally_show_number(), for numbers without a text: prints them in the tally's precision. */
void tally_show_values(struct tally *tally, const char *place, const struct number *a,
                       const struct number *b);

/* Counts a difference that is none of numbers, and shows this line of it. */
__attribute__((format(printf, 2, 3))) void tally_text(struct tally *tally, const char *format, ...);

/* Return how the two runs were made, for such lines: "1, with libaccel 2". */
const char *tally_first(const struct tally *tally);
const char *tally_second(const struct tally *tally);

/* Counts numbers that are the same bit for bit. */
void tally_same(struct tally *tally, int64_t count);

/* Whether the run with libaccel differs by more than allowed. */
bool tally_failed(const struct tally *tally);

/* Whether the runs without libaccel differ by rounding alone; if not, nothing can be said of the
 * one with it. */
bool tally_repeatable(const struct tally *tally);

/* Prints the counts, the worst beside the noise floor, what is allowed, and the kept
 * differences. */
void tally_print(FILE *file, const struct tally *tally, const char *name, const char *format);

/* Prints a number with enough digits to be read back the same. */
enum { NUMBER_TEXT_BYTES = 128 };
void number_print(char text[NUMBER_TEXT_BYTES], const struct number *number,
                  const struct float_format *precision);

#endif
