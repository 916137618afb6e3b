/*
 * How arguments and results are passed: the System V ABI for x86-64. Plain data.
 */
#ifndef ACCEL_PASSING_H
#define ACCEL_PASSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library that defines a function which the program has called: lets an operation tell whether it knows that library, and find
 * what else it needs of it. */
struct accel_provider {
    void *function;
    /* Returns the address of a name that the same object defines, or NULL. Takes the dynamic linker's locks. */
    void *(*symbol)(const struct accel_provider *provider, const char *name);
    /* Returns the path that its object was loaded from; "" if it has none. */
    const char *(*path)(const struct accel_provider *provider);
    /* Returns whether its object calls, or refers to, a function or variable of this name through the dynamic linker. */
    bool (*refers)(const struct accel_provider *provider, const char *name);
};

enum accel_abi {
    ACCEL_ABI_FORTRAN, /* by reference; one hidden size_t length per CHARACTER argument, last */
    ACCEL_ABI_CBLAS,   /* layout first; integers, enums and real scalars by value */
    ACCEL_ABI_LAPACKE, /* the same with char for CHARACTER; neither workspace nor INFO, which is returned */
    ACCEL_ABI_OWN /* another library: the operation alone knows the arguments */
};

/* A call's arguments. INTEGER class: the registers rdi rsi rdx rcx r8 r9, then the words of the stack; SSE class: xmm0-7. A
 * caller's stack is its own memory. */
struct accel_passed {
    const uint64_t *gpr;
    const double (*xmm)[2];
    const uint64_t *stack;
    size_t stack_words; /* of a call to be made; unknown in a caller's */
    enum accel_abi abi;
    int width; /* bits of BLAS's INTEGER: 32 or 64 */
    /* Another library's: the original, and what the operation's accepts() has returned for it. */
    const struct accel_provider *provider;
    int layout;
};

/* Returns word i of INTEGER class. */
static inline uint64_t accel_passed_word(const struct accel_passed *passed, int i)
{
    return i < 6 ? passed->gpr[i] : passed->stack[i - 6];
}

/* The registers of results: INTEGER class rax and rdx, SSE class xmm0 and xmm1. */
struct accel_result {
    uint64_t rax, rdx;
    double xmm[2][2];
};

#endif
