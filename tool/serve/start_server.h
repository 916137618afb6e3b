/*
 * A server for the programs of this environment.
 */
#ifndef ACCEL_START_SERVER_H
#define ACCEL_START_SERVER_H

/* Starts `accel serve --detach` if no server answers where programs with these settings look for
 * one, and waits until it answers, for some seconds at most. If that fails, this command ("accel
 * run") or the server says why, in one line on stderr. */
void start_server(const char *command);

#endif
