/* What the tests of the BLAS share. */
#include "test_testgpu.h"

int set_up(struct fixture *f)
{
    begin();
    OK(cuStreamCreate(&f->stream, CU_STREAM_NON_BLOCKING));
    BLAS_OK(cublasCreate(&f->handle));
    BLAS_OK(cublasSetStream(f->handle, f->stream));
    OK(cuMemAlloc(&f->a, ROOM * sizeof(double complex)));
    OK(cuMemAlloc(&f->b, ROOM * sizeof(double complex)));
    OK(cuMemAlloc(&f->c, ROOM * sizeof(double complex)));
    return 0;
}

int tear_down(struct fixture *f)
{
    BLAS_OK(cublasDestroy(f->handle));
    OK(cuStreamDestroy(f->stream));
    OK(cuMemFree(f->a));
    OK(cuMemFree(f->b));
    OK(cuMemFree(f->c));
    OK(cuDevicePrimaryCtxRelease(0));
    return 0;
}

double noise(void)
{
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / (1 << 24) - 0.5;
}

double complex value(enum type type)
{
    double real = noise();
    return is_real(type) ? real : real + noise() * I;
}

bool is_real(enum type type)
{
    return type == S || type == D;
}

double rounding(enum type type)
{
    return type == S || type == C ? 1.2e-7 : 2.3e-16;
}

size_t type_bytes(enum type type)
{
    static const size_t bytes[] = {4, 8, 8, 16};
    return bytes[type];
}

size_t narrow(enum type type, const double complex *x, void *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (type == S)
            ((float *)out)[i] = (float)creal(x[i]);
        else if (type == D)
            ((double *)out)[i] = creal(x[i]);
        else if (type == C)
            ((float complex *)out)[i] = (float complex)x[i];
        else
            ((double complex *)out)[i] = x[i];
    }
    return count * type_bytes(type);
}

double complex widen(enum type type, const void *x, size_t at)
{
    switch (type) {
    case S:
        return ((const float *)x)[at];
    case D:
        return ((const double *)x)[at];
    case C:
        return ((const float complex *)x)[at];
    default:
        return ((const double complex *)x)[at];
    }
}

bool count_up(int *digits, const int *bases, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (++digits[i] < bases[i])
            return true;
        digits[i] = 0;
    }
    return false;
}
