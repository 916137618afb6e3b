/*
 * The report of a calibration: the file, its sections, and what they mean for a square product.
 */
#ifndef ACCEL_TOOL_CALIBRATED_H
#define ACCEL_TOOL_CALIBRATED_H

#include "sections.h"

/* Prints the report to stdout. survey: an array of `surveys`. no_gpu: why no GPU was measured;
 * NULL: the first survey measured one. */
void calibrated_print(const char *path, const struct sections *sections,
                      const struct survey *survey, int surveys, const char *no_gpu);

#endif
