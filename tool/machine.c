#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/host/ranks.h"
#include "base/memory/uffd_wp.h"
#include "base/host/version.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/cost/calibration.h"
#include "gpu/device/gpu.h"
#include "doctor_server.h"
#include "gpu/device/own.h"
#include "ops/op.h"
#include "tool/process/preload.h"
#include "tool/util/device_config.h"
#include "tool/measure/workload.h"

/* ---- The library and the settings ---- */

static void examine_library(struct checks *checks)
{
    char shim[PATH_MAX];
    const char *const wrong = preload_find(shim, NULL);
    if (!wrong)
        checks_add(checks, CHECK_OK, "libaccel", "", "%s, %s", accel_version(), shim);
    else if (wrong == preload_missing)
        checks_add(checks, CHECK_FAIL, "libaccel",
                   "run `make install`, or put libaccel.so beside accel",
                   "libaccel.so is not there");
    else
        checks_add(checks, CHECK_FAIL, "libaccel", "put libaccel.so and accel into another folder",
                   "%s %s", shim, wrong);
    if (gpu_own_is_built())
        checks_add(checks, CHECK_OK, "kernels", "", "those of its own are built in");
    else
        checks_add(checks, CHECK_WARN, "kernels", "build it with nvcc: make NVCC=/PATH/nvcc",
                   "none of its own, as it was built without nvcc: support vector machines, "
                   "liblinear and nearest neighbours stay on the CPU");
}

static void examine_files(struct checks *checks, const struct effective_config *config)
{
    bool any = false;
    for (int i = 0; i < config->files; i++) {
        const struct effective_config_file *file = &config->file[i];
        if (file->absent)
            continue;
        any = true;
        if (!*file->fault)
            checks_add(checks, CHECK_OK, "config", "", "%s is read", file->path);
    }
    if (!any)
        checks_add(checks, CHECK_OK, "config", "", "no config file");
}

static bool names_all(const struct accel_pattern *pattern)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (!pattern_matches(pattern, &accel_routines[i]))
            return false;
    return true;
}

/* Whether no call goes to a GPU by this setting. */
static bool forbids(const struct accel_settings *settings, int i)
{
    return (i == setting_named("ACCEL") && !settings->on) ||
           (i == setting_named("ACCEL_POLICY") && settings->policy == ACCEL_POLICY_CPU) ||
           (i == setting_named("ACCEL_DEVICES") && settings->devices.kind == ACCEL_DEVICES_NONE) ||
           (i == setting_named("ACCEL_CPU") && names_all(&settings->cpu_routines));
}

static void examine_setting(struct checks *checks, const struct effective_config *config, int i)
{
    const char *name = setting_table[i].name, *shown = effective_config_shown(config, i),
               *from = config->value[i].from;
    char fix[PATH_MAX + 100];
    snprintf(fix, sizeof fix, "take %s out of: %s", name, from);
    if (forbids(&config->settings, i))
        checks_add(
            checks, CHECK_FAIL, "settings", fix, "%s=%s: no call goes to a GPU%s", name, shown,
            i == setting_named("ACCEL_CPU") ? ", except with operands in device memory" : "");
    else
        checks_add(checks, CHECK_OK, "settings", "", "%s=%s, from: %s", name, shown, from);
}

/* A row for each setting that is set, and where that is. */
static void examine_settings(struct checks *checks, const struct effective_config *config)
{
    const struct accel_settings *settings = &config->settings;
    const char *line;
    bool any = complaints_line(0);
    for (int i = 0; (line = complaints_line(i)); i++)
        checks_add(checks, CHECK_WARN, "settings",
                   "mend it there; `accel config` prints all settings", "%s", line);
    if (settings->broken_promise)
        checks_add(checks, CHECK_FAIL, "settings", "mend the settings above",
                   "a program ends at its first call of BLAS");
    for (int i = 0; i < SETTINGS; i++)
        if (config->value[i].text && config->value[i].understood) {
            any = true;
            examine_setting(checks, config, i);
        }
    if (!any)
        checks_add(checks, CHECK_OK, "settings", "",
                   "none is set; `accel config` prints the defaults");
}

/* ---- The calibration ---- */

static void describe_age(char age[40], const struct stat *st)
{
    const double hours = difftime(time(NULL), st->st_mtime) / 3600;
    if (hours < 48)
        snprintf(age, 40, "%.0f hour%s old", hours, hours >= 0.5 && hours < 1.5 ? "" : "s");
    else
        snprintf(age, 40, "%.0f days old", hours / 24);
}

