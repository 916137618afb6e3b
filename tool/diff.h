/*
 * accel diff: runs a program with and without libaccel, and says whether it writes the same numbers.
 */
#ifndef ACCEL_TOOL_DIFF_H
#define ACCEL_TOOL_DIFF_H

/* Runs the command; argv[0] is its name. Returns the exit status: 0 if all differences are allowed and every expectation is met,
 * 1 if not, 2 if that cannot be told: wrong options, a program that fails without libaccel, unreadable files. If a signal that
 * ends programs came, ends this process by it. */
int diff_command(int argc, char **argv);

#endif
