/*
 * What the dynamic linker has bound to libaccel by name alone, though a variable is meant, or
 * nothing at all. It finds libaccel's functions before a library's own variable of such a name
 * (a number, or a pointer that it looks up itself), and where a weak reference would find
 * nothing. Such places get the value that they would have without libaccel.
 *
 * References to a version of a name are not bound to libaccel at all: see symbols.map.
 *
 * And the functions whose names are words that programs use (`train`): libaccel does not export
 * them. A place that has been bound to such a function, of a library that has its other functions,
 * too, gets a bound entry, as dlsym gives.
 */
#ifndef ACCEL_BINDINGS_H
#define ACCEL_BINDINGS_H

/* The dynamic linker calls it when it relocates libaccel: after the program's libraries, before
 * the program itself, and before all constructors. Looks at the libraries, and at what the
 * program copies from them. */
void accel_bindings_relocate(void);

/* In libaccel's constructor, once it is known whether it is on: looks at the program itself. */
void accel_bindings_start(void);

/* Looks at objects that have come since the last look, by a look-up in `handle`; quick if it is
 * the one of the last time. Takes the dynamic linker's locks: hold none of ours. Thread-safe. */
void accel_bindings_follow(const void *handle);

/* After a dlclose: the handle may be another object's next time. */
void accel_bindings_forget(void);

#endif
