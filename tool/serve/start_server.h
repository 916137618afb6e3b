/*
 * A server for the programs of this environment.
 */
#ifndef ACCEL_START_SERVER_H
#define ACCEL_START_SERVER_H

/* Sees to it that a server answers where programs with these settings look for one: starts `accel
 * serve --detach` if none does. Waits for some seconds at most. What is wrong is one line on
 * stderr, of this command ("accel run") or of the server's. */
void start_server(const char *command);

#endif
