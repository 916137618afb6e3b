/*
 * What a slow stub saves on x86-64, and the state of floating-point arithmetic. shim/arch/entry.h includes it for the C side, entry.S for
 * its numbers.
 */
#ifndef ACCEL_FRAME_H
#define ACCEL_FRAME_H

/* struct accel_frame */
#define ACCEL_FRAME_FPR  48
#define ACCEL_FRAME_RAX  176
#define ACCEL_FRAME_SIZE 200

#ifndef __ASSEMBLER__

#    include <stddef.h>
#    include <stdint.h>
#    include <string.h>

#    include "ops/passing.h"

/* The argument registers at the entry, then the caller's stack. */
struct accel_frame {
    uint64_t gpr[6]; /* rdi rsi rdx rcx r8 r9 */
    double fpr[8][2];
    uint64_t rax; /* if a function that is not BLAS is variadic: the number of vector registers */
    uint64_t unused[2];
    uintptr_t ret; /* return address: the call site */
    uint64_t stack[];
};

_Static_assert(offsetof(struct accel_frame, fpr) == ACCEL_FRAME_FPR, "frame layout");
_Static_assert(offsetof(struct accel_frame, ret) == ACCEL_FRAME_SIZE, "frame layout");

/* The address of a result in memory is an argument like others. */
static inline uint64_t accel_frame_x8(const struct accel_frame *frame)
{
    (void)frame;
    return 0;
}

/* Puts a call's result into the frame, from which the slow stub loads the registers. */
static inline void accel_frame_return(struct accel_frame *frame, const struct accel_result *result)
{
    frame->rax = result->gpr[0];
    frame->gpr[2] = result->gpr[1];
    memcpy(frame->fpr, result->fpr, sizeof result->fpr);
}

/* Flags and traps of floating-point arithmetic: MXCSR has both. */
struct accel_arithmetic {
    uint32_t mxcsr;
};

/* Returns the thread's, and sets those that mask all traps: MXCSR's value at reset. */
static inline struct accel_arithmetic accel_arithmetic_put_aside(void)
{
    const struct accel_arithmetic found = {__builtin_ia32_stmxcsr()};
    __builtin_ia32_ldmxcsr(0x1f80);
    return found;
}

static inline void accel_arithmetic_put_back(struct accel_arithmetic found)
{
    __builtin_ia32_ldmxcsr(found.mxcsr);
}

#endif
#endif
