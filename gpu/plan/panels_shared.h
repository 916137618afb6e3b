/*
 * A factorisation in panels (panels.h) that several devices share. Each panel is one device's: that
 * brings it up, changes it by the finished panels before it, factors it, and brings it down.
 * Finished panels go through host memory to all devices that need them. So while one device factors
 * a panel, the others change theirs by what is there. Pure functions of shape, memory and rates.
 */
#ifndef ACCEL_PANELS_SHARED_H
#define ACCEL_PANELS_SHARED_H

#include "panels.h"

enum { PANELS_DEVICES = 16 };

struct panels_device {
    struct schedule_rates rates; /* while the others copy, too */
    int64_t memory_bytes; /* that panels, blocks, and what else the factorisation needs may take */
};

struct panels_shared {
    struct panels_call call; /* Cholesky or LU */
    int count;
    int64_t first[PANELS_MOST + 1]; /* each panel's first column; then n */
    uint8_t owner[PANELS_MOST];     /* each panel's device */
    int devices;
    int buffers; /* panels that have room on a device at the same time: 1, or 2 */
    int64_t block_bytes[PANELS_DEVICES]; /* of each of two blocks */
    double ms;                           /* simulated, until the last panel is in host memory */
};

/* Divides a factorisation over devices, so that it is done first. Returns false if a device has too
 * little memory for any division. A device that is no help owns no panel. */
bool panels_share(struct panels_shared *shared, const struct panels_call *call,
                  const struct panels_device *device, int count);

/* Returns how many panels before panel j its device owns: the panel's slot is that modulo the
 * part's buffers. */
int panels_shared_ordinal(const struct panels_shared *shared, int j);

/* Makes the steps of one device, with so much memory for panels and blocks. Those that bring up a
 * panel's LIST, of LU, are of a panel i that another device owns, before that panel's first block.
 * A panel's step->slot is its slot on the device. No step waits for what another device owns: see
 * pipeline_job.h. Returns false if the memory is too little, or that of the host. The caller gives
 * it back by panels_free(). */
bool panels_shared_part(struct panels *part, const struct panels_shared *shared, int device,
                        int64_t memory_bytes);

#endif
