/*
 * accel estimate: runs a program on the CPU, and says what a GPU that is not there would have run of it.
 */
#ifndef ACCEL_TOOL_ESTIMATE_H
#define ACCEL_TOOL_ESTIMATE_H

/* With the command's own name as argv[0]. Returns the exit status: the program's own, 128 and the signal's number where a
 * signal ended it, 127 where it cannot be run; 2 for bad options. */
int estimate_command(int argc, char **argv);

#endif
