/*
 * A triangle that is divided into blocks of a grid. Its lines are groups; each pair of groups has a
 * part, which needs the lines of these two alone. So of eight parts none needs more than half of a
 * factor's lines; of parts that are cut between rows, the last one needs all of them. Pure
 * functions.
 */
#ifndef ACCEL_TRIANGLE_H
#define ACCEL_TRIANGLE_H

#include "ops/cut.h"

enum { TRIANGLE_GROUPS = 6 };

/* Returns how many groups there are for so many parts; 0: there is no such grid. At most
 * TRIANGLE_GROUPS. */
int triangle_groups(int parts);

/* Sets the parts of a triangle whose group number i is of the lines from edge[i] to edge[i + 1],
 * the largest ones of equal groups first. Those of empty groups may have no rows. */
void triangle_lay_out(struct accel_region *region, int parts, const int64_t *edge);

#endif
