/*
 * Blocks of a part of a call that several devices share, whose tiles they lend each other
 * (peer_tiles.h): b->peer_tiles is their table, or NULL where the part brings all of its operands
 * up by itself, from the start or because it has left.
 */
#ifndef ACCEL_LEVEL3_PEER_TILES_H
#define ACCEL_LEVEL3_PEER_TILES_H

#include "level3.h"

/* Makes the part's schedule in that memory, as the table knows it. If it does not have a slot for
 * each tile of what is lent, leaves; returns false then, and without a table. */
bool level3_peer_tiles_schedule(struct level3 *b, const struct schedule_rates *rates,
                                int64_t memory_bytes);

/* Takes the memory of an operand, which others may read where its tiles are lent. If there is no
 * such memory, leaves, and takes other memory. */
enum gpu_status level3_peer_tiles_take(struct executor *e, int operand, int64_t bytes,
                                       gpu_address *memory);

/* Begins, together with the others: waits for them. If there are none, or the schedule is one
 * kernel, leaves. */
void level3_peer_tiles_begin(struct level3 *b);

/* Returns the other device's memory from which a tile comes; 0: from the host's. */
gpu_address level3_peer_tile(const struct level3 *b, const struct schedule_step *step);

/* Leaves, if the part has not left: the pipeline has ended, well or not. Waits for those that read
 * from its memory. */
void level3_peer_tiles_leave(struct level3 *b, bool well);

#endif
