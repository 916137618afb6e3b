/*
 * A library that can compute on the GPU by itself: libaccel only tells it which device to use. The
 * original runs every call.
 */
#ifndef ACCEL_GUIDE_H
#define ACCEL_GUIDE_H

#include <stdatomic.h>

#include "op.h"

/* One call on its way. */
struct guide {
    struct accel_call *call; /* its operation's fields are for the log */
    const struct accel_passed *passed;
    /* Returns CUDA's number of the device to use; negative: there is none. Starts it at the first
     * question. */
    int (*device)(struct guide *guide);
    /* Runs the original with the caller's arguments, where op->foreign->instead() may replace one;
     * returns what the original leaves in rax. If the operation does not call this, the caller's
     * call still goes to the original. */
    uint64_t (*original)(struct guide *guide);
    char told[32]; /* room for the device's name */
};

/* call->own of a guided call, for the log: the device that the library was told, and what the
 * library lacks. */
enum { GUIDE_TOLD, GUIDE_BUILD };

/* passed->layout of a library that has builds with CUDA and without. */
enum { GUIDE_NO_CUDA = 1, GUIDE_WITH_CUDA };

/* Tells the log the device's name: cuda, or cuda:2. */
void guide_name_device(struct guide *guide, int number);

/* Returns what to report of a library that was built without CUDA: one line in each process. *said
 * is the caller's note that the line has been written. */
enum guide_news guide_lacks_cuda(const struct guide *guide, atomic_bool *said);

/* Returns whether an error message of a library that computes with CUDA speaks of a lack of memory.
 * NULL: no. */
bool guide_lacks_memory(const char *message);

/* An operation of a guided library; `...`: more members of its struct accel_foreign. */
#define GUIDED(library, accepts_provider, guided_by, ...)                                          \
    .traits = {.group = ACCEL_NO_BLAS}, .cost = &guide_cost,                                       \
    OP_FOREIGN(.ml = (library), .accepts = (accepts_provider), .parse = guide_parse,               \
               .describe = guide_describe, .guide = (guided_by), __VA_ARGS__)

extern const struct accel_cost guide_cost;
bool guide_parse(struct accel_call *call, const struct accel_passed *passed);
void guide_describe(const struct accel_call *call, const struct accel_fields *fields);

#endif
