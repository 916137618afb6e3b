/*
 * The dynamic linker for libaccel's own use: the functions behind those that it stands in front of (hooks.c), and the objects that
 * addresses lie in. A look-up here is one by libaccel. All functions are thread-safe.
 */
#ifndef ACCEL_REAL_LINKER_H
#define ACCEL_REAL_LINKER_H

#include <stdbool.h>

struct link_map;

/* Finds the real dlsym, once: accel_real_dlsym in entry.h. */
void accel_real_init(void);
void *accel_real_lookup(void *handle, const char *symbol);
int accel_real_dlclose(void *handle);

/* The real dlerror; asking for it loses no message. */
char *accel_real_dlerror(void);

/* Whether the dynamic linker is mapping or unmapping objects now (r_debug, link.h). */
bool accel_real_maps(void);

/* The object that an address lies in, NULL for none; libaccel's own; whether an address lies there. */
const struct link_map *accel_object_of(const void *address);
const struct link_map *accel_own_object(void);
bool accel_is_own(const void *address);
bool accel_is_in_our_namespace(const struct link_map *object);

/* A handle of a loaded object, from inside its own namespace (dlmopen), where its name means it; to be closed by accel_real_dlclose().
 * NULL where there is none: the vdso's. The caller sees to it that the object stays, and calls linker_enter(). */
void *accel_real_handle(const struct link_map *object);

/* What a symbol is in the scope of an object, or of one of our namespace by the linker's name for it; NULL: nothing, or ours. */
void *accel_real_lookup_in(const struct link_map *object, const char *symbol);
void *accel_real_lookup_named(const char *name, const char *symbol);

#endif
