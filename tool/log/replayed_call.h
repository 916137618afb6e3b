/*
 * The call of BLAS or LAPACK that a line of a log tells. Arguments that the line does not have are
 * as programs mostly pass them.
 */
#ifndef ACCEL_TOOL_TOLD_CALL_H
#define ACCEL_TOOL_TOLD_CALL_H

#include "log_file.h"
#include "call/call.h"
#include "call/passing.h"

struct replayed_call {
    struct accel_call call; /* with shapes and leading dimensions, without memory */
    enum accel_abi abi;     /* the interface that can make the call */
    char assumed[240];      /* what the line does not say, for people; empty: nothing */
};

/* Returns NULL, or why there is no call to be run again: constant text. */
const char *replayed_call_read(struct replayed_call *told, const struct log_line *line);

#endif
