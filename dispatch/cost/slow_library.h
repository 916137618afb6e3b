/*
 * Whether a CPU library is slower than its nominal rates say, by the first calls of a program.
 * Pure.
 *
 * A call takes long for many reasons: its memory is touched for the first time, threads start, the
 * machine is busy. So several calls in a row must, and the fastest of them counts.
 */
#ifndef ACCEL_SLOW_LIBRARY_H
#define ACCEL_SLOW_LIBRARY_H

/* Zero at first. */
struct slow_library {
    int calls;    /* in a row that were slow */
    double least; /* the fastest of them */
    double times; /* by which the rates have been lowered so far; 0: not at all */
};

enum { SLOW_LIBRARY_CALLS = 3 };

/* Calls that take less than so many times what the rates say are no sign. */
#define SLOW_LIBRARY_FROM 2.0

/* Adds a call that took `times` as long as the rates say. Returns by how much these are to be
 * divided from now on: 1: they stay; less than 1: a call was fast after all. Never are they
 * higher than the first ones. */
double slow_library_add(struct slow_library *library, double times);

#endif
