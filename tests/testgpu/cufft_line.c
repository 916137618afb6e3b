/*
 * A transform of one dimension. Lengths whose primes are small: Stockham's passes, which leave the
 * result in order. Others: Bluestein's convolution with a chirp, of a length that is a power of
 * two. It has nothing of FFTW, with whose results it is compared.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "cufft_line.h"

enum { LARGEST_PRIME = 31, FACTORS_MAX = 64 };

struct line {
    int64_t length;
    struct number *roots; /* of 1: the k-th is exp(-2 pi i k / length) */
    struct number *work;
    int factors[FACTORS_MAX], count;
    struct line *longer;             /* Bluestein's; NULL: passes */
    struct number *chirp, *mirrored; /* the second transformed */
};

static struct number times(struct number a, struct number b)
{
    return (struct number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static struct number plus(struct number a, struct number b)
{
    return (struct number){a.re + b.re, a.im + b.im};
}

static struct number minus(struct number a, struct number b)
{
    return (struct number){a.re - b.re, a.im - b.im};
}

static struct number *numbers(int64_t count)
{
    struct number *all = malloc((size_t)count * sizeof *all);
    if (all == NULL)
        abort();
    return all;
}

/* exp(-2 pi i k / n), of an angle that integers have brought to an eighth of the circle. */
static struct number root(uint64_t k, uint64_t n)
{
    const uint64_t quarter = 4 * k / n, rest = 4 * k - quarter * n;
    const bool mirrored = 2 * rest > n;
    const double angle = M_PI_2 * ((double)(mirrored ? n - rest : rest) / (double)n);
    const double x = mirrored ? sin(angle) : cos(angle), y = mirrored ? cos(angle) : sin(angle);
    switch (quarter) {
    case 0:
        return (struct number){x, -y};
    case 1:
        return (struct number){-y, -x};
    case 2:
        return (struct number){-x, y};
    default:
        return (struct number){y, x};
    }
}

/* ---- Passes ---- */

/* Four at once, as few additions as that allows. */
static const int radices[] = {4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, LARGEST_PRIME};

static bool factorize(struct line *line)
{
    int64_t rest = line->length;
    for (size_t i = 0; i < sizeof radices / sizeof *radices; i++)
        while (rest % radices[i] == 0) {
            line->factors[line->count++] = radices[i];
            rest /= radices[i];
        }
    return rest == 1;
}

static void butterfly_2(struct number *a)
{
    const struct number x = a[0];
    a[0] = plus(x, a[1]);
    a[1] = minus(x, a[1]);
}

static void butterfly_4(struct number *a)
{
    const struct number even = plus(a[0], a[2]), even_less = minus(a[0], a[2]);
    const struct number odd = plus(a[1], a[3]), odd_less = minus(a[1], a[3]);
    a[0] = plus(even, odd);
    a[2] = minus(even, odd);
    a[1] = (struct number){even_less.re + odd_less.im, even_less.im - odd_less.re};
    a[3] = (struct number){even_less.re - odd_less.im, even_less.im + odd_less.re};
}

/* Pairs of elements share their products: x + y with the cosine, x - y with the sine. */
static void butterfly_odd(const struct line *line, int radix, struct number *a)
{
    struct number sums[LARGEST_PRIME], differences[LARGEST_PRIME], first = a[0];
    const int half = radix / 2;
    const int64_t step = line->length / radix;
    for (int j = 1; j <= half; j++) {
        sums[j] = plus(a[j], a[radix - j]);
        differences[j] = minus(a[j], a[radix - j]);
    }
    for (int j = 1; j <= half; j++)
        a[0] = plus(a[0], sums[j]);
    for (int k = 1; k <= half; k++) {
        struct number even = first, odd = {0, 0};
        for (int j = 1; j <= half; j++) {
            const struct number w = line->roots[j * k % radix * step];
            even = plus(even, (struct number){w.re * sums[j].re, w.re * sums[j].im});
            odd = plus(odd, (struct number){w.im * differences[j].re, w.im * differences[j].im});
        }
        a[k] = (struct number){even.re - odd.im, even.im + odd.re};
        a[radix - k] = (struct number){even.re + odd.im, even.im - odd.re};
    }
}

static void butterfly(const struct line *line, int radix, struct number *a)
{
    if (radix == 4)
        butterfly_4(a);
    else if (radix == 2)
        butterfly_2(a);
    else
        butterfly_odd(line, radix, a);
}

/* Of `stride` transforms that lie in each other, of which so many elements are still one
 * transform. */
static void pass(const struct line *line, int radix, int64_t stride, const struct number *from,
                 struct number *to)
{
    const int64_t rows = line->length / (stride * radix);
    struct number a[LARGEST_PRIME], twiddle[LARGEST_PRIME];
    for (int64_t p = 0; p < rows; p++) {
        for (int k = 1; k < radix; k++)
            twiddle[k] = line->roots[p * k * stride];
        for (int64_t q = 0; q < stride; q++) {
            for (int j = 0; j < radix; j++)
                a[j] = from[q + stride * (p + rows * j)];
            butterfly(line, radix, a);
            to[q + stride * radix * p] = a[0];
            for (int k = 1; k < radix; k++)
                to[q + stride * (radix * p + k)] = p == 0 ? a[k] : times(a[k], twiddle[k]);
        }
    }
}

static void passes(const struct line *line, struct number *x)
{
    struct number *from = x, *to = line->work;
    int64_t stride = 1;
    for (int i = 0; i < line->count; i++) {
        struct number *last = from;
        pass(line, line->factors[i], stride, from, to);
        stride *= line->factors[i];
        from = to;
        to = last;
    }
    if (from != x)
        memcpy(x, from, (size_t)line->length * sizeof *x);
}

/* ---- Bluestein ---- */

/* jk = (j^2 + k^2 - (k - j)^2) / 2, and the squares' halves are angles of a circle of 2n. */
static void make_chirp(struct line *line)
{
    const uint64_t n = (uint64_t)line->length;
    int64_t length = 1;
    while (length < 2 * line->length - 1)
        length *= 2;
    line->longer = line_new(length);
    line->work = numbers(length);
    line->chirp = numbers(line->length);
    line->mirrored = numbers(length);
    memset(line->mirrored, 0, (size_t)length * sizeof *line->mirrored);
    for (uint64_t k = 0; k < n; k++) {
        const struct number w = root(k * k % (2 * n), 2 * n);
        line->chirp[k] = w;
        /* The convolution's 1 / length is here. */
        const struct number conjugate = {w.re / (double)length, -w.im / (double)length};
        line->mirrored[k] = conjugate;
        line->mirrored[k == 0 ? 0 : (uint64_t)length - k] = conjugate;
    }
    line_transform(line->longer, -1, line->mirrored);
}

static void convolve(const struct line *line, struct number *x)
{
    const int64_t n = line->length, length = line->longer->length;
    for (int64_t k = 0; k < n; k++)
        line->work[k] = times(x[k], line->chirp[k]);
    memset(line->work + n, 0, (size_t)(length - n) * sizeof *line->work);
    line_transform(line->longer, -1, line->work);
    for (int64_t k = 0; k < length; k++)
        line->work[k] = times(line->work[k], line->mirrored[k]);
    line_transform(line->longer, 1, line->work);
    for (int64_t k = 0; k < n; k++)
        x[k] = times(line->work[k], line->chirp[k]);
}

/* ---- Lines ---- */

struct line *line_new(int64_t length)
{
    struct line *line = calloc(1, sizeof *line);
    if (line == NULL)
        abort();
    line->length = length;
    if (!factorize(line)) {
        make_chirp(line);
        return line;
    }
    line->roots = numbers(length);
    line->work = numbers(length);
    for (int64_t k = 0; k < length; k++)
        line->roots[k] = root((uint64_t)k, (uint64_t)length);
    return line;
}

void line_free(struct line *line)
{
    if (line == NULL)
        return;
    line_free(line->longer);
    free(line->roots);
    free(line->work);
    free(line->chirp);
    free(line->mirrored);
    free(line);
}

static void swap_parts(const struct line *line, struct number *x)
{
    for (int64_t k = 0; k < line->length; k++)
        x[k] = (struct number){x[k].im, x[k].re};
}

/* The other sign: with the parts changed about before and after. */
void line_transform(const struct line *line, int sign, struct number *x)
{
    if (sign > 0)
        swap_parts(line, x);
    if (line->longer != NULL)
        convolve(line, x);
    else
        passes(line, x);
    if (sign > 0)
        swap_parts(line, x);
}
