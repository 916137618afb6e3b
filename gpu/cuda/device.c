#define _GNU_SOURCE
#include "device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/pci.h"
#include "base/thread/copy_pool.h"
#include "gpu/device/choose.h"
#include "gpu/device/exit_guard.h"
#include "idle.h"
#include "gpu/cuda/api/mps.h"
#include "precision.h"

static atomic_int started; /* devices in use */
static atomic_bool dead;   /* this is the child of a fork, where CUDA does not work */

static atomic_uint starts; /* that have begun, and that have ended */

unsigned cuda_starts(void)
{
    return atomic_load(&starts);
}

bool cuda_is_started(void)
{
    return atomic_load(&started) > 0;
}

bool cuda_is_dead(void)
{
    return atomic_load(&dead);
}

static enum gpu_status push_context(struct cuda_device *device)
{
    struct failure outer;
    CUresult result = CUDA(cuCtxPushCurrent)(device->context);
    if (result == CUDA_SUCCESS)
        return GPU_OK;
    failure_begin(&outer);
    enum gpu_status status = gpu_check_final(result, "cuCtxPushCurrent");
    failure_pass_on(&outer, &device->common);
    return status;
}

enum gpu_status gpu_enter(struct cuda_device *device, struct gpu_scope *scope)
{
    scope->mode_exchanged = false;
    if (atomic_load(&dead) || !exit_guard_enter())
        return GPU_ERROR;
    enum gpu_status status = push_context(device);
    if (status != GPU_OK) {
        exit_guard_leave();
        return status;
    }
    scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (CUDA(cuThreadExchangeStreamCaptureMode))
        scope->mode_exchanged =
            CUDA(cuThreadExchangeStreamCaptureMode)(&scope->mode) == CUDA_SUCCESS;
    return GPU_OK;
}

void gpu_leave(const struct gpu_scope *scope)
{
    CUstreamCaptureMode mode = scope->mode;
    CUcontext ours;
    if (scope->mode_exchanged)
        CUDA(cuThreadExchangeStreamCaptureMode)(&mode);
    CUDA(cuCtxPopCurrent)(&ours);
    exit_guard_leave();
}

bool gpu_memory_is_short(void)
{
    const size_t ample = (size_t)512 << 20; /* for a library's workspace and its kernels */
    size_t free_bytes, total;
    return CUDA(cuMemGetInfo)(&free_bytes, &total) == CUDA_SUCCESS && free_bytes < ample &&
           free_bytes < total / 4;
}

/* ---- Start ---- */

