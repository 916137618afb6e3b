/*
 * The processor's name and maker, and how many of them there are. Thread-safe.
 */
#ifndef ACCEL_CPU_H
#define ACCEL_CPU_H

#include <stdbool.h>

enum { CPU_NAME_BYTES = 49 };

/* Writes the name: on x86-64 the processor's own, without the spaces that some have around it; on
 * AArch64 the name of a known design with its version, else the numbers of implementer and part.
 * "unknown" where the system does not tell. */
void cpu_name(char name[CPU_NAME_BYTES]);

/* Returns whether it is one of AMD's, or of Hygon's, which are built like these. */
bool cpu_is_amd(void);

/* Returns how many CPUs the calling thread may use, at least 1. (A cpu_set_t has 1024, and the
 * kernel refuses to fill in less than there can be.) */
int cpu_usable(void);

#endif
