/*
 * What a user expects of the decisions: 'SYMBOL on gpu|cpu OP N' or 'SYMBOL why REASON OP N', counted in the shim's JSON log.
 * SYMBOL is a name that was called, or a glob of such names. A call that the GPU has failed at, and the CPU has finished, ran
 * on the CPU.
 */
#ifndef ACCEL_TOOL_EXPECT_H
#define ACCEL_TOOL_EXPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/decide.h"

enum { EXPECT_SYMBOL_BYTES = 128 };

struct expectation {
    const char *text; /* the user's */
    char symbol[EXPECT_SYMBOL_BYTES];
    bool by_reason, on_gpu;
    enum accel_why why;
    char relation[3];
    int64_t wanted, seen;
};

/* Reads one. False: it is said on stderr what is wrong with it, and what is allowed. */
bool expect_parse(struct expectation *expectation, const char *text);

struct decisions {
    int64_t on_gpu, on_cpu, why[ACCEL_WHYS];
};

/* Counts the log's decisions, in all and for each expectation. No log: there was none to make. False: it cannot be read;
 * said on stderr. */
bool expect_count(struct decisions *decisions, struct expectation *expectations, int count,
                  const char *path);

bool expect_is_met(const struct expectation *expectation);

#endif
