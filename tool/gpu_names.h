/*
 * The names of GPUs that a user may give: the known ones, and those of a calibration.
 */
#ifndef ACCEL_TOOL_GPU_NAMES_H
#define ACCEL_TOOL_GPU_NAMES_H

#include <stdbool.h>

#include "dispatch/cost/calibration.h"

/* Finds the GPU that `given` means. Case, spaces and hyphens do not matter ("rtx4090" is "RTX
 * 4090"); a part of a name will do if no other name has it ("4090"). name: the one that figures are
 * found by. file: its text may be NULL. False with a message on stderr, and similar names, if no
 * name or several match. */
bool gpu_name_find(char name[CALIBRATION_KEY_BYTES], const char *given,
                   const struct calibration *file);

/* Prints all names to stdout, one a line. */
void gpu_names_print(const struct calibration *file);

#endif
