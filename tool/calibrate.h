/*
 * accel calibrate: measures this machine's libraries and its GPU, and writes the calibration.
 *
 * tool/ is build/accel, for users: calibrate, diff, estimate. It may include all other folders.
 */
#ifndef ACCEL_TOOL_CALIBRATE_H
#define ACCEL_TOOL_CALIBRATE_H

/* Runs the command; argv[0] is its name. Returns the exit status. */
int calibrate_command(int argc, char **argv);

#endif
