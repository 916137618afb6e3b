/*
 * Tiles of operands that several devices of a call need: one of these brings each of them up from
 * host memory, its owner, and lends it to the others, which copy it from there. A tile is lent once
 * its copy is complete on the owner's device, so that nobody's stream depends on another device's.
 *
 * A member is one of the devices of the call, with its thread. Members begin together and end
 * together, since a tile is lent as long as its owner has its memory. Nobody waits for a member
 * that has failed, or that goes another way: what it does not bring, the others bring up by
 * themselves. Nor do members wait for each other in a ring: the one that would close it brings its
 * tile up by itself.
 */
#ifndef ACCEL_PEER_TILES_H
#define ACCEL_PEER_TILES_H

#include "call/matrix.h"
#include "gpu/plan/scheduled.h"
#include "gpu/device/copies.h"

struct peer_tiles;

enum { PEER_MEMBERS_MOST = 16 };

/* Returns a step's tile: by the program's memory, which is the same for all members. */
struct matrix peer_tiles_key(const struct scheduled *part, const struct schedule *schedule,
                             const struct schedule_step *step);

/* Before the members run, on one thread. */

/* Returns a table of no tiles for so many members, at most PEER_MEMBERS_MOST, or NULL without
 * memory. The caller gives it back by peer_tiles_free(), when no member uses it. */
struct peer_tiles *peer_tiles_new(int members);
void peer_tiles_free(struct peer_tiles *table);

/* Adds the tiles of a member's part of the call: those that its schedule brings up, of operands
 * that are lent (schedule->call.lent). The member runs its part by that schedule, or leaves.
 * up_gbps: the 10^9 bytes that it brings up in a second. Returns false without memory. */
bool peer_tiles_add(struct peer_tiles *table, int member, const struct scheduled *part,
                    const struct schedule *schedule, double up_gbps);

/* Gives each tile that several members have an owner, so that all of them have brought up their own
 * at about the same time. Returns the number of such tiles. No member is added any more. */
int peer_tiles_deal(struct peer_tiles *table);

/* Sets how far ahead members bring up their own tiles: see peer_tiles_order(). If it is not set, as
 * many as there are members. */
void peer_tiles_set_ahead(struct peer_tiles *table, int ahead);

/* Has all members go another way, because one of them does not run beside the others. Members that
 * wait for that one in peer_tiles_join() go on, and peer_tiles_join() returns false. If all members
 * have begun or left already, nobody waits, and this does nothing. Thread-safe, as what follows. */
void peer_tiles_stop(struct peer_tiles *table);

/* Of a member, on its thread: */

/* Changes the order in which a member's schedule brings tiles up: its own before those of others
 * whose numbers are less than `ahead` smaller (upload_order.h). Also before they run. Returns false
 * without memory. */
bool peer_tiles_order(const struct peer_tiles *table, int member, const struct scheduled *part,
                      struct schedule *schedule, int ahead);

/* Makes the schedule of its part as peer_tiles_add() has got it, for the same rates and memory, in
 * the order for `ahead`. Returns false without memory. */
bool peer_tiles_schedule(const struct peer_tiles *table, int member, const struct scheduled *part,
                         const struct schedule_rates *rates, int64_t memory_bytes,
                         struct schedule *schedule);

/* Returns the number of a tile that several members have, and its owner; negative: it is none of
 * these. Also before they run. */
int peer_tiles_number(const struct peer_tiles *table, const struct matrix *tile, int *owner);

/* Returns whether it lends or borrows an operand's tiles. */
bool peer_tiles_have(const struct peer_tiles *table, int member, int operand);

/* Begins: waits until all have begun or left. Returns whether there is anybody else; false for one
 * that has left. A member that does not begin must leave. */
bool peer_tiles_join(struct peer_tiles *table, int member);

/* Returns whether a member can have a tile now: it brings it up, or its owner lends it. If not, ask
 * again after peer_tiles_wait(). */
bool peer_tiles_may_have(struct peer_tiles *table, int member, const struct matrix *tile);

/* Returns where another member lends a tile; 0: this one brings it up, and calls peer_tiles_lend()
 * when it has come up. After peer_tiles_may_have(). */
gpu_address peer_tiles_find(struct peer_tiles *table, int member, const struct matrix *tile);
void peer_tiles_lend(struct peer_tiles *table, int member, const struct matrix *tile,
                     gpu_address memory);

/* Waits until another member has news, for a tenth of a millisecond at most. */
void peer_tiles_wait(struct peer_tiles *table);

/* Ends a member's part. None of its copies from other members' memory may be pending. well: the
 * tiles that it has lent are right; else nobody reads them from now on. Tiles that it has not lent,
 * others bring up by themselves. Returns when nobody reads from its memory any more. Does nothing
 * the second time. */
void peer_tiles_leave(struct peer_tiles *table, int member, bool well);

#endif
