#include "interfaces.h"

#include "ops/names.h"

/*
 * What each kind of argument is: its Fortran type and value, its CBLAS type and value. The table's
 * rows become lists of one of these, each behind a comma.
 */
#define OF_GROUPS(array)                    (x->groups > 0 ? (array) : NULL)
#define FLAG(f, letters)                    ARG(const char *, x->letter[ACCEL_##f], int, x->code[ACCEL_##f][0])
#define SIZE(s)                             INTEGER(x->size[ACCEL_##s])
#define MATRIX(m, access, rows, cols, by)   POINTER(x->matrix[ACCEL_##m])
#define NARROW(m, t, access, rows, cols, b) POINTER(x->matrix[ACCEL_##m])
#define VECTOR(m, access, length, other, b) POINTER(x->matrix[ACCEL_##m])
#define LD(l, m)                            INTEGER(x->ld[ACCEL_##m])
#define INC(i, m)                           INTEGER(&x->inc[ACCEL_##m])
#define STRIDE(s, m)                        INTEGER(&x->stride[ACCEL_##m])
#define BATCH(b)                            INTEGER(x->batch)
#define GROUPS(g)                           INTEGER(&x->groups)
#define FLAGS(f, letters)                                                                          \
    ARG(const char *, OF_GROUPS(x->letter[ACCEL_##f]), const int *, OF_GROUPS(x->code[ACCEL_##f]))
#define SIZES(s)                            POINTER(OF_GROUPS(x->size[ACCEL_##s]))
#define SCALARS(s)                          POINTER(x->groups > 0 ? &x->scalar[ACCEL_##s] : NULL)
#define MATRICES(m, access, rows, cols, by) POINTER(OF_GROUPS(x->matrix[ACCEL_##m]))
#define LDS(l, m)                           POINTER(OF_GROUPS(x->ld[ACCEL_##m]))
#define BATCHES(b)                          POINTER(OF_GROUPS(x->batch))
#define SCALAR(s)                                                                                  \
    ARG(const void *, &x->scalar[ACCEL_##s], SCALAR_TYPE, SCALAR_OF(x->scalar[ACCEL_##s]))
#define REAL(s) ARG(const void *, &x->scalar[ACCEL_##s], REAL_TYPE, REAL_OF(x->scalar[ACCEL_##s]))

#define INTEGER(at) ARG(const blas_int *, at, blas_int, *(at))
#define POINTER(at) ARG(const void *, at, const void *, at)

#define JOIN_(a, b, c)   a##b##_##c
#define JOIN(a, b, c)    JOIN_(a, b, c)
#define LIST_(zero, ...) __VA_ARGS__
#define LIST(...)        LIST_(__VA_ARGS__)

/* ---- Fortran: without hidden lengths, and with one for each flag ---- */

#define ARG(fortran_type, fortran_value, cblas_type, cblas_value) , fortran_type
#define ROUTINE(name, NAME, op, dtype, row_major, flops, args)                                     \
    typedef void fortran_##name##_0(LIST(0 args));                                                 \
    typedef void fortran_##name##_1(LIST(0 args), size_t);                                         \
    typedef void fortran_##name##_2(LIST(0 args), size_t, size_t);                                 \
    typedef void fortran_##name##_3(LIST(0 args), size_t, size_t, size_t);                         \
    typedef void fortran_##name##_4(LIST(0 args), size_t, size_t, size_t, size_t);
#include "ops/blas/blas.def"
#undef ARG
#undef ROUTINE

#define ARG(fortran_type, fortran_value, cblas_type, cblas_value) , fortran_value
#define ROUTINE(name, NAME, op, dtype, row_major, flops, args)                                     \
    static void fortran_##name(blas_function *f, const struct arguments *x, int lengths)           \
    {                                                                                              \
        if (lengths == 0)                                                                          \
            ((fortran_##name##_0 *)f)(LIST(0 args));                                               \
        if (lengths == 1)                                                                          \
            ((fortran_##name##_1 *)f)(LIST(0 args), 1);                                            \
        if (lengths == 2)                                                                          \
            ((fortran_##name##_2 *)f)(LIST(0 args), 1, 1);                                         \
        if (lengths == 3)                                                                          \
            ((fortran_##name##_3 *)f)(LIST(0 args), 1, 1, 1);                                      \
        if (lengths == 4)                                                                          \
            ((fortran_##name##_4 *)f)(LIST(0 args), 1, 1, 1, 1);                                   \
    }
#include "ops/blas/blas.def"
#undef ARG
#undef ROUTINE

/* ---- CBLAS: real scalars by value, complex ones by reference ---- */

#define TYPE         FLOAT32
#define SCALAR_TYPE  float
#define SCALAR_OF(z) (z).f[0]
#define REAL_TYPE    float
#define REAL_OF(z)   (z).f[0]
#include "cblas_calls.h"

#define TYPE         FLOAT64
#define SCALAR_TYPE  double
#define SCALAR_OF(z) (z).d[0]
#define REAL_TYPE    double
#define REAL_OF(z)   (z).d[0]
#include "cblas_calls.h"

#define TYPE         COMPLEX64
#define SCALAR_TYPE  const void *
#define SCALAR_OF(z) &(z)
#define REAL_TYPE    float
#define REAL_OF(z)   (z).f[0]
#include "cblas_calls.h"

#define TYPE         COMPLEX128
#define SCALAR_TYPE  const void *
#define SCALAR_OF(z) &(z)
#define REAL_TYPE    double
#define REAL_OF(z)   (z).d[0]
#include "cblas_calls.h"

/* ---- All of them ---- */

struct calls {
    void (*fortran)(blas_function *f, const struct arguments *x, int lengths);
    void (*cblas)(blas_function *f, int layout, const struct arguments *x);
};

#define ROUTINE(name, NAME, op, dtype, row_major, flops, args)                                     \
    {fortran_##name, cblas_##dtype##_##name},
static const struct calls calls[] = {
#include "ops/blas/blas.def"
};

void interface_call(enum test_interface interface, uint32_t routine, blas_function *function,
                    const struct arguments *x)
{
    int lengths = 0;
    for (int i = 0; i < accel_routines[routine].args; i++)
        lengths += accel_routines[routine].arg[i].kind == ACCEL_ARG_FLAG;
    if (is_cblas(interface))
        calls[routine].cblas(function, interface == TEST_CBLAS_ROW ? 101 : 102, x);
    else
        calls[routine].fortran(function, x, interface == TEST_FORTRAN ? lengths : 0);
}
