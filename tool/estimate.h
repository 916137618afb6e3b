/*
 * accel estimate: runs a program on the CPU, and says what a GPU that is not there would have run.
 */
#ifndef ACCEL_TOOL_ESTIMATE_H
#define ACCEL_TOOL_ESTIMATE_H

/* Runs the command; argv[0] is its name. Returns the program's exit status; 128 and the number of the signal that ended it; 127
 * if it cannot be started; 126 if its counts have no place; 2 for wrong options. */
int estimate_command(int argc, char **argv);

#endif
