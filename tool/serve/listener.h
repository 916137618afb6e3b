/*
 * The socket of `accel serve`: one that it makes, or one that systemd hands over
 * (sd_listen_fds(3)).
 */
#ifndef ACCEL_SERVE_LISTENER_H
#define ACCEL_SERVE_LISTENER_H

#include <stdbool.h>

#include "gpu/remote/remote.h"

/* Who may connect to a socket that it makes. */
struct listener_access {
    bool others;  /* not its user and root alone: */
    int32_t mode; /* of the socket */
    int64_t gid;  /* the socket's group; -1: as it comes */
};

struct listener {
    char path[REMOTE_PATH_BYTES]; /* empty: one that was handed over has none */
    int socket;                   /* -1: it does not listen yet */
    int held;                     /* the lock of one server at a time; -1: none */
    bool given;                   /* systemd's, which goes on to listen there */
    struct listener_access access;
};

enum listener_claim { LISTENER_CLAIMED, LISTENER_TAKEN, LISTENER_FAILED };

/* Claims the place: the socket that was handed over; or `wanted`, or that of this user's clients
 * (NULL), where a lock keeps a second server away. access: of one that it makes. Has said what is
 * wrong if it has failed; of a place that another server has (LISTENER_TAKEN), nothing. */
enum listener_claim listener_claim(struct listener *listener, const char *wanted,
                                   const struct listener_access *access);

/* Whether the socket's owner, group and mode say who can connect, and programs of any user may. */
bool listener_is_for_others(const struct listener *listener);

/* Listens, where that is still to be done. Returns false if it has said why that has failed. */
bool listener_open(struct listener *listener);

/* Takes the socket away: clients see that there is no server. */
void listener_close(struct listener *listener);

#endif
