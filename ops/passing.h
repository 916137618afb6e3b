/*
 * How arguments and results are passed, as the System V ABI for x86-64 has it: for operations that read their arguments themselves.
 */
#ifndef ACCEL_PASSING_H
#define ACCEL_PASSING_H

#include <stdint.h>

/* A caller's arguments: of INTEGER class the registers rdi rsi rdx rcx r8 r9, then the words of the stack; xmm0-7. The caller's
 * memory, as it was at the call. */
struct accel_passed {
    const uint64_t *gpr;
    const double (*xmm)[2];
    const uint64_t *stack;
};

/* The registers that results come back in: of INTEGER class rax and rdx, of SSE class xmm0 and xmm1. */
struct accel_result {
    uint64_t rax, rdx;
    double xmm[2][2];
};

#endif
