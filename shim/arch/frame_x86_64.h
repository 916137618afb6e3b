/*
 * What a slow stub saves on x86-64, and the state of floating-point arithmetic. shim/arch/entry.h
 * includes it for the C side, entry.S for its numbers.
 */
#ifndef ACCEL_FRAME_H
#define ACCEL_FRAME_H

/* struct accel_frame */
#define ACCEL_FRAME_FPR  48
#define ACCEL_FRAME_RAX  176
#define ACCEL_FRAME_SIZE 200

#ifndef __ASSEMBLER__

#    include <stdbool.h>
#    include <stddef.h>
#    include <stdint.h>
#    include <string.h>

#    include "call/passing.h"

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

/* Flags, traps and rounding of floating-point arithmetic: MXCSR's, and those of the x87 unit, which
 * computes `long double` (ours, too: cpu_ref/judge.c). fesetround(3) and feenableexcept(3) set
 * both. */
struct accel_arithmetic {
    uint32_t mxcsr;
    uint16_t x87_control, x87_status;
};

/* The values at a program's start: all traps masked, rounding to nearest (System V ABI for x86-64,
 * section 3.4.1). */
#    define ACCEL_MXCSR_START 0x1f80
#    define ACCEL_X87_START   0x37f

/* In the status word: the flags, and that one of them is to trap. */
#    define ACCEL_X87_FLAGS 0x80ff

/* As FNSTENV stores it: Intel's manual, volume 1, section 8.1.10. */
struct accel_x87 {
    uint16_t control, unused0, status, unused1, tags, unused2;
    uint32_t pointers[4];
};

/* Stores the x87 unit's environment and masks its traps, also one that is pending. */
static inline struct accel_x87 accel_x87_take(void)
{
    struct accel_x87 found;
    __asm__ volatile("fnstenv %0" : "=m"(found));
    return found;
}

static inline struct accel_arithmetic accel_arithmetic_of_thread(void)
{
    struct accel_arithmetic found = {.mxcsr = __builtin_ia32_stmxcsr()};
    __asm__ volatile("fnstcw %0" : "=m"(found.x87_control));
    __asm__ volatile("fnstsw %0" : "=m"(found.x87_status));
    return found;
}

/* Returns the thread's, and sets a program's at its start. */
static inline struct accel_arithmetic accel_arithmetic_put_aside(void)
{
    const struct accel_arithmetic found = accel_arithmetic_of_thread();
    const uint16_t start = ACCEL_X87_START;
    __builtin_ia32_ldmxcsr(ACCEL_MXCSR_START);
    if (found.x87_control != start) {
        accel_x87_take();
        __asm__ volatile("fldcw %0" : : "m"(start));
    }
    return found;
}

static inline void accel_arithmetic_put_back(struct accel_arithmetic found)
{
    const struct accel_arithmetic now = accel_arithmetic_of_thread();
    __builtin_ia32_ldmxcsr(found.mxcsr);
    if (now.x87_control == found.x87_control &&
        !((now.x87_status ^ found.x87_status) & ACCEL_X87_FLAGS))
        return;
    struct accel_x87 x87 = accel_x87_take();
    x87.control = found.x87_control;
    x87.status = (uint16_t)((x87.status & ~ACCEL_X87_FLAGS) | (found.x87_status & ACCEL_X87_FLAGS));
    __asm__ volatile("fldenv %0" : : "m"(x87));
}

/* Returns in a word how a thread computes and no GPU does: it rounds otherwise than to nearest, or
 * traps (MXCSR's masks are bits 7 to 12, the x87 unit's 0 to 5); NULL: as a GPU. To make zeros of
 * numbers below the normal ones (FTZ, DAZ) does not count: docs/limits.md says why. */
static inline const char *accel_arithmetic_unlike_gpu(struct accel_arithmetic a)
{
    static const char *const rounding[] = {NULL, "rounds_down", "rounds_up", "rounds_to_zero"};
    const uint32_t rounds = a.mxcsr >> 13 & 3 ? a.mxcsr >> 13 & 3 : a.x87_control >> 10 & 3u;
    const bool traps = (~a.mxcsr & 0x1f80) || (~a.x87_control & 0x3f);
    return rounds ? rounding[rounds] : traps ? "traps" : NULL;
}

#endif
#endif
