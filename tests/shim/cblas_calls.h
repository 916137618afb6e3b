/*
 * The CBLAS calls of all routines as they would be if the routines were of TYPE; interfaces.c
 * includes this for each type and takes from each what is of that type.
 */
#define ARG(fortran_type, fortran_value, cblas_type, cblas_value) , cblas_type
#define ROUTINE(name, NAME, op, dtype, row_major, flops, args)                                     \
    typedef void JOIN(type_, TYPE, name)(int args);
#include "ops/blas/blas.def"
#undef ARG
#undef ROUTINE

#define ARG(fortran_type, fortran_value, cblas_type, cblas_value) , cblas_value
#define ROUTINE(name, NAME, op, dtype, row_major, flops, args)                                     \
    static inline void JOIN(cblas_, TYPE, name)(blas_function * f, int layout,                     \
                                                const struct arguments *x)                         \
    {                                                                                              \
        ((JOIN(type_, TYPE, name) *)f)(layout args);                                               \
    }
#include "ops/blas/blas.def"
#undef ARG
#undef ROUTINE

#undef TYPE
#undef SCALAR_TYPE
#undef SCALAR_OF
#undef REAL_TYPE
#undef REAL_OF
