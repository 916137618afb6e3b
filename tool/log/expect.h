/*
 * What a user expects of the decisions: 'SYMBOL on gpu|cpu OP N' or 'SYMBOL why REASON OP N',
 * counted in the JSON log. SYMBOL is a called name, or a glob of such names. If the GPU failed at a
 * call and the CPU finished it, the call ran on the CPU.
 */
#ifndef ACCEL_TOOL_EXPECT_H
#define ACCEL_TOOL_EXPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/decide.h"

enum { EXPECT_SYMBOL_BYTES = 128 };

struct relation {
    const char *name; /* such as ">=" */
    bool met[3];      /* by a count below, at, above the wanted one */
};

struct expectation {
    const char *text; /* the user's */
    char symbol[EXPECT_SYMBOL_BYTES];
    bool by_reason; /* counts `why`; else on_gpu */
    bool on_gpu;
    enum accel_why why;
    const struct relation *relation;
    int64_t wanted, seen;
};

/* Reads an expectation. False with a message on stderr. */
bool expect_parse(struct expectation *expectation, const char *text);

/* The program's calls, and those that were made inside others (`depth` of the log). */
struct decision_counts {
    int64_t on_gpu, on_cpu, why[ACCEL_WHYS];
    int64_t inner_on_gpu, inner_on_cpu;
};

/* Counts the decisions in the log at `path`, in all and for each expectation, which inner calls
 * count for, too. No log means no decisions. False with a message on stderr if the log cannot be
 * read. */
bool expect_count(struct decision_counts *decisions, struct expectation *expectations, int count,
                  const char *path);

bool expect_is_met(const struct expectation *expectation);

#endif
