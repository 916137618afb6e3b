#define _GNU_SOURCE
#include "junit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/host/host.h"
#include "tool/util/complain.h"
#include "tool/util/html.h"

static bool cannot(const struct junit *junit, int error)
{
    return complain(false, "accel diff: --junit %s: %s\n", junit->path, strerror(error));
}

bool junit_open(struct junit *junit, const char *path, const char *group)
{
    *junit = (struct junit){.path = path, .group = group, .began_ms = accel_now_ms()};
    if (!path)
        return true;
    junit->file = fopen(path, "we");
    if (!junit->file)
        return cannot(junit, errno);
    junit->cases = open_memstream(&junit->text, &junit->length);
    return junit->cases || cannot(junit, errno);
}

static void put_attribute(FILE *file, const char *name, const char *value)
{
    fprintf(file, " %s=\"", name);
    html_xml(file, value);
    fputc('"', file);
}

void junit_case(struct junit *junit, const char *name, double seconds, enum junit_outcome outcome,
                const char *message, const char *details)
{
    if (!junit->file)
        return;
    junit->count[outcome]++;
    fputs("  <testcase", junit->cases);
    put_attribute(junit->cases, "classname", junit->group);
    put_attribute(junit->cases, "name", name);
    fprintf(junit->cases, " time=\"%.3f\"", seconds);
    if (outcome == JUNIT_PASSED) {
        fputs("/>\n", junit->cases);
        return;
    }
    const char *element = outcome == JUNIT_FAILURE ? "failure" : "error";
    fprintf(junit->cases, ">\n    <%s type=\"accel.diff\"", element);
    put_attribute(junit->cases, "message", message);
    fputc('>', junit->cases);
    html_xml(junit->cases, details);
    fprintf(junit->cases, "</%s>\n  </testcase>\n", element);
}

static void put_suite(const struct junit *junit)
{
    char host[HOST_BYTES], when[32] = "1970-01-01T00:00:00";
    time_t now = time(NULL);
    struct tm utc;
    host_name(host);
    if (gmtime_r(&now, &utc))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    int passed = junit->count[JUNIT_PASSED], failures = junit->count[JUNIT_FAILURE],
        errors = junit->count[JUNIT_ERROR];
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"accel diff\"",
          junit->file);
    put_attribute(junit->file, "hostname", host);
    fprintf(junit->file,
            " timestamp=\"%s\" tests=\"%d\" failures=\"%d\" errors=\"%d\" time=\"%.3f\">\n"
            "  <properties/>\n",
            when, passed + failures + errors, failures, errors,
            (accel_now_ms() - junit->began_ms) / 1e3);
    fwrite(junit->text, 1, junit->length, junit->file);
    fputs("  <system-out/>\n  <system-err/>\n</testsuite>\n", junit->file);
}

bool junit_close(struct junit *junit)
{
    if (!junit->file)
        return true;
    bool good = junit->cases && fclose(junit->cases) == 0;
    if (good)
        put_suite(junit);
    good = good && !ferror(junit->file);
    if (fclose(junit->file) != 0)
        good = false;
    free(junit->text);
    return good || cannot(junit, errno);
}
