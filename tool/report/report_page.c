#define _GNU_SOURCE
#include "report_page.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/host/version.h"
#include "advice.h"
#include "tool/util/html.h"

extern const char report_html[]; /* report_html.S */

enum { ROWS_SHOWN = 250, LOST_SHOWN = 6 };

/* As the script has them, too. */
static const char *const side_classes[LOG_SIDES] = {"cpu", "gpu", "both"};

static const char *plural(double count)
{
    return count == 1 ? "" : "s";
}

/* ---- The head ---- */

static void write_title(FILE *to, const void *context)
{
    const struct report_page *page = context;
    fputs("libaccel: ", to);
    html_text(to, page->paths[0]);
    if (page->path_count > 1)
        fprintf(to, " and %d more", page->path_count - 1);
}

static void write_subtitle(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct log_seen *seen = page->seen;
    char calls[HTML_NUMBER_BYTES];
    for (int i = 0; i < page->path_count && i < 3; i++) {
        fputs(i ? ", <code>" : "<code>", to);
        html_text(to, page->paths[i]);
        fputs("</code>", to);
    }
    if (page->path_count > 3)
        fprintf(to, " and %d more files", page->path_count - 3);
    fprintf(to, ": %s calls of %d process%s", html_count(calls, (double)seen->sums.all.is.calls),
            seen->processes, seen->processes == 1 ? "" : "es");
    if (*seen->gpu) {
        fputs(", ", to);
        html_text(to, seen->gpu);
    }
}

static void tile(FILE *to, const char *name, const char *value, const char *of)
{
    fprintf(to, "<div class=\"tile\">%s<b>%s</b><span class=\"of\">%s</span></div>\n", name, value,
            of);
}

/* Of a side: how long it worked, for how many calls. */
static void side_tile(FILE *to, const char *name, const struct totals_row *sum, double all_s)
{
    char time[HTML_NUMBER_BYTES], calls[HTML_NUMBER_BYTES], of[100];
    snprintf(of, sizeof of, "%.0f %% of that time, %s call%s",
             all_s > 0 ? 100 * sum->seconds / all_s : 0, html_count(calls, (double)sum->calls),
             plural((double)sum->calls));
    tile(to, name, html_ms(time, sum->seconds * 1e3), of);
}

static void write_tiles(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct log_sums *sums = &page->seen->sums;
    const struct timeline *timeline = &page->seen->timeline;
    const double wall_s = timeline->last_s - timeline->first_s, all_s = sums->all.is.seconds;
    const struct totals_row *gpu = &sums->side[LOG_GPU].is;
    char time[HTML_NUMBER_BYTES], wall[HTML_NUMBER_BYTES], of[100] = "the sum over all threads";
    if (wall_s > 0)
        snprintf(of, sizeof of, "from the first to the last: %s", html_ms(wall, wall_s * 1e3));
    tile(to, "In calls", html_ms(time, all_s * 1e3), of);
    side_tile(to, "On the GPU", gpu, all_s);
    side_tile(to, "On the CPU", &sums->side[LOG_CPU].is, all_s);
    if (sums->side[LOG_BOTH].is.calls)
        side_tile(to, "Failed on the GPU", &sums->side[LOG_BOTH].is, all_s);
    const double saved = gpu->instead - gpu->estimated;
    if (gpu->estimated > 0)
        tile(to, saved >= 0 ? "Saved by the GPU" : "Lost on the GPU",
             html_ms(time, fabs(saved) * 1e3), "against the estimated time of the CPU");
}

static void write_item(void *context, const char *sentence)
{
    FILE *to = context;
    fputs("<li>", to);
    html_text(to, sentence);
    fputs("</li>\n", to);
}

static void write_hints(FILE *to, const void *context)
{
    const struct report_page *page = context;
    if (!advice_hints(page->seen, write_item, to))
        fputs("<li>Nothing that a setting would bring.</li>\n", to);
}

static void write_lost(FILE *to, const void *context)
{
    const struct report_page *page = context;
    if (!advice_lost(page->seen, LOST_SHOWN, write_item, to))
        fputs("<li>Nowhere, by the estimates.</li>\n", to);
}

/* ---- Charts ---- */

