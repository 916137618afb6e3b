#define _GNU_SOURCE
#include "summary.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/thread/forks.h"
#include "base/output/message.h"
#include "banner.h"
#include "hints.h"
#include "page.h"
#include "report.h"

static const char *file; /* constant after the start, as the two below */
static bool json, tools, tells;
static struct totals_part part;
static atomic_uint told; /* of the banner */

_Static_assert((int)BANNER_PARTS <= (int)TOTALS_ABOUTS, "a place for each part");

static void tell_part(enum banner_part which, bool as_json)
{
    struct report_line line;
    line_start(&line, as_json);
    if (!as_json)
        line.text.length = 0;
    if (!as_json)
        banner_say(&line.text, which);
    else if (banner_put(&line, which))
        text_char(&line.text, '}');
    else
        return;
    if (text_end(&line.text))
        totals_tell(part.totals, (int)which, as_json, line.buffer);
}

static __attribute__((noinline)) void tell(unsigned news)
{
    for (unsigned which = 0; news >> which; which++)
        if (news >> which & 1) {
            tell_part(which, false);
            tell_part(which, true);
        }
}

static void tell_news(void)
{
    const unsigned news = tells ? banner_news(&told) : 0;
    if (news)
        tell(news);
}

static void count_in_summary(const struct accel_record *record)
{
    tell_news();
    totals_add(&part, record);
}

static void begin_child(void)
{
    if (part.totals)
        totals_begin(&part, part.totals);
    if (atomic_load(&told))
        atomic_store(&told, 0);
}
FORKS_CHILD(begin_child);

void summary_know(unsigned facts)
{
    if (part.totals)
        totals_know(part.totals, facts);
}

void summary_starting(bool begins)
{
    if (part.totals)
        totals_starting(part.totals, begins);
}

/* Notes the libraries that compute without BLAS. From the kernel's list: the dynamic linker's may
 * be locked for good in a forked child. */
static void note_libraries(void)
{
    char buffer[8192];
    size_t kept = 0;
    ssize_t n;
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    unsigned facts = 0;
    while (fd >= 0 && (n = file_read(fd, buffer + kept, sizeof buffer - 1 - kept)) > 0) {
        kept += (size_t)n;
        buffer[kept] = 0;
        facts |= hints_library(buffer);
        const size_t keep = kept < 256 ? kept : 256; /* a path may go on in the next piece */
        memmove(buffer, buffer + kept - keep, keep);
        kept = keep;
    }
    if (fd >= 0)
        close(fd);
    summary_know(facts);
}

/* A child whose parent runs leaves the sums to that. */
static void print(void)
{
    char path[PATH_MAX];
    const bool known = file_program(path);
    const struct page page = {.program = known ? strrchr(path, '/') + 1 : "the program",
                              .pid = getpid(),
                              .seconds = -1,
                              .json = json,
                              .file = file};
    if (atomic_load(&part.joined)) {
        note_libraries();
        tell_news(); /* a GPU that started after the last decision */
    }
    totals_end(&part);
    if (!tools && totals_is_mine(part.totals))
        page_write(&page, part.totals);
}

void summary_start(enum accel_summary form, const char *to, const char *table, bool with_banner)
{
    static const struct report_sink sink = {.decision = count_in_summary, .end = print};
    struct totals *totals = table ? totals_open(table) : NULL;
    tools = totals;
    if (!totals)
        totals = totals_make();
    if (!totals) {
        accel_message("ACCEL_SUMMARY: there is no memory for the sums; there will be no summary");
        return;
    }
    file = to;
    json = form == ACCEL_SUMMARY_JSON;
    tells = with_banner;
    totals_begin(&part, totals);
    report_subscribe(&sink);
}
