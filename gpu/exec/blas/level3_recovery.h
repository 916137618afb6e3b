/*
 * After a failure: what is missing of a result that is overwritten in panels (trmm, trsm). Of each
 * panel so many tiles are finished, in their order, and the others have their old values.
 */
#ifndef ACCEL_LEVEL3_RECOVERY_H
#define ACCEL_LEVEL3_RECOVERY_H

#include "level3.h"

/* Returns the bytes of the recovery buffer that level3_recover_panels() needs, else 0. */
int64_t level3_recovery_bytes(const struct executor *e);

/* Has the original compute what is missing. No tile is written in part, or of one, whole columns
 * that no other column of the panel depends on. Returns false on a failure. */
bool level3_recover_panels(const struct level3 *b);

#endif