/* The page's script draws it. */
static void write_chart(FILE *to, const char *id, const char *title)
{
    fprintf(to,
            "<figure><noscript>This page's own script draws the chart. The table of routines has "
            "the numbers.</noscript><svg id=\"%s\" role=\"img\" aria-labelledby=\"%s-t\">"
            "<title id=\"%s-t\">%s</title></svg></figure>\n",
            id, id, id, title);
}

static void write_left_out(FILE *to, double left_out)
{
    char calls[HTML_NUMBER_BYTES];
    if (left_out > 0)
        fprintf(to,
                "<p class=\"soft\">%s further calls have no mark: they are of too many kinds.</p>",
                html_count(calls, left_out));
}

static void write_scatter(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct scatter *sizes = &page->seen->sizes;
    if (sizes->marks == 0) {
        fputs("<p>No call has both a time and a size.</p>\n", to);
        return;
    }
    fputs(
        "<p class=\"soft\">Calls of one routine that fall on the same spot share a mark, which is "
        "larger for more of them. Point at one to read it.</p>\n",
        to);
    write_chart(to, "scatter",
                "The time of each call by its size, on the CPU and on the GPU. The table of "
                "routines has the numbers");
    write_left_out(to, sizes->left_out);
}

static void write_origin(FILE *to, const struct report_page *page)
{
    const struct ceilings *ceilings = page->ceilings;
    if (!*ceilings->cpu && !*ceilings->gpu) {
        fputs("<p class=\"soft\">There are no ceilings: ", to);
        if (page->model) {
            fputs("<code>", to);
            html_text(to, page->model);
            fputs("</code> has no figures of this machine", to);
        } else {
            fputs("no calibration is there", to);
        }
        fputs("; <code>accel calibrate</code> measures them.</p>\n", to);
        return;
    }
    fprintf(to,
            "<p class=\"soft\">The lines are what <code>accel calibrate</code> has measured: the "
            "best rate "
            "of a large product, and of copies. They are of the machine that made this page%s, "
            "from <code>",
            *page->seen->gpu ? ", and of the GPU that the log names" : "");
    html_text(to, page->model);
    fputs("</code>: <code>", to);
    html_text(to, ceilings->cpu);
    fputs(*ceilings->cpu && *ceilings->gpu ? "</code>, <code>" : "", to);
    html_text(to, ceilings->gpu);
    fputs("</code>.</p>\n", to);
}

static void write_roofline(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct scatter *rates = &page->seen->rates;
    if (rates->marks == 0) {
        fputs(
            "<p>No call has both a time and a known count of operations: those of BLAS and LAPACK "
            "have.</p>\n",
            to);
        return;
    }
    fputs("<p class=\"soft\">Operations of a call over the time that it took, copies included; "
          "each byte "
          "of its operands counts once for reading and once for writing.</p>\n",
          to);
    write_origin(to, page);
    write_chart(to, "roofline",
                "The rate of each call by its operations for each byte of its operands, below what "
                "the CPU, the GPU and copies can do at most. The table of routines has the "
                "numbers");
    write_left_out(to, rates->left_out);
}

static void write_timeline(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct timeline *timeline = &page->seen->timeline;
    char text[HTML_NUMBER_BYTES], title[100];
    if (timeline->lanes == 0) {
        fputs("<p>The log has no times of day: <code>ACCEL_LOG=json</code> writes them.</p>\n", to);
        return;
    }
    fprintf(
        to,
        "<p class=\"soft\">How much of the time each thread and each device spent in calls; calls "
        "inside others belong to those. A column is %s wide. The %d longest calls can be pointed "
        "at.</p>\n",
        html_ms(text, timeline->bin_s * 1e3), timeline->kept);
    snprintf(title, sizeof title, "The calls of %d threads and devices over %.3g seconds",
             timeline->lanes, timeline_span_s(timeline));
    write_chart(to, "timeline", title);
    if (timeline->left_out > 0)
        fprintf(to, "<p class=\"soft\">Further threads have no lane: %s calls.</p>\n",
                html_count(text, timeline->left_out));
    if (timeline->untimed > 0)
        fprintf(to, "<p class=\"soft\">%s calls have no time of day, and are not here.</p>\n",
                html_count(text, timeline->untimed));
}

/* ---- The table ---- */

static void cell(FILE *to, bool known, double value, const char *text)
{
    if (known)
        fprintf(to, "<td data-value=\"%.9g\">%s</td>", value, text);
    else
        fputs("<td></td>", to);
}

