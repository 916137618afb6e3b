/* What a plan is of: the rules of its parameters, and what they mean. */
#include <limits.h>
#include "cufft_plan.h"

bool is_single_type(cufftType type)
{
    return type == CUFFT_C2C || type == CUFFT_R2C || type == CUFFT_C2R;
}

bool is_complex_type(cufftType type)
{
    return type == CUFFT_C2C || type == CUFFT_Z2Z;
}

bool goes_to_real(cufftType type)
{
    return type == CUFFT_C2R || type == CUFFT_Z2D;
}

static bool is_known_type(cufftType type)
{
    return is_single_type(type) || type == CUFFT_Z2Z || type == CUFFT_D2Z || type == CUFFT_Z2D;
}

static bool is_real_side(cufftType type, bool output)
{
    return !is_complex_type(type) && goes_to_real(type) == output;
}

/* A row of n real elements has n / 2 + 1 complex ones. */
static int64_t row_length(const struct description *what, bool output)
{
    const int64_t n = what->n[DIMENSIONS - 1];
    return is_complex_type(what->type) || is_real_side(what->type, output) ? n : n / 2 + 1;
}

static struct layout packed_layout(const struct description *what, bool output, bool in_place)
{
    struct layout layout = {.stride = 1, .dist = 1};
    for (int i = 0; i < DIMENSIONS; i++)
        layout.embed[i] = what->n[i];
    layout.embed[DIMENSIONS - 1] = in_place && is_real_side(what->type, output)
                                       ? 2 * row_length(what, !output)
                                       : row_length(what, output);
    for (int i = 0; i < DIMENSIONS; i++)
        layout.dist *= layout.embed[i];
    return layout;
}

static struct side side_of(const struct description *what, bool output, bool in_place)
{
    const struct layout layout = what->packed ? packed_layout(what, output, in_place)
                                 : output     ? what->out
                                              : what->in;
    struct side side = {.count = {what->batch, what->n[0], what->n[1], row_length(what, output)},
                        .step = {[0] = layout.dist, [DIMENSIONS] = layout.stride}};
    for (int i = DIMENSIONS - 1; i > 0; i--)
        side.step[i] = side.step[i + 1] * layout.embed[i];
    side.element = (is_single_type(what->type) ? sizeof(float) : sizeof(double)) *
                   (is_real_side(what->type, output) ? 1 : 2);
    return side;
}

struct side input_of(const struct description *what, bool in_place)
{
    return side_of(what, false, in_place);
}

struct side output_of(const struct description *what, bool in_place)
{
    return side_of(what, true, in_place);
}

/* As much as the complex elements are, closely packed. */
size_t area_needed(const struct description *what)
{
    const int64_t row =
        is_complex_type(what->type) ? what->n[DIMENSIONS - 1] : what->n[DIMENSIONS - 1] / 2 + 1;
    const size_t element = is_single_type(what->type) ? 8 : 16;
    return (size_t)(what->batch * what->n[0] * what->n[1] * row) * element;
}

/* ---- The rules ---- */

/* Bytes stay within 63 bits. */
#define LARGEST 0x1p57

/* The first of embed[] is not looked at: the batch's distance says how far it is. */
static bool read_layout(struct layout *layout, const struct parameters *p, bool output)
{
    const long long *embed = output ? p->onembed : p->inembed;
    const int first = DIMENSIONS - p->rank;
    *layout = (struct layout){.embed = {1, 1, 1},
                              .stride = output ? p->ostride : p->istride,
                              .dist = output ? p->odist : p->idist};
    for (int i = 1; i < p->rank; i++)
        layout->embed[first + i] = embed[i];
    const double plane =
        (double)layout->stride * (double)layout->embed[1] * (double)layout->embed[2];
    return layout->stride >= 1 && (layout->dist >= 1 || p->batch == 1) && plane < LARGEST &&
           (double)layout->dist < LARGEST;
}

/* Rows that reach into each other, or arrays' planes. */
static bool holds(const struct layout *layout, const struct description *what, int rank,
                  bool output)
{
    for (int i = DIMENSIONS - rank + 1; i < DIMENSIONS; i++)
        if (layout->embed[i] < (i == DIMENSIONS - 1 ? row_length(what, output) : what->n[i]))
            return false;
    return true;
}

/* Where the parameters have 32 bits, all numbers of elements are within 31. */
static bool is_within(const struct side *side, bool narrow)
{
    double elements = 1, last = 0;
    for (int i = 0; i < 1 + DIMENSIONS; i++) {
        elements *= (double)side->count[i];
        last += (double)(side->count[i] - 1) * (double)side->step[i];
    }
    const double most = narrow ? INT_MAX : LARGEST;
    return elements <= most && last < most;
}

cufftResult describe(const struct parameters *p, struct description *what)
{
    if (p->rank < 1 || p->rank > DIMENSIONS || p->n == NULL)
        return CUFFT_INVALID_VALUE;
    if (!is_known_type(p->type))
        return CUFFT_INVALID_TYPE;
    *what = (struct description){.type = p->type, .n = {1, 1, 1}, .batch = p->batch};
    double elements = (double)p->batch;
    for (int i = 0; i < p->rank; i++) {
        if (p->n[i] < 1)
            return CUFFT_INVALID_SIZE;
        what->n[DIMENSIONS - p->rank + i] = p->n[i];
        elements *= (double)p->n[i];
    }
    if (p->batch < 1 || elements > LARGEST)
        return CUFFT_INVALID_SIZE;
    /* Of either, documented: then all parameters of layouts are ignored. */
    what->packed = p->inembed == NULL || p->onembed == NULL;
    if (!what->packed &&
        !(read_layout(&what->in, p, false) && read_layout(&what->out, p, true) &&
          holds(&what->in, what, p->rank, false) && holds(&what->out, what, p->rank, true)))
        return CUFFT_INVALID_VALUE;
    const struct side in = input_of(what, true), out = output_of(what, true);
    return is_within(&in, p->narrow) && is_within(&out, p->narrow) ? CUFFT_SUCCESS
                                                                   : CUFFT_INVALID_SIZE;
}
