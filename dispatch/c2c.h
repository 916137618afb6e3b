/*
 * Operands in host memory, on a device whose kernels reach it by the host's page tables (NVLink-C2C
 * of Grace; one memory): which of them kernels read where they are. Pure.
 */
#ifndef ACCEL_C2C_H
#define ACCEL_C2C_H

#include "decide.h"
#include "dispatch/settings/settings.h"

struct c2c_choice {
    unsigned placed; /* spans, as bits 1 << enum accel_matrix */
    double bytes;    /* of theirs, that no copy brings up */
    double ms;       /* that the device's kernels take longer for it */
};

/* Chooses among the operands that a supported call of BLAS reads and does not write, in host
 * memory, aligned to their elements. A result always comes down as a copy: kernels that fail would
 * leave it half written. */
struct c2c_choice c2c_choose(const struct accel_call *call, const struct accel_machine *machine,
                             enum accel_c2c policy);

/* Returns whether an operand's matrices begin at multiples of their elements' size, which kernels
 * need. */
bool c2c_is_aligned(const struct accel_span *x, int64_t batch);

#endif
