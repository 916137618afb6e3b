/*
 * Whether CUDA is left to the program. CUDA does not survive a fork: the children of a process that
 * has started it cannot use it. If the children of a program use CUDA themselves, libaccel must not
 * start it in their parent. Thread-safe.
 */
#ifndef ACCEL_FORK_POLICY_H
#define ACCEL_FORK_POLICY_H

#include "dispatch.h"
#include "dispatch/settings/settings.h"

/* Whether libaccel must not start CUDA in this process now. With ACCEL_START=program: until the
 * program has a context of its own. If ACCEL_START is not given: as long as a CUDA library is
 * loaded that the program has not initialised, and the program probably computes in forked
 * children: it has forked before, or Python's multiprocessing is loaded (as by PyTorch). */
bool fork_policy_applies(const struct accel_settings *settings,
                         const struct dispatch_caller *caller);

/* Whether this is a fork server (base/host/fork_server.h): it calls BLAS while it imports modules,
 * and CUDA is left to its children, whatever the settings. A call that stays on the CPU for that is
 * no fallback. Says so to outputs. */
bool fork_policy_is_server(void);

#endif
