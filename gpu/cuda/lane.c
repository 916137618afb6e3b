#include "lane.h"

#include "device.h"

#include <stdio.h>
#include <string.h>

void lanes_begin(struct cuda_device *device)
{
    pthread_mutex_init(&device->lanes.lock, NULL);
    pthread_cond_init(&device->lanes.released, NULL);
}

void lanes_end(struct cuda_device *device)
{
    pthread_cond_destroy(&device->lanes.released);
    pthread_mutex_destroy(&device->lanes.lock);
}

/* ---- Life ---- */

static void destroy_ring(struct lane_ring *ring)
{
    for (int i = 0; i < WIDE_RING_BUFFERS; i++)
        if (ring->buffer[i].done)
            CUDA(cuEventDestroy)(ring->buffer[i].done);
    if (ring->memory)
        CUDA(cuMemFreeHost)(ring->memory);
}

static void destroy_stream(CUstream stream)
{
    if (stream)
        CUDA(cuStreamDestroy)(stream);
}

static void destroy(struct gpu_lane *lane)
{
    if (lane->params)
        CUDA(cusolverDnDestroyParams)(lane->params);
    if (lane->cusolver)
        CUDA(cusolverDnDestroy)(lane->cusolver);
    if (lane->cublas)
        CUDA(cublasDestroy_v2)(lane->cublas);
    destroy_ring(&lane->narrow);
    destroy_ring(&lane->wide);
    timing_destroy(&lane->timing);
    if (lane->workspace)
        CUDA(cuMemFree)(lane->workspace);
    if (lane->joined)
        CUDA(cuEventDestroy)(lane->joined);
    for (int i = 0; i < LANE_STREAMS * LANE_STEPS; i++)
        if (lane->step[i / LANE_STEPS][i % LANE_STEPS])
            CUDA(cuEventDestroy)(lane->step[i / LANE_STEPS][i % LANE_STEPS]);
    destroy_stream(lane->up);
    destroy_stream(lane->down);
    destroy_stream(lane->beside);
    destroy_stream(lane->stream);
    memset(lane, 0, sizeof *lane);
}

/* Notes that cuBLAS does not start, with its version and the driver's: with an unfit driver it
 * answers NOT_INITIALIZED, which says nothing. */
static enum gpu_status cublas_is_broken(cublasStatus_t result)
{
    char answer[GPU_FAILURE_BYTES], library[GPU_FAILURE_BYTES - 80];
    cuda_api_describe_cublas(library, sizeof library);
    snprintf(answer, sizeof answer, "%s (%s)",
             CUDA(cublasGetStatusName) ? CUDA(cublasGetStatusName)(result) : "cuBLAS failed",
             library);
    failure_note(FAILURE_DEVICE, "cublasCreate", answer);
    return GPU_ERROR;
}

/* cuBLAS answers NOT_INITIALIZED if its own allocations fail, too. If it does not start with memory
 * to spare, the device is of no use. */
static enum gpu_status create_cublas(struct gpu_lane *lane)
{
    cublasStatus_t result = CUDA(cublasCreate_v2)(&lane->cublas);
    if (result != CUBLAS_STATUS_SUCCESS) {
        pool_trim(lane->device);
        result = CUDA(cublasCreate_v2)(&lane->cublas);
    }
    if (result == CUBLAS_STATUS_SUCCESS)
        return GPU_OK;
    lane->cublas = NULL;
    if (result == CUBLAS_STATUS_ALLOC_FAILED || gpu_memory_is_short())
        return GPU_NO_MEMORY;
    return cublas_is_broken(result);
}

/* cuSOLVER answers INTERNAL_ERROR or NOT_INITIALIZED if its own allocations fail. */
static enum gpu_status create_cusolver(struct gpu_lane *lane)
{
    cusolverStatus_t result = CUDA(cusolverDnCreate)(&lane->cusolver);
    if (result != CUSOLVER_STATUS_SUCCESS) {
        lane_free_idle(lane->device);
        pool_trim(lane->device);
        result = CUDA(cusolverDnCreate)(&lane->cusolver);
    }
    if (result == CUSOLVER_STATUS_SUCCESS)
        return GPU_OK;
    lane->cusolver = NULL;
    if (result == CUSOLVER_STATUS_ALLOC_FAILED || gpu_memory_is_short())
        return GPU_NO_MEMORY;
    return gpu_check_cusolver(result, "cusolverDnCreate");
}

