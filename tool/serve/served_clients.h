/*
 * The clients of `accel serve`: a thread for each lane (gpu/remote/wire.h). Thread-safe.
 */
#ifndef ACCEL_SERVED_CLIENTS_H
#define ACCEL_SERVED_CLIENTS_H

#include "gpu/device/gpu.h"

/* Serves a connection that has just been made, on a thread of its own, until the client leaves.
 * Closes the socket. device: NULL: it starts, and the client is told so. */
void served_client_begin(int socket, struct gpu_device *device, int64_t area_bytes);

/* Returns how many there are. */
int served_clients(void);

/* Gives all clients a sign of life. */
void served_clients_beat(void);

/* Ends all lanes, and waits for their threads: for the calls that are under way. */
void served_clients_end(void);

#endif
