/*
 * Blocks of a part of a call that several devices share, whose cells they lend each other
 * (peers.h): b->peers is their table, or NULL where the part brings all of its operands up by
 * itself, from the start or because it has left.
 */
#ifndef ACCEL_BLOCKS_LENT_H
#define ACCEL_BLOCKS_LENT_H

#include "blocks.h"

/* Makes the part's schedule in that memory, as the table knows it. If it does not have a place for
 * each cell of what is lent, leaves; returns false then, and without a table. */
bool lent_schedule(struct blocks *b, const struct schedule_rates *rates, int64_t memory_bytes);

/* Takes the memory of an operand, which others may read where its cells are lent. If there is no
 * such memory, leaves, and takes other memory. */
enum gpu_status lent_take(struct executor *e, int operand, int64_t bytes, gpu_address *memory);

/* Begins, together with the others: waits for them. If there are none, or the schedule is one
 * kernel, leaves. */
void lent_begin(struct blocks *b);

/* Returns the other device's memory from which a cell comes; 0: from the host's. */
gpu_address lent_cell(const struct blocks *b, const struct schedule_step *step);

/* Leaves, if the part has not left: the flow has ended, well or not. Waits for those that read from
 * its memory. */
void lent_leave(struct blocks *b, bool well);

#endif
