#define _GNU_SOURCE
#include "sections.h"

#include "ops/typical.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Writes four significant digits without an exponent, as the file has none. */
static void put_ms(FILE *to, double ms)
{
    int digits = 3;
    for (double x = ms; x < 1 && digits < 9; x *= 10)
        digits++;
    for (double x = ms; x >= 10 && digits > 0; x /= 10)
        digits--;
    fprintf(to, "%.*f", digits, ms);
}

/* Writes a value, unless it is 0: not measured. */
static void put_value(FILE *to, const char *name, double ms)
{
    if (ms <= 0)
        return;
    fprintf(to, "%s=", name);
    put_ms(to, ms);
    fputc('\n', to);
}

static void put_short(FILE *to, const struct calibration_short_names *names,
                      const struct short_columns *x)
{
    put_value(to, names->bytes, x->bytes);
    put_value(to, names->ms, x->ms);
}

static void put_paces(FILE *to, enum accel_dtype dtype, const struct block_paces *paces)
{
    char name[CALIBRATION_PACE_BYTES];
    calibration_pace_name(name, dtype);
    for (int i = 0; i < PACES && paces->of[0] > 0; i++)
        fprintf(to, "%s %lld:%.2f", i == 0 ? name : "", (long long)pace_rows(i),
                (double)paces->of[i]);
    if (paces->of[0] > 0)
        fputc('\n', to);
}

static void put_shape(FILE *to, const struct bench_track *track, const struct bench_shape *shape)
{
    char mark = ' ';
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        if (accel_has_dimension(track->routine, i)) {
            fprintf(to, "%c%lld", mark, (long long)shape->size[i]);
            mark = 'x';
        }
    fputc(':', to);
    put_ms(to, shape->model_ms);
}

/* Writes a routine's line. False if nothing was measured. */
static bool put_track(FILE *to, const struct bench_track *track)
{
    bool any = false;
    for (const struct bench_shape *x = track->shape; x < track->shape + track->shapes; x++) {
        if (x->ms <= 0)
            continue;
        if (!any)
            fputs(track->routine->name, to);
        any = true;
        put_shape(to, track, x);
    }
    if (any)
        fputc('\n', to);
    return any;
}

/* Adds the tracks of a library; NULL: the GPU's. */
static bool add_section(struct sections *sections, const struct bench_plan *plan,
                        const struct dispatch_library *library)
{
    int at = sections->count;
    size_t size;
    FILE *to = open_memstream(&sections->body[at], &size);
    if (!to)
        return false;
    fprintf(to, "%s=%lld\n", calibration_when, (long long)time(NULL));
    if (!library) {
        fprintf(to, "up_gbps=%.2f\ndown_gbps=%.2f\n", plan->copies.up_gbps, plan->copies.down_gbps);
        fprintf(to, "piece_kb=%lld\n", (long long)gpu_chunk(plan->device) / 1024);
        put_short(to, &calibration_short_up, &plan->copies.short_up);
        put_short(to, &calibration_short_down, &plan->copies.short_down);
        put_value(to, "place_gbps", plan->place_gbps);
        put_value(to, "kernels_ms", plan->first.kernels_ms);
        put_value(to, "solver_ms", plan->first.solver_ms);
        put_value(to, "start_ms", plan->start_ms);
        put_value(to, calibration_schedule_ratio, plan->schedule_ratio);
        for (int i = GPU_NATIVE + 1; i < GPU_PRECISIONS; i++)
            put_value(to, calibration_gain_names[i], plan->gains.gain[i]);
        for (int i = 0; i < 2 * ACCEL_DTYPES; i++) {
            const struct calibration_solve_names names =
                calibration_solve_names((enum accel_dtype)(i / 2), i % 2);
            put_value(to, names.gbps, plan->solves.by[i / 2][i % 2].gbps);
            put_value(to, names.row_ms, plan->solves.by[i / 2][i % 2].row_ms);
            if (i % 2 && plan->solves.own_nrhs[i / 2] > 0)
                fprintf(to, "%s=%lld\n", names.nrhs, (long long)plan->solves.own_nrhs[i / 2]);
        }
        for (int i = 0; i < ACCEL_DTYPES; i++)
            put_paces(to, (enum accel_dtype)i, &plan->paces[i]);
        svd_bench_write(&plan->svd, to);
    }
    sections->routines[at] = 0;
    for (int i = 0; i < plan->tracks; i++) {
        const struct bench_track *track = &plan->track[i];
        if (track->gpu ? !library : library && track->function.library == library)
            sections->routines[at] += put_track(to, track);
    }
    sections->count++;
    return fclose(to) == 0 && sections->body[at];
}

static bool add_library(struct sections *sections, const struct bench_plan *plan,
                        const struct bench_track *track)
{
    char key[CALIBRATION_KEY_BYTES];
    calibration_cpu_key(key, track->function.library->name, library_threads(&track->function));
    for (int i = 0; i < sections->count; i++)
        if (strcmp(sections->key[i], key) == 0)
            return true;
    if (sections->count == SECTIONS_MAX - 1) /* the last place is the GPU's */
        return true;
    strcpy(sections->key[sections->count], key);
    return add_section(sections, plan, track->function.library);
}

bool sections_add(struct sections *sections, const struct bench_plan *plan,
                  const struct gpu_info *gpu)
{
    for (int i = 0; i < plan->tracks; i++)
        if (!plan->track[i].gpu && !add_library(sections, plan, &plan->track[i]))
            return false;
    if (!gpu)
        return true;
    calibration_gpu_key(sections->key[sections->count], gpu->name, gpu->cuda_version,
                        gpu->cublas_version);
    return add_section(sections, plan, NULL);
}

void sections_free(struct sections *sections)
{
    for (int i = 0; i < SECTIONS_MAX; i++)
        free(sections->body[i]);
}
