/*
 * The loaded objects, as the dynamic linker lists them. All functions are thread-safe; they take the linker's locks: hold none
 * of ours.
 */
#ifndef ACCEL_OBJECTS_H
#define ACCEL_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* How many objects have been loaded so far: tells whether a look at them again can find something new. Does not wait for a
 * fork: while one is under way, the count before. */
unsigned long long accel_objects_loads(void);

/* How many have been unloaded: what is known of an address holds while this stays. */
unsigned long long accel_objects_unloads(void);

/* The names of some of the objects that define a symbol, in the order of loading, one behind the other. Without memory of
 * ours: there may be none. */
struct accel_objects {
    size_t used;     /* bytes of text */
    int next;        /* where the next part begins */
    char text[8192]; /* a name is a path */
};

/* The first of them from number `first` on; used is 0 after the last. */
void accel_objects_defining(const char *symbol, int first, struct accel_objects *objects);

/* Whether an object's dynamic symbol table defines a symbol; true where it has no hash table that could tell. The caller sees
 * to it that the object stays. (gABI, chapter 5, "Hash Table"; GNU hash: https://sourceware.org/legacy-ml/binutils/2006-10/msg00377.html) */
bool accel_object_defines(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *symbol);

#endif
