/* Copies between devices, and whether they go straight from one to the other. */
#include <string.h>
#include "driver.h"

bool peers_reach(CUdevice device, CUdevice peer)
{
    return settings.peers && device != peer;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    DRIVER_ENTER(0, "can=%p device=%d peer=%d", (void *)can, device, peer);
    if (can == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    if (!device_is(device) || !device_is(peer))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    *can = peers_reach(device, peer);
    TESTGPU_RETURN(CUDA_SUCCESS);
}

/* Two links are equally fast here. */
CUresult CUDAAPI cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute,
                                         CUdevice device, CUdevice peer)
{
    DRIVER_ENTER(0, "value=%p attribute=%d device=%d peer=%d", (void *)value, (int)attribute,
                 device, peer);
    if (value == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    if (!device_is(device) || !device_is(peer) || device == peer)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    if (attribute != CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
        attribute != CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED && settings.peers;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

/* ---- Access ---- */

/* Returns the place of a peer among those whose memory a context may use; their number: it is none
 * of them. With the lock. */
static int place_of(const struct CUctx_st *context, CUcontext peer)
{
    int at = 0;
    while (at < context->peers && context->peer[at] != peer)
        at++;
    return at;
}

/* CUDA: of one direction. */
static CUresult allow(CUcontext peer, unsigned flags)
{
    CUcontext own = testgpu_current();
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context_is(peer, TESTGPU_ALIVE) || peer == own)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!peers_reach(own->device, peer->device))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (place_of(own, peer) < own->peers)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (own->peers == DEVICES_MAX)
        return CUDA_ERROR_TOO_MANY_PEERS;
    own->peer[own->peers++] = peer;
    return CUDA_SUCCESS;
}

static CUresult forbid(CUcontext peer)
{
    CUcontext own = testgpu_current();
    if (!context_is(peer, TESTGPU_ALIVE))
        return CUDA_ERROR_INVALID_CONTEXT;
    const int at = place_of(own, peer);
    if (at == own->peers)
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    own->peer[at] = own->peer[--own->peers];
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "peer=%p flags=%u", (void *)peer, flags);
    testgpu_lock();
    const CUresult code = allow(peer, flags);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peer)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "peer=%p", (void *)peer);
    testgpu_lock();
    const CUresult code = forbid(peer);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

/* ---- Copies ---- */

struct peer_copy {
    CUdeviceptr from, to;
    CUcontext from_context, to_context;
    size_t bytes;
};

/* Memory of another context than the call names is told, and the copy fails. */
static char *reach_in(struct testgpu_run *run, CUcontext context, CUdeviceptr address, size_t bytes)
{
    CUcontext own = run->context;
    run->context = context;
    char *reached = testgpu_reach(run, address, bytes);
    run->context = own;
    return reached;
}

static CUresult run_copy(struct testgpu_run *run, void *argument)
{
    const struct peer_copy *copy = argument;
    if (copy->bytes == 0)
        return CUDA_SUCCESS;
    const char *from = reach_in(run, copy->from_context, copy->from, copy->bytes);
    char *to = from ? reach_in(run, copy->to_context, copy->to, copy->bytes) : NULL;
    if (to == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (settings.data)
        memmove(to, from, copy->bytes);
    testgpu_lock();
    copied.device_to_device += copy->bytes;
    copied.between_devices += copy->bytes;
    testgpu_unlock();
    return CUDA_SUCCESS;
}

/* With the lock. A copy goes straight where either side may use the other's memory, else by way of
 * the host. */
static CUresult put_copy(const struct peer_copy *copy, CUstream handle)
{
    CUresult code;
    CUcontext from = copy->from_context, to = copy->to_context;
    if (!context_is(from, TESTGPU_ALIVE) || !context_is(to, TESTGPU_ALIVE))
        return CUDA_ERROR_INVALID_CONTEXT;
    CUstream stream = stream_of(handle, &code);
    if (stream == NULL)
        return code;
    if (capture_active(stream)) {
        capture_dropped(stream);
        return CUDA_SUCCESS;
    }
    struct operation *operation = operation_new("peer copy", run_copy, copy, sizeof *copy);
    if (operation == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    operation->counted = true;
    speed_of_peer_copy(stream->object.context->device, operation, copy->bytes,
                       place_of(from, to) < from->peers || place_of(to, from) < to->peers);
    return stream_put(stream, operation, NULL);
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                   CUcontext from_context, size_t bytes, CUstream stream)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "to=%#llx of %p from=%#llx of %p bytes=%zu stream=%p", to,
                 (void *)to_context, from, (void *)from_context, bytes, (void *)stream);
    const struct peer_copy copy = {from, to, from_context, to_context, bytes};
    testgpu_lock();
    const CUresult code = put_copy(&copy, stream);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}
