/*
 * Which elements of a rectangle are stored, by its triangle.
 */
#ifndef ACCEL_TEST_TRIANGLE_H
#define ACCEL_TEST_TRIANGLE_H

#include "gpu/pack/pack.h"

static bool is_stored(const struct host_rectangle *r, int64_t row, int64_t col)
{
    const int64_t diagonal = col + r->diagonal;
    switch (r->uplo) {
    case 'U':
        return row <= diagonal;
    case 'u':
        return row < diagonal;
    case 'L':
        return row >= diagonal;
    case 'l':
        return row > diagonal;
    default:
        return true;
    }
}

#endif
