/*
 * The virtual time of a schedule while it is made, step by step: the same as schedule_simulate()
 * finds afterwards, and sooner, since cells of the same size take the same time. Knows at any step
 * that a schedule cannot be done by a certain time any more.
 */
#ifndef ACCEL_SCHEDULE_CLOCK_H
#define ACCEL_SCHEDULE_CLOCK_H

#include "simulate.h"

/* Cells of an extent by their length: those before a group's edge, the last one before it, and the
 * last one of all. */
enum { CLOCK_EDGES = 3 };

/* Milliseconds, looked up where they are asked for the first time; 0: not yet. The last index: on
 * the diagonal. */
struct schedule_clock {
    const struct schedule *s;
    const struct schedule_rates *rates;
    int head;
    double kernel[CLOCK_EDGES][CLOCK_EDGES][CLOCK_EDGES][2];
    double copy[2][SCHEDULE_OPERANDS][CLOCK_EDGES][CLOCK_EDGES][2]; /* down, up */
    struct simulator sim;          /* started by the caller, which has memory for the spans */
    double left[SCHEDULE_ENGINES]; /* that steps to come take at least; set by the caller */
};

/* Starts at 0. The schedule's cells are set. */
void clock_set(struct schedule_clock *clock, const struct schedule *s,
               const struct schedule_rates *rates);

/* Return the milliseconds that the copy of an operand's cell (i, j) takes (engine: SCHEDULE_UP or
 * SCHEDULE_DOWN), and the kernel of result (i, j) by the cells p of its factors. */
double clock_copy_ms(struct schedule_clock *clock, int engine, int operand, int i, int j);
double clock_kernel_ms(struct schedule_clock *clock, int i, int j, int p);

/* Does a step that takes so long; what it waits for has been done. */
void clock_do(struct schedule_clock *clock, const struct schedule_step *step, double ms);

/* Returns a time that the whole schedule is not below. */
double clock_least(const struct schedule_clock *clock);

#endif
