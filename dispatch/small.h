/*
 * Whether a call is small. The gate is one size: a call whose sizes are all below it cannot pay,
 * whatever its routine. The entries compare sizes in the program's registers with it
 * (shim/elf/slots.c publishes it); all others ask here.
 */
#ifndef ACCEL_SMALL_H
#define ACCEL_SMALL_H

#include "call/call.h"

/* Returns the gate, a power of two: a complex product of smaller matrices takes one thread of the
 * CPU less time than the GPU, at nominal rates. Constant, cheap. */
uint64_t small_gate(void);

/* Whether one size is below the gate; false for a negative one. */
bool small_is_size(int64_t size);

/* Whether every size is below the gate. Like the entries, which must be cheap, it does not count
 * the products of a batch, and looks only at m and n of grouped ones, whose sizes are in arrays. A
 * call of another library is small by the count that its entry compares (op->foreign->count_at). */
bool small_is(const struct accel_call *call);

/* Whether a call above the gate takes the CPU less time, at a billion operations and bytes a
 * second, than the decision and half a launch: a column of a few rows is above the gate by its
 * length. */
bool small_is_negligible(const struct accel_call *call);

#endif
