/*
 * The accounts that `accel serve` is told of: the one that it is to have, and groups.
 */
#ifndef ACCEL_SERVE_ACCOUNT_H
#define ACCEL_SERVE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Return the number of a user, or of a group, by its name or as digits; -1: there is none. */
int64_t account_user(const char *name);
int64_t account_group(const char *name);

/* Gives up root for an account, with its groups and its home folder, for good. What root has opened
 * stays open. Returns false if it has said why it cannot. */
bool account_become(const char *name);

#endif
