/*
 * The GPUs that a user can name: those that accel knows, and those that a calibration has.
 */
#ifndef ACCEL_TOOL_GPU_NAMES_H
#define ACCEL_TOOL_GPU_NAMES_H

#include <stdbool.h>

#include "dispatch/cost/calibration.h"

/* Finds the GPU that `given` means, where case, spaces and hyphens do not matter ("rtx4090" is "RTX 4090"), and a part does that
 * is in one name alone ("4090"). name: what the figures are found by. file: NULL where there is no calibration. False
 * where it is none of them, or may be several: that is said on stderr, with the names that are near. */
bool gpu_name_find(char name[MODEL_KEY_BYTES], const char *given, const struct calibration *file);

/* Prints all of them, one in a line, to stdout. */
void gpu_names_print(const struct calibration *file);

#endif
