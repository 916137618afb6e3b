/*
 * The order in which a device brings up tiles that others wait for (peer_tiles.h). Each of them
 * copies most tiles of an operand from the others' memory. If all kept to the order of their
 * kernels, all would wait for the same tile, and one of them alone would bring something up. So a
 * device brings its own tiles up earlier: while it copies what the others have brought up, they can
 * go on with their next ones. A pure function.
 */
#ifndef ACCEL_UPLOAD_ORDER_H
#define ACCEL_UPLOAD_ORDER_H

#include "schedule.h"

/* What an upload's tile is among those that several devices need: its number, by which they are
 * dealt out, or negative if nobody else needs it. */
struct upload_order {
    int32_t number;
    bool own; /* this device brings it up */
};

/* Moves uploads of own tiles before those of others' tiles: before the tile number i, all own ones
 * below i + ahead. Other uploads keep their order, and kernels the tiles for which they wait. tile:
 * of each upload, in their order. Each own tile must have a slot to itself. Returns false, and
 * changes nothing, without host memory. */
bool upload_order_make(struct schedule *s, const struct upload_order *tile, int ahead);

#endif
