/*
 * A server in the background, which its caller waits for.
 */
#ifndef ACCEL_SERVE_DETACH_H
#define ACCEL_SERVE_DETACH_H

#include "listener.h"

/* Goes on in a child, in a session of its own, of whose open files only stdout and stderr are the
 * caller's. This process waits until the child calls detach_done() or ends; then it ends itself,
 * with 0 or the child's status. Returns, in the child, the descriptor for detach_done(); -1 if it
 * has said why there is none. */
int detach_begin(void);

/* listener_claim(), but waits for a server that is about to start or to end. LISTENER_TAKEN: one
 * answers there. */
enum listener_claim detach_claim(struct listener *listener, const char *wanted,
                                 const struct listener_access *access);

/* Lets go of stdout, stderr and the folder, and has the parent end with 0. */
void detach_done(int parent);

#endif
