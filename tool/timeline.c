#define _GNU_SOURCE
#include "timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "html.h"

/* ---- Bins ---- */

/* Makes the bins twice as wide; `back`: what they had goes to the later half, else to the earlier one. */
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

static void fill(const struct timeline *timeline, struct timeline_lane *lane, enum log_side side,
                 double start_s, double ms)
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
    fill(timeline, lane, decision->side, call->start_s, call->ms);
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

enum { WIDTH = 960, LEFT = 230, RIGHT = 20, TOP = 8, LANE = 30, BAR = 20, BOTTOM = 42 };

struct scale {
    double first_s, px_per_s;
};

static double x_of(const struct scale *scale, double s)
{
    return LEFT + (s - scale->first_s) * scale->px_per_s;
}

/* Returns 1, 2 or 5 times a power of ten, so that the span has five to twelve steps. */
static double step_of(double span)
{
    const double power = pow(10, floor(log10(span / 5)));
    const double steps = span / 5 / power;
    return power * (steps >= 5 ? 5 : steps >= 2 ? 2 : 1);
}

static void put_ticks(FILE *to, const struct scale *scale, double span, int bottom)
{
    const double step = step_of(span);
    for (int i = 0; i * step <= span * 1.0001; i++) {
        const double x = x_of(scale, scale->first_s + i * step);
        fprintf(to,
                "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%.6g</text>\n",
                x, TOP, bottom, x, bottom + 17, i * step);
    }
}

/* The height is the share of each bin's time, on top of what the sides before have. Bins of one height are one piece. */
static void put_busy(FILE *to, const struct timeline *timeline, const struct timeline_lane *lane,
                     enum log_side side, const struct scale *scale, int bottom)
{
    static const char *const classes[] = {"cpu", "gpu", "both"};
    const double bin_ms = timeline->bin_s * 1e3;
    bool any = false;
    for (int i = 0, next; i < TIMELINE_BINS; i = next) {
        int height = 0, below = 0;
        for (next = i; next < TIMELINE_BINS; next++) {
            double under = 0;
            for (int s = 0; s < (int)side; s++)
                under += lane->busy_ms[s][next];
            const int u = (int)lround(fmin(1, under / bin_ms) * BAR),
                      t = (int)lround(fmin(1, (under + lane->busy_ms[side][next]) / bin_ms) * BAR),
                      h = lane->busy_ms[side][next] > 0 && u < BAR && t == u ? 1 : t - u;
            if (next > i && (h != height || u != below))
                break;
            height = h;
            below = u;
        }
        if (height == 0)
            continue;
        const double x = fmax(LEFT, x_of(scale, timeline->start_s + i * timeline->bin_s)),
                     end = fmin(WIDTH - RIGHT,
                                x_of(scale, timeline->start_s + next * timeline->bin_s));
        if (!any)
            fprintf(to, "<path class=\"%s\" d=\"", classes[side]);
        fprintf(to, "M%.1f %dH%.1fv-%dH%.1fz", x, bottom - below, fmax(end, x + 0.6), height, x);
        any = true;
    }
    if (any)
        fputs("\"/>\n", to);
}

static void put_lane(FILE *to, const struct timeline *timeline, int at, const struct scale *scale,
                     int top)
{
    const struct timeline_lane *lane = &timeline->lane[at];
    char calls[HTML_NUMBER_BYTES], ms[HTML_NUMBER_BYTES];
    const int bar = top + (LANE - BAR) / 2;
    fprintf(to, "<text class=\"name\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 10, bar + 14);
    html_text(to, lane->name);
    fprintf(to, "<title>");
    html_text(to, lane->name);
    fprintf(to, ": %s calls, %s</title></text>\n", html_count(calls, lane->calls),
            html_ms(ms, lane->ms));
    fprintf(to, "<rect class=\"lane\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LEFT, bar,
            WIDTH - RIGHT - LEFT, BAR);
    for (int side = 0; side < LOG_SIDES; side++)
        put_busy(to, timeline, lane, side, scale, bar + BAR);
    for (int i = 0; i < timeline->kept; i++) {
        const struct timeline_call *call = &timeline->longest[i];
        const double x = x_of(scale, call->start_s);
        if (call->lane != at)
            continue;
        fprintf(to, "<rect class=\"call\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>",
                x, bar, fmax(1, call->ms * 1e-3 * scale->px_per_s), BAR);
        html_text(to, call->name);
        fprintf(to, ": %s, from %.4g s on</title></rect>\n", html_ms(ms, call->ms),
                call->start_s - scale->first_s);
    }
}

/* Threads first, each kind in the order of its first calls. */
void timeline_write(FILE *to, const struct timeline *timeline)
{
    const double span = fmax(1e-6, timeline->last_s - timeline->first_s);
    const struct scale scale = {timeline->first_s, (WIDTH - RIGHT - LEFT) / span};
    const int bottom = TOP + LANE * timeline->lanes;
    int top = TOP;
    if (timeline->lanes == 0)
        return;
    fprintf(to,
            "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"timeline-t\">\n"
            "<title id=\"timeline-t\">The calls of %d threads and devices over %.3g "
            "seconds</title>\n",
            WIDTH, bottom + BOTTOM, timeline->lanes, span);
    put_ticks(to, &scale, span, bottom);
    for (int device = 0; device < 2; device++)
        for (int i = 0; i < timeline->lanes; i++) {
            if (timeline->lane[i].device != device)
                continue;
            put_lane(to, timeline, i, &scale, top);
            top += LANE;
        }
    fprintf(to,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">seconds since the first call</text>\n"
            "</svg></figure>\n",
            (LEFT + WIDTH - RIGHT) / 2, bottom + BOTTOM - 6);
}
