/*
 * The distance of two words.
 */
#ifndef ACCEL_SPELLING_H
#define ACCEL_SPELLING_H

/* Returns the Levenshtein distance of the first 64 characters, without regard to case: 0 for the
 * same word. Allocates nothing, uses no locale. Thread-safe. */
int spelling_distance(const char *a, const char *b);

#endif
