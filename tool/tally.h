/*
 * What a comparison counts: numbers of two runs, how far they are apart, and whether that is more than allowed. Each output is
 * gone through twice: the two runs without libaccel, which gives the noise floor, then the first of them and the one with
 * libaccel. For one thread.
 */
#ifndef ACCEL_TOOL_TALLY_H
#define ACCEL_TOOL_TALLY_H

#include <stdint.h>

#include "number.h"

/* What is allowed. Negative: not given; where one is given, those that are given alone count, and any of them is enough. */
struct tolerances {
    double relative, absolute, ulp;
    double noise; /* by default, how many times the noise floor is allowed */
};

/* A format of numbers: the bits of the significand, and the exponent, by frexp(), of the least normal number. */
struct precision {
    int bits, least;
};

extern const struct precision precision_half, precision_single, precision_double,
    precision_extended;

struct distance {
    long double absolute;
    long double relative; /* to the larger of the two */
    long double
        ulp; /* units in the last place of the larger of the two; of integers, the difference */
};

/* Of complex numbers by their moduli. Two NaNs are no distance apart, a NaN or an infinity and anything else an
 * infinite one. */
struct distance distance_between(const struct number *a, const struct number *b,
                                 const struct precision *precision);

/* How two runs compare. */
struct tally_sum {
    int64_t numbers, differ;
    int64_t
        beyond; /* numbers that differ by more than allowed; without libaccel, by more than rounding */
    int64_t texts;         /* that differ: text between numbers, structure */
    struct distance worst; /* of each measure */
    char **shown;          /* lines that say what is beyond, and which texts; allocated */
    int shown_count;
    int64_t not_shown;
};

struct tally {
    const struct tolerances *allowed;
    struct precision precision;
    long double scale;   /* of an array, its largest magnitude; 0: numbers of many kinds */
    bool measures_noise; /* in the first of the two comparisons */
    struct tally_sum noise, with;
    double rounding;      /* the largest relative noise that may be rounding */
    int show;             /* lines of each comparison */
    struct distance last; /* that tally_number() has seen */
};

/* show: how many differences of each comparison are kept for printing. */
void tally_start(struct tally *tally, const struct tolerances *allowed, int show);
void tally_free(struct tally *tally);

/* Two numbers of the same place; noise: that of the second run without libaccel, NULL where it has none. True where the
 * caller is to tell what differs by tally_show_number(). */
bool tally_number(struct tally *tally, const struct number *a, const struct number *b,
                  const struct number *noise);
void tally_show_number(struct tally *tally, const char *place, const char *a, const char *b);

/* The same of numbers without a text, in the tally's precision. */
void tally_show_values(struct tally *tally, const char *place, const struct number *a,
                       const struct number *b);

/* Anything else that differs. True where tally_show() is wanted. */
bool tally_text(struct tally *tally);
__attribute__((format(printf, 2, 3))) void tally_show(struct tally *tally, const char *format, ...);

/* For these lines: how the two runs were made, as in "1, with libaccel 2". */
const char *tally_first(const struct tally *tally);
const char *tally_second(const struct tally *tally);

/* Numbers that are the same bit for bit. */
void tally_same(struct tally *tally, int64_t count);

/* More than allowed differs with libaccel. */
bool tally_failed(const struct tally *tally);

/* The runs without libaccel differ by rounding alone: otherwise nothing can be said of the one with it. */
bool tally_repeatable(const struct tally *tally);

/* The result: counts, the worst beside the noise floor, what is allowed, and the differences that were kept. */
void tally_print(const struct tally *tally, const char *name, const char *format);

/* A part of a number as it would be read back the same. */
enum { NUMBER_TEXT_BYTES = 128 };
void number_print(char text[NUMBER_TEXT_BYTES], const struct number *number,
                  const struct precision *precision);

#endif
