/*
 * Writes measurements as sections of a calibration: one for each library (the object that a
 * routine's function is in), and one for the GPU.
 */
#ifndef ACCEL_TOOL_SECTIONS_H
#define ACCEL_TOOL_SECTIONS_H

#include "dispatch/cost/calibration.h"
#include "bench_plan.h"

enum { SECTIONS_MAX = 2 * LIBRARIES_MAX + 1 };

struct sections {
    char key[SECTIONS_MAX][CALIBRATION_KEY_BYTES];
    char *body[SECTIONS_MAX]; /* allocated */
    int routines[SECTIONS_MAX];
    int count;
};

/* Adds a bench plan's sections; *sections starts as all zero. A section that is there already stays
 * as it is. gpu: the one that was measured, or NULL. False if memory runs out. */
bool sections_add(struct sections *sections, const struct bench_plan *plan,
                  const struct gpu_info *gpu);
void sections_free(struct sections *sections);

#endif
