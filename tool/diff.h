/*
 * accel diff: runs a program with and without the shim, and says whether it writes the same numbers.
 */
#ifndef ACCEL_TOOL_DIFF_H
#define ACCEL_TOOL_DIFF_H

/* With the command's own name as argv[0]. Returns the exit status: 0 where nothing differs by more than allowed and every
 * expectation is met, 1 where something does or is not, 2 for bad options, a program that fails without libaccel, and files
 * that cannot be read. Ends by the signal where one of those that end programs came. */
int diff_command(int argc, char **argv);

#endif
