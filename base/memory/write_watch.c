#define _GNU_SOURCE
#include "write_watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/copy_pool.h"
#include "base/text/error_text.h"
#include "base/file/file_identity.h"
#include "base/thread/forks.h"
#include "mappings.h"
#include "pins.h"
#include "base/text/text.h"
#include "uffd_wp.h"

static struct watched_range {
    uint64_t number; /* 0: the entry is free */
    uintptr_t start, end;
    bool written; /* somebody has, or it cannot be told any more */
} watches[WRITTEN_WATCHES];
static uint64_t last_number;
static struct uffd_wp kernel = {-1, -1};
static struct file_identity identity[2]; /* of its descriptors */
static enum { UNTRIED, WORKS, OFF } state;
static bool pinned_last; /* the last look has found something */
static char reason[160]; /* written once, before: */
static atomic_bool reason_is_there;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

static bool descriptors_are_ours(void)
{
    return file_is(kernel.faults, &identity[0]) && file_is(kernel.pagemap, &identity[1]);
}

/* The kernel has ended all watches with the parent's memory; its descriptors are about that. */
static void forget_watches(void)
{
    if (state == UNTRIED)
        return;
    if (state == WORKS && descriptors_are_ours())
        uffd_wp_close(&kernel);
    kernel = (struct uffd_wp){-1, -1};
    memset(watches, 0, sizeof watches);
    state = UNTRIED;
}
FORKS_CHILD(forget_watches);

/* ---- The start and the end: with the lock ---- */

/* error: an errno value, or 0. */
static void give_up(const char *why, int error)
{
    struct accel_text text;
    state = OFF;
    for (int i = 0; i < WRITTEN_WATCHES; i++)
        watches[i].written = true;
    if (atomic_load(&reason_is_there))
        return;
    text_start(&text, reason, sizeof reason);
    text_string(&text, why);
    if (error) {
        text_string(&text, ": ");
        text_string(&text, error_text(error));
    }
    text_end(&text);
    atomic_store(&reason_is_there, true);
}

static void open_kernel(void)
{
    const char *wrong = uffd_wp_open(&kernel);
    if (wrong) {
        give_up(wrong, errno);
        return;
    }
    errno = 0;
    wrong = uffd_wp_test(&kernel);
    const int error = errno;
    if (!wrong && file_identify(kernel.faults, &identity[0]) &&
        file_identify(kernel.pagemap, &identity[1])) {
        state = WORKS;
        pins_begin();
        return;
    }
    uffd_wp_close(&kernel);
    give_up(wrong ? wrong : "fstat", error);
}

/* Returns whether the kernel can be asked. */
static bool works(void)
{
    if (state == UNTRIED)
        open_kernel();
    if (state == WORKS && !descriptors_are_ours())
        give_up("the program has closed a descriptor of libaccel's", 0);
    return state == WORKS;
}

/* ---- Ranges: with the lock ---- */

static struct watched_range *find_watch(uint64_t number)
{
    for (int i = 0; number && i < WRITTEN_WATCHES; i++)
        if (watches[i].number == number)
            return &watches[i];
    return NULL;
}

static bool overlaps(const struct watched_range *w, uintptr_t start, uintptr_t end)
{
    return w->number && w->start < end && start < w->end;
}

/* Marks the watches of pages that are no longer protected as they think. */
static void mark_written(uintptr_t start, uintptr_t end)
{
    for (int i = 0; i < WRITTEN_WATCHES; i++)
        watches[i].written = watches[i].written || overlaps(&watches[i], start, end);
}

/* Pages that another watch has protected stay so while they are clean: to protect them again would
 * hide from it who writes meanwhile. Other watches whose pages are not clean are marked so. */
static void see_others(uintptr_t start, uintptr_t end)
{
    for (int i = 0; i < WRITTEN_WATCHES; i++) {
        struct watched_range *w = &watches[i];
        if (!overlaps(w, start, end) || w->written)
            continue;
        const uintptr_t first = w->start > start ? w->start : start;
        const uintptr_t last = w->end < end ? w->end : end;
        w->written = !uffd_wp_is_clean(&kernel, first, last);
    }
}

