/*
 * The kernel's own record of writes to memory: asynchronous write protection by userfaultfd(2), and
 * ioctl(PAGEMAP_SCAN), as in Linux 6.7 and newer. Pages that are protected read as clean until
 * somebody writes to them: by a store, or by a system call of any process. Memory that was
 * unmapped, dropped or mapped anew does not read as clean.
 *
 * Which memory may be watched, and who watches what, is in write_watch.h. Addresses are multiples
 * of the page size. Thread-safe; calls no malloc. The functions return false, or say what has
 * failed, with errno.
 */
#ifndef ACCEL_UFFD_WP_H
#define ACCEL_UFFD_WP_H

#include <stdbool.h>
#include <stdint.h>

/* File descriptors; -1: none. */
struct uffd_wp {
    int faults, pagemap;
};

/* Opens both, close-on-exec. Returns NULL, or what the kernel refuses: then both are -1. The child
 * of a fork must not use them: they are about its parent's memory. */
const char *uffd_wp_open(struct uffd_wp *t);
void uffd_wp_close(struct uffd_wp *t);

/* Register a mapping, which must be done before pages of it are protected, and release it: all its
 * pages are as they were. A part of a mapping becomes one of its own. Registering fails with EBUSY
 * if another userfaultfd has it. */
bool uffd_wp_register(const struct uffd_wp *t, uintptr_t start, uintptr_t end);
bool uffd_wp_release(const struct uffd_wp *t, uintptr_t start, uintptr_t end);

/* Returns whether a page is in a registered mapping. */
bool uffd_wp_has(const struct uffd_wp *t, uintptr_t page);

/* Write-protects pages, or makes them ordinary ones again. */
bool uffd_wp_protect(const struct uffd_wp *t, uintptr_t start, uintptr_t end, bool on);

/* Returns whether it is certain that nobody has written to the pages since they were protected. */
bool uffd_wp_is_clean(const struct uffd_wp *t, uintptr_t start, uintptr_t end);

/* Tries all that on memory of its own, in some tenths of a millisecond. Returns NULL where the
 * kernel does what is said above; else what it does not do. */
const char *uffd_wp_test(const struct uffd_wp *t);

#endif
