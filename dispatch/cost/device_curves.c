#define _GNU_SOURCE
#include "curves.h"

#include <string.h>

#include "base/thread/copy_pool.h"
#include "gpu/device/own.h"
#include "loaded_calibration.h"
#include "known_gpus.h"
#include "ops/op.h"
#include "split.h"

static struct cost_curves *_Atomic fast_gpu; /* see cost.h */

/* cuSOLVER is three libraries of more than 200 MB; opening them takes half a second, if they are in
 * the page cache, to several. A routine's first call loads its kernels (CUDA's lazy loading) from
 * an open library, in some tens of milliseconds. CUDA starts as in the H100 run of 2026-11-26
 * (docs/measurements: start_all). */
static const struct cost_first nominal_first = {
    .kernels_ms = 50, .solver_ms = 500, .start_ms = 533};

static struct cost_curves *new_device(struct model_rates rates)
{
    struct cost_curves *p = curves_new(rates);
    if (!p)
        return NULL;
    p->device = true;
    p->up_gbps = p->down_gbps = MODEL_COPY_GBPS;
    p->short_up = schedule_nominal.short_up;
    p->short_down = schedule_nominal.short_down;
    for (int i = 0; i < GPU_PRECISIONS; i++)
        p->gain[i] = 1;
    p->first = nominal_first;
    p->schedule_ratio = 1;
    return p;
}

/* Sets the rates of copies that this machine's threads stage. */
static void set_staged_rates(struct cost_curves *p, double copy_gbps, double link_gbps)
{
    const double host_gbps = split_host_gbps(1 + copy_pool_size());
    const double all_gbps = host_gbps < link_gbps ? host_gbps : link_gbps;
    p->up_gbps = p->down_gbps = all_gbps > copy_gbps ? all_gbps : copy_gbps;
}

struct cost_curves *curves_of_device(struct cost_curves *device)
{
    struct cost_curves *p = device ? device : atomic_load(&fast_gpu);
    if (p)
        return p;
    pthread_rwlock_wrlock(&curves_lock);
    p = atomic_load(&fast_gpu);
    /* By a slower link, calls that pay over a fast one alone would never start it. */
    if (!p && (p = new_device(model_gpu_rates())))
        set_staged_rates(p, MODEL_COPY_GBPS, NOMINAL_LINK_GBPS);
    atomic_store(&fast_gpu, p);
    pthread_rwlock_unlock(&curves_lock);
    return p;
}

struct cost_first cost_first_calls(const struct cost_curves *device)
{
    return device ? device->first : nominal_first;
}

double cost_precision_gain(const struct cost_curves *device, enum gpu_precision precision)
{
    return device ? device->gain[precision] : 1;
}

double cost_call_gain(const struct cost_curves *device, const struct accel_call *call,
                      enum gpu_precision precision)
{
    return accel_product_kind(call) == GPU_OTHERS ? 1 : cost_precision_gain(device, precision);
}

double curves_value_or(const struct cost_curves *p, const char *name, double otherwise)
{
    double value = calibration_section_value(&p->section, name);
    return value > 0 ? value : otherwise;
}

static void set_short(struct cost_curves *p, const struct calibration_short_names *names,
                      struct short_columns *x)
{
    const double bytes = curves_value_or(p, names->bytes, 0);
    if (bytes > 0)
        *x = (struct short_columns){bytes, curves_value_or(p, names->ms, 0)};
}

/* Sets what a known GPU's kernels reach. Its copies are as fast as the machine's threads stage
 * them, wherever it is. */
static void set_known(struct cost_curves *p, const struct known_gpu *known)
{
    const double peaks[2] = {1e3 * known->tflops[0], 1e3 * known->tflops[1]};
    p->rates = model_rates_of_peaks(peaks, known->memory_gbps);
    nominal_gains(p->gain, peaks, 1e3 * known->tensor[0], 1e3 * known->tensor[1],
                  1e3 * known->tensor[2]);
}

/* Sets the rates of the calibration's section. */
static void set_measured(struct cost_curves *p)
{
    p->up_gbps = curves_value_or(p, "up_gbps", p->up_gbps);
    p->down_gbps = curves_value_or(p, "down_gbps", p->down_gbps);
    set_short(p, &calibration_short_up, &p->short_up);
    set_short(p, &calibration_short_down, &p->short_down);
    if (p->place_gbps > 0)
        p->place_gbps = curves_value_or(p, "place_gbps", p->place_gbps);
    for (int i = 0; i < ACCEL_DTYPES; i++)
        calibration_section_paces(&p->section, (enum accel_dtype)i, &p->paces[i]);
    p->first.kernels_ms = curves_value_or(p, "kernels_ms", p->first.kernels_ms);
    p->first.solver_ms = curves_value_or(p, "solver_ms", p->first.solver_ms);
    p->first.start_ms = curves_value_or(p, "start_ms", p->first.start_ms);
    p->schedule_ratio = curves_value_or(p, calibration_schedule_ratio, 1);
    for (int i = GPU_NATIVE + 1; i < GPU_PRECISIONS; i++)
        p->gain[i] = curves_value_or(p, calibration_gain_names[i], p->gain[i]);
}

