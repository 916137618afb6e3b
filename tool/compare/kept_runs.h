/*
 * Copies what the runs have written to the folder of --keep: 1-without/, 2-threads/, 3-with/. Each
 * has stdout and the output files under their own names; 3-with/ has decisions.json, too.
 */
#ifndef ACCEL_TOOL_KEPT_RUNS_H
#define ACCEL_TOOL_KEPT_RUNS_H

#include "outputs.h"
#include "runs.h"

/* Makes the folders. False with a message on stderr, also if two outputs have the same name. */
bool kept_runs_open(const char *folder, const struct output *outputs, int count);

/* Copies all that was written. False with a message on stderr. */
bool kept_runs_copy(const char *folder, const struct runs *runs, const struct output *outputs,
                    int count);

#endif
