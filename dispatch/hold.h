/*
 * Whether CUDA is left to the program. CUDA does not survive a fork: the children of a process that has started it cannot use it. A
 * program whose children use CUDA themselves works if their parent has not touched it, so libaccel must not be who does. Thread-safe.
 */
#ifndef ACCEL_HOLD_H
#define ACCEL_HOLD_H

#include "dispatch.h"
#include "settings.h"

/* Whether libaccel may not start CUDA in this process, as of now. With ACCEL_START=program: until the program has a context of its
 * own. Where ACCEL_START is not given: as long as a CUDA library is loaded that the program has not started, and there is reason to
 * think that it forks for its computing: it has forked before, or Python's multiprocessing is loaded (as by PyTorch). */
bool hold_applies(const struct accel_settings *settings, const struct dispatch_caller *caller);

#endif
