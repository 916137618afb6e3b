/*
 * bad_arguments: calls with wrong arguments, through Fortran and CBLAS. What the original says is
 * its own. Prints what it set, so that a call that wrote something shows.
 */
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void dgemm_(const char *, const char *, const int32_t *, const int32_t *, const int32_t *,
            const double *, const double *, const int32_t *, const double *, const int32_t *,
            const double *, double *, const int32_t *, size_t, size_t);
void cblas_dgemm(int, int, int, int32_t, int32_t, int32_t, double, const double *, int32_t,
                 const double *, int32_t, double, double *, int32_t);

static double a[16], b[16], c[16];

static void fortran(const char *ta, const char *tb, int32_t m, int32_t n, int32_t k, int32_t lda,
                    int32_t ldb, int32_t ldc)
{
    const double one = 1;
    dgemm_(ta, tb, &m, &n, &k, &one, a, &lda, b, &ldb, &one, c, &ldc, 1, 1);
}

#ifdef TEST_XERBLA
/* As Octave and R have it: the error handler leaves by longjmp. */
static jmp_buf out;
static int reported;
void xerbla_(const char *name, const int32_t *info, size_t length)
{
    (void)length;
    printf("%.6s %d\n", name, (int)*info);
    reported++;
    longjmp(out, 1);
}
#    define CALL(...)                                                                              \
        if (setjmp(out) == 0)                                                                      \
        __VA_ARGS__
#else
#    define CALL(...) __VA_ARGS__
#endif

int main(void)
{
    CALL(fortran("X", "N", 2, 2, 2, 2, 2, 2));
    CALL(fortran("N", "?", 2, 2, 2, 2, 2, 2));
    CALL(fortran("N", "N", -1, 2, 2, 2, 2, 2));
    CALL(fortran("N", "N", 2, -2, 2, 2, 2, 2));
    CALL(fortran("N", "N", 2, 2, -3, 2, 2, 2));
    CALL(fortran("N", "N", 2, 2, 2, 1, 2, 2));
    CALL(fortran("T", "N", 2, 2, 4, 2, 4, 2));
    CALL(fortran("N", "N", 2, 2, 2, 2, 1, 2));
    CALL(fortran("N", "N", 2, 2, 2, 2, 2, 1));
    CALL(fortran("N", "N", 2, 2, 2, 2, 2, 0));
#ifndef TEST_XERBLA
    cblas_dgemm(100, 111, 111, 2, 2, 2, 1, a, 2, b, 2, 1, c, 2);
    cblas_dgemm(101, 110, 111, 2, 2, 2, 1, a, 2, b, 2, 1, c, 2);
    cblas_dgemm(102, 111, 119, 2, 2, 2, 1, a, 2, b, 2, 1, c, 2);
    cblas_dgemm(101, 111, 111, 2, 2, 4, 1, a, 2, b, 2, 1, c, 2);
    cblas_dgemm(102, 111, 111, 2, -2, 4, 1, a, 2, b, 4, 1, c, 2);
#endif
    for (int i = 0; i < 16; i++)
        a[i] = b[i] = 1;
    CALL(fortran("N", "N", 2, 2, 2, 2, 2, 2));
    for (int i = 0; i < 5; i++)
        printf("%g\n", c[i]);
    return 0;
}
