/*
 * What the child of a fork sets right: locks that threads of the parent held, which are not there, and what counts for the parent alone.
 * Each module registers that in its own file, in one line for each; nobody lists the modules. Nothing is locked before a fork: a lock
 * may be held by a thread that waits for the one that forks.
 */
#ifndef ACCEL_FORKS_H
#define ACCEL_FORKS_H

#include <pthread.h>

struct forks_part {
    pthread_mutex_t *lock;
    void (*child)(void);
};

/* Where a static lock is defined: in the child it is free, whoever held it. */
#define FORKS_LOCK(lock) FORKS_PART(lock, &(lock), NULL)

/* void function(void), for the rest. The locks of all modules are free by then; no order is promised among functions, so none may need
 * that another has run. */
#define FORKS_CHILD(function) FORKS_PART(function, NULL, function)

/* One place each in an array, which the linker puts together. */
#define FORKS_PART(name, lock, child)                                                              \
    static const struct forks_part forks_part_##name                                               \
        __attribute__((section("accel_forks"), used)) = {lock, child}

/* In the child, by its only thread: by pthread_atfork(3), or once a process turns out to be one that was made without that (_Fork(),
 * clone()). Allocates nothing. */
void forks_child(void);

#endif