/* The columns of numbers of a row, or of the sum of several. */
static void write_numbers(FILE *to, const struct log_row *row, double all_s)
{
    const struct totals_row *is = &row->is;
    const int64_t timed = is->calls - is->untimed;
    const bool estimated = *is->name && is->estimated > 0;
    const double mean_s = timed > 0 ? is->seconds / (double)timed : 0,
                 saved_s = is->instead - is->estimated,
                 gflops = row->operations_s > 0 ? row->operations / row->operations_s * 1e-9 : 0;
    char text[HTML_NUMBER_BYTES];
    cell(to, true, (double)is->calls, html_count(text, (double)is->calls));
    cell(to, true, is->seconds, html_ms(text, is->seconds * 1e3));
    snprintf(text, sizeof text, "%.1f %%", all_s > 0 ? 100 * is->seconds / all_s : 0);
    cell(to, !is->inner, is->seconds, text);
    cell(to, timed > 0, mean_s, html_ms(text, mean_s * 1e3));
    cell(to, estimated, is->instead, html_ms(text, is->instead * 1e3));
    cell(to, estimated, saved_s, html_ms(text, saved_s * 1e3));
    snprintf(text, sizeof text, gflops < 1000 ? "%.3g" : "%.0f", gflops);
    cell(to, row->operations_s > 0, gflops, text);
}

static void write_row(FILE *to, const struct log_row *row, double all_s)
{
    char sizes[LOG_SIZES_BYTES];
    fputs("<tr><td class=\"text\"><code>", to);
    html_text(to, row->is.name);
    fprintf(to,
            "</code>%s</td><td data-value=\"%lld\">%s</td><td class=\"text\"><span "
            "class=\"%s\"></span>",
            row->is.inner ? " <span class=\"of\">inside others</span>" : "",
            (long long)row->is.high, log_sizes(sizes, row), side_classes[row->side]);
    html_text(to, row->is.ran);
    fputs("</td><td class=\"text\">", to);
    html_text(to, row->why);
    fputs("</td>", to);
    write_numbers(to, row, all_s);
    fputs("</tr>\n", to);
}

/* A sum has no name. */
static void write_last_row(FILE *to, const char *name, const struct log_row *sum, double all_s)
{
    fprintf(to, "<tr><th class=\"text\" scope=\"row\">%s</th><td></td><td></td><td></td>", name);
    write_numbers(to, sum, all_s);
    fputs("</tr>\n", to);
}

/* The template has the table's head. */
static void write_routines(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct log_sums *sums = &page->seen->sums;
    struct log_row further = sums->left_out;
    const double all_s = sums->all.is.seconds;
    for (int i = 0; i < sums->rows; i++)
        if (i < ROWS_SHOWN)
            write_row(to, &sums->row[i], all_s);
        else if (!sums->row[i].is.inner)
            log_row_add(&further, &sums->row[i]);
    fputs("</tbody>\n<tfoot>\n", to);
    if (further.is.calls)
        write_last_row(to, "All other rows", &further, all_s);
    write_last_row(to, "All", &sums->all, all_s);
}

/* ---- Processes, and what else is to be said ---- */

static void write_settings(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct log_seen *seen = page->seen;
    char text[HTML_NUMBER_BYTES];
    if (seen->events == 0)
        fputs("<p>The log says nothing about its processes.</p>\n", to);
    for (int i = 0; i < seen->events; i++) {
        const struct seen_event *event = &seen->event[i];
        fputs("<table><caption class=\"soft\">", to);
        html_text(to, event->name);
        fprintf(to, ", %lld line%s</caption>\n<tbody>\n", (long long)event->lines,
                plural((double)event->lines));
        for (int j = 0; j < event->fields; j++) {
            fputs("<tr><th class=\"text\" scope=\"row\">", to);
            html_text(to, event->field[2 * j]);
            fputs("</th><td class=\"text wrap\">", to);
            html_text(to, event->field[2 * j + 1]);
            fputs("</td></tr>\n", to);
        }
        fputs("</tbody></table>\n", to);
    }
    if (seen->events_left_out)
        fprintf(to, "<p class=\"soft\">Further lines about processes have no table: %s.</p>\n",
                html_count(text, (double)seen->events_left_out));
}

