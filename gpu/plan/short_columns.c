#include "short_columns.h"

/* No column is taken for short that has more bytes, however little two lengths differ. */
#define LONGEST 65536.0

double short_columns_ms(const struct short_columns *x, double bytes)
{
    return bytes < x->bytes ? x->ms * (1 - bytes / x->bytes) : 0;
}

/* Along the line through both, until it comes down to 0. The longer columns took no longer than by
 * their bytes: then it ends at these. */
struct short_columns short_columns_by(const double bytes[2], const double ms[2])
{
    if (!(ms[0] > 0))
        return (struct short_columns){1, 0};
    const double second = ms[1] > 0 ? ms[1] : 0, fall = ms[0] - second;
    double end = LONGEST;
    if (fall * (LONGEST - bytes[0]) > ms[0] * (bytes[1] - bytes[0]))
        end = bytes[0] + ms[0] * (bytes[1] - bytes[0]) / fall;
    return (struct short_columns){end, ms[0] / (1 - bytes[0] / end)};
}
