/*
 * The report of a calibration: the file, its sections, and what they mean for a square product.
 */
#ifndef ACCEL_TOOL_CALIBRATED_H
#define ACCEL_TOOL_CALIBRATED_H

#include "sections.h"

/* Prints the report to stdout. plan: an array of `plans`. no_gpu: why no GPU was measured;
 * NULL: the first bench plan measured one. */
void calibrated_print(const char *path, const struct sections *sections,
                      const struct bench_plan *plan, int plans, const char *no_gpu);

#endif
