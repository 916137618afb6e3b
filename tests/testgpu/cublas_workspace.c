/*
 * Who works in which workspace: a handle's own, or the one that it was given. Products on two
 * streams at once that share one need not give the same bits each time, or spoil what is the other
 * one's (cuBLAS, Results Reproducibility and cublasSetWorkspace()): that is a fault here, even
 * where events keep them apart, as nothing here follows those.
 */
#include "cublas_workspace.h"

enum { USES = 256 };

static struct use {
    uintptr_t at;
    CUstream stream;
    unsigned pending;
} uses[USES];

struct use *workspace_take(cublasHandle_t handle)
{
    const uintptr_t at =
        handle->workspace != 0 ? (uintptr_t)handle->workspace : (uintptr_t)(void *)handle;
    struct use *use = NULL;
    testgpu_lock();
    for (int i = 0; i < USES; i++) {
        if (uses[i].pending == 0) {
            use = use == NULL ? &uses[i] : use;
        } else if (uses[i].at == at) {
            use = &uses[i];
            break;
        }
    }
    if (use != NULL && use->pending > 0 && use->stream != handle->stream)
        testgpu_fault("workspace_in_two_streams", "workspace=%#llx stream=%p and %p",
                      (unsigned long long)at, (void *)use->stream, (void *)handle->stream);
    if (use != NULL) {
        use->at = at;
        use->stream = handle->stream;
        use->pending++;
    }
    testgpu_unlock();
    return use;
}

void workspace_give(struct use *use)
{
    testgpu_lock();
    if (use != NULL)
        use->pending--;
    testgpu_unlock();
}
