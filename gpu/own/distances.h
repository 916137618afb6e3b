/*
 * What gpu/exec/ml/distances.c and the kernel of gpu/own/distances.cu tell each other.
 */
#ifndef ACCEL_OWN_DISTANCES_H
#define ACCEL_OWN_DISTANCES_H

/* A block has at most so many threads, each with a training point, and takes so many queries and
 * features at a time. */
#define DISTANCES_THREADS  128
#define DISTANCES_QUERIES  8
#define DISTANCES_FEATURES 16

#endif
