/*
 * How arguments and results are passed, as the System V ABI for x86-64 has it: for operations that read their arguments themselves.
 */
#ifndef ACCEL_PASSING_H
#define ACCEL_PASSING_H

#include <stddef.h>
#include <stdint.h>

enum accel_abi {
    ACCEL_ABI_FORTRAN, /* by reference; one hidden size_t length per CHARACTER argument, last */
    ACCEL_ABI_CBLAS,   /* layout first; integers, enums and real scalars by value */
    ACCEL_ABI_LAPACKE, /* the same with char for CHARACTER; neither workspace nor INFO, which is returned */
    ACCEL_ABI_OWN /* no BLAS: the operation alone knows the arguments */
};

/* A call's arguments: of INTEGER class the registers rdi rsi rdx rcx r8 r9, then the words of the stack; xmm0-7. A caller's
 * are its memory, as it was at the call. */
struct accel_passed {
    const uint64_t *gpr;
    const double (*xmm)[2];
    const uint64_t *stack;
    size_t stack_words; /* of a call to be made; a caller does not tell */
    enum accel_abi abi;
    int width; /* bits of BLAS's INTEGER: 32 or 64 */
};

/* Word i of those of INTEGER class. */
static inline uint64_t accel_passed_word(const struct accel_passed *passed, int i)
{
    return i < 6 ? passed->gpr[i] : passed->stack[i - 6];
}

/* The registers that results come back in: of INTEGER class rax and rdx, of SSE class xmm0 and xmm1. */
struct accel_result {
    uint64_t rax, rdx;
    double xmm[2][2];
};

#endif
