/*
 * Inputs that another process has, whose calls this one runs (gpu/pack/packer.h). That process sees
 * by its own watches which ones are as they were (gpu/remote/client_inputs.h), and tells by which
 * key they are known then: so they are found without a digest. It is told which of its inputs are
 * in the device cache after the call, and under which keys.
 */
#ifndef ACCEL_TOLD_INPUTS_H
#define ACCEL_TOLD_INPUTS_H

#include "gpu/device/work.h"

/* An input that is kept: by a call that has found it there, or has brought it. */
enum told_kept { TOLD_NOT_KEPT, TOLD_FOUND, TOLD_BROUGHT };

struct told_input {
    struct accel_span x; /* ptr is NULL: there is none that could be kept */
    /* struct cached_worth, as the process has weighed it that has the input */
    bool looks, brings;
    bool seen;     /* that process has seen it before, and knows how often it changes */
    bool known;    /* by that process, before the call: */
    char triangle; /* accel_span.triangle, of what has the key */
    struct gpu_key key;
    /* The key is that of a larger matrix: of these sizes, in which it begins there */
    bool is_part;
    int64_t larger_rows, larger_cols, row, col;
    bool scanned; /* by a call of LAPACK, when the key was told: */
    struct gpu_scan scan;
    enum told_kept kept; /* after it, under the key */
};
struct told_inputs {
    struct told_input input[ACCEL_SPANS];
};

/* Returns what is told of an operand by a part of it; NULL: nothing is. */
struct told_input *told_inputs_of(const struct gpu_work *work, const struct accel_span *part);

/* Returns what is told of a part of an operand, or of all of it; NULL: its process does not know
 * it. */
const struct told_input *told_inputs_known(const struct gpu_work *work,
                                           const struct accel_span *part);

/* Notes that a part is kept under a key. scan: what a look at it has seen; NULL: it was none. */
void told_inputs_keep(struct gpu_work *work, const struct accel_span *part,
                      const struct gpu_key *key, enum told_kept kept, const struct gpu_scan *scan);

#endif
