#define _GNU_SOURCE
#include "uffd_wp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/file_identity.h"

/* Linux's include/uapi/linux/userfaultfd.h has these since 5.11, 6.4 and 6.7; the headers of a
 * build may be older. */
#ifndef UFFD_USER_MODE_ONLY
#    define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#    define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#    define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif

/* Linux's include/uapi/linux/fs.h, since 6.7: struct page_region, struct pm_scan_arg, PAGEMAP_SCAN
 * and its categories, under names that do not meet those of newer headers.
 * Documentation/admin-guide/mm/pagemap.rst says what they mean. */
struct scan_region {
    uint64_t start, end, categories;
};
struct pagemap_scan {
    uint64_t size, flags, start, end, walk_end, regions, regions_count, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN _IOWR('f', 16, struct pagemap_scan)
enum { IS_WPALLOWED = 1 << 0, IS_WRITTEN = 1 << 1, IS_PRESENT = 1 << 3 };

/* ---- What the kernel is asked ---- */

const char *uffd_wp_open(struct uffd_wp *t)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED};
    const char *wrong = NULL;
    t->pagemap = -1;
    t->faults =
        file_move_high((int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
    if (t->faults < 0)
        wrong = "userfaultfd";
    else if (ioctl(t->faults, UFFDIO_API, &api) != 0)
        wrong = "UFFDIO_API with UFFD_FEATURE_WP_ASYNC (Linux 6.7)";
    else if ((t->pagemap = file_move_high(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC))) < 0)
        wrong = "/proc/self/pagemap";
    if (wrong) {
        const int error = errno;
        uffd_wp_close(t);
        errno = error;
    }
    return wrong;
}

void uffd_wp_close(struct uffd_wp *t)
{
    if (t->faults >= 0)
        close(t->faults);
    if (t->pagemap >= 0)
        close(t->pagemap);
    t->faults = t->pagemap = -1;
}

bool uffd_wp_register(const struct uffd_wp *t, uintptr_t start, uintptr_t end)
{
    struct uffdio_register r = {.range = {start, end - start}, .mode = UFFDIO_REGISTER_MODE_WP};
    return ioctl(t->faults, UFFDIO_REGISTER, &r) == 0;
}

bool uffd_wp_release(const struct uffd_wp *t, uintptr_t start, uintptr_t end)
{
    struct uffdio_range range = {start, end - start};
    return ioctl(t->faults, UFFDIO_UNREGISTER, &range) == 0;
}

bool uffd_wp_protect(const struct uffd_wp *t, uintptr_t start, uintptr_t end, bool on)
{
    struct uffdio_writeprotect w = {.range = {start, end - start},
                                    .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0};
    return ioctl(t->faults, UFFDIO_WRITEPROTECT, &w) == 0;
}

/* Returns whether all pages of a range have the same categories, of those in `mask`: these. A
 * second region ends the scan. */
static bool scan_says(const struct uffd_wp *t, uintptr_t start, uintptr_t end, uint64_t mask,
                      uint64_t categories)
{
    struct scan_region region[2];
    struct pagemap_scan scan = {.size = sizeof scan,
                                .start = start,
                                .end = end,
                                .regions = (uintptr_t)region,
                                .regions_count = 2,
                                .return_mask = mask};
    return ioctl(t->pagemap, SCAN, &scan) == 1 && region[0].start == start &&
           region[0].end == end && region[0].categories == categories;
}

bool uffd_wp_has(const struct uffd_wp *t, uintptr_t page)
{
    const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
    return scan_says(t, page, page + size, IS_WPALLOWED, IS_WPALLOWED);
}

/* That nothing was written is not enough: so reads memory that is no longer there. */
bool uffd_wp_is_clean(const struct uffd_wp *t, uintptr_t start, uintptr_t end)
{
    return scan_says(t, start, end, IS_WPALLOWED | IS_WRITTEN | IS_PRESENT,
                     IS_WPALLOWED | IS_PRESENT);
}

/* ---- The test ---- */

enum { TEST_PAGES = 16 };

struct tested {
    char *base;
    size_t page, bytes;
};

static bool store_byte(const struct tested *m)
{
    ((volatile char *)m->base)[m->bytes / 2] = 7;
    return true;
}

static bool read_into(const struct tested *m)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    const bool done = write(ends[1], "x", 1) == 1 && read(ends[0], m->base + m->bytes / 2, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return done;
}

static bool drop(const struct tested *m)
{
    return madvise(m->base + m->bytes / 2, m->page, MADV_DONTNEED) == 0;
}

static void touch(const struct tested *m)
{
    for (size_t at = 0; at < m->bytes; at += m->page)
        ((volatile char *)m->base)[at] = 1;
}

/* The last change: what is there afterwards is not registered. */
static bool map_anew(const struct tested *m)
{
    const void *again = mmap(m->base, m->bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (again != MAP_FAILED)
        touch(m);
    return again != MAP_FAILED;
}

static const char *test_in(const struct uffd_wp *t, const struct tested *m)
{
    static const struct {
        const char *missed;
        bool (*change)(const struct tested *m);
    } changes[] = {{"a store is not noticed", store_byte},
                   {"read() into the memory is not noticed", read_into},
                   {"MADV_DONTNEED is not noticed", drop},
                   {"a new mapping is not noticed", map_anew}};
    const uintptr_t start = (uintptr_t)m->base, end = start + m->bytes;
    touch(m);
    if (!uffd_wp_register(t, start, end))
        return "UFFDIO_REGISTER";
    if (!uffd_wp_has(t, start))
        return "PAGEMAP_SCAN";
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        touch(m); /* a page may have been dropped */
        if (!uffd_wp_protect(t, start, end, true))
            return "UFFDIO_WRITEPROTECT";
        if (!uffd_wp_is_clean(t, start, end))
            return "PAGEMAP_SCAN does not find memory clean that was not written";
        if (!changes[i].change(m))
            return "its test could not write";
        if (uffd_wp_is_clean(t, start, end))
            return changes[i].missed;
    }
    return NULL;
}

const char *uffd_wp_test(const struct uffd_wp *t)
{
    struct tested m = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    m.bytes = TEST_PAGES * m.page;
    m.base = mmap(NULL, m.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m.base == MAP_FAILED)
        return "there is no memory for its test";
    const char *wrong = test_in(t, &m);
    munmap(m.base, m.bytes);
    return wrong;
}
