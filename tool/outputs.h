/*
 * The files that a program writes, of which each run has to leave its own. What stands at such a path before the first run is
 * set aside as PATH.~1~ (or a higher number), as `mv --backup=numbered` does; what a run leaves is set aside beside it, so that
 * no bytes are copied, and the last run's stays where it is.
 */
#ifndef ACCEL_TOOL_OUTPUTS_H
#define ACCEL_TOOL_OUTPUTS_H

#include <limits.h>

#include "compare.h"

struct output {
    const char *name;            /* as the user has it */
    const struct format *format; /* NULL: to be guessed */
    char path[RUNS]
             [PATH_MAX]; /* where each run's is, once it is over; the last one is the file's own */
    char before[PATH_MAX]; /* what was there before; empty: nothing was */
    bool written[RUNS];
};

/* Fills name and format from [FORMAT:]FILE. */
void output_name(struct output *output, const char *text);

/* Sets aside what is there. False: it is said on stderr why not, and all is as before. */
bool outputs_open(struct output *outputs, int count);

/* After a run: notes what it has written, and sets it aside, but for the last run's. False: said on stderr. */
bool outputs_take(struct output *outputs, int count, enum run run);

/* Removes what was set aside of the runs. keep: the last run's files stay, and what was there before is named on stderr
 * unless it is the same; otherwise that is put back. */
void outputs_close(struct output *outputs, int count, bool keep);

#endif