/* Whether this user could write the file: in its folder, or in a folder where missing ones could be
 * made. */
static bool could_write(const char *path, char folder[PATH_MAX])
{
    char part[PATH_MAX];
    const char *name;
    struct stat st;
    snprintf(part, sizeof part, "%s", path);
    while (file_folder(part, folder, &name)) {
        if (stat(folder, &st) == 0)
            return S_ISDIR(st.st_mode) ? faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0
                                       : (errno = ENOTDIR, false);
        if (errno != ENOENT || strcmp(folder, part) == 0)
            return false;
        strcpy(part, folder);
    }
    return false;
}

static void examine_place(struct checks *checks, const char *path)
{
    char folder[PATH_MAX];
    if (could_write(path, folder))
        checks_add(checks, CHECK_OK, "calibration", "", "`accel calibrate` can write it");
    else
        checks_add(checks, CHECK_WARN, "calibration",
                   "make the folder writable, or set ACCEL_MODEL to another file",
                   "`accel calibrate` cannot write %s: %s: %s", path, folder, strerror(errno));
}

static void examine_calibration(struct checks *checks, const char *path, const struct gpu_info *gpu)
{
    char key[CALIBRATION_KEY_BYTES], age[40] = "";
    struct calibration file = {.text = NULL};
    struct calibration_section section;
    struct stat st;
    if (!path) {
        checks_add(checks, CHECK_WARN, "calibration", "set HOME or ACCEL_MODEL",
                   "no place for it is known");
        return;
    }
    const char *wrong = calibration_open(&file, path);
    if (stat(path, &st) == 0)
        describe_age(age, &st);
    if (wrong == calibration_missing) {
        checks_add(checks, CHECK_WARN, "calibration", "accel calibrate",
                   "none: libaccel estimates times from the GPU's attributes (%s)", path);
    } else if (wrong) {
        checks_add(checks, CHECK_WARN, "calibration", "accel calibrate", "%s: %s", path, wrong);
    } else {
        calibration_cpu_prefix(key);
        const bool cpu = calibration_find(&file, key, true, &section);
        if (gpu)
            calibration_gpu_key(key, gpu->name, gpu->cuda_version, gpu->cublas_version);
        const bool both = cpu && (!gpu || calibration_find(&file, key, false, &section));
        checks_add(checks, both ? CHECK_OK : CHECK_WARN, "calibration",
                   both ? "" : "accel calibrate", "%s, %s%s", path, age,
                   both  ? ""
                   : cpu ? ", has no figures of this GPU with this driver and cuBLAS"
                         : ", has no figures of this machine's CPU");
    }
    calibration_close(&file);
    examine_place(checks, path);
}

/* ---- The GPU ---- */

static void examine_part(struct checks *checks, const char *what, const struct gpu_part *part)
{
    checks_add(checks, CHECK_OK, what, "", "%s, %s",
               *part->version ? part->version : "of unknown version", part->path);
}

static bool is_in_container(void)
{
    static const char *const files[] = {"/.dockerenv", "/run/.containerenv"},
                             *const variables[] = {"container", "KUBERNETES_SERVICE_HOST",
                                                   "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"};
    bool found = false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        found = found || access(files[i], F_OK) == 0;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        found = found || getenv(variables[i]);
    return found;
}

static const char to_container[] =
    "give the GPU to this container: docker run --gpus all, podman run --device "
    "nvidia.com/gpu=all, apptainer exec --nv, or in Kubernetes a limit of nvidia.com/gpu";

/* Without a device, no driver would help. */
static bool examine_absence(struct checks *checks, const struct gpu_findings *found)
{
    const bool absent = !found->may_have_device && !*found->hides && !found->devices;
    char fix[sizeof to_container + 40];
    snprintf(fix, sizeof fix, "if the machine has one, %s", to_container);
    if (absent)
        checks_add(checks, CHECK_FAIL, "devices",
                   is_in_container() ? fix : "`accel estimate` says what one would bring",
                   "there is no NVIDIA GPU here: programs run on the CPU, unchanged");
    return absent;
}

/* What a driver's row says of it. */
static const char *cuda_of(const struct gpu_part *driver)
{
    return *driver->version ? driver->version : "of unknown version";
}

