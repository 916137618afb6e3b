/*
 * exp() and log() for a library without libm: within four units in the last place of a double. Pure
 * functions.
 */
#ifndef ACCEL_SERIES_H
#define ACCEL_SERIES_H

double series_exp(double x);
/* x: positive, finite and normal. */
double series_log(double x);

#endif
