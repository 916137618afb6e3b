/*
 * A chart of calls with two logarithmic axes. Calls of one routine and side that fall on the same
 * spot share a mark; where there are too many marks, those of all routines, and of larger spots: a
 * chart of any number of calls is bounded. Not thread-safe.
 */
#ifndef ACCEL_TOOL_SCATTER_H
#define ACCEL_TOOL_SCATTER_H

#include <stdio.h>

#include "tool/log/log_decision.h"

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

/* All zero at first. Adds `calls` equal calls at (x, y), both positive; other ones are ignored. ms:
 * their time. */
void scatter_add(struct scatter *scatter, const struct log_decision *decision, double x, double y);

/* Writes the marks as the items of a list of JSON: side, decimal logarithms of x and y, calls, and
 * what the mark says, with these units behind its x and y; y_unit: empty: that is its time. */
void scatter_write(FILE *to, const struct scatter *scatter, const char *x_unit, const char *y_unit);

#endif
