/*
 * A chart of calls with two logarithmic axes. Calls of one routine and side that fall on the same spot share a mark; where there are too
 * many marks, those of all routines, and of larger spots: a chart of any number of calls is bounded. Not thread-safe.
 */
#ifndef ACCEL_TOOL_SCATTER_H
#define ACCEL_TOOL_SCATTER_H

#include <stdio.h>

#include "log_decision.h"

enum { SCATTER_MARKS = 4000 };

struct scatter_mark {
    char name[48];
    enum log_side side;
    int column, row;            /* of the spot */
    double log_x, log_y, calls; /* sums of decimal logarithms over the calls */
    double ms;
};

struct scatter {
    struct scatter_mark mark[SCATTER_MARKS];
    int marks;
    int spots;                    /* of a decade, in each direction */
    bool mixed;                   /* marks stand for all routines at their spots */
    double left_out;              /* calls that have no mark */
    int place[2 * SCATTER_MARKS]; /* hashed: 1 + a mark's index; 0: free */
};

/* All zero at first. Adds `calls` equal calls at (x, y), both positive; other ones are ignored. ms: their time. */
void scatter_add(struct scatter *scatter, const struct log_decision *decision, double x, double y);

/* A line from end to end of the chart, y = value * x^slope; slope is 0 or 1. */
struct scatter_roof {
    char label[96];
    const char *kind; /* its class: cpu, gpu, copies */
    double value;
    int slope;
    bool label_left, label_below; /* where it is level, so that labels do not meet */
};

/* What a chart says; constant text, without what needs escaping. */
struct scatter_words {
    const char *id, *title, *x, *y;
    const char *x_unit, *y_unit; /* behind a mark's values; y_unit empty: that is its time */
};

/* Writes it as SVG; nothing if there are no marks. */
void scatter_write(FILE *to, const struct scatter *scatter, const struct scatter_words *words,
                   const struct scatter_roof *roofs, int count);

#endif
