/*
 * ACCEL_METRICS_DIR: the sums of a process, and of the children that it forks, as a file of
 * Prometheus's text format, for the textfile collector of node_exporter: accel.HOST.PID.prom. It is
 * written aside and renamed: a second after the first call, then on an interval, by a thread of
 * libaccel's own in one of these processes, and when they exit. No malloc, no stdio.
 */
#ifndef ACCEL_METRICS_H
#define ACCEL_METRICS_H

/* Subscribes the sink. Its file is in `folder`, a string that stays. If it cannot be written, one
 * message says so. */
void metrics_start(const char *folder);

#endif