static void choose_svd(struct gpu_device *gpu, const struct cost_curves *p)
{
    enum gpu_svd algorithm[GPU_SVD_OCTAVES];
    for (int i = 0; i < 2 * ACCEL_DTYPES; i++) {
        enum accel_dtype dtype = (enum accel_dtype)(i / 2);
        if (!calibration_section_svd(&p->section, dtype, i % 2, algorithm))
            continue;
        for (int octave = 0; octave < GPU_SVD_OCTAVES; octave++)
            gpu_svd_choose(gpu, dtype, i % 2, octave, algorithm[octave]);
    }
}

/* Sets what solving by triangles takes. */
static void set_solving(struct cost_curves *p)
{
    for (int i = 0; p->measured && i < ACCEL_DTYPES; i++)
        for (int own = 0; own < 2; own++) {
            const struct calibration_solve_names names =
                calibration_solve_names((enum accel_dtype)i, own);
            p->solving[i][own].gbps = curves_value_or(p, names.gbps, 0);
            p->solving[i][own].row_ms = curves_value_or(p, names.row_ms, 0);
            p->own_nrhs[i] = own ? (int64_t)curves_value_or(p, names.nrhs, 0) : 0;
        }
}

struct cost_curves *cost_curves_of(struct gpu_device *gpu)
{
    const struct gpu_info *info = gpu_info(gpu);
    const struct known_gpu *const known = known_gpu_whole(info->name);
    struct cost_curves *p =
        new_device(model_rates_of_peaks(info->nominal.gflops, info->nominal.memory_gbps));
    if (!p)
        return NULL;
    set_staged_rates(p, info->nominal.copy_gbps, info->nominal.link_gbps);
    p->place_gbps = info->nominal.place_gbps;
    p->one_memory = info->integrated;
    memcpy(p->gain, info->nominal.gain, sizeof p->gain);
    pthread_rwlock_wrlock(&curves_lock);
    const struct calibration *const file = loaded_calibration_open();
    calibration_gpu_key(p->key, info->name, info->cuda_version, info->cublas_version);
    p->measured = file->text && calibration_find(file, p->key, false, &p->section);
    if (file->text && !p->measured)
        loaded_calibration_lacks(p->key);
    pthread_rwlock_unlock(&curves_lock);
    set_solving(p);
    for (int i = 0; i < ACCEL_DTYPES; i++) {
        p->own_nrhs[i] = gpu_own_is_built() ? p->own_nrhs[i] : 0;
        gpu_solve_by_own(gpu, (enum accel_dtype)i, p->own_nrhs[i]);
    }
    if (known)
        set_known(p, known);
    if (p->measured) {
        choose_svd(gpu, p);
        gpu_set_chunk(gpu, (int64_t)(1024 * curves_value_or(p, "piece_kb", 0)));
        set_measured(p);
    }
    return p;
}

bool cost_is_measured(const struct cost_curves *device)
{
    return device && device->measured &&
           (!device->device || curves_value_or(device, "up_gbps", 0) > 0);
}

struct cost_curves *cost_curves_named(const char *name, int64_t *memory_bytes)
{
    const struct known_gpu *card = known_gpu_find(name);
    const struct known_gpu slice = card ? known_gpu_slice(card, name) : (struct known_gpu){0};
    struct cost_curves *p = new_device(model_gpu_rates());
    if (!p)
        return NULL;
    pthread_rwlock_wrlock(&curves_lock);
    const struct calibration *const file = loaded_calibration_open();
    p->measured = file->text && calibration_find_gpu(file, name, &p->section);
    pthread_rwlock_unlock(&curves_lock);
    *memory_bytes = (int64_t)(slice.memory_gb * 1e9);
    set_solving(p);
    if (card) {
        p->place_gbps = card->place_gbps;
        p->one_memory = card->integrated;
        p->up_gbps = slice.up_gbps;
        p->down_gbps = slice.down_gbps;
        set_known(p, &slice);
    }
    if (p->measured)
        set_measured(p);
    return p->measured || card ? p : NULL; /* without either, p stays mapped: once a process */
}
