/*
 * accel calibrate: measures the libraries and the GPU of this machine, and writes the file that decisions are made from.
 */
#ifndef ACCEL_TOOL_CALIBRATE_H
#define ACCEL_TOOL_CALIBRATE_H

/* With the command's own name as argv[0]. Returns the exit status. */
int calibrate_command(int argc, char **argv);

#endif