/* Returns the end of the pages from `at` on that have the same watches of which nothing is known to
 * be written: some if *watched. */
static uintptr_t next_change(uintptr_t at, uintptr_t end, bool *watched)
{
    uintptr_t next = end;
    *watched = false;
    for (int i = 0; i < WRITTEN_WATCHES; i++) {
        const struct watched_range *w = &watches[i];
        if (!overlaps(w, at, end) || w->written)
            continue;
        const uintptr_t change = w->start > at ? w->start : w->end;
        *watched = *watched || w->start <= at;
        next = change < next ? change : next;
    }
    return next;
}

/* Write-protects the pages of a range that no other watch has, or makes ordinary pages of them. */
static bool protect(uintptr_t start, uintptr_t end, bool on)
{
    bool done = true;
    for (uintptr_t at = start; done && at < end;) {
        bool watched;
        const uintptr_t next = next_change(at, end, &watched);
        done = watched || uffd_wp_protect(&kernel, at, next, on);
        at = next;
    }
    return done;
}

/* ---- Mappings: with the lock ---- */

/* Returns whether an address is in a mapping. */
static bool mapping_at(uintptr_t address, struct mapping *mapping)
{
    return mappings_find(address, mapping) && mapping->start <= address;
}

/* Others can write to what is shared, or a file's, by other mappings. A stack grows. */
static bool may_be_watched(const struct mapping *m)
{
    const bool plain = !m->name[0] || strcmp(m->name, "[heap]") == 0 ||
                       strncmp(m->name, "[anon:", strlen("[anon:")) == 0;
    return m->is_private && m->is_writable && !m->is_file && plain;
}

/* A mapping that was not registered is new to us, whatever was watched at its address. Another
 * thread may have put another one in its place before it was registered; it may also have become
 * one with a neighbour. */
static bool register_mapping(const struct mapping *m, uintptr_t page)
{
    struct mapping after;
    const bool had = uffd_wp_has(&kernel, page);
    if (!uffd_wp_register(&kernel, m->start, m->end))
        return false;
    if (!had)
        mark_written(m->start, m->end);
    if (mapping_at(page, &after) && may_be_watched(&after) && after.start <= m->start &&
        after.end >= m->end)
        return true;
    uffd_wp_release(&kernel, m->start, m->end);
    mark_written(m->start, m->end);
    return false;
}

static bool register_range(uintptr_t start, uintptr_t end)
{
    struct mapping m;
    for (uintptr_t at = start; at < end; at = m.end)
        if (!mapping_at(at, &m) || !may_be_watched(&m) || !register_mapping(&m, at))
            return false;
    return true;
}

/* Releases the mappings of a range in which nothing is watched any more; the program may have
 * unmapped parts of it. Returns whether others are left. */
static bool release_range(uintptr_t start, uintptr_t end)
{
    struct mapping m;
    bool left = false;
    for (uintptr_t at = start; at < end && mappings_find(at, &m) && m.start < end; at = m.end) {
        bool used = false;
        for (int i = 0; i < WRITTEN_WATCHES; i++)
            used = used || (overlaps(&watches[i], m.start, m.end) && !watches[i].written);
        if (!used && uffd_wp_has(&kernel, m.start))
            uffd_wp_release(&kernel, m.start, m.end);
        left = left || used;
    }
    return left;
}

/* ---- Watches ---- */

