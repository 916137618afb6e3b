/*
 * How far two words are apart.
 */
#ifndef ACCEL_SPELLING_H
#define ACCEL_SPELLING_H

/* How many characters have to be changed, put in, or left out, to make one word of the other: 0 for the same word. Upper and
 * lower case are one. Looks at the first 64 characters of each. Allocates nothing, asks no locale; any thread may use it. */
int spelling_distance(const char *a, const char *b);

#endif
