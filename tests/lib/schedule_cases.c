#include "schedule_cases.h"
#include "rates.h"

#include <math.h>

#define CASE(NAME, KIND, M, N, K, SIZE, PER, READS, SINGLE)                                        \
    {                                                                                              \
        NAME,                                                                                      \
            {.kind = SCHEDULE_##KIND,                                                              \
             .m = M,                                                                               \
             .n = N,                                                                               \
             .k = K,                                                                               \
             .per_term = PER,                                                                      \
             .size = {SIZE, SIZE, SIZE},                                                           \
             .reads = READS},                                                                      \
            SINGLE                                                                                 \
    }

/* Of order N; A has one matrix, or as many as there are PRODUCTS. */
#define BATCH(NAME, N, PRODUCTS, MATRICES, READS)                                                  \
    {                                                                                              \
        NAME,                                                                                      \
            {.kind = SCHEDULE_BATCH,                                                               \
             .m = N,                                                                               \
             .n = N,                                                                               \
             .k = N,                                                                               \
             .per_term = 2,                                                                        \
             .size = {8, 8, 8},                                                                    \
             .reads = READS,                                                                       \
             .products = PRODUCTS,                                                                 \
             .sharing = {{1, MATRICES}, {1, PRODUCTS}, {1, PRODUCTS}}},                            \
            false                                                                                  \
    }

const struct schedule_case schedule_cases[] = {
    CASE("dgemm 1024", PRODUCT, 1024, 1024, 1024, 8, 2, false, false),
    CASE("dgemm 2048", PRODUCT, 2048, 2048, 2048, 8, 2, false, false),
    CASE("dgemm 4096", PRODUCT, 4096, 4096, 4096, 8, 2, false, false),
    CASE("dgemm 8192", PRODUCT, 8192, 8192, 8192, 8, 2, false, false),
    CASE("dgemm 8192 with beta", PRODUCT, 8192, 8192, 8192, 8, 2, true, false),
    CASE("dgemm 16384", PRODUCT, 16384, 16384, 16384, 8, 2, false, false),
    CASE("dgemm 32768", PRODUCT, 32768, 32768, 32768, 8, 2, false, false),
    CASE("dgemm tall", PRODUCT, 65536, 256, 256, 8, 2, false, false),
    CASE("dgemm deep", PRODUCT, 512, 512, 65536, 8, 2, false, false),
    CASE("dgemm skinny", PRODUCT, 8192, 128, 8192, 8, 2, false, false),
    CASE("sgemm 4096", PRODUCT, 4096, 4096, 4096, 4, 2, false, true),
    CASE("sgemm 8192", PRODUCT, 8192, 8192, 8192, 4, 2, false, true),
    CASE("zgemm 2048", PRODUCT, 2048, 2048, 2048, 16, 8, false, false),
    CASE("zgemm 4096", PRODUCT, 4096, 4096, 4096, 16, 8, false, false),
    CASE("dsymm 4096", SYMMETRIC, 4096, 4096, 4096, 8, 2, false, false),
    CASE("dsymm 8192", SYMMETRIC, 8192, 8192, 8192, 8, 2, false, false),
    CASE("dsyrk 2048", RANK_K, 2048, 2048, 2048, 8, 2, false, false),
    CASE("dsyrk 8192", RANK_K, 8192, 8192, 8192, 8, 2, false, false),
    CASE("dsyrk 16384 with beta", RANK_K, 16384, 16384, 16384, 8, 2, true, false),
    CASE("dsyrk deep", RANK_K, 1024, 1024, 65536, 8, 2, false, false),
    CASE("dtrsm 2048", SOLVE, 2048, 2048, 2048, 8, 2, true, false),
    CASE("dtrsm 8192", SOLVE, 8192, 8192, 8192, 8, 2, true, false),
    CASE("dtrsm 16384", SOLVE, 16384, 16384, 16384, 8, 2, true, false),
    CASE("dtrsm skinny", SOLVE, 8192, 256, 8192, 8, 2, true, false),
    CASE("dtrsm wide", SOLVE, 1024, 65536, 1024, 8, 2, true, false),
    CASE("dtrmm 4096", MULTIPLY, 4096, 4096, 4096, 8, 2, true, false),
    CASE("dtrmm 8192", MULTIPLY, 8192, 8192, 8192, 8, 2, true, false),
    BATCH("20000 dgemm 32", 32, 20000, 20000, false),
    BATCH("2000 dgemm 128", 128, 2000, 2000, true),
    BATCH("200 dgemm 512, one A", 512, 200, 1, false),
    BATCH("16 dgemm 2048", 2048, 16, 16, false),
};
const int schedule_case_count = (int)(sizeof schedule_cases / sizeof *schedule_cases);

