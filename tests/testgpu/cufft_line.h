/* Transforms of one dimension, on the host, in double precision. */
#ifndef TESTGPU_CUFFT_LINE_H
#define TESTGPU_CUFFT_LINE_H

#include <stdint.h>

struct number {
    double re, im;
};

struct line;

/* Of a length from 1, up to 2^31. */
struct line *line_new(int64_t length);
/* In place, not normalised; the sign is that of the exponent. */
void line_transform(const struct line *line, int sign, struct number *x);
void line_free(struct line *line);

#endif
