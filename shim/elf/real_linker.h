/*
 * The dynamic linker for libaccel's own use: the real functions behind those of hooks.c, and the
 * objects that addresses lie in. The linker sees libaccel as the caller of these look-ups. All
 * functions are thread-safe.
 */
#ifndef ACCEL_REAL_LINKER_H
#define ACCEL_REAL_LINKER_H

#include <stdbool.h>

struct link_map;

/* Finds the C library's dlsym, and the next one behind ours, once, and stores them (entry.h). */
void accel_real_init(void);
/* The C library's. */
void *accel_real_lookup(void *handle, const char *symbol);
int accel_real_dlclose(void *handle);

/* The next ones, for what the program calls: another preload may stand in front of them, too.
 * accel_next_lookup() returns false, and looks nothing up, if that is the C library's. */
bool accel_next_lookup(void *handle, const char *symbol, void **found);
int accel_next_dlclose(void *handle);

/* Returns the function of that name behind libaccel; looks it up once and stores it in *known. */
void *accel_real_next(_Atomic(void *) *known, const char *name);

/* Calls the real dlerror. Finding it loses no message. */
char *accel_real_dlerror(void);

/* Returns whether the dynamic linker is mapping or unmapping objects now (r_debug, link.h). */
bool accel_real_maps(void);

/* Return the object that an address lies in (NULL: none); libaccel's own; whether an address lies
 * in that. */
const struct link_map *accel_object_of(const void *address);
const struct link_map *accel_own_object(void);
bool accel_is_own(const void *address);

/* Returns where an object begins in memory, which is with the header of its file as a rule; NULL
 * if that cannot be told. */
const void *accel_object_begin(const struct link_map *object);
bool accel_is_in_our_namespace(const struct link_map *object);

/* Opens a loaded object again, by its name in its own namespace (dlmopen). Close the handle with
 * accel_real_dlclose(). NULL if the name leads to another object or to none, such as the vdso's.
 * Call it within linker_enter(); the object must stay meanwhile. */
void *accel_real_handle(const struct link_map *object);

/* Look a symbol up in the scope of an object, or of the object of our namespace that has this name.
 * NULL if there is none, or only libaccel's. */
void *accel_real_lookup_in(const struct link_map *object, const char *symbol);
void *accel_real_lookup_named(const char *name, const char *symbol);

#endif