const struct schedule_link schedule_links[] = {
    {"PCIe 4, 19.5 TF/s", RATES(25, 25, 19.5e3, 128, 0.002, 0.005, 0.005), 1},
    {"PCIe 5, 60 TF/s", RATES(55, 55, 60e3, 128, 0.002, 0.005, 0.005), 1},
    {"C2C, 60 TF/s", RATES(400, 350, 60e3, 128, 0.002, 0.005, 0.005), 1},
    {"PCIe 4, 1.2 TF/s", RATES(25, 25, 1.2e3, 64, 0.002, 0.005, 0.005), 32},
};
const int schedule_link_count = (int)(sizeof schedule_links / sizeof *schedule_links);

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/*
 * No schedule is faster than this, however small its tiles and whatever its order. Of one that
 * takes `all` ms, at any time so much of C must be finished that the rest can still come down, and
 * so much computed that the rest still can be; and what has come up by then must allow both.
 *
 * A finished part `rows` by `cols` of C needs these rows of A and columns of B (and itself, if C
 * goes up). Of the rest, each block of k has a rows of A and b columns of B, and a b of its
 * products can be computed: over many blocks the average is at most what the corners of [rows, 1] x
 * [cols, 1] span. If C goes up, at most sqrt(a b c) of the work is possible with such shares of A,
 * B and C (Loomis and Whitney, "An inequality related to the isoperimetric inequality", 1949).
 *
 * Of what is overwritten by a triangle, the first rows that are solved need the triangle above them
 * and themselves; the rows that are multiplied first need the longest rows of A, and whole columns
 * of C. Such a share of the work needs at least the same share of A; and of each column of C more
 * than that share, since a kernel needs its own rows and the other factor's.
 */
struct lanes {
    enum schedule_kind kind;
    /* ms: of A, B, C and all of them up; a triangle: a and b are half of its factor each */
    double a, b, c, up, compute, down;
};

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Returns the largest average of y over a mixture of points whose average of x is at most so
 * much. */
static double mixed(const double x[4], const double y[4], double most)
{
    double best = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (x[j] <= most)
                best = larger(best, y[j]);
            else if (x[i] <= most)
                best = larger(best, y[i] + (y[j] - y[i]) * (most - x[i]) / (x[j] - x[i]));
    return best;
}

/* Returns how much of the work is possible at a time, if such a part of C is finished. */
static double possible_work(const struct lanes *l, double now, double rows, double cols)
{
    if (l->kind == SCHEDULE_MULTIPLY)
        return now / l->up;
    if (l->c > 0)
        return smaller(now / l->up, sqrt(now / 3 / l->a * (now / 3 / l->b) * (now / 3 / l->c)));
    if (l->kind == SCHEDULE_SYMMETRIC)
        return now / l->up;
    const double a = l->a * rows, b = l->b * cols;
    const double ms[] = {a + b, l->a + b, a + l->b, l->a + l->b};
    const double work[] = {rows * cols, cols, rows, 1};
    return mixed(ms, work, now);
}

/* Returns whether so much of C can be finished, and so much computed, when uploads have gone on for
 * so long. */
static bool is_possible(const struct lanes *l, double now, double finished, double computed)
{
    enum { STEPS = 32 };
    if (l->kind == SCHEDULE_BATCH) /* products need all of an A that is one for all */
        return (finished <= 0 || now >= l->a + l->c * finished) &&
               l->c * computed <= larger(0, now - l->a);
    if (l->kind == SCHEDULE_SOLVE)
        return l->a * finished * finished + l->c * finished <= now && computed <= now / l->up;
    for (int i = 0; i < STEPS; i++) {
        /* At least so many rows, at most those of the next turn. */
        const double rows = finished + (1 - finished) * i / STEPS;
        const double cols = finished / (finished + (1 - finished) * (i + 1) / STEPS);
        const bool square = l->kind == SCHEDULE_SYMMETRIC || l->kind == SCHEDULE_MULTIPLY;
        const double of_a = square ? (2 - rows) * rows : rows;
        const double of_c = l->kind == SCHEDULE_MULTIPLY ? cols : finished;
        if (l->a * of_a + l->b * cols + l->c * of_c <= now &&
            computed <= possible_work(l, now, rows, cols))
            return true;
    }
    return false;
}

