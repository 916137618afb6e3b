/*
 * Transforms of arrays: line by line, in double precision, rounded once.
 *
 * The input of a transform to real elements has to be Hermitian; cuFFT does not say what it makes
 * of another one, nor leaves the input as it was. So here no element of such an input is a number
 * afterwards, and the imaginary parts that a Hermitian input has not (of the elements 0 and n / 2
 * of a row, after the other dimensions) are added to the real ones, where FFTW looks at none. Who
 * relies on FFTW's way gets another result.
 */
#include <stdlib.h>
#include <string.h>
#include "cufft_compute.h"
#include "cufft_line.h"

static int64_t offset_of(const struct side *side, int64_t batch, int64_t i, int64_t j, int64_t k)
{
    return batch * side->step[0] + i * side->step[1] + j * side->step[2] + k * side->step[3];
}

static struct number load(const struct execution *x, bool is_real, const void *all, int64_t at)
{
    if (x->is_single) {
        const float *e = (const float *)all + (is_real ? at : 2 * at);
        return (struct number){e[0], is_real ? 0 : e[1]};
    }
    const double *e = (const double *)all + (is_real ? at : 2 * at);
    return (struct number){e[0], is_real ? 0 : e[1]};
}

static void store(const struct execution *x, bool is_real, void *all, int64_t at, struct number z)
{
    if (x->is_single) {
        float *e = (float *)all + (is_real ? at : 2 * at);
        e[0] = (float)z.re;
        if (!is_real)
            e[1] = (float)z.im;
    } else {
        double *e = (double *)all + (is_real ? at : 2 * at);
        e[0] = z.re;
        if (!is_real)
            e[1] = z.im;
    }
}

/* ---- One array, whose rows have `width` elements between the transforms ---- */

struct array {
    const struct execution *x;
    struct line *lines[DIMENSIONS];
    int64_t width;
    struct number *z, *line;
};

static struct array array_new(const struct execution *x)
{
    struct array array = {.x = x};
    int64_t longest = 1;
    array.width = x->kind == COMPLEX ? x->n[2] : x->n[2] / 2 + 1;
    for (int i = 0; i < DIMENSIONS; i++) {
        array.lines[i] = line_new(x->n[i]);
        longest = x->n[i] > longest ? x->n[i] : longest;
    }
    array.z = malloc((size_t)(x->n[0] * x->n[1] * array.width) * sizeof *array.z);
    array.line = malloc((size_t)longest * sizeof *array.line);
    if (array.z == NULL || array.line == NULL)
        abort();
    return array;
}

static void array_end(struct array *array)
{
    for (int i = 0; i < DIMENSIONS; i++)
        line_free(array->lines[i]);
    free(array->z);
    free(array->line);
}

static void transform_rows(struct array *array)
{
    for (int64_t row = 0; row < array->x->n[0] * array->x->n[1]; row++)
        line_transform(array->lines[2], array->x->sign, array->z + row * array->width);
}

/* Lines of `count` elements, `step` apart. */
static void transform_across(struct array *array, int dimension, struct number *first, int64_t step)
{
    const int64_t count = array->x->n[dimension];
    for (int64_t i = 0; i < count; i++)
        array->line[i] = first[i * step];
    line_transform(array->lines[dimension], array->x->sign, array->line);
    for (int64_t i = 0; i < count; i++)
        first[i * step] = array->line[i];
}

static void transform_other_dimensions(struct array *array)
{
    const int64_t *n = array->x->n, plane = n[1] * array->width;
    for (int64_t i = 0; n[1] > 1 && i < n[0]; i++)
        for (int64_t k = 0; k < array->width; k++)
            transform_across(array, 1, array->z + i * plane + k, array->width);
    for (int64_t k = 0; n[0] > 1 && k < plane; k++)
        transform_across(array, 0, array->z + k, plane);
}

static void load_row(struct array *array, const void *in, int64_t batch, int64_t row,
                     struct number *to)
{
    const struct execution *x = array->x;
    for (int64_t k = 0; k < x->in.count[3]; k++)
        to[k] = load(x, x->kind == FROM_REAL, in,
                     offset_of(&x->in, batch, row / x->n[1], row % x->n[1], k));
}

static void store_row(struct array *array, void *out, int64_t batch, int64_t row,
                      const struct number *from)
{
    const struct execution *x = array->x;
    for (int64_t k = 0; k < x->out.count[3]; k++)
        store(x, x->kind == TO_REAL, out,
              offset_of(&x->out, batch, row / x->n[1], row % x->n[1], k), from[k]);
}

static void spoil_input(const struct execution *x, void *in, int64_t batch)
{
    for (int64_t i = 0; i < x->n[0]; i++)
        for (int64_t j = 0; j < x->n[1]; j++)
            for (int64_t k = 0; k < x->in.count[3]; k++)
                memset((char *)in + (size_t)offset_of(&x->in, batch, i, j, k) * x->in.element, 0xff,
                       x->in.element);
}

static void row_from_real(struct array *array, const void *in, int64_t batch, int64_t row)
{
    load_row(array, in, batch, row, array->line);
    line_transform(array->lines[2], array->x->sign, array->line);
    memcpy(array->z + row * array->width, array->line, (size_t)array->width * sizeof *array->line);
}

static void row_to_real(struct array *array, void *out, int64_t batch, int64_t row)
{
    const struct number *half = array->z + row * array->width;
    const int64_t n = array->x->n[2];
    for (int64_t k = 0; k < array->width; k++) {
        const struct number z = half[k];
        if (k == 0 || 2 * k == n) {
            array->line[k] = (struct number){z.re + z.im, 0};
        } else {
            array->line[k] = z;
            array->line[n - k] = (struct number){z.re, -z.im};
        }
    }
    line_transform(array->lines[2], array->x->sign, array->line);
    store_row(array, out, batch, row, array->line);
}

static void compute_array(struct array *array, void *in, void *out, int64_t batch)
{
    const struct execution *x = array->x;
    const int64_t rows = x->n[0] * x->n[1];
    for (int64_t row = 0; row < rows; row++) {
        if (x->kind == FROM_REAL)
            row_from_real(array, in, batch, row);
        else
            load_row(array, in, batch, row, array->z + row * array->width);
    }
    if (x->kind == COMPLEX)
        transform_rows(array);
    if (x->kind == TO_REAL && in == out)
        spoil_input(x, in, batch);
    transform_other_dimensions(array);
    for (int64_t row = 0; row < rows; row++) {
        if (x->kind == TO_REAL)
            row_to_real(array, out, batch, row);
        else
            store_row(array, out, batch, row, array->z + row * array->width);
    }
}

void compute_execution(const struct execution *x, void *in, void *out, void *area)
{
    struct array array = array_new(x);
    memset(area, 0xff, x->area_bytes);
    for (int64_t batch = 0; batch < x->in.count[0]; batch++)
        compute_array(&array, in, out, batch);
    /* Arrays of a batch may have elements in common. */
    for (int64_t batch = 0; x->kind == TO_REAL && in != out && batch < x->in.count[0]; batch++)
        spoil_input(x, in, batch);
    array_end(&array);
}

void add_one_to(const struct execution *x, void *out)
{
    struct number first = load(x, x->kind == TO_REAL, out, 0);
    first.re += 1;
    store(x, x->kind == TO_REAL, out, 0, first);
}
