/*
 * Calls that no device takes as a whole, by inner calls of BLAS and LAPACK on memory of the host's
 * (ops/decompose.h). Each inner call runs on the task's device, or is shared by several, by the
 * estimates of such a call. Thread-safe.
 */
#ifndef ACCEL_DECOMPOSED_H
#define ACCEL_DECOMPOSED_H

#include "select.h"

/* Whether a valid call could be decomposed: cheap. */
bool decomposed_may_be(const struct accel_call *call);

/* Returns the milliseconds that it would take so; 0: it cannot be, such as for lack of memory. */
double decomposed_estimate(const struct task *task);

/* Does what gpu_run() does, with the same meaning of the status. Judges the results before the
 * program gets them: those beyond the bounds of rounding (verify_apart()) are GPU_UNSUPPORTED, and
 * nothing was written. A device that fails is left alone from here on; of task->host, only what
 * reports are told counts, and the bytes that are filled in. Fills in record->ran, if the call has
 * been done. */
enum gpu_status decomposed_run(struct task *task, struct accel_record *record);

#endif
