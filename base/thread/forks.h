/*
 * Repairs after a fork. The child frees the locks that the parent's other threads held, and drops
 * state that is the parent's alone. Each module registers its locks and functions in its own file,
 * one line each; there is no list of modules. We take no lock before a fork: its holder may wait
 * for the thread that forks.
 */
#ifndef ACCEL_FORKS_H
#define ACCEL_FORKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct forks_part {
    pthread_mutex_t *lock;
    void (*child)(void);
};

/* Stands behind the definition of a static lock: the lock is free in the child. */
#define FORKS_LOCK(lock) FORKS_PART(lock, &(lock), NULL)

/* Registers void function(void), which runs in the child after all locks are free. Functions run in
 * no fixed order: none may need that another has run. */
#define FORKS_CHILD(function) FORKS_PART(function, NULL, function)

/* Adds an entry to an array that the linker puts together. */
#define FORKS_PART(name, lock, child)                                                              \
    static const struct forks_part forks_part_##name                                               \
        __attribute__((section("accel_forks"), used)) = {lock, child}

/* Whether two objects have the same bytes: a child leaves alone what is right already, as each page
 * that it writes to is copied for it. */
bool forks_is_same(const void *a, const void *b, size_t size);

/* The child's only thread calls this: from pthread_atfork(3), or later if the process was made
 * without it (_Fork(), clone()). Allocates nothing. */
void forks_child(void);

/* Notes this process, once, at start; forks_child() notes the child. */
void forks_begin(void);

/* Does what forks_child() does in a child that has run on without it (_Fork(3), clone(2)), and may
 * have threads by now: one of them does it, and the others wait. Does nothing in a process that has
 * been noted. Not in shared memory (below). */
void forks_late_child(void);

/* Returns whether this is a child that runs in the memory of the process that was noted, or may be:
 * then a thread that it starts dies with it, and what the thread holds stays held there. */
bool forks_memory_is_shared(void);

#endif