static void write_notes(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct log_seen *seen = page->seen;
    char date[64], text[HTML_NUMBER_BYTES];
    const time_t now = time(NULL);
    struct tm tm;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M", localtime_r(&now, &tm));
    fprintf(to, "<li>Made by <code>accel report</code> %s on %s from %lld lines.</li>\n",
            accel_version(), date, (long long)(page->counts->decisions + page->counts->events));
    if (page->counts->damaged)
        fprintf(to, "<li>%s damaged or cut line%s left out.</li>\n",
                html_count(text, (double)page->counts->damaged),
                page->counts->damaged == 1 ? " is" : "s are");
    if (page->counts->later)
        fprintf(to, "<li>%s line%s of a later version of the log %s left out.</li>\n",
                html_count(text, (double)page->counts->later), plural((double)page->counts->later),
                page->counts->later == 1 ? "is" : "are");
    if (seen->sums.inner)
        fprintf(to,
                "<li>%s calls were made inside others. The sums and the timeline have the outer "
                "calls' time, "
                "which theirs is a part of; the charts also have those that ran on the GPU.</li>\n",
                html_count(text, (double)seen->sums.inner));
    if (seen->sums.all.is.untimed)
        fprintf(to, "<li>%s calls were not timed, such as those that are too small to be.</li>\n",
                html_count(text, (double)seen->sums.all.is.untimed));
}

/* ---- What the script draws ---- */

/* From end to end of the chart: y = value * x^slope; slope is 0 or 1. */
static void write_roof(FILE *to, bool *first, double value, int slope, const char *kind,
                       const char *name)
{
    const bool large = !slope && value >= 1e3;
    char label[96];
    if (value <= 0)
        return;
    snprintf(label, sizeof label, "%s: %.*g %s", name, slope ? 3 : 2, large ? value * 1e-3 : value,
             slope   ? "GB/s"
             : large ? "Tflop/s"
                     : "Gflop/s");
    fprintf(to, "%s[\"%s\",%.9g,%d,", *first ? "" : ",", kind, value, slope);
    html_json(to, label);
    fputc(']', to);
    *first = false;
}

/* Only of the types that there are calls of. */
static void write_roofs(FILE *to, const struct report_page *page)
{
    const struct ceilings *ceilings = page->ceilings;
    const bool *has = page->seen->has_rate;
    bool first = true;
    if (has[0]) {
        write_roof(to, &first, ceilings->cpu_gflops[0], 0, "cpu", "CPU, single precision");
        write_roof(to, &first, ceilings->gpu_gflops[0], 0, "gpu", "GPU, single precision");
    }
    if (has[1]) {
        write_roof(to, &first, ceilings->cpu_gflops[1], 0, "cpu", "CPU, double precision");
        write_roof(to, &first, ceilings->gpu_gflops[1], 0, "gpu", "GPU, double precision");
    }
    write_roof(to, &first, ceilings->up_gbps, 1, "copies", "operands copied to the GPU");
}

static void write_data(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct log_seen *seen = page->seen;
    fputs("{\"sides\":[", to);
    for (int side = 0; side < LOG_SIDES; side++)
        fprintf(to, "%s%d", side ? "," : "", seen->sums.side[side].is.calls > 0);
    fputs("],\n\"scatter\":{\"roofs\":[],\"marks\":[", to);
    scatter_write(to, &seen->sizes, " in size", "");
    fputs("]},\n\"roofline\":{\"roofs\":[", to);
    write_roofs(to, page);
    fputs("],\"marks\":[", to);
    scatter_write(to, &seen->rates, " operations a byte", " Gflop/s");
    fputs("]},\n\"timeline\":", to);
    timeline_write(to, &seen->timeline);
    fputs("}", to);
}

void report_page_write(FILE *to, const struct report_page *page)
{
    static const struct html_part parts[] = {
        {"TITLE", write_title},       {"SUBTITLE", write_subtitle}, {"TILES", write_tiles},
        {"HINTS", write_hints},       {"LOST", write_lost},         {"SCATTER", write_scatter},
        {"ROOFLINE", write_roofline}, {"TIMELINE", write_timeline}, {"ROUTINES", write_routines},
        {"SETTINGS", write_settings}, {"NOTES", write_notes},       {"DATA", write_data}};
    html_template(to, report_html, parts, sizeof parts / sizeof *parts, page);
}
