/*
 * Inputs that calls on the device have seen, by address and shape: what has been seen before is worth a digest, since it may come again.
 * A wrong hint costs time and nothing else: what is on the device is known by its content (resident.h). Thread-safe.
 */
#ifndef ACCEL_SIGHTINGS_H
#define ACCEL_SIGHTINGS_H

#include "digest.h"
#include "ops/call.h"

enum sighting {
    SIGHTING_PLAIN, /* nothing is known of it, or it changes too often: it goes up as ever */
    SIGHTING_KEEP,  /* it has been seen: digest it on its way up, and keep it */
    SIGHTING_LOOK   /* it has been kept: digest it, and look for it on the device */
};

/* Notes that a call on the device reads an operand, a matrix, and returns how to bring it there. */
enum sighting sightings_see(const struct accel_span *x);

/* Notes that it is kept, under this key. */
void sightings_kept(const struct accel_span *x, const struct gpu_key *key);

/* Notes whether its contents were on the device, after SIGHTING_LOOK. If they were not, returns SIGHTING_KEEP the first time; if that
 * happens often, SIGHTING_PLAIN, and it is not digested for a while. */
enum sighting sightings_looked(const struct accel_span *x, bool found);

/* Returns whether the next call would look for it, and had better find it: it has not changed since it was kept, as far as is known.
 * *key: what it was kept under. */
bool sightings_expect(const struct accel_span *x, struct gpu_key *key);

#endif
