#define _GNU_SOURCE
#include "summary.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/forks.h"
#include "base/say.h"
#include "page.h"
#include "report.h"

static const char *file; /* constant after the start, as the two below */
static bool json, tools;
static struct totals_part part;

static void count(const struct accel_record *record)
{
    totals_add(&part, record);
}

static void begin_child(void)
{
    if (part.totals)
        totals_begin(&part, part.totals);
}
FORKS_CHILD(begin_child);

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
    totals_end(&part);
    if (!tools && totals_is_mine(part.totals))
        page_write(&page, part.totals);
}

void summary_start(enum accel_summary form, const char *to, const char *table)
{
    static const struct report_sink sink = {.decision = count, .end = print};
    struct totals *totals = table ? totals_open(table) : NULL;
    tools = totals;
    if (!totals)
        totals = totals_make();
    if (!totals) {
        accel_say("ACCEL_SUMMARY: there is no memory for the sums; there will be no summary");
        return;
    }
    file = to;
    json = form == ACCEL_SUMMARY_JSON;
    totals_begin(&part, totals);
    report_subscribe(&sink);
}
