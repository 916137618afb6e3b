/*
 * Providers that stay because an object needs them. Without libaccel, glibc binds an object's BLAS names to a library that came in with
 * dlopen(RTLD_GLOBAL), and keeps that library as long as the object (in the C library's sources: add_dependency in
 * elf/dl-lookup.c). With libaccel the object is bound to libaccel, and nothing would keep it: so libaccel does.
 *
 * All functions are thread-safe; they take the dynamic linker's locks: hold none of ours.
 */
#ifndef ACCEL_KEEP_H
#define ACCEL_KEEP_H

/* Keeps the library that defines `function` for the object in which the address `user` is: what was found for it by a look-up. */
void accel_keep(const void *user, const void *function);

/* Before an object is closed: keeps the libraries that loaded objects are bound to by name, called or not. Does nothing
 * where all is as it was the last time. May leave a message for dlerror(). */
void accel_keep_bound(void);

/* After an object was closed: gives back the libraries that were kept for objects that are gone. */
void accel_keep_release(void);

#endif