enum gpu_status lane_use_solver(struct gpu_lane *lane)
{
    atomic_bool *broken = &lane->device->lanes.cusolver_is_broken;
    if (lane->params)
        return GPU_OK;
    lane->made = true;
    if (atomic_load(broken) || !cuda_api_open_cusolver())
        return GPU_UNSUPPORTED;
    enum gpu_status status = lane->cusolver ? GPU_OK : create_cusolver(lane);
    if (status == GPU_OK)
        status = GPU_CHECK_CUSOLVER(cusolverDnSetStream, lane->cusolver, lane->stream);
    if (status == GPU_OK)
        status = GPU_CHECK_CUSOLVER(cusolverDnCreateParams, &lane->params);
    if (status != GPU_OK)
        lane->params = NULL;
    if (status == GPU_ERROR)
        failure_is_of(FAILURE_SOLVER);
    if (status == GPU_ERROR || status == GPU_UNSUPPORTED)
        atomic_store(broken, true);
    return status;
}

static enum gpu_status create(struct cuda_device *device, struct gpu_lane *lane)
{
    enum gpu_status status;
    *lane = (struct gpu_lane){.device = device, .made = true};
    if ((status = GPU_CHECK(cuStreamCreate, &lane->stream, CU_STREAM_NON_BLOCKING)) != GPU_OK ||
        (status = GPU_CHECK(cuEventCreate, &lane->joined, CU_EVENT_DISABLE_TIMING)) != GPU_OK ||
        (status = create_cublas(lane)) != GPU_OK ||
        (status = GPU_CHECK_CUBLAS(cublasSetStream_v2, lane->cublas, lane->stream)) != GPU_OK)
        destroy(lane);
    return status;
}

/* Returns the first lane in a state, or -1. */
static int find_lane(const struct lanes *lanes, enum lane_state wanted)
{
    for (int i = 0; i < LANES_MAX; i++)
        if (lanes->state[i] == wanted)
            return i;
    return -1;
}

/* With the lock, which it releases meanwhile: a handle takes long to make, and other threads may
 * acquire or release lanes. */
static enum gpu_status create_unlocked(struct cuda_device *device, int at)
{
    struct lanes *lanes = &device->lanes;
    lanes->state[at] = LANE_CHANGING;
    pthread_mutex_unlock(&lanes->lock);
    enum gpu_status status = create(device, &lanes->lane[at]);
    pthread_mutex_lock(&lanes->lock);
    lanes->state[at] = status == GPU_OK ? LANE_IDLE : LANE_NONE;
    return status;
}

/* Returns whether a lane is free, or will be: one that is in use, or being made. */
static bool another_will_be_free(const struct lanes *lanes)
{
    return find_lane(lanes, LANE_IDLE) >= 0 || find_lane(lanes, LANE_USED) >= 0 ||
           find_lane(lanes, LANE_CHANGING) >= 0;
}

/* Returns whether the driver still answers. After a kernel's fault no lane works any more, and a
 * thread that has one may be busy with the original for long. */
static bool context_answers(void)
{
    size_t free_bytes, total;
    return CUDA(cuMemGetInfo)(&free_bytes, &total) == CUDA_SUCCESS;
}

enum gpu_status lane_acquire(struct cuda_device *device, bool waits, struct gpu_lane **lane)
{
    struct lanes *lanes = &device->lanes;
    enum gpu_status status = GPU_OK;
    struct failure outer;
    pthread_mutex_lock(&lanes->lock);
    int at;
    for (;;) {
        if ((at = find_lane(lanes, LANE_IDLE)) >= 0)
            break;
        at = find_lane(lanes, LANE_NONE);
        if (at >= 0) {
            failure_begin(&outer);
            status = create_unlocked(device, at);
            if (status == GPU_OK || !another_will_be_free(lanes) ||
                (status == GPU_ERROR && !context_answers())) {
                failure_pass_on(&outer, &device->common);
                break;
            }
            /* That no further lane can be made, for want of memory or of anything else, is no
             * failure of the device: other lanes work. */
            failure_end(&outer);
            status = GPU_OK;
            if (find_lane(lanes, LANE_IDLE) >= 0)
                continue;
        }
        if (!waits) {
            status = GPU_BUSY;
            break;
        }
        pthread_cond_wait(&lanes->released, &lanes->lock);
    }
    if (status == GPU_OK) {
        lanes->state[at] = LANE_USED;
        *lane = &lanes->lane[at];
    } else {
        pthread_cond_broadcast(&lanes->released); /* so that waiting threads find that out, too */
    }
    pthread_mutex_unlock(&lanes->lock);
    return status;
}

void lane_release(struct gpu_lane *lane, bool broken)
{
    struct lanes *lanes = &lane->device->lanes;
    const int at = (int)(lane - lanes->lane);
    const bool ends = broken || lane->astray;
    if (broken) {
        /* Calls on a failed device only fail again, and copies under way may still use the
         * buffers. */
        memset(lane, 0, sizeof *lane);
    } else if (ends) {
        destroy(lane);
    }
    pthread_mutex_lock(&lanes->lock);
    lanes->state[at] = ends ? LANE_NONE : LANE_IDLE;
    pthread_cond_signal(&lanes->released);
    pthread_mutex_unlock(&lanes->lock);
}

