/*
 * What a decision's line of the log says, as numbers, and what follows from its routine and sizes.
 * Pure functions.
 */
#ifndef ACCEL_TOOL_LOG_DECISION_H
#define ACCEL_TOOL_LOG_DECISION_H

#include "log_file.h"
#include "call/call.h"

/* LOG_BOTH: failed on the GPU, finished on the CPU */
enum log_side { LOG_CPU, LOG_GPU, LOG_BOTH, LOG_SIDES };

struct log_decision {
    char name[48];         /* the routine's; of a name that the table lacks, the symbol */
    const char *ran, *why; /* the line's */
    enum log_side side;
    /* Equal ones that the line stands for; ms, bytes and operations are their sums */
    int64_t calls;
    bool inner;                    /* made inside a call that has a line of its own, too */
    int64_t largest;               /* of the sizes that the line has; 0: it has none */
    double size;                   /* their geometric mean */
    double ms;                     /* negative: not timed */
    double est_cpu_ms, est_gpu_ms; /* 0: not estimated */
    double up_mb, down_mb, kept_mb;
    double operations, operand_bytes; /* by the table; 0: not known, or nothing was computed */
    enum accel_dtype dtype;
};

/* Fills it in from a line, which must be a decision. */
void log_decision_read(struct log_decision *decision, const struct log_line *line);

/* Makes the call of a decision's line, as far as the log tells it: routine, flags, sizes, and the
 * shapes of its operands, which have no memory; scalars are 1. False if the line is of no routine
 * of BLAS or LAPACK, or has no possible sizes. */
bool log_call(struct accel_call *call, const struct log_line *line);

#endif
