/*
 * Two processes that take turns at memory which they share, and tell each other how far they are.
 * Who waits looks for a while, then sleeps (futex(2)). Nobody believes the other one: a word that
 * is none of the three ends the lane.
 */
#ifndef ACCEL_TURNS_H
#define ACCEL_TURNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum turn { TURN_CLIENT, TURN_SERVER, TURN_OVER };

/* All zero at first: the client's turn. */
struct turns {
    _Atomic uint32_t whose;    /* enum turn */
    _Atomic uint32_t sleepers; /* that wait for it to change */
};

/* Passes the turn on. The other process then sees all that this one has written. */
void turns_pass(struct turns *turns, enum turn to);

/* Returns whose turn it is. */
enum turn turns_whose(struct turns *turns);

/* Waits until it is the caller's turn, or over, for `most_ms` at most. Returns whose it is then. */
enum turn turns_await(struct turns *turns, enum turn mine, double most_ms);

/* A count that one process raises, and another one waits for. */
struct progress {
    _Atomic uint32_t count, sleepers;
};

void progress_raise(struct progress *progress, uint32_t to);

/* Waits until it is not `seen` any more, for `most_ms` at most. */
void progress_await(struct progress *progress, uint32_t seen, double most_ms);

#endif
