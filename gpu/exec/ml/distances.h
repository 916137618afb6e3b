/*
 * Squared distances between points, in double precision: each is the sum of the squared differences
 * in the order of the features, where each operation is rounded by itself. So they are those of a
 * CPU's plain loop to the last bit.
 *
 * Queries go up, and distances come down, in blocks that fit the device's memory. A user keeps the
 * first failure as the status; after one, all functions do nothing.
 */
#ifndef ACCEL_DISTANCES_H
#define ACCEL_DISTANCES_H

#include "gpu/device/own.h"

/* Points in host memory. Feature f of point i is values[i + f * count] (by_feature), or values[i *
 * features + f]. */
struct point_set {
    const double *values;
    int64_t count;
    bool by_feature;
};

struct distances {
    struct gpu_work *work;
    struct point_set train, queries; /* laid out alike */
    int64_t features;

    enum gpu_status status; /* GPU_UNSUPPORTED if a number is not finite */
    int64_t most;           /* queries of a block */
    double *down;           /* a block's distances: of each query, to all training points */
    struct gpu_scan scan;
    struct gpu_fit fit;
    gpu_address on_device[2], distance; /* training points and queries; a block's distances */
};

/* Returns whether all is well; notes a failure, unless there has been one. */
bool distances_note(struct distances *d, enum gpu_status status);

/* Begins with `work`, points and features, all else 0: puts the training points on the device.
 * distances_end() frees what it leaves. */
void distances_begin(struct distances *d);
void distances_end(struct distances *d);

/* Has the device compute the distances of a block, from query `first` on; returns before they are
 * there. */
void distances_compute(struct distances *d, int64_t first);
/* Waits for the last block, of `count` queries, and puts its distances in d->down. */
void distances_fetch(struct distances *d, int64_t count);

#endif
