/*
 * The versions of scikit-learn whose copies of libsvm and liblinear are known: 1.3 to 1.9, whose
 * structs are alike.
 */
#ifndef ACCEL_SKLEARN_VERSION_H
#define ACCEL_SKLEARN_VERSION_H

#include <stdbool.h>

#include "call/passing.h"

/* Returns whether the provider is an object of sklearn/svm/ whose name begins with `object`, in a
 * folder of packages where, by its metadata, scikit-learn is of a known version. */
bool sklearn_is_known(const struct accel_provider *provider, const char *object);

#endif
