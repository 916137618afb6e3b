#include "fork_policy.h"

#include <stdatomic.h>
#include <string.h>

#include "startup_banner.h"
#include "gpu/device/gpu.h"
#include "base/host/fork_server.h"
#include "base/thread/linker.h"
#include "report/banner.h"
#include "report/summary.h"
#include "report/totals.h"

/* Whether a path is that of CPython's module for the package multiprocessing. */
static bool is_multiprocessing(const char *path)
{
    const char *name = strrchr(path, '/');
    static const char module[] = "_multiprocessing.";
    return strncmp(name ? name + 1 : path, module, sizeof module - 1) == 0;
}

/* Walks over the loaded objects again only if `loads` has changed. */
static bool may_fork_for_cuda(const struct dispatch_caller *caller, unsigned long long loads)
{
    static _Atomic unsigned long long seen = ~0ull;
    static atomic_bool cuda, forks;
    if (atomic_load(&seen) != loads) {
        atomic_store(&cuda, caller->loaded(gpu_is_cuda_library));
        atomic_store(&forks, caller->loaded(is_multiprocessing));
        atomic_store(&seen, loads);
    }
    return atomic_load(&cuda) && (atomic_load(&forks) || linker_has_forked());
}

static void say_once(void)
{
    static atomic_bool said;
    if (atomic_exchange(&said, true))
        return;
    startup_banner_no_gpu(BANNER_HELD);
    summary_know(TOTALS_HELD);
}

bool fork_policy_is_server(void)
{
    static atomic_bool said;
    if (!fork_server_is_this())
        return false;
    if (!atomic_exchange(&said, true))
        startup_banner_no_gpu("this process forks Python's workers, which start CUDA themselves");
    return true;
}

bool fork_policy_applies(const struct accel_settings *settings,
                         const struct dispatch_caller *caller)
{
    bool asked = settings->start_given && settings->start == ACCEL_START_PROGRAM;
    if (settings->start_given && !asked)
        return false;
    unsigned long long loads = caller->loads();
    if (gpu_program_uses_cuda(loads))
        return false;
    if (asked)
        return true;
    if (!may_fork_for_cuda(caller, loads) || gpu_program_has_initialised(loads))
        return false;
    say_once();
    return true;
}
