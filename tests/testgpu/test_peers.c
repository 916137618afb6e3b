/* Copies between devices. */
#include <stdlib.h>
#include <string.h>
#include "test_testgpu.h"

enum { BYTES = 1 << 20 };

/* Two devices' contexts, of which the first is current, with memory on each: on the first
 * "from". */
struct two {
    CUcontext context[2];
    CUdeviceptr memory[2];
    CUstream stream;
};

static int begin_two(struct two *t)
{
    t->context[0] = begin();
    OK(cuDevicePrimaryCtxRetain(&t->context[1], 1));
    for (int i = 1; i >= 0; i--) {
        OK(cuCtxSetCurrent(t->context[i]));
        OK(cuMemAlloc(&t->memory[i], BYTES));
    }
    OK(cuMemcpyHtoD(t->memory[0], "from", 5));
    OK(cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING));
    return 0;
}

static int end_two(struct two *t)
{
    OK(cuStreamDestroy(t->stream));
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSetCurrent(t->context[i]));
        OK(cuMemFree(t->memory[i]));
    }
    return 0;
}

static CUresult copy(const struct two *t, size_t bytes)
{
    return cuMemcpyPeerAsync(t->memory[1], t->context[1], t->memory[0], t->context[0], bytes,
                             t->stream);
}

static int came_over(const struct two *t)
{
    char back[8] = "";
    OK(cuCtxSetCurrent(t->context[1]));
    OK(cuMemcpyDtoH(back, t->memory[1], 5));
    OK(cuCtxSetCurrent(t->context[0]));
    return strcmp(back, "from") != 0;
}

/* What devices say, and access, which has one direction. */
static int peer_access(void)
{
    const bool reach = getenv("TESTGPU_PEER_GBPS") != NULL;
    struct two t;
    int value = -1;
    CHECK(begin_two(&t) == 0);
    OK(cuDeviceCanAccessPeer(&value, 0, 1));
    CHECK(value == reach);
    OK(cuDeviceCanAccessPeer(&value, 1, 1));
    CHECK(value == 0);
    CHECK(cuDeviceCanAccessPeer(&value, 0, 2) == CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    CHECK(value == reach);
    OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1, 0));
    CHECK(value == 0);
    CHECK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1) ==
          CUDA_ERROR_INVALID_DEVICE);
    CHECK(cuCtxEnablePeerAccess(t.context[1], 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuCtxEnablePeerAccess(t.context[0], 0) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cuCtxEnablePeerAccess(t.context[1], 0) ==
          (reach ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED));
    if (reach)
        CHECK(cuCtxEnablePeerAccess(t.context[1], 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    OK(cuCtxSetCurrent(t.context[1]));
    CHECK(cuCtxDisablePeerAccess(t.context[0]) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(cuCtxSetCurrent(t.context[0]));
    if (reach)
        OK(cuCtxDisablePeerAccess(t.context[1]));
    CHECK(cuCtxDisablePeerAccess(t.context[1]) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    return end_two(&t);
}

/* Without access, too; each stands for itself, and none is there before its stream has got to
 * it. */
static int peer_copies(void)
{
    const bool reach = getenv("TESTGPU_PEER_GBPS") != NULL;
    struct two t;
    struct gate gate;
    CHECK(begin_two(&t) == 0);
    if (reach)
        OK(cuCtxEnablePeerAccess(t.context[1], 0));
    OK(gate_close(&gate, t.stream));
    OK(copy(&t, BYTES));
    CHECK(came_over(&t) != 0);
    gate_open(&gate);
    OK(cuStreamSynchronize(t.stream));
    CHECK(came_over(&t) == 0);
    return end_two(&t);
}

/* A context that the memory is not of. */
static int peer_of_another_device(void)
{
    struct two t;
    CHECK(begin_two(&t) == 0);
    OK(cuMemcpyPeerAsync(t.memory[1], t.context[0], t.memory[0], t.context[0], 16, t.stream));
    CHECK(cuStreamSynchronize(t.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int peer_beyond_the_end(void)
{
    struct two t;
    CHECK(begin_two(&t) == 0);
    OK(copy(&t, BYTES + 1));
    CHECK(cuStreamSynchronize(t.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

const struct scenario peer_scenarios[] = {
    {"peer_access", peer_access, {"TESTGPU_DEVICES=2", "TESTGPU_PEER_GBPS=0"}, {"faults n=0\n"}},
    {"no_peer_access", peer_access, {"TESTGPU_DEVICES=2"}, {"faults n=0\n"}},
    {"peer_copies",
     peer_copies,
     {"TESTGPU_DEVICES=2", "TESTGPU_PEER_GBPS=0.1048576", "TESTGPU_UP_GBPS=0.01"},
     {"faults n=0\n", "d2d_bytes=1048576", "up_us=10000"}},
    {"peer_copies_by_the_host",
     peer_copies,
     {"TESTGPU_DEVICES=2", "TESTGPU_UP_GBPS=0.1048576", "TESTGPU_DOWN_GBPS=0.1048576"},
     {"faults n=0\n", "d2d_bytes=1048576", "up_us=20000"}},
    {"peer_of_another_device",
     peer_of_another_device,
     {"TESTGPU_DEVICES=2", "TESTGPU_PEER_GBPS=0"},
     {"fault what=pointer_of_another_device", "faults n=1\n"}},
    {"peer_beyond_the_end",
     peer_beyond_the_end,
     {"TESTGPU_DEVICES=2", "TESTGPU_PEER_GBPS=0"},
     {"fault what=illegal_address", "faults n=1\n"}},
    {0},
};
