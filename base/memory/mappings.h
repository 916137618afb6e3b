/*
 * The process's mappings, as /proc/self/maps has them, one after the other. No malloc, no stdio.
 * Thread-safe; other threads may map and unmap meanwhile.
 */
#ifndef ACCEL_MAPPINGS_H
#define ACCEL_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

enum { MAPPING_NAME = 32 };

struct mapping {
    uintptr_t start, end;
    bool is_private, is_readable, is_writable; /* writable: readable, too */
    bool is_file;            /* a file's, in whatever file system: memfd, System V, huge pages */
    char name[MAPPING_NAME]; /* the beginning of its path, or of what stands there; may be empty */
};

/* Passes each mapping to see() in the order of their addresses, until it returns false. Returns
 * false if they cannot be read. */
bool mappings_read(bool (*see)(void *context, const struct mapping *mapping), void *context);

/* Finds the first mapping that ends behind an address. Returns false if there is none, or they
 * cannot be read. Takes some microseconds since Linux 6.11, before that as long as mappings_read()
 * does. */
bool mappings_find(uintptr_t address, struct mapping *mapping);

/* Returns whether all of [start, end) may be read: false if a part is not mapped, or the program
 * has taken access away (mprotect(2)), or it cannot be told. */
bool mappings_can_be_read(uintptr_t start, uintptr_t end);

#endif