uintptr_t write_watch_page(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static struct watched_range *free_entry(void)
{
    for (int i = 0; i < WRITTEN_WATCHES; i++)
        if (!watches[i].number)
            return &watches[i];
    return NULL;
}

/* With the lock. Looks at all open files and mappings. */
static bool is_pinned(void)
{
    pinned_last = pins_found(kernel.faults) != NULL;
    return pinned_last;
}

/* With the lock. Where something was pinned the last time, pages are not protected in vain. */
static uint64_t begin_watching(uintptr_t start, uintptr_t end)
{
    struct watched_range *w = free_entry();
    if (!w || start >= end || !works() || (pinned_last && is_pinned()))
        return 0;
    if (!register_range(start, end)) {
        release_range(start, end);
        return 0;
    }
    see_others(start, end);
    /* Pages that are pinned from here on count as written to, for the kernel. Those that are pinned
     * by now do not. */
    if (!protect(start, end, true) || is_pinned()) {
        mark_written(start, end);
        release_range(start, end);
        return 0;
    }
    *w = (struct watched_range){.number = ++last_number, .start = start, .end = end};
    return w->number;
}

uint64_t write_watch_begin(uintptr_t start, uintptr_t end)
{
    pthread_mutex_lock(&lock);
    const uint64_t number = begin_watching(start, end);
    pthread_mutex_unlock(&lock);
    return number;
}

/* ---- Scans, without the lock ---- */

/* One thread scans so many bytes in some tens of microseconds, where pages are small. */
#define SCANNED_BYTES ((uintptr_t)32 << 20)

struct dirty_scan {
    uintptr_t start, end;
    struct uffd_wp kernel;
    atomic_bool dirty;
};

static void scan_task(void *context, int64_t number)
{
    struct dirty_scan *scan = context;
    const uintptr_t start = scan->start + (uintptr_t)number * SCANNED_BYTES;
    const uintptr_t end = scan->end - start < SCANNED_BYTES ? scan->end : start + SCANNED_BYTES;
    if (!atomic_load(&scan->dirty) && !uffd_wp_is_clean(&scan->kernel, start, end))
        atomic_store(&scan->dirty, true);
}

/* The copy pool helps. */
static bool is_clean(struct uffd_wp of_kernel, uintptr_t start, uintptr_t end)
{
    struct dirty_scan scan = {.start = start, .end = end, .kernel = of_kernel};
    struct copy_pool_job job = {.task = scan_task, .context = &scan};
    const uintptr_t tasks = (end - start + SCANNED_BYTES - 1) / SCANNED_BYTES;
    copy_pool_do(&job, (int64_t)tasks, tasks > 1);
    return !atomic_load(&scan.dirty);
}

/* ---- What watches tell ---- */

/* The lock is free during the scan: others may protect the same pages, which they say before they
 * do. */
bool write_watch_unchanged_in(uint64_t number, uintptr_t start, uintptr_t end)
{
    pthread_mutex_lock(&lock);
    struct watched_range *w = find_watch(number);
    bool unchanged = w && !w->written && works();
    const struct uffd_wp now = kernel;
    if (unchanged) {
        start = start > w->start ? start : w->start;
        end = end < w->end ? end : w->end;
    }
    pthread_mutex_unlock(&lock);
    if (!unchanged)
        return false;
    /* The kernel calls pages clean to which the program has taken access away (mprotect(2)): its
     * handler of SIGSEGV may be about to fill them, once they are read. */
    unchanged = start >= end || (is_clean(now, start, end) && mappings_can_be_read(start, end));
    pthread_mutex_lock(&lock);
    w = find_watch(number);
    unchanged = unchanged && w && !w->written;
    if (w && !unchanged)
        w->written = true;
    pthread_mutex_unlock(&lock);
    return unchanged;
}

bool write_watch_unchanged(uint64_t number)
{
    return write_watch_unchanged_in(number, 0, UINTPTR_MAX);
}

void write_watch_leave(uint64_t number)
{
    pthread_mutex_lock(&lock);
    struct watched_range *w = find_watch(number);
    if (w) {
        const struct watched_range left = *w;
        *w = (struct watched_range){.number = 0};
        if (works() && release_range(left.start, left.end))
            protect(left.start, left.end, false);
    }
    pthread_mutex_unlock(&lock);
}

const char *write_watch_why_not(void)
{
    return atomic_load(&reason_is_there) ? reason : NULL;
}
