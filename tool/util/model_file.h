/*
 * The calibration that a command uses: the one that the user names, or ACCEL_MODEL's.
 */
#ifndef ACCEL_TOOL_MODEL_FILE_H
#define ACCEL_TOOL_MODEL_FILE_H

#include <stdbool.h>

#include "dispatch/cost/calibration_file.h"

/* Opens the calibration at this path; NULL: there is none. If it cannot be read, *file has no text;
 * that of --model (named) must be readable: false with a message of the command. */
bool model_file_open(struct calibration *file, const char *command, const char *path, bool named);

#endif