static struct nominal_rates rates_of(CUdevice number, const struct gpu_info *info)
{
    const struct nominal_attributes attributes = {
        .major = cuda_attribute(number, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        .minor = cuda_attribute(number, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        .processors = cuda_attribute(number, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .clock_khz = cuda_attribute(number, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .memory_clock_khz = cuda_attribute(number, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
        .bus_bits = cuda_attribute(number, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
        .single_to_double =
            cuda_attribute(number, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
        .integrated = info->integrated,
        .host_page_tables = info->host_page_tables};
    return nominal_rates(&attributes);
}

/* What tells a device from others of this machine; false: the driver does not say. */
static bool read_id(CUdevice number, char id[static 33])
{
    CUuuid uuid = {{0}};
    static const char hex[] = "0123456789abcdef";
    const bool told = CUDA(cuDeviceGetUuid) && CUDA(cuDeviceGetUuid)(&uuid, number) == CUDA_SUCCESS;
    for (int i = 0; i < 16; i++) {
        id[2 * i] = hex[(unsigned char)uuid.bytes[i] >> 4];
        id[2 * i + 1] = hex[(unsigned char)uuid.bytes[i] & 15];
    }
    id[32] = 0;
    return told;
}

/* Takes a device's primary context. */
static enum gpu_status take_device(struct cuda_device *device, int ordinal, size_t *total,
                                   size_t *free_bytes)
{
    struct gpu_info *info = &device->common.info;
    struct gpu_scope scope;
    enum gpu_status status;
    info->index = ordinal;
    if ((status = GPU_CHECK(cuDeviceGet, &device->number, ordinal)) != GPU_OK ||
        (status = GPU_CHECK(cuDeviceGetName, info->name, sizeof info->name, device->number)) !=
            GPU_OK ||
        (status = GPU_CHECK(cuDeviceTotalMem, total, device->number)) != GPU_OK ||
        (status = GPU_CHECK(cuDevicePrimaryCtxRetain, &device->context, device->number)) != GPU_OK)
        return status;
    status = gpu_enter(device, &scope);
    if (status == GPU_OK) {
        status = GPU_CHECK(cuMemGetInfo, free_bytes, total);
        gpu_leave(&scope);
    }
    if (status != GPU_OK)
        CUDA(cuDevicePrimaryCtxRelease)(device->number);
    return status;
}

static int compute_mode(int ordinal)
{
    CUdevice number;
    return CUDA(cuDeviceGet)(&number, ordinal) == CUDA_SUCCESS
               ? cuda_attribute(number, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)
               : CU_COMPUTEMODE_DEFAULT;
}

static bool is_allowed(int ordinal)
{
    return compute_mode(ordinal) != CU_COMPUTEMODE_PROHIBITED;
}

/* A device with less free memory is of no use. */
#define LEAST_FREE ((size_t)64 << 20)

static void pass_over(struct gpu_info *info, int ordinal, const char *why)
{
    size_t length = strlen(info->passed_over);
    snprintf(info->passed_over + length, sizeof info->passed_over - length, "%sgpu%d: %s",
             length ? "; " : "", ordinal, why);
}

static void pass_over_out(struct gpu_info *info, const struct device_choice *choice, int there)
{
    char why[64];
    for (int i = 0; i < choice->outs; i++) {
        if (choice->out[i] < there)
            snprintf(why, sizeof why, "its compute mode is prohibited");
        else
            snprintf(why, sizeof why, "there is no device %d, but %d from 0 on", choice->out[i],
                     there);
        pass_over(info, choice->out[i], why);
    }
}

enum { WHY_BYTES = 256 };

/* Returns GPU_OK if it takes the device, else the reason in why[WHY_BYTES]. roomy: refuses a device
 * whose memory others have taken. */
static enum gpu_status try_device(struct cuda_device *device, int ordinal, bool roomy,
                                  size_t *total, char *why)
{
    struct failure outer;
    size_t free_bytes = 0;
    failure_begin(&outer);
    enum gpu_status status = take_device(device, ordinal, total, &free_bytes);
    snprintf(why, WHY_BYTES, "%.200s%s",
             status == GPU_NO_MEMORY ? "the CUDA context: out of memory" : failure_noted()->text,
             compute_mode(ordinal) == CU_COMPUTEMODE_EXCLUSIVE_PROCESS
                 ? " (its compute mode is exclusive)"
                 : "");
    failure_end(&outer);
    if (status == GPU_OK && roomy && free_bytes < LEAST_FREE) {
        CUDA(cuDevicePrimaryCtxRelease)(device->number);
        snprintf(why, WHY_BYTES, "out of memory: others have all but %zu MB", free_bytes / 1000000);
        status = GPU_NO_MEMORY;
    }
    return status;
}

/* CUDA's numbers of the devices that this process uses, as bits. */
static _Atomic uint64_t used;

static uint64_t bit_of(int ordinal)
{
    return (uint64_t)1 << ordinal % CHOICE_MAX;
}

/* Takes the devices that this process uses out of the choice, and then those of other processes'
 * shares. */
static void leave_out_used(struct device_choice *choice)
{
    int left = 0;
    if (!atomic_load(&used))
        return;
    for (int i = 0; i < choice->share && i < choice->count; i++)
        if (!(atomic_load(&used) & bit_of(choice->device[i])))
            choice->device[left++] = choice->device[i];
    choice->count = left;
}

/* Takes the first device that can be had with memory left; if there is none, the first that lacked
 * memory and can be had now. */
static bool try_devices(struct cuda_device *device, const struct device_choice *choice,
                        size_t *total)
{
    bool scarce[CHOICE_MAX] = {false}, several = choice->count > 1;
    char why[WHY_BYTES];
    for (int pass = several ? 0 : 1; pass < 2; pass++)
        for (int i = 0; i < choice->count; i++) {
            if (gpu_is_gone())
                return false;
            if (several && pass == 1 && !scarce[i])
                continue;
            enum gpu_status status = try_device(device, choice->device[i], pass == 0, total, why);
            if (status == GPU_OK)
                return true;
            if (!scarce[i]) /* else the first pass has said so */
                pass_over(&device->common.info, choice->device[i], why);
            scarce[i] = status == GPU_NO_MEMORY;
        }
    return false;
}

/* ---- Which device ---- */

/* Puts the devices that fewer processes use first, and takes a seat at the first. Returns false,
 * with nothing changed, if nobody can tell which that is. */
static bool choose_seat(struct cuda_device *device, struct device_choice *choice)
{
    char id[CHOICE_MAX][33];
    struct seat_device devices[CHOICE_MAX];
    CUdevice number;
    for (int i = 0; i < choice->count; i++) {
        if (CUDA(cuDeviceGet)(&number, choice->device[i]) != CUDA_SUCCESS ||
            !read_id(number, id[i]))
            return false;
        devices[i] = (struct seat_device){.device = choice->device[i], .name = id[i]};
    }
    if (!seat_choose(&device->seat, devices, choice->count))
        return false;
    for (int i = 0; i < choice->count; i++)
        choice->device[i] = devices[i].device;
    device->common.info.others = devices[0].others;
    return true;
}

/* The process's seat is at the device that it has got, for others to see. */
static void sit_down(struct cuda_device *device, bool has_seat, int seat_at)
{
    struct gpu_info *info = &device->common.info;
    if (has_seat && info->index == seat_at)
        return;
    char id[33];
    seat_leave(&device->seat);
    info->others = 0;
    if (read_id(device->number, id))
        seat_take(&device->seat, id);
}

static const char *why_chosen(const struct gpu_config *config, const struct device_choice *choice,
                              int index, bool fewest)
{
    return config->device_count > 0 || config->several ? "setting"
           : choice->count == 1                        ? "only"
           : index != choice->device[0]                ? "next"
           : fewest                                    ? "fewest"
           : config->spreads                           ? "first"
                                                       : "rank";
}

/* Returns NULL, or why there is no device: constant text, or text of the device or this thread. */
static const char *open_device(struct cuda_device *device, const struct gpu_config *config)
{
    struct gpu_info *info = &device->common.info;
    int there = 0;
    size_t total = 0;
    struct device_choice choice;
    if (GPU_CHECK_FINAL(cuDeviceGetCount, &there) != GPU_OK)
        return failure_noted()->text;
    /* CUDA_VISIBLE_DEVICES has chosen and ordered them already. */
    choose_devices(&choice, config, there, is_allowed);
    if (config->several)
        leave_out_used(&choice);
    if (!config->several || !atomic_load(&used))
        pass_over_out(info, &choice, there);
    const bool fewest = config->spreads && choice.count > 1 && choose_seat(device, &choice);
    if (!try_devices(device, &choice, &total)) {
        seat_leave(&device->seat);
        return there == 0             ? "cuDeviceGetCount: no device"
               : info->passed_over[0] ? info->passed_over
               : gpu_is_gone()        ? "the program has ended"
                                      : "all that this process may use are in use";
    }
    sit_down(device, fewest, choice.device[0]);
    info->chosen = why_chosen(config, &choice, info->index, fewest);
    info->sharers = choice.sharers;
    info->share = choice.share;
    copy_pool_share(config->local_size);
    device->budget = config->memory_bytes
                         ? config->memory_bytes
                         : (int64_t)((double)total * config->memory_share / info->sharers);
    info->memory_bytes = device->budget;
    info->integrated = cuda_attribute(device->number, CU_DEVICE_ATTRIBUTE_INTEGRATED) > 0;
    pci_root_port(pci_devices, cuda_attribute(device->number, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
                  cuda_attribute(device->number, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
                  cuda_attribute(device->number, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID), info->port);
    info->host_page_tables =
        cuda_attribute(device->number,
                       CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) > 0;
    info->nominal = rates_of(device->number, info);
    info->cuda_version = gpu_library(GPU_DRIVER)->version;
    info->cublas_version = gpu_library(GPU_BLAS)->version;
    precision_all(info->precisions, device->number, info->cublas_version);
    info->mps = mps_serves(device->number);
    read_id(device->number, info->id);
    return NULL;
}

/* ---- End ---- */

static void trim_device(struct gpu_device *device)
{
    struct cuda_device *own = cuda_device_of(device);
    struct gpu_scope scope;
    if (gpu_enter(own, &scope) != GPU_OK)
        return;
    stream_ctx_free_idle(own);
    pool_trim(own);
    gpu_leave(&scope);
}

static void unpin(struct gpu_device *device, struct packer *packer)
{
    struct gpu_scope scope;
    if (gpu_enter(cuda_device_of(device), &scope) != GPU_OK)
        return;
    CUDA(cuMemHostUnregister)(packer->memory);
    gpu_leave(&scope);
    packer->pinned = false;
}

/* The first device needs no malloc(): if the host is out of memory, the program's operands on the
 * device are still found. */
static struct cuda_device first_place;
static atomic_bool first_taken;

static struct cuda_device *alloc_device_place(void)
{
    if (atomic_exchange(&first_taken, true))
        return calloc(1, sizeof(struct cuda_device));
    memset(&first_place, 0, sizeof first_place);
    return &first_place;
}

static void free_device_place(struct cuda_device *device)
{
    if (device == &first_place)
        atomic_store(&first_taken, false);
    else
        free(device);
}

static void end_lent_memory(struct cuda_device *device)
{
    struct gpu_scope scope;
    if (!device->pool.lending.stream || gpu_enter(device, &scope) != GPU_OK)
        return;
    lent_memory_close(&device->pool.lending);
    gpu_leave(&scope);
}

static void stop(struct gpu_device *device)
{
    struct cuda_device *own = cuda_device_of(device);
    idle_forget(own);
    trim_device(device);
    end_lent_memory(own);
    own_end(own);
    seat_leave(&own->seat);
    CUDA(cuDevicePrimaryCtxRelease)(own->number);
    atomic_fetch_and(&used, ~bit_of(device->info.index));
    atomic_fetch_sub(&started, 1);
    pool_end(own);
    stream_ctxs_end(own);
    free_device_place(own);
}

/* ---- All together ---- */

static bool has_cached(struct gpu_device *device, const struct gpu_key *key, uint64_t user)
{
    return pool_has(cuda_device_of(device), key, user);
}

static void count_memory(struct gpu_device *device, const uint64_t *user, int64_t *held,
                         int64_t *cached)
{
    pool_count(cuda_device_of(device), user, held, cached);
}

static int list_cached(struct gpu_device *device, uint64_t user, uint64_t *word, int most)
{
    return pool_list_cached(cuda_device_of(device), user, word, most);
}

static const struct gpu_device_functions functions = {.run = cuda_run,
                                                      .has_cached = has_cached,
                                                      .count_memory = count_memory,
                                                      .list_cached = list_cached,
                                                      .locate = cuda_locate,
                                                      .fetch = cuda_fetch,
                                                      .store = cuda_store,
                                                      .measure_copies = cuda_measure_copies,
                                                      .measure_paces = cuda_measure_paces,
                                                      .peer_gbps = cuda_peer_gbps,
                                                      .trim = trim_device,
                                                      .unpin = unpin,
                                                      .stop = stop,
                                                      .memory = &cuda_memory,
                                                      .copies = &cuda_copies,
                                                      .kernels = &cuda_kernels,
                                                      .own = &cuda_own,
                                                      .solver = &cuda_solver};

/* Returns NULL, or why there is no device. */
static const char *start_device(struct cuda_device *device, const struct gpu_config *config)
{
    const char *reason = cuda_api_open(config->cuda_dir);
    if (!reason && exit_guard_has_begun())
        reason = "the program has ended";
    return reason ? reason : open_device(device, config);
}

struct gpu_device *gpu_start(const struct gpu_config *config, char why[GPU_FAILURE_BYTES])
{
    struct failure outer;
    exit_guard_watch();
    if (!exit_guard_enter()) {
        snprintf(why, GPU_FAILURE_BYTES, "the program has ended");
        return NULL;
    }
    struct cuda_device *device = alloc_device_place();
    atomic_fetch_add(&starts, 1);
    failure_begin(&outer);
    const char *reason = device ? start_device(device, config) : "no memory";
    if (reason) {
        snprintf(why, GPU_FAILURE_BYTES, "%s", reason);
        free_device_place(device);
        device = NULL;
    } else {
        device->common.functions = &functions;
        device->start = atomic_load(&starts);
        pool_begin(device);
        stream_ctxs_begin(device);
        own_begin(device);
        atomic_fetch_or(&used, bit_of(device->common.info.index));
        atomic_fetch_add(&started, 1);
    }
    atomic_fetch_add(&starts, 1);
    failure_end(&outer);
    exit_guard_leave();
    return device ? &device->common : NULL;
}

void gpu_fork_child(void)
{
    exit_guard_fork_child();
    atomic_store(&dead, true);
}
