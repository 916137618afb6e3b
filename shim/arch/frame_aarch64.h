/*
 * What a slow stub saves on AArch64, and the state of floating-point arithmetic. shim/arch/entry.h
 * includes it for the C side, entry.S for its numbers.
 */
#ifndef ACCEL_FRAME_H
#define ACCEL_FRAME_H

/* struct accel_frame */
#define ACCEL_FRAME_RECORD 64
#define ACCEL_FRAME_X8     80
#define ACCEL_FRAME_FPR    96
#define ACCEL_FRAME_SIZE   224

#ifndef __ASSEMBLER__

#    include <stddef.h>
#    include <stdint.h>
#    include <string.h>

#    include "call/passing.h"

/* The argument registers at the entry, then the caller's stack. */
struct accel_frame {
    uint64_t gpr[8];  /* x0 to x7 */
    uintptr_t fp;     /* with `ret` a frame record: aapcs64, section 6.4.6 */
    uintptr_t ret;    /* x30, the return address: the call site */
    uint64_t x8;      /* where the caller wants a result that is in memory: section 6.9 */
    uint64_t unused;  /* the stack pointer is a multiple of 16: section 6.4.5 */
    double fpr[8][2]; /* q0 to q7 */
    uint64_t stack[];
};

_Static_assert(offsetof(struct accel_frame, fp) == ACCEL_FRAME_RECORD &&
                   offsetof(struct accel_frame, ret) == ACCEL_FRAME_RECORD + 8,
               "frame layout");
_Static_assert(offsetof(struct accel_frame, x8) == ACCEL_FRAME_X8, "frame layout");
_Static_assert(offsetof(struct accel_frame, fpr) == ACCEL_FRAME_FPR, "frame layout");
_Static_assert(offsetof(struct accel_frame, stack) == ACCEL_FRAME_SIZE, "frame layout");

static inline uint64_t accel_frame_x8(const struct accel_frame *frame)
{
    return frame->x8;
}

/* Puts a call's result into the frame, from which the slow stub loads the registers. */
static inline void accel_frame_return(struct accel_frame *frame, const struct accel_result *result)
{
    memcpy(frame->gpr, result->gpr, sizeof result->gpr);
    memcpy(frame->fpr, result->fpr, sizeof result->fpr);
}

/* Traps and rounding of floating-point arithmetic, and its flags: Arm Architecture Reference Manual
 * for A-profile (DDI 0487), FPCR and FPSR. */
struct accel_arithmetic {
    uint32_t fpcr, fpsr;
};

/* Returns the thread's, and sets a program's at its start: no traps, rounding to nearest. Most
 * programs have that, and a write of FPCR may wait for all arithmetic. */
static inline struct accel_arithmetic accel_arithmetic_put_aside(void)
{
    const struct accel_arithmetic found = {__builtin_aarch64_get_fpcr(),
                                           __builtin_aarch64_get_fpsr()};
    if (found.fpcr)
        __builtin_aarch64_set_fpcr(0);
    return found;
}

static inline void accel_arithmetic_put_back(struct accel_arithmetic found)
{
    if (__builtin_aarch64_get_fpcr() != found.fpcr)
        __builtin_aarch64_set_fpcr(found.fpcr);
    __builtin_aarch64_set_fpsr(found.fpsr);
}

/* Returns in a word how a thread computes and no GPU does: it rounds otherwise than to nearest
 * (FPCR.RMode, bits 22 and 23), or traps (bits 8 to 12, and 15 for denormal inputs; they stay 0 on
 * a processor without traps); NULL: as a GPU. To make zeros of numbers below the normal ones (FZ,
 * FIZ), and to keep no payload of a NaN (DN), do not count: docs/limits.md says why. */
static inline const char *accel_arithmetic_unlike_gpu(struct accel_arithmetic a)
{
    static const char *const rounding[] = {NULL, "rounds_up", "rounds_down", "rounds_to_zero"};
    const uint32_t rounds = a.fpcr >> 22 & 3;
    return rounds ? rounding[rounds] : a.fpcr & 0x9f00 ? "traps" : NULL;
}

#endif
#endif
