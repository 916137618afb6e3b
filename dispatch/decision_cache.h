/*
 * Decisions that stand for a while. To read a call and decide it takes ten thousand instructions:
 * of a product of order 100 some percent. Where calls from one place, with the same letters and
 * sizes, were decided eight times in a row so that nothing near would change it, the next eight go
 * to the original unread; then one is decided again, and twice as many go, 64 at most. Nothing is
 * kept over a change of a device's state. Thread-safe, without a lock.
 */
#ifndef ACCEL_DECISION_CACHE_H
#define ACCEL_DECISION_CACHE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a call goes to the CPU unread. call: a hash of its place, letters and sizes, not 0. busy:
 * calls of this process that the CPU is computing; with more than at the decision, it is made
 * anew. */
bool decision_cache_holds(uint64_t call, int busy);

/* Notes a decision: whether it stands, that is, the call is the CPU's whatever else changes a
 * little. */
void decision_cache_note(uint64_t call, bool stands, int busy);

/* Call it when a device's state has changed: all calls are decided anew. */
void decision_cache_forget(void);

#endif
