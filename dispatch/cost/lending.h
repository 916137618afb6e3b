/*
 * What the parts of a divided call can lend each other: tiles of operands that several of them
 * need. One part's device brings each of these tiles up from host memory, and the others copy it
 * from that device. Parts have the same tiles of the same lines of an operand if their schedules
 * are made by parameters that agree. Pure functions.
 *
 * Operands that are written, or that a batch reads, are not lent.
 */
#ifndef ACCEL_LENDING_H
#define ACCEL_LENDING_H

#include "split.h"

/* Devices copy from each other only where that is so many times as fast as what each of them brings
 * up while all do. */
#define LENDING_GAIN 1.25

/* Sets of each part the shares of its operands that other parts' devices bring up, and no
 * parameters. Lines of an operand that several parts have are dealt out by what their devices bring
 * up in a second. The parts' regions and rates must be set. never: operands that are not lent, as
 * bits. Returns whether any is. */
bool lending_find(struct split_part *part, int parts, const struct accel_call *whole,
                  unsigned never);

/* Sets a part's time, and if it has lent operands, its schedule's parameters. *common: those that
 * all parts' agree with; where they are not set, chooses them. Returns the lent operands of which
 * the schedule has no slot for each tile, so that it would bring some twice, or which are not
 * divided, as bits: the part's time says nothing then. */
unsigned lending_ms(struct split_part *part, const struct accel_call *call, int64_t memory_bytes,
                    struct schedule_params *common);

#endif
