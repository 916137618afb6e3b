/*
 * Whether this kernel can prove that memory was not written: asynchronous write protection by userfaultfd, and
 * ioctl(PAGEMAP_SCAN), as in Linux 6.7 and newer. The program is tested against it first: what is armed reads as clean; a
 * store, a system call that writes, dropped pages and a new mapping do not. Then its costs.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the headers of older kernels lack. */
#ifndef UFFD_USER_MODE_ONLY
#    define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#    define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#    define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif

/* linux/fs.h has these under PAGEMAP_SCAN, under the same names: ours have others. */
struct scan_region {
    uint64_t start, end, categories;
};
struct scan {
    uint64_t size, flags, start, end, walk_end, regions, regions_count, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN _IOWR('f', 16, struct scan)
enum { IS_WPALLOWED = 1 << 0, IS_WRITTEN = 1 << 1, IS_PRESENT = 1 << 3 };

struct tracked {
    int faults, pagemap; /* file descriptors */
    char *base;
    size_t size;
};

/* ---- What the kernel is asked ---- */

/* NULL, or the call that has failed; errno says why. */
static const char *open_tracking(struct tracked *t)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED};
    t->faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (t->faults < 0)
        return "userfaultfd";
    if (ioctl(t->faults, UFFDIO_API, &api) != 0)
        return "UFFDIO_API with UFFD_FEATURE_WP_ASYNC (Linux 6.7)";
    t->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    return t->pagemap < 0 ? "/proc/self/pagemap" : NULL;
}

static void close_tracking(struct tracked *t)
{
    if (t->faults >= 0)
        close(t->faults);
    if (t->pagemap >= 0)
        close(t->pagemap);
}

static const char *watch(const struct tracked *t)
{
    struct uffdio_register range = {.range = {(uintptr_t)t->base, t->size},
                                    .mode = UFFDIO_REGISTER_MODE_WP};
    return ioctl(t->faults, UFFDIO_REGISTER, &range) == 0 ? NULL : "UFFDIO_REGISTER";
}

static const char *arm(const struct tracked *t)
{
    struct uffdio_writeprotect range = {.range = {(uintptr_t)t->base, t->size},
                                        .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    return ioctl(t->faults, UFFDIO_WRITEPROTECT, &range) == 0 ? NULL : "UFFDIO_WRITEPROTECT";
}

/* 1: proved clean; 0: not; -1: the scan has failed. "Nothing was written" is not enough: so reads a range that is no
 * longer there. */
static int is_clean(const struct tracked *t)
{
    struct scan_region region[2];
    struct scan scan = {.size = sizeof scan,
                        .start = (uintptr_t)t->base,
                        .end = (uintptr_t)t->base + t->size,
                        .regions = (uintptr_t)region,
                        .regions_count = 2,
                        .return_mask = IS_WPALLOWED | IS_WRITTEN | IS_PRESENT};
    int count = ioctl(t->pagemap, SCAN, &scan);
    if (count < 0)
        return -1;
    return count == 1 && region[0].start == scan.start && region[0].end == scan.end &&
           region[0].categories == (IS_WPALLOWED | IS_PRESENT);
}

/* ---- The self-test ---- */

static bool store(struct tracked *t)
{
    ((volatile char *)t->base)[t->size / 2] = 7;
    return true;
}

static bool read_into(struct tracked *t)
{
    int ends[2];
    bool good = pipe(ends) == 0;
    if (!good)
        return false;
    good = write(ends[1], "x", 1) == 1 && read(ends[0], t->base + t->size / 2, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return good;
}

static bool drop(struct tracked *t)
{
    return madvise(t->base + t->size / 2, 4096, MADV_DONTNEED) == 0;
}

/* Last: what is there afterwards is not watched. */
static bool map_anew(struct tracked *t)
{
    void *again = mmap(t->base, t->size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (again == MAP_FAILED)
        return false;
    memset(t->base, 1, t->size);
    return true;
}

/* NULL where all is as it must be; else what is not. */
static const char *self_test(struct tracked *t)
{
    static const struct {
        const char *name;
        bool (*change)(struct tracked *);
    } changes[] = {{"a store is not noticed", store},
                   {"read() into the memory is not noticed", read_into},
                   {"MADV_DONTNEED is not noticed", drop},
                   {"a new mapping is not noticed", map_anew}};
    const char *wrong = watch(t);
    for (size_t i = 0; !wrong && i < sizeof changes / sizeof *changes; i++) {
        wrong = arm(t);
        if (wrong)
            break;
        int clean = is_clean(t);
        if (clean < 0)
            return "PAGEMAP_SCAN";
        if (!clean)
            return "memory that was not written does not read as clean";
        if (!changes[i].change(t))
            return "the self-test could not write";
        if (is_clean(t) != 0)
            return changes[i].name;
        for (size_t at = 0; at < t->size; at += 4096)
            t->base[at] = 1; /* all pages are there again */
    }
    return wrong;
}

/* ---- Costs ---- */

static double rewrite_ms(const struct tracked *t)
{
    double start = accel_now_ms();
    memset(t->base, 2, t->size);
    return accel_now_ms() - start;
}

static void report_cost(const char *what, const char *kind, double ms, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "tracking_%s_%s_pages", what, kind);
    report(name, ms / ((double)size * 1e-9), "ms/GB");
}

static void measure_costs(const char *kind, bool huge, size_t size)
{
    char name[64];
    struct tracked t = {-1, -1, touched_memory(size, huge), size};
    snprintf(name, sizeof name, "tracking_arm_%s_pages", kind);
    if (!t.base) {
        report_missing(name, "no memory");
        return;
    }
    const char *wrong = open_tracking(&t);
    rewrite_ms(&t); /* warms up */
    double plain = rewrite_ms(&t);
    wrong = wrong ? wrong : watch(&t);
    double start = accel_now_ms();
    wrong = wrong ? wrong : arm(&t);
    double armed = accel_now_ms();
    int clean = wrong ? -1 : is_clean(&t);
    double scanned = accel_now_ms();
    if (clean == 1) {
        report_cost("arm", kind, armed - start, size);
        report_cost("scan", kind, scanned - armed, size);
        report_cost("rewrite", kind, plain, size);
        report_cost("rewrite_armed", kind, rewrite_ms(&t), size);
    } else {
        report_missing(name, wrong ? wrong : "memory that was not written does not read as clean");
    }
    close_tracking(&t);
    touched_memory_free(t.base, size);
}

void measure_tracking(bool quick)
{
    const size_t size = quick ? 16 << 20 : 1 << 30, part = 64 << 10;
    char why[256];
    struct tracked t = {-1, -1, touched_memory(part, false), part};
    if (!t.base) {
        report_missing("write_tracking", "no memory");
        return;
    }
    errno = 0;
    const char *wrong = open_tracking(&t);
    double start = accel_now_ms();
    if (!wrong)
        wrong = self_test(&t);
    double ms = accel_now_ms() - start;
    int number = errno;
    close_tracking(&t);
    touched_memory_free(t.base, part);
    if (wrong) {
        snprintf(why, sizeof why, "not supported: %s%s%s", wrong, number ? ": " : "",
                 number ? strerror(number) : "");
        report_missing("write_tracking", why);
        return;
    }
    report("write_tracking", 1, "supported");
    report("tracking_self_test", ms, "ms");
    measure_costs("small", false, size);
    measure_costs("huge", true, size);
}