/* Rows of the driver and of the library of BLAS, down to the first that fails. */
static void examine_parts(struct checks *checks, const struct gpu_findings *found)
{
    if (!found->driver.is_there && examine_absence(checks, found))
        return;
    if (!found->driver.is_there) {
        checks_add(checks, CHECK_FAIL, "driver",
                   is_in_container() ? to_container
                                     : "install NVIDIA's driver, or set ACCEL_CUDA_DIR to the "
                                       "folder that has libcuda.so.1",
                   "%s", found->wrong);
        return;
    }
    if (!found->driver_is_usable) {
        checks_add(checks, CHECK_FAIL, "driver", "install a driver of CUDA 12 or newer",
                   "for CUDA %s, %s: %s", cuda_of(&found->driver), found->driver.path,
                   found->wrong);
        return;
    }
    checks_add(checks, CHECK_OK, "driver", "", "for CUDA %s, %s", cuda_of(&found->driver),
               found->driver.path);
    if (found->blas.is_there)
        examine_part(checks, "cuBLAS", &found->blas);
    else if (found->devices > 0)
        checks_add(checks, CHECK_FAIL, "cuBLAS",
                   "install the CUDA Toolkit's libraries, or NVIDIA's wheel nvidia-cublas of this "
                   "Python, or set ACCEL_CUDA_DIR to their folder",
                   "%s", found->wrong);
    else if (!examine_absence(checks, found))
        checks_add(checks, CHECK_FAIL, "devices",
                   *found->hides ? "unset that variable, if it hides the device"
                                 : "see whether `nvidia-smi` lists one",
                   "%s%s%s", found->wrong, *found->hides ? "; set is " : "", found->hides);
    if (found->solver.is_there)
        examine_part(checks, "cuSOLVER", &found->solver);
    else if (found->blas.is_there)
        checks_add(checks, CHECK_WARN, "cuSOLVER", "install the one of the same CUDA beside cuBLAS",
                   "none that belongs to this cuBLAS is found: LAPACK stays on the CPU");
}

/* sharers: ranks of this program that share the device. */
static void examine_mps(struct checks *checks, const struct gpu_findings *found, int sharers)
{
    static const char start[] = "nvidia-cuda-mps-control -d";
    if (found->mps_serves)
        checks_add(checks, CHECK_OK, "MPS", "",
                   "running (%s): processes share the GPU at the same time", found->mps_folder);
    else if (found->mps_has_pipe)
        checks_add(
            checks, CHECK_WARN, "MPS", start,
            "has ended, or is not for this GPU: its pipe is in %s, but the driver does not use it",
            found->mps_folder);
    else if (found->mps_asked)
        checks_add(checks, CHECK_WARN, "MPS", start, "asked for, but not running in %s",
                   found->mps_folder);
    else if (sharers > 1)
        checks_add(checks, CHECK_WARN, "MPS", start, "not running: %d ranks take turns on the GPU",
                   sharers);
    else
        checks_add(checks, CHECK_OK, "MPS", "", "not running: processes take turns on the GPU");
}

/* device: NULL: none can be had. */
static void examine_ranks(struct checks *checks, const struct accel_ranks *ranks,
                          const struct gpu_device *device)
{
    const int sharers = device ? gpu_info(device)->sharers : 0;
    if (!ranks->mpi) {
        checks_add(checks, CHECK_OK, "ranks", "", "this process is no rank of MPI or Slurm");
        return;
    }
    char shared[100] = "";
    if (device && sharers > 1)
        snprintf(shared, sizeof shared, "; %d of them share gpu%d", sharers,
                 gpu_info(device)->index);
    else if (device)
        snprintf(shared, sizeof shared, "; gpu%d is this one's alone", gpu_info(device)->index);
    checks_add(checks, CHECK_OK, "ranks", "", "rank %d of %d, of which %d are on this machine%s",
               ranks->rank, ranks->size, ranks->local_size, shared);
}

/* Nothing is wrong without it: what stays on the GPU is compared by its digest. */
static void examine_tracking(struct checks *checks)
{
    struct uffd_wp kernel;
    const char *fault = uffd_wp_open(&kernel);
    if (!fault) {
        errno = 0;
        fault = uffd_wp_test(&kernel);
        const int error = errno;
        uffd_wp_close(&kernel);
        errno = error;
    }
    if (!fault)
        checks_add(checks, CHECK_OK, "tracking", "",
                   "this kernel can prove that memory was not written (userfaultfd, PAGEMAP_SCAN); "
                   "matrices that stay on the GPU need not be read again for that");
    else
        checks_add(checks, CHECK_OK, "tracking", "",
                   "this kernel cannot prove that memory was not written (Linux 6.7 can): %s: %s; "
                   "matrices that stay on the GPU are compared by digests",
                   fault, errno ? strerror(errno) : "wrong");
}

