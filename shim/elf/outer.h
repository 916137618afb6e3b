/*
 * The function that the program has called, where that is another one of the same library, which
 * calls the one that libaccel stands in front of: svm_predict() calls svm_predict_values().
 * Standing in front of both would cost small calls twice.
 */
#ifndef ACCEL_OUTER_H
#define ACCEL_OUTER_H

#include "call/call.h"
#include "call/passing.h"

/* Returns the row, without exported names, of the provider's function that the code at return
 * address ret lies in; `routine`, if there is none. Takes the dynamic linker's locks: hold none of
 * ours. Thread-safe. */
const struct accel_routine *accel_outer_of(const struct accel_routine *routine,
                                           const struct accel_provider *provider, uintptr_t ret);

#endif
