/*
 * One case: a few calls of LAPACK routines, each described, guarded and judged. A case's name is
 * that of the routine that it is about; others may come before it.
 */
#ifndef ACCEL_TEST_LAPACK_TEST_H
#define ACCEL_TEST_LAPACK_TEST_H

#include <stdio.h>

#include "arrays.h"
#include "library.h"
#include "sources.h"

struct options {
    struct library library;
    unsigned long seed;
    int count;          /* cases of each routine and type */
    int max_size;       /* of m, n */
    const char *wanted; /* routines: a pattern as bash's extglob has them */
    const char *kinds;  /* of matrices: the same */
    const char *faults; /* what the library gets wrong: see cases.h */
    FILE *report;       /* a line for each call; NULL: none */
};

struct test {
    const struct options *options;
    enum accel_dtype dtype;
    struct random random;
    enum kind kind;
    char name[24];   /* of the case, with its type */
    char number[32]; /* what makes it again: -s */
    int calls, wrong;
    uint64_t infos; /* a digest of all of them */
    /* The last call, until it is judged. */
    struct {
        bool pending;
        char text[512];
        int64_t info, expected;
        char touched[64];
        uint64_t digest;
    } call;
};

/* What INFO must be, beside a number; NO_INFO: laswp and lacpy. */
#define ANY_INFO      INT64_MIN
#define POSITIVE_INFO INT64_MAX

/*
 * Calls a routine, by its name without type as it is for real types (orgqr, syev), and returns
 * INFO, 0 where it has none. In spec, each letter is an argument or two of the routine's, in order:
 *   c  int         a flag             i  int64_t      an INTEGER
 *   r  double      a real number of the type
 *   M  struct array *, enum region    a matrix and its leading dimension
 *   V  struct array *, enum region    an array without one
 *   W  int64_t     workspace of the type and its length: the least there may be; -1: it is not
 *                  documented. A call with -1 comes first and says what is best; what is passed is
 *                  either, or more
 *   R, J  int64_t  the same, real and INTEGER
 *   w, q, j  int64_t  workspace without a length, of the type, real, INTEGER; -1: the call with -1
 *                  leaves the length in its first element
 * and INFO, unless the spec ends with a dot. Regions are what may change; everything else that does
 * is noted. Every array's copy is what was there before the call.
 */
int64_t call(struct test *test, const char *routine, const char *spec, ...);

/* INFO of the last call must be this. */
void expect(struct test *test, int64_t info);

/* Ends the last call with the worst ratio of its results: 0 where there is nothing to judge. */
void judge(struct test *test, double ratio);

/* ---- Choices ---- */

static inline bool one_of(struct test *test, int64_t n)
{
    return random_below(&test->random, n) == 0;
}

static inline char letter_of(struct test *test, const char *letters)
{
    return letters[random_below(&test->random, (int64_t)strlen(letters))];
}

static inline bool is_complex(const struct test *test)
{
    return accel_is_complex(test->dtype);
}

static inline bool has_fault(const struct test *test, char fault)
{
    return strchr(test->options->faults, fault);
}

/* 'N' or what the adjoint is called. */
static inline char adjoint_letter(const struct test *test)
{
    return is_complex(test) ? 'C' : 'T';
}

/* 0, 1, or up to the option. */
int64_t pick_size(struct test *test);

/* As many right sides, or many. */
int64_t pick_sides(struct test *test);

/* One of the kinds that the option wants; the first where it wants none of them. */
enum kind pick_kind(struct test *test, const enum kind *kinds, int64_t n);

#define PICK_KIND(test, ...)                                                                       \
    pick_kind(test, (const enum kind[]){__VA_ARGS__},                                              \
              sizeof((const enum kind[]){__VA_ARGS__}) / sizeof(enum kind))

/* A matrix, or one triangle of it, in a new array. */
struct array stored(struct test *test, const struct source *source, char uplo);

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline double worse(double x, double y)
{
    return x > y ? x : y;
}

#endif
