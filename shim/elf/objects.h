/*
 * The loaded objects, as the dynamic linker lists them. All functions are thread-safe; they take
 * the linker's locks: hold none of ours. Functions that are passed to them run under the linker's
 * lock: they take no lock and allocate nothing.
 */
#ifndef ACCEL_OBJECTS_H
#define ACCEL_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns how many objects have been loaded so far. Does not wait for a fork: during one, returns
 * the last count. */
unsigned long long accel_objects_loads(void);

/* Returns how many objects have been unloaded. While this number stays, an address keeps its
 * meaning. */
unsigned long long accel_objects_unloads(void);

/* Returns a number that changes with each load and each unload. */
unsigned long long accel_objects_changes(void);

/* Returns a number from which on are all objects, perhaps among others, that have come since
 * `loads` had been loaded: new ones are the last. *now: how many have been loaded by now. */
unsigned accel_objects_first_since(unsigned long long loads, unsigned long long *now);

/* accel_objects_start(), in libaccel's constructor, counts the objects of the program's start: the
 * first in the order of loading, which stay. accel_objects_at_start() returns the count, 0 before
 * that. */
void accel_objects_start(void);
unsigned accel_objects_at_start(void);

/* Names (paths) of some of the objects that define a symbol, in the order of loading. Not
 * allocated, because memory may be short. */
struct accel_objects {
    size_t used;     /* bytes of text; 0: there are no more */
    int next;        /* the number from which to go on */
    char text[8192]; /* the names, each with its 0 */
};

/* Lists as many as fit, from object number `first` on. */
void accel_objects_defining(const char *symbol, int first, struct accel_objects *objects);

/* Returns whether an object from number `first` on defines a name for which is() returns true, or
 * has no hash table that could tell. The hash is that of .gnu.hash, here and below
 * (ops/names.h). */
bool accel_objects_define(bool (*is)(const char *name, uint32_t hash), unsigned first);

/* Returns whether an object's dynamic symbol table defines a symbol that is no variable; true if no
 * hash table could tell. The object must stay meanwhile. */
bool accel_object_defines(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *symbol);

/* Returns whether is() returns true for a name that the object refers to and does not define; true
 * if no hash table could tell. The object must stay meanwhile. */
bool accel_object_imports(ElfW(Addr) base, const ElfW(Dyn) * dynamic, bool (*is)(const char *name));

/* Returns a function that the object defines, NULL if there is none, or a function of its own
 * chooses one (STT_GNU_IFUNC). The object must stay meanwhile; here and below it may also be one
 * that nobody has loaded. */
const void *accel_object_function(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *symbol);

/* Returns the name in the relocation of a slot of the procedure linkage table; empty: it names
 * none, NULL: there is no such slot. */
const char *accel_object_slot_name(ElfW(Addr) base, const ElfW(Dyn) * dynamic, uintptr_t slot);

/* Returns whether a definition is no function: by its type or, if it has none, by where it lies; a
 * number counts as a variable. */
bool accel_object_is_variable(ElfW(Addr) base, const ElfW(Sym) * symbol);

struct accel_object {
    const ElfW(Dyn) * dynamic; /* identifies it among the loaded objects */
    int number;                /* in the order of loading */
    char name[4096];           /* the dynamic linker's; empty for the program */
};

/* Fills in the object of libaccel's own namespace that an address lies in; false if there is none
 * or its name is too long. */
bool accel_objects_at(const void *address, struct accel_object *object);

/* Returns the number of the object that an address lies in, -1 if there is none. */
int accel_objects_number(const void *address);

/* Finds the object for which dlopen() brought another one in: the first one, behind those of the
 * program's start, that needs it, and so on. In the order of look-ups, its own libraries come
 * before those of what it brought in (glibc, elf/dl-object.c, _dl_new_object). Fills in *root;
 * false if the object was opened itself, is of the program's start, is gone, or the name is too
 * long. */
bool accel_objects_root(const ElfW(Dyn) * dynamic, struct accel_object *root);

/* Calls take() with the base and the headers of a loaded object. False if it has gone, or is in
 * another namespace (dlmopen). */
bool accel_objects_headers(const ElfW(Dyn) * dynamic,
                           void (*take)(const struct dl_phdr_info *, void *), void *data);

/* Returns whether the object is still loaded. */
bool accel_objects_has(const ElfW(Dyn) * dynamic);

typedef bool accel_see(const char *name, uint32_t hash, int object, void *data);

/* Some of the objects whose relocations name a symbol for which see() returns true. Set next to 0
 * at first; it is the number from which to go on. count is 0 after the last. */
struct accel_users {
    int next, count;
    const ElfW(Dyn) * dynamic[64];
};

void accel_objects_using(accel_see *see, void *data, struct accel_users *users);

/* Calls see() for the names in one object's relocations until it returns true. */
void accel_objects_uses_of(const ElfW(Dyn) * dynamic, accel_see *see, void *data);

/* Some of the objects, behind those of the program's start, that are linked to one (DT_NEEDED). As
 * accel_objects_using(). */
void accel_objects_needing(const ElfW(Dyn) * dynamic, struct accel_users *users);

/* Returns whether an object has come with the program's start, and none of those is linked to it:
 * LD_PRELOAD names it, or the like. */
bool accel_objects_preloaded(const ElfW(Dyn) * dynamic);

/* Returns the first function of that name in the objects that come after one in the order of
 * loading, NULL if there is none. Unlike dlsym, leaves dlerror's message alone. */
const void *accel_objects_function(const char *name, const ElfW(Dyn) * after);

/* Returns whether is() returns true for the path of a loaded object. */
bool accel_objects_any(bool (*is)(const char *path));

#endif
