/*
 * How much of the machine others use meanwhile: other processes on the processors that this one may run on.
 */
#ifndef ACCEL_TOOL_BUSY_H
#define ACCEL_TOOL_BUSY_H

#include <stdbool.h>

struct busy {
    double used_s; /* of those processors, by everybody; negative: not known */
    double own_s;  /* by this process */
    double wall_s;
    int processors; /* that this process may run on */
};

/* As of now. */
void busy_read(struct busy *busy);

/* How many processors others have used on average between the two; 0 where that is not known. */
double busy_others(const struct busy *before, const struct busy *after);

/* Whether that is so much that it makes times longer: a twentieth of them, and a quarter of one at least. */
bool busy_is_much(double others, int processors);

#endif
