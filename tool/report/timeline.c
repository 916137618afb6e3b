#define _GNU_SOURCE
#include "timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/util/html.h"

/* ---- Bins ---- */

/* Makes the bins twice as wide; `back`: what they had goes to the later half, else to the earlier
 * one. */
static void coarsen(struct timeline *timeline, bool back)
{
    enum { HALF = TIMELINE_BINS / 2 };
    for (int lane = 0; lane < timeline->lanes; lane++)
        for (int side = 0; side < LOG_SIDES; side++) {
            float old[TIMELINE_BINS], *bin = timeline->lane[lane].busy_ms[side];
            memcpy(old, bin, sizeof old);
            memset(bin, 0, sizeof old);
            for (int i = 0; i < HALF; i++)
                bin[i + (back ? HALF : 0)] = old[2 * i] + old[2 * i + 1];
        }
    if (back)
        timeline->start_s -= timeline->bin_s * TIMELINE_BINS;
    timeline->bin_s *= 2;
}

/* Makes room for [start, end]. */
static void reach(struct timeline *timeline, double start_s, double end_s)
{
    if (timeline->bin_s == 0) {
        timeline->start_s = timeline->first_s = start_s;
        timeline->last_s = end_s;
        timeline->bin_s = 1e-5;
    }
    timeline->first_s = fmin(timeline->first_s, start_s);
    timeline->last_s = fmax(timeline->last_s, end_s);
    while (start_s < timeline->start_s)
        coarsen(timeline, true);
    while (end_s >= timeline->start_s + timeline->bin_s * TIMELINE_BINS)
        coarsen(timeline, false);
}

static void fill_bins(const struct timeline *timeline, struct timeline_lane *lane,
                      enum log_side side, double start_s, double ms)
{
    const double from = (start_s - timeline->start_s) / timeline->bin_s,
                 until = from + ms * 1e-3 / timeline->bin_s;
    for (int i = (int)from; i < TIMELINE_BINS && i <= until; i++) {
        const double share = fmin(until, i + 1) - fmax(from, i);
        lane->busy_ms[side][i] += (float)(fmax(0, share) * timeline->bin_s * 1e3);
    }
    lane->ms += ms;
}

/* Returns the lane of this name, a new one if there is none; -1 if there is no room. */
static int find_lane(struct timeline *timeline, const char *name, bool device)
{
    int i = 0;
    while (i < timeline->lanes &&
           !(timeline->lane[i].device == device && strcmp(timeline->lane[i].name, name) == 0))
        i++;
    if (i == TIMELINE_LANES)
        return -1;
    if (i == timeline->lanes) {
        timeline->lanes++;
        snprintf(timeline->lane[i].name, sizeof timeline->lane[i].name, "%s", name);
        timeline->lane[i].device = device;
    }
    return i;
}

static void keep_longest(struct timeline *timeline, const struct timeline_call *call)
{
    if (timeline->kept < TIMELINE_LONGEST) {
        timeline->longest[timeline->kept++] = *call;
    } else if (call->ms > timeline->longest[timeline->shortest].ms) {
        timeline->longest[timeline->shortest] = *call;
    } else {
        return;
    }
    for (int i = 0; i < timeline->kept; i++)
        if (timeline->longest[i].ms < timeline->longest[timeline->shortest].ms || i == 0)
            timeline->shortest = i;
}

static void put_on_lane(struct timeline *timeline, const struct log_decision *decision,
                        struct timeline_call *call, const char *name, bool device)
{
    call->lane = find_lane(timeline, name, device);
    if (call->lane < 0) {
        timeline->left_out += (double)decision->calls;
        return;
    }
    struct timeline_lane *lane = &timeline->lane[call->lane];
    lane->calls += (double)decision->calls;
    fill_bins(timeline, lane, decision->side, call->start_s, call->ms);
    keep_longest(timeline, call);
}

