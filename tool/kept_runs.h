/*
 * What the runs have left, copied to a folder for whoever wants to look at it: 1-without/, 2-threads/, 3-with/, each with
 * stdout and the output files under their own names; 3-with/decisions.json.
 */
#ifndef ACCEL_TOOL_KEPT_RUNS_H
#define ACCEL_TOOL_KEPT_RUNS_H

#include "outputs.h"
#include "runs.h"

/* Makes the folder. False: it is said on stderr why not; two outputs may not have the same name there. */
bool kept_runs_open(const char *folder, const struct output *outputs, int count);

/* Copies what there is. False: said on stderr. */
bool kept_runs_copy(const char *folder, const struct runs *runs, const struct output *outputs,
                    int count);

#endif
