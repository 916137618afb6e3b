/*
 * Keeps providers loaded as long as an object needs them. Without libaccel, glibc binds an object's
 * BLAS names to a library that came in with dlopen(RTLD_GLOBAL), and keeps that library as long as
 * the object (add_dependency in glibc's elf/dl-lookup.c). With libaccel, glibc binds the object to
 * libaccel and would not keep the library: so libaccel keeps it.
 *
 * All functions are thread-safe; they take the dynamic linker's locks: hold none of ours.
 */
#ifndef ACCEL_KEEP_H
#define ACCEL_KEEP_H

struct link_map;

/* Keeps the library that defines `function`, the result of a look-up, for the object that the
 * address `user` lies in. */
void accel_keep(const void *user, const void *function);

/* The same for a library that was found in the scope of what brought the user in: not if that
 * library needs the user. Each would hold the other, and neither would ever be unloaded; the
 * dynamic linker, whose notes are no handles, lets both go. */
void accel_keep_of_root(const void *user, const void *function);

/* Finds a name in the libraries that are kept for an object, which must stay meanwhile: it is bound
 * to them, also after what brought it in is gone. NULL if it is in none. */
void *accel_kept_lookup(const struct link_map *user, const char *name);

/* Call this before an object is closed: keeps the libraries that loaded objects are bound to by
 * name, called or not. Does nothing if nothing has changed since the last time. May leave a message
 * for dlerror(). */
void accel_keep_bound(void);

/* Call this after an object was closed: closes the libraries that were kept for objects that are
 * gone. */
void accel_keep_release(void);

#endif
