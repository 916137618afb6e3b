/*
 * How large a library's INTEGER, REAL and DOUBLE PRECISION are. Compilers change them without
 * changing a name (-fdefault-integer-8, -freal-8-real-16), so the code of the library's functions
 * tells: how many bytes they read by reference, or which part of a register they compute with.
 * Nothing of the library is called.
 */
#ifndef ACCEL_SIZES_H
#define ACCEL_SIZES_H

#include "code.h"
#include "ops/names.h"

struct accel_sizes {
    int integer;                /* bits; 0: nothing tells */
    int real, double_precision; /* bytes of an element; 0: nothing tells */
};

/* Adds to *sizes what is 0 in it, and the code of a function of this exported name tells. */
void accel_sizes_add_function(struct accel_sizes *sizes, const struct accel_code *code,
                              uint32_t entry, const void *function);

/* The same, and then by other functions of the name's mangling until nothing that the name's
 * routine needs is missing. function: NULL to leave it out. */
void accel_sizes_add(struct accel_sizes *sizes, const struct accel_code *code, uint32_t entry,
                     const void *function);

/* Returns whether the elements of a routine have the size that its name promises: 1, 0, -1 if
 * nothing tells. */
int accel_sizes_fit(const struct accel_sizes *sizes, const struct accel_routine *routine);

#endif
