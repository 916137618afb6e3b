#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/pci.h"
#include "gpu/cuda/api/cuda_api.h"
#include "gpu/device/gpu.h"
#include "gpu/cuda/api/mps.h"

enum { PCI_NVIDIA = 0x10de };

/* Sets the path of the library that has a function. */
static void find_part(struct gpu_part *part, const void *function)
{
    Dl_info object;
    part->is_there = dladdr(function, &object) != 0;
    if (part->is_there)
        snprintf(part->path, sizeof part->path, "%s", object.dli_fname);
}

/* The functions of the table are of many types: takes the address of the pointer. */
static void find_part_of(struct gpu_part *part, const void *pointer)
{
    const void *function;
    memcpy(&function, pointer, sizeof function);
    if (function)
        find_part(part, function);
}

/* Also of a driver that lacks functions, which leaves the table empty. */
static void examine_driver(struct gpu_part *part)
{
    CUresult (*version_of)(int *);
    int version = 0;
    void *library = cuda_api_loaded_driver(), *function;
    if (!library)
        return;
    part->is_there = true;
    function = dlsym(library, "cuDriverGetVersion");
    memcpy(&version_of, &function, sizeof version_of);
    if (function)
        find_part(part, function);
    if (function && version_of(&version) == CUDA_SUCCESS)
        snprintf(part->version, sizeof part->version, "%d.%d", version / 1000, version % 1000 / 10);
    dlerror();
    dlclose(library);
}

static void put_version(struct gpu_part *part, const int version[3])
{
    if (version[0] > 0)
        snprintf(part->version, sizeof part->version, "%d.%d.%d", version[0], version[1],
                 version[2]);
}

static void examine_cublas(struct gpu_part *part)
{
    int version[3];
    find_part_of(part, &CUDA(cublasCreate_v2));
    cuda_api_cublas_version(version);
    put_version(part, version);
}

static void examine_cusolver(struct gpu_part *part)
{
    int version[3];
    if (!cuda_api_open_cusolver())
        return;
    find_part_of(part, &CUDA(cusolverDnCreate));
    cuda_api_cusolver_version(version);
    put_version(part, version);
}

static void examine_mps(struct gpu_findings *findings)
{
    const char *asked = getenv("CUDA_MPS_PIPE_DIRECTORY");
    CUdevice first;
    findings->mps_asked = asked && *asked;
    findings->mps_has_pipe = mps_has_pipe();
    snprintf(findings->mps_folder, sizeof findings->mps_folder, "%s", mps_folder());
    if (findings->devices > 0 && CUDA(cuDeviceGet)(&first, 0) == CUDA_SUCCESS)
        findings->mps_serves = mps_serves(first);
}

static void examine_devices(struct gpu_findings *findings)
{
    CUdevice number;
    size_t bytes;
    if (CUDA(cuDeviceGetCount)(&findings->devices) != CUDA_SUCCESS)
        findings->devices = 0;
    for (int i = 0; i < findings->devices && i < GPU_DEVICES_SHOWN; i++)
        if (CUDA(cuDeviceGet)(&number, i) == CUDA_SUCCESS &&
            CUDA(cuDeviceGetName)(findings->device[i].name, sizeof findings->device[i].name,
                                  number) == CUDA_SUCCESS &&
            CUDA(cuDeviceTotalMem)(&bytes, number) == CUDA_SUCCESS)
            findings->device[i].memory_bytes = (int64_t)bytes;
}

void gpu_examine(struct gpu_findings *findings, const struct gpu_config *config)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    *findings = (struct gpu_findings){.devices = 0};
    const char *reason = cuda_api_open(config->cuda_dir);
    gpu_look_for_devices();
    findings->may_have_device =
        gpu_may_exist(config, false) || pci_may_have_display(pci_devices, PCI_NVIDIA);
    if (visible)
        snprintf(findings->hides, sizeof findings->hides, "CUDA_VISIBLE_DEVICES=%s", visible);
    examine_driver(&findings->driver);
    if (reason)
        snprintf(findings->wrong, sizeof findings->wrong, "%s", reason);
    if (CUDA(cuInit)) {
        findings->driver_is_usable = true;
        examine_devices(findings);
        examine_mps(findings);
    }
    if (!reason) {
        examine_cublas(&findings->blas);
        examine_cusolver(&findings->solver);
    }
}