static bool suffices(const struct lanes *l, double all)
{
    enum { TIMES = 32 };
    for (int i = 0; i <= TIMES; i++) {
        const double now = l->up * i / TIMES;
        const double finished = larger(0, 1 - (all - now) / l->down);
        const double computed = larger(0, 1 - (all - now) / l->compute);
        if (finished > 1 || computed > 1 || !is_possible(l, now * (1 + 1e-9), finished, computed))
            return false;
    }
    return true;
}

static double bound_of(const struct schedule_call *call, const struct schedule_rates *rates)
{
    const bool triangle = call->kind != SCHEDULE_PRODUCT;
    const double m = (double)call->m, n = (double)call->n, k = (double)call->k;
    const double up = (double)call->size[0] / rates->up * 1e-6;
    const struct schedule_rates no_copies = {
        .up = 1e30, .down = 1e30, .compute = rates->compute, .half = rates->half};
    struct lanes l = {.kind = call->kind,
                      .a = m * k * up * (triangle ? 0.5 : 1),
                      .c = call->reads ? m * n * up * (call->kind == SCHEDULE_RANK_K ? 0.5 : 1) : 0,
                      .compute = schedule_floor(call, &no_copies)};
    if (call->kind == SCHEDULE_PRODUCT || call->kind == SCHEDULE_SYMMETRIC)
        l.b = k * n * up;
    else if (call->kind == SCHEDULE_RANK_K)
        l.b = l.a;
    if (call->kind == SCHEDULE_BATCH) { /* c: what each product brings, of all of them */
        const struct schedule_sharing *x = call->sharing;
        const double products = (double)call->products, all_a = m * k * up * (double)x[0].distinct;
        l.c = k * n * up * (double)x[1].distinct + (call->reads ? m * n * up * products : 0);
        l.a = x[0].distinct == 1 ? all_a : 0;
        l.b = 0;
        l.c += all_a - l.a;
    }
    l.up = l.a + l.b + l.c;
    l.down = (call->kind == SCHEDULE_BATCH ? (double)call->products : 1) * m * n *
             (call->kind == SCHEDULE_RANK_K ? 0.5 : 1) * (double)call->size[0] / rates->down * 1e-6;
    double low = schedule_floor(call, rates), high = 4 * low;
    for (int i = 0; i < 20; i++) {
        const double middle = (low + high) / 2;
        *(suffices(&l, middle) ? &high : &low) = middle;
    }
    return low;
}

bool schedule_judge(const struct schedule_case *c, const struct schedule_link *link, double part,
                    struct schedule_judged *judged)
{
    const struct schedule_call *call = &c->call;
    const double m = (double)call->m, n = (double)call->n, k = (double)call->k;
    const struct schedule_sharing *x = call->sharing;
    const double all = call->kind == SCHEDULE_BATCH
                           ? (m * k * (double)x[0].distinct + k * n * (double)x[1].distinct +
                              m * n * (double)call->products) *
                                 (double)call->size[0]
                           : (m * k + (call->kind == SCHEDULE_PRODUCT ? k * n : 0) + m * n) *
                                 (double)call->size[0];
    judged->rates = link->rates;
    judged->rates.compute *= c->single ? 2 * link->single : 1;
    judged->memory_bytes = part > 0 ? (int64_t)(all * part) : INT64_MAX;
    if (!schedule_make(&judged->schedule, call, &judged->rates, judged->memory_bytes))
        return false;
    struct schedule_times *times = &judged->times;
    *times = schedule_simulate(&judged->schedule, &judged->rates);
    judged->longest = schedule_floor(call, &judged->rates);
    judged->once = larger(bound_of(call, &judged->rates), judged->longest);
    if (!judged->schedule.whole)
        judged->longest =
            larger(judged->longest, times->bytes[SCHEDULE_UP] / judged->rates.up * 1e-6);
    judged->bound = larger(judged->once, judged->longest);
    return true;
}
