/*
 * How much other processes use the processors that this process may run on.
 */
#ifndef ACCEL_TOOL_BUSY_H
#define ACCEL_TOOL_BUSY_H

#include <stdbool.h>

struct busy {
    double used_s; /* time that all processes have used on these processors; negative: unknown */
    double own_s;  /* time that this process has used */
    double wall_s;
    int processors; /* that this process may run on */
};

/* Reads the state of now. */
void busy_read(struct busy *busy);

/* Returns how many processors others used on average between the two readings; 0 if unknown. */
double busy_others(const struct busy *before, const struct busy *after);

/* Whether others use so much that measured times become longer: a twentieth of the processors, and
 * a quarter of one at least. */
bool busy_is_much(double others, int processors);

#endif
