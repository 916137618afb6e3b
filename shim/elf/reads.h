/*
 * Which of its arguments' bytes a function reads and writes, told from its code, which is not run.
 * A few hundred instructions are followed, along branches and calls, with the places where the
 * arguments are kept meanwhile.
 */
#ifndef ACCEL_READS_H
#define ACCEL_READS_H

#include "code.h"

enum { ACCEL_READS_ARGUMENTS = 16 };

/* Of an argument that is a pointer: sizes of what is read or written at the place where it points
 * to, and where the last one there ends. Of one that is an integer: whether the function computes
 * with its lower half, with the whole. */
enum { ACCEL_READS_4 = 1, ACCEL_READS_8 = 2, ACCEL_READS_10 = 4, ACCEL_READS_16 = 8 };

struct accel_reads {
    struct accel_read {
        uint8_t sizes;
        bool half, whole;
        int end;
    } argument[ACCEL_READS_ARGUMENTS]; /* in general registers, then on the stack */
};

/* False if memory is short, or the function is none of the object's. */
bool accel_reads_of(struct accel_reads *reads, const struct accel_code *code, const void *function);

#endif
