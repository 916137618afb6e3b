/*
 * Is a call small? The gate is one size, below which no call of any routine can pay. The entries compare sizes with it in
 * the program's registers (shim/elf/slots.c publishes it); all others ask here.
 */
#ifndef ACCEL_SMALL_H
#define ACCEL_SMALL_H

#include "ops/call.h"

/* A power of two. As long as every size is below it, a cube of complex numbers takes one thread of the CPU less than the
 * GPU, at nominal rates. Constant, cheap. */
uint64_t small_gate(void);

/* Whether one size is below it. A negative one is none. */
bool small_is_size(int64_t size);

/* Whether every size is below the gate. Like the entries, which must be cheap, it does not count how many products a batch
 * has, and of grouped ones, whose sizes are in arrays, it looks at m and n alone. Of
 * another library's functions no size is known to tell: none is small. */
bool small_is(const struct accel_call *call);

/* Whether a call above the gate takes the CPU less, at a billion operations and bytes a second, than a look at it and a launch
 * take: a column of a few rows is above the gate by its length. */
bool small_is_trifle(const struct accel_call *call);

#endif
