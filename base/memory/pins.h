/*
 * Whether anything may write to the process's memory without a page fault, from pages that it
 * holds: io_uring, RDMA, VFIO, XPMEM, KNEM, devices that are not known to hold none, asynchronous
 * input; and whether the program watches memory itself, by a userfaultfd of its own.
 */
#ifndef ACCEL_PINS_H
#define ACCEL_PINS_H

#include <stdbool.h>

/* Returns who may hold pages if the process has a file of this path open; NULL: nobody. */
const char *pins_holder(const char *path);

/* Notes how much memory is pinned now: if it is more later, something holds pages. */
void pins_begin(void);

/* Returns what there is, or what cannot be looked up; NULL: nothing. own: a descriptor of a
 * userfaultfd that does not count. Calls malloc. */
const char *pins_found(int own);

#endif
