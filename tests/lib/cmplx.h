/* complex.h with CMPLX, which glibc's has not for clang. */
#ifndef TEST_CMPLX_H
#define TEST_CMPLX_H

#include <complex.h>

#ifndef CMPLX
#    define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif

#endif
