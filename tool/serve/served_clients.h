/*
 * The clients of `accel serve`: a thread for each lane (gpu/remote/wire.h). Thread-safe.
 */
#ifndef ACCEL_SERVED_CLIENTS_H
#define ACCEL_SERVED_CLIENTS_H

#include <stdint.h>

/* Serves a connection that has just been made, on a thread of its own, until the client leaves.
 * Closes the socket. While the devices start (served_devices.h), the client is told so. */
void served_client_begin(int socket, int64_t area_bytes);

/* Returns how many there are. */
int served_clients(void);

/* Gives all clients a sign of life. */
void served_clients_beat(void);

/* Ends all lanes, and waits for their threads: for the calls that are under way. */
void served_clients_end(void);

#endif