/* Runs a small product, as a call of the program would be. by: whose the device is. */
static void try_product(struct checks *checks, struct gpu_device *device, const char *by)
{
    const struct accel_routine *routine = accel_sample_of(ACCEL_SAMPLE_PRODUCT, ACCEL_FLOAT64);
    const int64_t size[ACCEL_DIMENSIONS] = {256, 256, 256};
    struct workload_memory memory;
    struct workload workload;
    struct gpu_host host = {.failure = ""};
    enum gpu_status status;
    double ms = -1;
    if (!workload_memory_open(&memory, 16 << 20))
        return;
    if (workload_make(&workload, &memory, routine, size, NULL))
        ms = workload_gpu_ms(&workload, device, &host, &status);
    if (ms >= 0)
        checks_add(checks, CHECK_OK, "a call", "", "%s of order 256 ran on gpu%d%s", routine->name,
                   gpu_info(device)->remote ? host.index : gpu_info(device)->index, by);
    else
        checks_add(checks, CHECK_FAIL, "a call",
                   "restart the machine's GPU, or install cuBLAS again",
                   "%s of order 256 failed on gpu%d%s: %s", routine->name, gpu_info(device)->index,
                   by, *host.failure ? host.failure : gpu_failure(device));
    workload_memory_close(&memory);
}

static struct gpu_device *examine_devices(struct checks *checks, const struct gpu_findings *found,
                                          const struct gpu_config *config)
{
    char why[GPU_FAILURE_BYTES];
    struct gpu_device *device = gpu_start(config, why);
    const struct gpu_info *info = device ? gpu_info(device) : NULL;
    for (int i = 0; i < found->devices && i < GPU_DEVICES_SHOWN; i++)
        checks_add(checks, CHECK_OK, "devices", "", "gpu%d: %s, %.1f GB%s", i,
                   found->device[i].name, (double)found->device[i].memory_bytes * 1e-9,
                   info && info->index == i ? ", the one that this process would use" : "");
    if (!device)
        checks_add(checks, CHECK_FAIL, "devices",
                   "see ACCEL_DEVICES, and with `nvidia-smi` the compute mode and what runs there",
                   "none can be had: %s", why);
    else if (info->passed_over[0])
        checks_add(checks, CHECK_WARN, "devices",
                   "see ACCEL_DEVICES, and with `nvidia-smi` the compute mode and what runs there",
                   "passed over: %s", info->passed_over);
    return device;
}

/* server: the device of another process, which calls go to; NULL: there is none. */
static void examine_gpu(struct checks *checks, const struct effective_config *effective,
                        const struct gpu_device *server)
{
    static struct gpu_findings found;
    const struct accel_settings *settings = &effective->settings;
    struct accel_ranks ranks;
    ranks_read(&ranks);
    struct gpu_config config = device_config(settings);
    config.local_rank = ranks.local_rank;
    config.local_size = ranks.local_size;
    gpu_examine(&found, &config);
    examine_parts(checks, &found);
    struct gpu_device *device = found.wrong[0] ? NULL : examine_devices(checks, &found, &config);
    if (device)
        try_product(checks, device, "");
    if (found.driver_is_usable)
        examine_mps(checks, &found, device ? gpu_info(device)->sharers : 1);
    examine_ranks(checks, &ranks, device);
    const struct gpu_device *computes = server ? server : device;
    examine_calibration(checks, settings->model, computes ? gpu_info(computes) : NULL);
    gpu_stop(device);
}

/* What would keep calls from the GPU if they did not go to the server. */
static void examine_beside_server(struct checks *checks, const struct effective_config *config,
                                  struct gpu_device *server)
{
    try_product(checks, server, " of the server");
    const int first = checks->count;
    examine_gpu(checks, config, server);
    for (int i = first; i < checks->count; i++)
        if (checks->check[i].state == CHECK_FAIL)
            checks->check[i].state = CHECK_WARN;
    gpu_stop(server);
}

void machine_examine(struct checks *checks, const struct effective_config *config)
{
    examine_library(checks);
    examine_files(checks, config);
    examine_settings(checks, config);
    struct gpu_device *const server = doctor_server(checks, config);
    if (server)
        examine_beside_server(checks, config, server);
    else
        examine_gpu(checks, config, NULL);
    examine_tracking(checks);
}
