/*
 * The users whose programs are clients of `accel serve`: who may be one, what each may have, and
 * what each has had. The kernel says whose a connection is (SO_PEERCRED). Thread-safe.
 */
#ifndef ACCEL_SERVED_USERS_H
#define ACCEL_SERVED_USERS_H

#include "gpu/remote/wire.h"

struct served_user {
    struct gpu_user gpu;         /* constant */
    uint32_t uid;                /* constant */
    double weight, wait_most_ms; /* constant */
    int lanes;                   /* under served_users.c's lock */
    /* By its lanes that have ended; under served_clients.c's lock */
    struct wire_served left;
    struct served_user *next;
};

/* A user's share of the device beside others', whose weight is 1 if nothing is said. */
struct served_weight {
    uint32_t uid;
    int weight;
};
enum { SERVED_WEIGHTS = 64 };

struct served_rules {
    /* Whoever could connect may be a client: the socket's owner, group and mode say who can. Else
     * this user and root alone may. */
    bool everyone;
    int64_t memory_most; /* of the device, for the calls of a user; 0: all */
    double wait_most_ms; /* that a call may wait for a place on the device */
    struct served_weight weight[SERVED_WEIGHTS];
    int weights;
};

/* Call it before the first client. The rules stay. */
void served_users_prepare(const struct served_rules *rules);

/* Returns whose the other end of a connection is, for one lane more; NULL: nobody's who may be a
 * client, or the user has as many as one may. *pid: its process. */
struct served_user *served_user_join(int socket, int *pid);

/* Returns how many users have lanes. */
int served_users_count(void);

/* Ends a lane of the user's. */
void served_user_leave(struct served_user *user);

/* Whether a user may see what others do: root, and the server's own. */
bool served_user_sees_all(const struct served_user *user);

#endif
