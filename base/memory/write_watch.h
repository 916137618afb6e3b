/*
 * Whether anybody has written to memory of the program's since it was write-protected (uffd_wp.h),
 * for many ranges at once. Memory is watched only where the answer is certain: a private anonymous
 * mapping, in a process in which nothing writes past page faults (pins.h). Mappings are registered
 * as a whole, so that none is divided: realloc(3) moves parts of one faster than several, and
 * mremap(2) refuses those. They are released with their last watch.
 *
 * The first watch opens two descriptors. If the kernel does not have all of this, or the program
 * closes one of them, nothing is watched any more in this process. A fork's child begins with no
 * watch, and its parent's memory and its own are as ever. Thread-safe.
 */
#ifndef ACCEL_WRITE_WATCH_H
#define ACCEL_WRITE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Ranges that are watched at once. */
enum { WRITTEN_WATCHES = 256 };

/* Returns the size of a page. */
uintptr_t write_watch_page(void);

/* Write-protects pages [start, end): what is read from now on is valid as long as
 * write_watch_unchanged() says so. Returns the watch, for write_watch_leave(); 0 if the pages
 * cannot be watched. Ranges may overlap. */
uint64_t write_watch_begin(uintptr_t start, uintptr_t end);

/* Returns whether it is certain that nobody has written to the pages since the watch began. Once it
 * is false it stays so. */
bool write_watch_unchanged(uint64_t watch);

/* The same of some of its pages, [start, end). */
bool write_watch_unchanged_in(uint64_t watch, uintptr_t start, uintptr_t end);

/* Ends a watch; the pages are ordinary ones again. Does nothing with 0, or after the end. */
void write_watch_leave(uint64_t watch);

/* Returns why nothing can be watched in this process, one line, constant; NULL if that is not
 * known. */
const char *write_watch_why_not(void);

#endif
