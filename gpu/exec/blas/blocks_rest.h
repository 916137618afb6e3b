/*
 * After a failure: what is missing of a result that is overwritten in panels (trmm, trsm). Of each
 * panel so many cells are finished, in their order, and the others have their old values.
 */
#ifndef ACCEL_BLOCKS_REST_H
#define ACCEL_BLOCKS_REST_H

#include "blocks.h"

/* Returns the bytes of host memory at `aside` that rest_of_panels() needs, 0 for another call. */
int64_t rest_bytes(const struct executor *e);

/* Has the original compute what is missing. No cell is written in part, or of one, whole columns
 * that no other column of the panel depends on. Returns false on a failure. */
bool rest_of_panels(const struct blocks *b);

#endif
