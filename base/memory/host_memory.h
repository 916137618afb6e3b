/*
 * The memory of the host that this process may still use. Linux promises more memory than there is,
 * and ends a process that touches more: who wants a large block looks here first. Thread-safe;
 * neither malloc nor stdio.
 */
#ifndef ACCEL_HOST_MEMORY_H
#define ACCEL_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Returns bytes: what /proc/meminfo says is available, and no more than the process's cgroups allow
 * (memory.max of version 2, memory.limit_in_bytes of version 1; files that can be dropped from the
 * page cache count as free). INT64_MAX: the system does not say. Sources: proc_meminfo(5); the
 * kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. */
int64_t host_memory_available(void);

/* The same, of the files below a folder in place of "/". */
int64_t host_memory_below(const char *root);

/* Returns whether so many bytes are at most seven eighths of what is available. */
bool host_memory_has(double bytes);

/* Asks for huge pages for a large block that malloc() has returned (memory may be NULL): in small
 * ones, each costs a fault when it is touched, and as much again when the block goes back to the
 * kernel. So large a block is a mapping of its own, which is gone behind free(). errno stays. */
void host_memory_prefer_huge(void *memory, int64_t bytes);

/* Returns whether the kernel has given the page at an address already: false if whoever writes to
 * it first has to wait until it is cleared. True if the kernel does not say. errno stays. */
bool host_memory_is_there(const void *at);

/* Returns malloc(bytes), in huge pages if it is large; NULL also if host_memory_has() says no. The
 * caller frees it. */
void *host_memory_take(int64_t bytes);
/* The same of calloc(), in small pages of zeros, which a large block gets from the kernel when they
 * are touched. */
void *host_memory_take_zeros(int64_t bytes);

#endif
