/*
 * The files that a program writes: each run must write its own. A file that is there before the
 * first run is set aside as PATH.~1~ (or a higher number), like `mv --backup=numbered`. A run's
 * file is renamed in its folder, so that no bytes are copied; the last run's stays where it is.
 */
#ifndef ACCEL_TOOL_OUTPUTS_H
#define ACCEL_TOOL_OUTPUTS_H

#include <limits.h>

#include "compare.h"

struct output {
    const char *name;            /* the user's */
    const struct format *format; /* NULL: guessed from the file */
    /* Each run's file after the run; [RUN_SHIM] is the program's own path */
    char path[RUNS][PATH_MAX];
    char before[PATH_MAX]; /* the former file, set aside; empty: there was none */
    bool written[RUNS];
};

/* Fills name and format from [FORMAT:]FILE. False with a message on stderr, if what stands before a
 * colon is neither a format nor of a path. */
bool output_name(struct output *output, const char *text);

/* Sets aside the former files. False with a message on stderr; then all is as before. */
bool outputs_open(struct output *outputs, int count);

/* After a run: notes which files it has written, and sets them aside, except the last run's. False
 * with a message on stderr. */
bool outputs_take(struct output *outputs, int count, enum run run);

/* Removes the files of the runs without libaccel. keep: the last run's files stay, and stderr names
 * each former file that differs; else the former files are put back. */
void outputs_close(struct output *outputs, int count, bool keep);

#endif
