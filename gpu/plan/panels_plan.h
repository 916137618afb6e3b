/*
 * What makes panels (panels.h), those of one device and those that several share (panels_shared.h):
 * the steps of one panel after the other. Pure functions.
 */
#ifndef ACCEL_PANELS_PLAN_H
#define ACCEL_PANELS_PLAN_H

#include "gpu/pack/pack.h"
#include "panels.h"

/* Two blocks: one goes up while the other is used. More columns than these make no product
 * faster. */
enum { PANELS_BLOCKS = 2, PANELS_BLOCK_COLUMNS = 1024 };

/* Set to 0 apart from the first three. */
struct panels_builder {
    struct panels *p;
    const uint8_t *owner; /* each panel's device; NULL: there is one */
    int device;
    int room;                  /* for steps */
    int own[PANELS_MOST];      /* the device's panels, in their order */
    int panels;                /* so many */
    int unpacked[PANELS_MOST]; /* by own panel: the downloads up to its last one */
    bool listed[PANELS_MOST];  /* another one's: its list has come up */
    int used[PANELS_BLOCKS];   /* by block: the kernels up to the last that read it */
    int block;                 /* so many have come up */
    int stayed;                /* the kernels up to the one that read the panel which stays */
};

/* Adds the steps of panel j, one of the device's, behind those of its panels before. Returns false
 * without host memory. */
bool panels_add(struct panels_builder *x, int j);

/* Returns how many blocks panel i, or the other matrix in sweep i, comes up in for panel j. */
int panels_blocks(const struct panels *p, int i, int j);

#endif
