#include "series.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ln 2 in two parts, of which the first has 32 bits: its products with small integers are exact. */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW  1.90821492927058770002e-10

/* k: that of a normal number. */
static double power_of_2(int k)
{
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

double series_exp(double x)
{
    const double most = 710, least = -746, ln2 = LN2_HIGH + LN2_LOW;
    if (!(x < most))
        return x > 0 ? INFINITY : x; /* else no number */
    if (x < least)
        return 0;
    const int k = (int)(x / ln2 + (x < 0 ? -0.5 : 0.5));
    const double r = (x - k * LN2_HIGH) - k * LN2_LOW;
    double sum = 1;
    for (int i = 14; i > 0; i--)
        sum = 1 + r / i * sum;
    /* 2^k may be too large or too small for a normal number. */
    return sum * power_of_2(k / 2) * power_of_2(k - k / 2);
}

double series_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52) - 1023;
    const uint64_t mantissa = (bits & (UINT64_MAX >> 12)) | UINT64_C(1023) << 52;
    double m, sum = 0;
    memcpy(&m, &mantissa, sizeof m);
    const int k = exponent + (m > 1.4142135623730951);
    m = k > exponent ? m / 2 : m;
    const double s = (m - 1) / (m + 1);
    for (int i = 23; i > 0; i -= 2)
        sum = sum * s * s + 2.0 / i;
    return k * LN2_HIGH + (sum * s + k * LN2_LOW);
}
