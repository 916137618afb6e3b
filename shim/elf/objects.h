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

/* Another number after each load and each unload. */
unsigned long long accel_objects_changes(void);

/* How many objects the program has started with: the first ones in the order of loading, which stay. accel_objects_start() counts
 * them, once, in libaccel's constructor; 0 before that. */
void accel_objects_start(void);
unsigned accel_objects_at_start(void);

/* The names of some of the objects that define a symbol, in the order of loading, one behind the other. Without memory of
 * ours: there may be none. */
struct accel_objects {
    size_t used;     /* bytes of text */
    int next;        /* where the next part begins */
    char text[8192]; /* a name is a path */
};

/* The first of them from number `first` on; used is 0 after the last. */
void accel_objects_defining(const char *symbol, int first, struct accel_objects *objects);

/* Whether an object from number `first` on defines a name of which is() is true, or has no hash table that could tell. is() is called
 * under the dynamic linker's lock: it takes none and allocates nothing. */
bool accel_objects_define(bool (*is)(const char *name), unsigned first);

/* Whether an object's dynamic symbol table defines a symbol; true where it has no hash table that could tell. The caller sees
 * to it that the object stays. (gABI, chapter 5, "Hash Table"; GNU hash: https://sourceware.org/legacy-ml/binutils/2006-10/msg00377.html) */
bool accel_object_defines(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *symbol);

/* One object. */
struct accel_object {
    const ElfW(Dyn) * dynamic; /* tells it from all others that are loaded */
    int number;                /* in the order of loading */
    char name[4096];           /* the dynamic linker's; empty for the program */
};

/* Which object of libaccel's own namespace an address is in; false for none, and where its name is longer. */
bool accel_objects_at(const void *address, struct accel_object *object);

/* Whether the object is still loaded. */
bool accel_objects_has(const ElfW(Dyn) * dynamic);

/* Some of the objects whose relocations name a symbol for which see() returns true; next, 0 at first, is where the next part
 * begins, and count is 0 after the last. see() is called under the dynamic linker's lock: it takes none and allocates nothing. */
struct accel_users {
    int next, count;
    const ElfW(Dyn) * dynamic[64];
};

void accel_objects_using(bool (*see)(const char *name, int object, void *data), void *data,
                         struct accel_users *users);

/* The first function of that name among the objects that come after one in the order of loading, NULL for none. As dlsym, except
 * that a message that waits for dlerror stays. */
const void *accel_objects_function(const char *name, const ElfW(Dyn) * after);

/* Whether the path of an object that is loaded is such a one. */
bool accel_objects_any(bool (*is)(const char *path));

#endif
