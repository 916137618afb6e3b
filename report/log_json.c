#define _GNU_SOURCE
#include "log_json.h"

#include <limits.h>
#include <time.h>
#include <unistd.h>

#include "base/host/host.h"
#include "base/host/ranks.h"
#include "ops/op.h"

/* Constant after the start. */
static char host[HOST_BYTES];
static int rank;

void log_json_start(void)
{
    struct accel_ranks ranks;
    ranks_read(&ranks);
    rank = ranks.rank;
    host_name(host);
}

void log_json_begin(struct report_line *line)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    line_integer(line, "v", 1);
    line_seconds(line, "time", now.tv_sec * INT64_C(1000000000) + now.tv_nsec);
    line_string(line, "host", host);
    line_integer(line, "rank", rank);
}

/* Returns the largest power of two that divides an address; at most that of a page. */
static int64_t alignment_of(const void *address)
{
    const uintptr_t bits = (uintptr_t)address | 4096;
    return (int64_t)(bits & -bits);
}

static void put_operands(struct report_line *line, const struct accel_call *call)
{
    static const char *const places[] = {[ACCEL_HOST] = "host",
                                         [ACCEL_DEVICE] = "device",
                                         [ACCEL_MANAGED] = "managed",
                                         [ACCEL_PLACED] = "host",
                                         [ACCEL_REMOTE] = "remote"};
    line_list(line, "operands");
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (!x->name || !x->ptr)
            continue;
        line_object(line);
        line_string(line, "name", x->name);
        line_integer(line, x->inc ? "inc" : "ld", x->inc ? x->inc : x->ld);
        line_integer(line, "align", alignment_of(x->ptr));
        line_string(line, "place", places[x->place]);
        line_object_end(line);
    }
    line_list_end(line);
}

void log_json_details(struct report_line *line, const struct accel_record *record)
{
    const struct accel_call *call = record->call;
    if (call->routine->args > 0 || !accel_is_blas(call->routine))
        put_operands(line, call);
    if (record->has_info)
        line_integer(line, "info", record->info);
    line_integer(line, "depth", record->depth);
    if (record->gpu) {
        line_string(line, "gpu", record->gpu->name);
        line_string(line, "gpu_id", record->gpu->id);
    }
}
