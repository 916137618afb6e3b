/* A library with every name of the table, that does nothing: what is left of a call is what libaccel adds. */
#include "ops/manglings.def"

#define DEFINE(abi, width, trust, symbol, sibling)                                                 \
    void symbol(void);                                                                             \
    void symbol(void) {}
#define ROUTINE(name, NAME, op, dtype, row_major, flops, args) ACCEL_MANGLINGS(DEFINE, name, NAME)
#define LAPACK(name, NAME, op, dtype, flops, args)             ACCEL_LAPACK_MANGLINGS(DEFINE, name, NAME)
#include "ops/blas/blas.def"

/* Tells, where a name does not, that integers are of 32 bits: finds the third of the probe's three. */
#define THIRD_FORTRAN 3
#define THIRD_CBLAS   2
#define DEFINE_PROBE(abi, width, trust, symbol, sibling)                                           \
    long symbol(void);                                                                             \
    long symbol(void)                                                                              \
    {                                                                                              \
        return THIRD_##abi;                                                                        \
    }
ACCEL_MANGLINGS(DEFINE_PROBE, isamax, ISAMAX)
