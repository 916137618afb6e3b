/*
 * How arguments and results are passed: by the System V ABI for x86-64
 * (https://gitlab.com/x86-psABIs/x86-64-ABI, section 3.2.3), and by the Procedure Call Standard for
 * the Arm 64-bit Architecture (https://github.com/ARM-software/abi-aa, aapcs64, sections 6.8.2 and
 * 6.9). Plain data.
 */
#ifndef ACCEL_PASSING_H
#define ACCEL_PASSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library that defines a function which the program has called: lets an operation tell whether
 * it knows that library, and find what else it needs of it. */
struct accel_provider {
    void *function;
    /* Returns the address of a name that the same object defines, or NULL. Takes the dynamic
     * linker's locks. */
    void *(*symbol)(const struct accel_provider *provider, const char *name);
    /* Returns the path that its object was loaded from; "" if it has none. */
    const char *(*path)(const struct accel_provider *provider);
    /* Returns whether its object calls, or refers to, a function or variable of this name through
     * the dynamic linker. */
    bool (*refers)(const struct accel_provider *provider, const char *name);
};

enum accel_abi {
    ACCEL_ABI_FORTRAN, /* by reference; one hidden size_t length per CHARACTER argument, last */
    ACCEL_ABI_CBLAS,   /* layout first; integers, enums and real scalars by value */
    ACCEL_ABI_LAPACKE, /* the same with char for CHARACTER; neither workspace nor INFO, which is
                          returned */
    ACCEL_ABI_OWN      /* another library: the operation alone knows the arguments */
};

/* Registers that carry words (integers and pointers), and vector registers that carry a result: on
 * AArch64 one has up to four equal members. Both have eight vector registers for arguments, and
 * eight bytes for each argument on the stack. */
#ifdef __aarch64__
enum { ACCEL_WORD_REGISTERS = 8, ACCEL_RESULT_VECTORS = 4 };
#else
enum { ACCEL_WORD_REGISTERS = 6, ACCEL_RESULT_VECTORS = 2 };
#endif

/* A call's arguments. Words: the registers rdi rsi rdx rcx r8 r9, or x0 to x7, then the words of
 * the stack; real numbers: xmm0 to xmm7, or v0 to v7. A caller's stack is its own memory. */
struct accel_passed {
    const uint64_t *gpr;
    const double (*fpr)[2];
    const uint64_t *stack;
    size_t stack_words; /* of a call to be made; unknown in a caller's */
    uint64_t x8;        /* on AArch64: where the caller wants a result that is in memory */
    enum accel_abi abi;
    int width; /* bits of BLAS's INTEGER: 32 or 64 */
    /* Another library's: the original, and what the operation's accepts() has returned for it. */
    const struct accel_provider *provider;
    int layout;
};

/* Returns word i. */
static inline uint64_t accel_passed_word(const struct accel_passed *passed, int i)
{
    return i < ACCEL_WORD_REGISTERS ? passed->gpr[i] : passed->stack[i - ACCEL_WORD_REGISTERS];
}

/* Returns how many of a call's words are on the stack. */
static inline size_t accel_words_on_stack(size_t words)
{
    return words > ACCEL_WORD_REGISTERS ? words - ACCEL_WORD_REGISTERS : 0;
}

/* The registers of results: rax and rdx, xmm0 and xmm1; or x0 and x1, v0 to v3. */
struct accel_result {
    uint64_t gpr[2];
    double fpr[ACCEL_RESULT_VECTORS][2];
};

#endif
