#include "schedule_cases.h"

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
};
const int schedule_case_count = (int)(sizeof schedule_cases / sizeof *schedule_cases);

const struct schedule_link schedule_links[] = {
    {"PCIe 4, 19.5 TF/s", {25, 25, 19.5e3, 128, 0.002, 0.005, 0.005}, 1},
    {"PCIe 5, 60 TF/s", {55, 55, 60e3, 128, 0.002, 0.005, 0.005}, 1},
    {"C2C, 60 TF/s", {400, 350, 60e3, 128, 0.002, 0.005, 0.005}, 1},
    {"PCIe 4, 1.2 TF/s", {25, 25, 1.2e3, 64, 0.002, 0.005, 0.005}, 32},
};
const int schedule_link_count = (int)(sizeof schedule_links / sizeof *schedule_links);

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/*
 * A product: a share of k for all of C first, then growing squares of C. When so much of A and B is up that the square of side x is
 * finished (of n = 1), share + (1 - share) x of the upload is done, share + (1 - share) x^2 of the work can be, and x^2 of C can be on
 * its way down. What cannot be done by then comes after it. More work than `share` cannot be had of so much of A and B, and a square is
 * the largest part of C that can be finished. c: the part of the upload that is C, where it has a beta: of it, all comes with the first
 * share, or without one, each square with A and B.
 */
static double ideal_product(double up, double c, double compute, double down)
{
    double best = 1e300;
    for (double share = 0; share <= 1; share += 1.0 / 64) {
        double longest = larger(larger(up, compute + (share > 0 ? c : 0)), down);
        for (double x = 0; x <= 1; x += 1.0 / 64) {
            const double at = (up - c) * (share + (1 - share) * x) + c * (share > 0 ? 1 : x * x);
            longest = larger(longest, at + compute * (1 - share) * (1 - x * x));
            longest = larger(longest, at + down * (1 - x * x));
        }
        best = best < longest ? best : longest;
    }
    return best;
}

/*
 * Columns of C can be finished when all of A is up; until then only the first ones, `share` of C, are computed, as far as A's rows have
 * come (x of them). a: the part of the upload that is A.
 */
static double ideal_panels(double up, double a, double compute, double down)
{
    double best = 1e300;
    for (double share = 0; share <= 1; share += 1.0 / 64) {
        const double start = a + share * (up - a);
        double longest = larger(larger(up, compute), start + down);
        for (double x = 0; x <= 1; x += 1.0 / 64)
            longest =
                larger(longest, a * x * x + share * (up - a) * x + compute * (1 - share * x * x));
        best = best < longest ? best : longest;
    }
    return best;
}

bool schedule_judge(const struct schedule_case *c, const struct schedule_link *link, double part,
                    struct schedule_judged *judged)
{
    const struct schedule_call *call = &c->call;
    const double m = (double)call->m, n = (double)call->n, k = (double)call->k;
    const double all =
        (m * k + (call->kind == SCHEDULE_PRODUCT ? k * n : 0) + m * n) * (double)call->size[0];
    judged->rates = link->rates;
    judged->rates.compute *= c->single ? 2 * link->single : 1;
    if (!schedule_make(&judged->schedule, call, &judged->rates,
                       part > 0 ? (int64_t)(all * part) : INT64_MAX))
        return false;
    struct schedule_times *times = &judged->times;
    *times = schedule_simulate(&judged->schedule, &judged->rates);
    judged->longest = schedule_floor(call, &judged->rates);
    if (!judged->schedule.whole)
        judged->longest =
            larger(judged->longest, times->bytes[SCHEDULE_UP] / judged->rates.up * 1e-6);
    const double up = times->busy[SCHEDULE_UP], compute = times->busy[SCHEDULE_COMPUTE];
    const double down = times->busy[SCHEDULE_DOWN];
    const bool panels = call->kind == SCHEDULE_SOLVE || call->kind == SCHEDULE_MULTIPLY;
    const double a = up * (m * k / 2) / (m * k / 2 + m * n);
    const double c_up = call->reads ? down * judged->rates.down / judged->rates.up : 0;
    judged->ideal =
        panels ? ideal_panels(up, a, compute, down) : ideal_product(up, c_up, compute, down);
    return true;
}