int64_t lane_least_chunk(const struct gpu_lane *lane)
{
    return gpu_chunk(&lane->device->common);
}

void lane_free_idle(struct cuda_device *device)
{
    struct lanes *lanes = &device->lanes;
    int at;
    pthread_mutex_lock(&lanes->lock);
    while ((at = find_lane(lanes, LANE_IDLE)) >= 0) {
        lanes->state[at] = LANE_CHANGING;
        pthread_mutex_unlock(&lanes->lock);
        destroy(&lanes->lane[at]);
        pthread_mutex_lock(&lanes->lock);
        lanes->state[at] = LANE_NONE;
    }
    pthread_cond_broadcast(&lanes->released);
    pthread_mutex_unlock(&lanes->lock);
}

/* ---- The stream ---- */

enum gpu_status lane_wait(struct gpu_lane *lane)
{
    if (lane->quiet && !lane->aside)
        return GPU_OK;
    timing_wait(lane);
    GPU_TRY(GPU_CHECK_FINAL(cuStreamSynchronize, lane->stream));
    if (lane->aside) {
        GPU_TRY(GPU_CHECK_FINAL(cuStreamSynchronize, lane->up));
        GPU_TRY(GPU_CHECK_FINAL(cuStreamSynchronize, lane->down));
        if (lane->beside)
            GPU_TRY(GPU_CHECK_FINAL(cuStreamSynchronize, lane->beside));
    }
    lane->quiet = true;
    lane->aside = false;
    lane->unmarked = 0;
    lane->copied = lane->copies;
    return GPU_OK;
}

static void change_streams(struct gpu_lane *lane)
{
    const CUstream other = lane->beside;
    lane->beside = lane->stream;
    lane->stream = other;
    lane->is_beside = !lane->is_beside;
}

/* What NVIDIA recommends for Hopper, and for what is older (cuBLAS, cublasSetWorkspace()); on a
 * device with little memory, a small part of that, but no less than cuBLAS needs. */
static int64_t workspace_bytes(const struct cuda_device *device)
{
    enum { LEAST = 16 << 10, PART = 256 };
    const int major = cuda_attribute(device->number, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const int64_t recommended = (int64_t)(major >= 9 ? 32 : 4) << 20;
    return accel_min(recommended, accel_max(LEAST, device->budget / PART / LEAST * LEAST));
}

enum gpu_status lane_prepare_beside(struct gpu_lane *lane)
{
    if (!CUDA(cublasSetWorkspace_v2))
        return GPU_UNSUPPORTED;
    if (!lane->workspace) {
        lane->workspace_bytes = workspace_bytes(lane->device);
        GPU_TRY(GPU_CHECK(cuMemAlloc, &lane->workspace, (size_t)lane->workspace_bytes));
        lane->made = true;
    }
    return lane->beside ? GPU_OK : GPU_CHECK(cuStreamCreate, &lane->beside, CU_STREAM_NON_BLOCKING);
}

enum gpu_status lane_go_beside(struct gpu_lane *lane)
{
    if (lane->is_beside)
        return GPU_OK;
    change_streams(lane);
    GPU_TRY(GPU_CHECK_CUBLAS(cublasSetStream_v2, lane->cublas, lane->stream));
    return GPU_CHECK_CUBLAS(cublasSetWorkspace_v2, lane->cublas, (void *)(uintptr_t)lane->workspace,
                            (size_t)lane->workspace_bytes);
}

/* Setting the stream takes the workspace back (cuBLAS, cublasSetStream()). */
enum gpu_status lane_go_back(struct gpu_lane *lane)
{
    if (!lane->is_beside)
        return GPU_OK;
    change_streams(lane);
    const enum gpu_status status = GPU_CHECK_CUBLAS(cublasSetStream_v2, lane->cublas, lane->stream);
    lane->astray = status != GPU_OK;
    return status;
}

/* While another stream captures, nothing can be put on the default stream, and an attempt would
 * break the capture; this question does not (CUDA driver API, cuStreamIsCapturing). */
bool lane_default_stream_is_closed(void)
{
    CUstreamCaptureStatus capture;
    return CUDA(cuStreamIsCapturing) && CUDA(cuStreamIsCapturing)(CU_STREAM_LEGACY, &capture) ==
                                            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

enum gpu_status lane_join_default_stream(struct gpu_lane *lane)
{
    if (lane_default_stream_is_closed())
        return GPU_OK;
    GPU_TRY(GPU_CHECK(cuEventRecord, lane->joined, CU_STREAM_LEGACY));
    return GPU_CHECK(cuStreamWaitEvent, lane_stream(lane), lane->joined, 0);
}

const struct gpu_copies cuda_copies = {.wait = lane_wait,
                                       .use_solver = lane_use_solver,
                                       .upload = lane_upload,
                                       .download = lane_download,
                                       .download_whole = lane_download_whole,
                                       .copy = lane_copy,
                                       .pipeline = lane_pipeline};
