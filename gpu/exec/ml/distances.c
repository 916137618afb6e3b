#include "distances.h"

#include <stdlib.h>

#include "gpu/own/distances.h"

enum { BYTES = sizeof(double) };

bool distances_note(struct distances *d, enum gpu_status status)
{
    if (d->status == GPU_OK)
        d->status = status;
    return d->status == GPU_OK;
}

static gpu_address alloc_elements(struct distances *d, int64_t rows, int64_t cols)
{
    gpu_address memory = 0;
    int64_t elements;
    if (!accel_mul(rows, cols, &elements) || elements > INT64_MAX / BYTES)
        distances_note(d, GPU_NO_MEMORY);
    GPU_DO(d, gpu_memory(d->work)->take(d->work, elements * BYTES, &memory));
    return memory;
}

static void upload_points(struct distances *d, const struct point_set *x, int64_t first,
                          int64_t count, gpu_address to)
{
    char *host = (char *)(uintptr_t)(x->values + first * (d->train.by_feature ? 1 : d->features));
    struct host_rectangle from = d->train.by_feature
                                     ? host_whole(host, count, d->features, x->count, BYTES)
                                     : host_whole(host, d->features, count, d->features, BYTES);
    from.scan = &d->scan;
    if (d->status != GPU_OK ||
        !distances_note(
            d, gpu_copies(d->work)->upload(d->work->ctx, (struct dmat){to, from.rows}, &from)))
        return;
    gpu_work_event(d->work, GPU_EVENT_H2D, NULL, from.rows, from.cols,
                   from.rows * from.cols * BYTES);
    if (!d->scan.finite) /* the packages' own code knows what becomes of it */
        distances_note(d, GPU_UNSUPPORTED);
}

/* As many queries at once as leave room for others' calls, and that the caches of the host hold
 * about. */
static int64_t queries_at_once(const struct distances *d)
{
    const int64_t most_bytes = 32 << 20, each = (d->train.count + d->features) * BYTES;
    const int64_t bytes = accel_min(most_bytes, gpu_memory(d->work)->available(d->work) / 2);
    const int64_t most = accel_max(bytes / each / DISTANCES_QUERIES, 1) * DISTANCES_QUERIES;
    return accel_min(most, d->queries.count);
}

void distances_begin(struct distances *d)
{
    d->scan = gpu_scan_begin(true);
    GPU_DO(d, gpu_own(d->work)->fit(d->work, "distances", DISTANCES_THREADS, 0, &d->fit));
    d->on_device[0] = alloc_elements(d, d->train.count, d->features);
    upload_points(d, &d->train, 0, d->train.count, d->on_device[0]);
    if (d->status != GPU_OK)
        return;
    d->most = queries_at_once(d);
    d->on_device[1] = alloc_elements(d, d->most, d->features);
    d->distance = alloc_elements(d, d->train.count, d->most);
    d->down = malloc((size_t)d->train.count * (size_t)d->most * BYTES);
    if (!d->down)
        distances_note(d, GPU_NO_MEMORY);
}

void distances_compute(struct distances *d, int64_t first)
{
    const int64_t most_blocks = 65535; /* of a grid's second dimension */
    int64_t count = accel_min(d->most, d->queries.count - first), one = 1;
    int64_t *const points = &one, *const features = &d->features;
    const struct gpu_grid grid = {
        (unsigned)accel_min((d->train.count + d->fit.threads - 1) / d->fit.threads, INT32_MAX),
        (unsigned)accel_min((count + DISTANCES_QUERIES - 1) / DISTANCES_QUERIES, most_blocks),
        d->fit.threads, 0, false};
    void *arguments[] = {&d->on_device[0],
                         &d->train.count,
                         d->train.by_feature ? points : features,
                         d->train.by_feature ? &d->train.count : points,
                         &d->on_device[1],
                         &count,
                         d->train.by_feature ? points : features,
                         d->train.by_feature ? &count : points,
                         features,
                         &d->distance};
    upload_points(d, &d->queries, first, count, d->on_device[1]);
    GPU_DO(d, gpu_own(d->work)->launch(d->work, "distances", grid, arguments));
}

void distances_fetch(struct distances *d, int64_t count)
{
    const struct host_rectangle to =
        host_whole((char *)d->down, d->train.count, count, d->train.count, BYTES);
    int64_t done_cols, done_rows;
    if (d->status != GPU_OK ||
        !distances_note(d, gpu_copies(d->work)->download(d->work->ctx, &to,
                                                         (struct dmat){d->distance, d->train.count},
                                                         &done_cols, &done_rows)))
        return;
    gpu_work_event(d->work, GPU_EVENT_D2H, NULL, to.rows, to.cols, to.rows * to.cols * BYTES);
}

void distances_end(struct distances *d)
{
    free(d->down);
}
