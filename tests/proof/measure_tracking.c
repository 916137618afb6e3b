/*
 * Whether this kernel can prove that memory was not written (base/memory/uffd_wp.h), by that
 * file's own test, and what it costs.
 */
#include "base/thread/clock.h"
#include "base/memory/uffd_wp.h"
#include "measure.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- Costs ---- */

static double rewrite_ms(char *base, size_t size)
{
    double start = accel_now_ms();
    memset(base, 2, size);
    return accel_now_ms() - start;
}

static void report_cost(const char *what, const char *kind, double ms, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "tracking_%s_%s_pages", what, kind);
    report(name, ms / ((double)size * 1e-9), "ms/GB");
}

static void measure_costs(const struct uffd_wp *t, const char *kind, bool huge, size_t size)
{
    char name[64];
    char *base = touched_memory(size, huge);
    const uintptr_t first = (uintptr_t)base, end = first + size;
    snprintf(name, sizeof name, "tracking_arm_%s_pages", kind);
    if (!base) {
        report_missing(name, "no memory");
        return;
    }
    rewrite_ms(base, size); /* warms up */
    double plain = rewrite_ms(base, size);
    bool is_protected = uffd_wp_register(t, first, end);
    double start = accel_now_ms();
    is_protected = is_protected && uffd_wp_protect(t, first, end, true);
    double then = accel_now_ms();
    const bool clean = is_protected && uffd_wp_is_clean(t, first, end);
    double scanned = accel_now_ms();
    if (clean) {
        report_cost("arm", kind, then - start, size);
        report_cost("scan", kind, scanned - then, size);
        report_cost("rewrite", kind, plain, size);
        report_cost("rewrite_armed", kind, rewrite_ms(base, size), size);
    } else {
        report_missing(name, is_protected ? "memory that was not written does not read as clean"
                                          : strerror(errno));
    }
    touched_memory_free(base, size);
}

void measure_tracking(bool quick)
{
    const size_t size = quick ? 16 << 20 : 1 << 30;
    char why[256];
    struct uffd_wp t;
    const char *wrong = uffd_wp_open(&t);
    int number = errno;
    if (!wrong) {
        errno = 0;
        double start = accel_now_ms();
        wrong = uffd_wp_test(&t);
        double ms = accel_now_ms() - start;
        number = errno;
        if (!wrong) {
            report("write_tracking", 1, "supported");
            report("tracking_self_test", ms, "ms");
            measure_costs(&t, "small", false, size);
            measure_costs(&t, "huge", true, size);
        }
        uffd_wp_close(&t);
    }
    if (!wrong)
        return;
    snprintf(why, sizeof why, "not supported: %s%s%s", wrong, number ? ": " : "",
             number ? strerror(number) : "");
    report_missing("write_tracking", why);
}
