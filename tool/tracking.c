#define _GNU_SOURCE
#include "tracking.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's interface, which the headers of older ones lack in part. */
struct faults_api {
    uint64_t api, features, ioctls;
};
struct faults_range {
    uint64_t start, length, mode;
};
struct faults_register {
    struct faults_range range;
    uint64_t ioctls;
};
struct scan_region {
    uint64_t start, end, categories;
};
struct scan {
    uint64_t size, flags, start, end, walk_end, regions, regions_count, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define FAULTS_API      _IOWR(0xAA, 0x3F, struct faults_api)
#define FAULTS_REGISTER _IOWR(0xAA, 0x00, struct faults_register)
#define FAULTS_PROTECT  _IOWR(0xAA, 0x06, struct faults_range)
#define SCAN            _IOWR('f', 16, struct scan)
enum { USER_MODE_ONLY = 1, WP_UNPOPULATED = 1 << 13, WP_ASYNC = 1 << 15 };
enum { REGISTER_WP = 1 << 1, PROTECT_WP = 1 << 0 };
enum { IS_WPALLOWED = 1 << 0, IS_WRITTEN = 1 << 1, IS_PRESENT = 1 << 3 };

struct tracked {
    int faults, pagemap; /* negative: not open */
    char *page;          /* MAP_FAILED: none */
    size_t size;
};

/* 1: proved clean; 0: not; negative: the scan fails. */
static int is_clean(const struct tracked *t)
{
    struct scan_region region[2];
    struct scan scan = {.size = sizeof scan,
                        .start = (uintptr_t)t->page,
                        .end = (uintptr_t)t->page + t->size,
                        .regions = (uintptr_t)region,
                        .regions_count = 2,
                        .return_mask = IS_WPALLOWED | IS_WRITTEN | IS_PRESENT};
    const int count = ioctl(t->pagemap, SCAN, &scan);
    if (count < 0)
        return count;
    return count == 1 && region[0].start == scan.start && region[0].end == scan.end &&
           region[0].categories == (IS_WPALLOWED | IS_PRESENT);
}

static const char *try(struct tracked *t)
{
    struct faults_api api = {.api = 0xAA, .features = WP_ASYNC | WP_UNPOPULATED};
    t->faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
    if (t->faults < 0)
        return "userfaultfd()";
    if (ioctl(t->faults, FAULTS_API, &api) != 0)
        return "its asynchronous write protection";
    t->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (t->pagemap < 0)
        return "/proc/self/pagemap";
    t->page = mmap(NULL, t->size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (t->page == MAP_FAILED)
        return "mmap()";
    struct faults_register all = {.range = {(uintptr_t)t->page, t->size, REGISTER_WP}};
    struct faults_range armed = {(uintptr_t)t->page, t->size, PROTECT_WP};
    if (ioctl(t->faults, FAULTS_REGISTER, &all) != 0 ||
        ioctl(t->faults, FAULTS_PROTECT, &armed) != 0)
        return "write protection";
    const int before = is_clean(t);
    *(volatile char *)t->page = 1;
    const int after = before < 0 ? before : is_clean(t);
    if (after < 0)
        return "ioctl(PAGEMAP_SCAN)";
    errno = 0;
    return before == 1 && after == 0 ? NULL : "a store that should be seen, and no other";
}

const char *tracking_fault(void)
{
    struct tracked t = {
        .faults = -1, .pagemap = -1, .page = MAP_FAILED, .size = 2 * (size_t)sysconf(_SC_PAGESIZE)};
    const char *fault = try(&t);
    const int error = errno;
    if (t.page != MAP_FAILED)
        munmap(t.page, t.size);
    if (t.pagemap >= 0)
        close(t.pagemap);
    if (t.faults >= 0)
        close(t.faults);
    errno = error;
    return fault;
}
