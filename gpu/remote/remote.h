/*
 * A device that another process owns (`accel serve`): calls go there by memory that both share.
 * This process opens no library of CUDA's and starts no thread for it, and its forked children
 * connect anew. Thread-safe.
 */
#ifndef ACCEL_REMOTE_H
#define ACCEL_REMOTE_H

#include "gpu/device/gpu.h"

/* Looks whether there is a server; where there is none, later calls do not look. It is looked for
 * at `path` alone, or if that is NULL, where a user's server and the machine's have it
 * (remote_path()); nowhere if CUDA_VISIBLE_DEVICES names no device. path stays. Call it once, at
 * the program's start. */
void remote_prepare(const char *path);

/* Returns the variable by which the user wants no device, of a server either; NULL: none is set. */
const char *remote_hidden_by(void);

/* Whether a socket is there. Looks again after some seconds, if one was there at the start. */
bool remote_is_there(void);

enum { REMOTE_PATH_BYTES = 108 }; /* of a socket's address */

/* Connects, like gpu_start(): returns NULL if there is no server that takes this process. path: of
 * the one that was asked. *starting: it will, when its device has started; ask again. */
struct gpu_device *remote_start(char path[REMOTE_PATH_BYTES], char why[GPU_FAILURE_BYTES],
                                bool *starting);

/* Whether a server can run a call: one of BLAS or LAPACK, whose operands are in host memory and
 * have room in a lane. */
bool remote_takes(const struct accel_call *call);

/* Finds the socket that programs take: the one at `given`, or if that is NULL, the first that is
 * there of the two below. Returns whether there is one. */
bool remote_find(char path[REMOTE_PATH_BYTES], const char *given);

/* Writes the path of a user's server (user), or the machine's, to `path`; an empty one: it has
 * none. */
void remote_path(char path[REMOTE_PATH_BYTES], bool user);

#endif
