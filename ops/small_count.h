/*
 * Of a function of another library: a struct whose count is below this cannot pay (op->count_at). The entries compare with it, too.
 */
#ifndef ACCEL_SMALL_COUNT_H
#define ACCEL_SMALL_COUNT_H

#define ACCEL_SMALL_COUNT 64

#endif