void timeline_add(struct timeline *timeline, const struct log_decision *decision, double end_s,
                  const char *thread, const char *host)
{
    if (decision->ms < 0)
        return;
    if (!(fabs(end_s) < 1e12)) {
        timeline->untimed += (double)decision->calls;
        return;
    }
    struct timeline_call call = {
        .side = decision->side, .start_s = end_s - decision->ms * 1e-3, .ms = decision->ms};
    snprintf(call.name, sizeof call.name, "%s", decision->name);
    reach(timeline, call.start_s, end_s);
    if (!decision->inner)
        put_on_lane(timeline, decision, &call, thread, false);
    for (const char *at = decision->ran; *at;) { /* "gpu0+gpu1+cpu" */
        const int length = (int)strcspn(at, "+");
        char name[sizeof timeline->lane->name];
        snprintf(name, sizeof name, "%s%.*s", host, length, at);
        if (strncmp(at, "gpu", 3) == 0)
            put_on_lane(timeline, decision, &call, name, true);
        at += length + (at[length] == '+');
    }
}

/* ---- The chart ---- */

/* Returns the hundredths of a bin that are busy; one at least if any is. */
static int hundredths(const struct timeline *timeline, float busy_ms)
{
    const long share = lround(0.1 * busy_ms / timeline->bin_s);
    return busy_ms > 0 && share == 0 ? 1 : (int)share;
}

/* Writes how many bins follow each other that are as busy, and how busy they are, in turn. */
static void write_busy(FILE *to, const struct timeline *timeline, const float bin[TIMELINE_BINS])
{
    for (int i = 0, next; i < TIMELINE_BINS; i = next) {
        const int share = hundredths(timeline, bin[i]);
        for (next = i + 1; next < TIMELINE_BINS && hundredths(timeline, bin[next]) == share;)
            next++;
        fprintf(to, "%s%d,%d", i ? "," : "", next - i, share);
    }
}

static void write_lane(FILE *to, const struct timeline *timeline, int at)
{
    const struct timeline_lane *lane = &timeline->lane[at];
    char says[256], calls[HTML_NUMBER_BYTES], ms[HTML_NUMBER_BYTES];
    bool first = true;
    fputs("{\"name\":", to);
    html_json(to, lane->name);
    snprintf(says, sizeof says, "%s: %s calls, %s", lane->name, html_count(calls, lane->calls),
             html_ms(ms, lane->ms));
    fputs(",\"says\":", to);
    html_json(to, says);
    for (int side = 0; side < LOG_SIDES; side++) {
        fputs(side ? "],[" : ",\"busy\":[[", to);
        write_busy(to, timeline, lane->busy_ms[side]);
    }
    fputs("]],\"calls\":[", to);
    for (int i = 0; i < timeline->kept; i++) {
        const struct timeline_call *call = &timeline->longest[i];
        const double start_s = call->start_s - timeline->first_s;
        if (call->lane != at)
            continue;
        snprintf(says, sizeof says, "%s: %s, from %.4g s on", call->name, html_ms(ms, call->ms),
                 start_s);
        fprintf(to, "%s[%.9g,%.9g,", first ? "" : ",", start_s, call->ms * 1e-3);
        html_json(to, says);
        fputc(']', to);
        first = false;
    }
    fputs("]}", to);
}

/* Threads first, each kind in the order of its first calls. */
void timeline_write(FILE *to, const struct timeline *timeline)
{
    bool first = true;
    fprintf(to, "{\"start\":%.9g,\"bin\":%.9g,\"span\":%.9g,\"lanes\":[",
            timeline->start_s - timeline->first_s, timeline->bin_s, timeline_span_s(timeline));
    for (int device = 0; device < 2; device++)
        for (int i = 0; i < timeline->lanes; i++) {
            if (timeline->lane[i].device != device)
                continue;
            fputs(first ? "" : ",\n", to);
            write_lane(to, timeline, i);
            first = false;
        }
    fputs("]}", to);
}

double timeline_span_s(const struct timeline *timeline)
{
    return fmax(1e-6, timeline->last_s - timeline->first_s);
}
