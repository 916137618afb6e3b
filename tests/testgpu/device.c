/* Devices: what they are, and which of them the process sees. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver.h"

struct device devices[DEVICES_MAX];
int device_count;

bool device_is(CUdevice device)
{
    return device >= 0 && device < device_count;
}

const struct card *card_of(CUdevice device)
{
    return &settings.card[devices[device].physical];
}

/* CUDA_VISIBLE_DEVICES: numbers up to the first that names no device. */
static void choose_devices(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible == NULL) {
        for (device_count = 0; device_count < settings.devices; device_count++)
            devices[device_count].physical = device_count;
        return;
    }
    while (*visible != '\0' && device_count < DEVICES_MAX) {
        char *end;
        long number = strtol(visible, &end, 10);
        if (end == visible || number < 0 || number >= settings.devices)
            break;
        devices[device_count++].physical = (int)number;
        if (*end != ',')
            break;
        visible = end + 1;
    }
}

CUresult CUDAAPI cuInit(unsigned int flags)
{
    DRIVER_ENTER(TESTGPU_ANYTIME, "flags=%u", flags);
    if (flags != 0)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    static bool started;
    testgpu_lock();
    if (!speed_start(&started, 1)) {
        testgpu_unlock();
        TESTGPU_RETURN(CUDA_ERROR_DEINITIALIZED);
    }
    if (!driver.initialised) {
        choose_devices();
        for (int i = 0; i < device_count; i++) {
            memory_reserve(&devices[i], card_of(i)->memory);
            devices[i].used = card_of(i)->taken;
        }
        driver.initialised = device_count > 0;
        if (driver.initialised)
            end_at_exit();
    }
    CUresult code = driver.initialised ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuDriverGetVersion(int *version)
{
    DRIVER_ENTER(TESTGPU_ANYTIME, "version=%p", (void *)version);
    if (version == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    *version = DRIVER_VERSION;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    DRIVER_ENTER(0, "count=%p", (void *)count);
    if (count == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    *count = device_count;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    DRIVER_ENTER(0, "device=%p ordinal=%d", (void *)device, ordinal);
    if (device == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    if (!device_is(ordinal))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGetName(char *name, int length, CUdevice device)
{
    DRIVER_ENTER(0, "name=%p length=%d device=%d", (void *)name, length, device);
    if (name == NULL || length < 1)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    if (!device_is(device))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    snprintf(name, (size_t)length, "%s", card_of(device)->name);
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    DRIVER_ENTER(0, "uuid=%p device=%d", (void *)uuid, device);
    if (uuid == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    if (!device_is(device))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    memcpy(uuid->bytes, "testgpu-uuid-0000", sizeof uuid->bytes);
    uuid->bytes[sizeof uuid->bytes - 1] = (char)devices[device].physical;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    DRIVER_ENTER(0, "bytes=%p device=%d", (void *)bytes, device);
    if (bytes == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    if (!device_is(device))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    *bytes = card_of(device)->memory;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    DRIVER_ENTER(0, "text=%p length=%d device=%d", (void *)text, length, device);
    if (text == NULL || length < 13)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    if (!device_is(device))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    snprintf(text, (size_t)length, "0000:%02X:00.0", 0x40 + devices[device].physical);
    TESTGPU_RETURN(CUDA_SUCCESS);
}

/* CU_DEVICE_ATTRIBUTE_MPS_ENABLED, which older headers lack. As a driver does, looks for the
 * control daemon's pipe. */
enum { MPS_ENABLED = 133 };
static int is_served_by_mps(void)
{
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char control[PATH_MAX];
    snprintf(control, sizeof control, "%s/control",
             folder != NULL && *folder != 0 ? folder : "/tmp/nvidia-mps");
    return access(control, F_OK) == 0;
}

int device_attribute(CUdevice_attribute attribute, CUdevice device)
{
    for (int i = 0; i < settings.attributes; i++)
        if (settings.attribute[i].which == (int)attribute) {
            const int last = settings.attribute[i].values - 1;
            return settings.attribute[i].value[device < last ? device : last];
        }
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return 0;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return 132;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        return 1980000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        return 2619000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        return 5120;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        return 50 << 20;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
        return 2;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
        switch (card_of(device)->mode) {
        case MODE_EXCLUSIVE:
        case MODE_TAKEN:
            return CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
        case MODE_PROHIBITED:
            return CU_COMPUTEMODE_PROHIBITED;
        default:
            return CU_COMPUTEMODE_DEFAULT;
        }
    case MPS_ENABLED:
        return is_served_by_mps();
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        return 1024;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
        return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        return 3;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return 0x40 + devices[device].physical;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        return 1;
    default:
        return 0;
    }
}

int testgpu_capability(void)
{
    const CUdevice device = testgpu_current()->device;
    return 10 * device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) +
           device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    DRIVER_ENTER(0, "value=%p attribute=%d device=%d", (void *)value, (int)which, device);
    if (value == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    if (!device_is(device))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    const int answer = device_attribute(which, device);
    if (answer < 0) /* a setting's: this driver does not know it */
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    *value = answer;
    TESTGPU_RETURN(CUDA_SUCCESS);
}
