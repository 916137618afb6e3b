#define _GNU_SOURCE
#include "report_page.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/version.h"
#include "html.h"

extern const char report_html[]; /* report_html.S */

enum { ROWS_SHOWN = 250 };

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
    const char *const facts[] = {"host", "gpu", "cpu"};
    char calls[HTML_NUMBER_BYTES];
    for (int i = 0; i < page->path_count && i < 3; i++) {
        fputs(i ? ", <code>" : "<code>", to);
        html_text(to, page->paths[i]);
        fputs("</code>", to);
    }
    if (page->path_count > 3)
        fprintf(to, " and %d more files", page->path_count - 3);
    fprintf(to, ": %s calls of %d process%s", html_count(calls, (double)seen->sums.all.calls),
            seen->processes, seen->processes == 1 ? "" : "es");
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const char *fact = log_seen_fact(seen, facts[i]);
        if (!fact)
            continue;
        fputs(", ", to);
        html_text(to, fact);
    }
}

static void tile(FILE *to, const char *name, const char *value, const char *of)
{
    fprintf(to, "<div class=\"tile\">%s<b>%s</b><span class=\"of\">%s</span></div>\n", name, value,
            of);
}

/* Of a side: how long it worked, for how many calls. */
static void side_tile(FILE *to, const char *name, const struct log_sum *sum, double all_ms)
{
    char ms[HTML_NUMBER_BYTES], calls[HTML_NUMBER_BYTES], of[100];
    snprintf(of, sizeof of, "%.0f %% of that time, %s call%s",
             all_ms > 0 ? 100 * sum->ms / all_ms : 0, html_count(calls, (double)sum->calls),
             plural((double)sum->calls));
    tile(to, name, html_ms(ms, sum->ms), of);
}

static void write_tiles(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct log_sums *sums = &page->seen->sums;
    const struct timeline *timeline = &page->seen->timeline;
    const double wall_ms = 1e3 * (timeline->last_s - timeline->first_s);
    const struct log_sum *gpu = &sums->side[LOG_GPU];
    char ms[HTML_NUMBER_BYTES], wall[HTML_NUMBER_BYTES], of[100] = "the sum over all threads";
    if (wall_ms > 0)
        snprintf(of, sizeof of, "from the first to the last: %s", html_ms(wall, wall_ms));
    tile(to, "In calls", html_ms(ms, sums->all.ms), of);
    side_tile(to, "On the GPU", gpu, sums->all.ms);
    side_tile(to, "On the CPU", &sums->side[LOG_CPU], sums->all.ms);
    if (sums->side[LOG_BOTH].calls)
        side_tile(to, "Failed on the GPU", &sums->side[LOG_BOTH], sums->all.ms);
    const double saved = log_sum_saved_ms(gpu, LOG_GPU);
    if (gpu->estimated)
        tile(to, saved >= 0 ? "Saved by the GPU" : "Lost on the GPU", html_ms(ms, fabs(saved)),
             "against the estimated time of the CPU");
}

/* ---- Charts ---- */

static void write_key(FILE *to, const struct log_sums *sums)
{
    static const char *const says[LOG_SIDES] = {
        "on the CPU (diamonds)", "on the GPU (circles)",
        "begun on the GPU, finished on the CPU after a failure (squares)"};
    fputs("<ul class=\"key\">", to);
    for (int side = LOG_SIDES - 1; side >= 0; side--)
        if (sums->side[side].calls)
            fprintf(to, "<li class=\"%s\"><i></i>%s</li>", side_classes[side], says[side]);
    fputs("</ul>\n", to);
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
    const struct scatter_words words = {"scatter",
                                        "The time of each call by its size, on the CPU and on the "
                                        "GPU. The table of routines has the numbers",
                                        "size: geometric mean of the call's sizes, such as m, n, k",
                                        "milliseconds of a call",
                                        " in size",
                                        ""};
    if (sizes->marks == 0) {
        fputs("<p>No call has both a time and a size.</p>\n", to);
        return;
    }
    fputs(
        "<p class=\"soft\">Calls of one routine that fall on the same spot share a mark, which is "
        "larger for more of them. Point at one to read it.</p>\n",
        to);
    write_key(to, &page->seen->sums);
    scatter_write(to, sizes, &words, NULL, 0);
    write_left_out(to, sizes->left_out);
}

static void add_roof(struct scatter_roof *roof, int *count, double value, int slope,
                     const char *kind, const char *label, bool single)
{
    if (value <= 0)
        return;
    roof[*count] = (struct scatter_roof){.kind = kind,
                                         .value = value,
                                         .slope = slope,
                                         .label_left = single,
                                         .label_below = strcmp(kind, "cpu") == 0};
    snprintf(roof[*count].label, sizeof roof->label, "%s: %.*g %s", label, slope ? 3 : 2,
             slope          ? value
             : value >= 1e3 ? value * 1e-3
                            : value,
             slope          ? "GB/s"
             : value >= 1e3 ? "Tflop/s"
                            : "Gflop/s");
    ++*count;
}

/* Only of the types that there are calls of. */
static int roofs_of(struct scatter_roof roof[5], const struct report_page *page)
{
    static const char *const cpu[] = {"CPU, single precision", "CPU, double precision"},
                             *const gpu[] = {"GPU, single precision", "GPU, double precision"};
    const struct ceilings *ceilings = page->ceilings;
    int count = 0;
    for (int i = 0; i < 2; i++) {
        if (!page->seen->has_rate[i])
            continue;
        add_roof(roof, &count, ceilings->cpu_gflops[i], 0, "cpu", cpu[i], i == 0);
        add_roof(roof, &count, ceilings->gpu_gflops[i], 0, "gpu", gpu[i], i == 0);
    }
    add_roof(roof, &count, ceilings->up_gbps, 1, "copies", "operands copied to the GPU", false);
    return count;
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
    fputs(
        "<p class=\"soft\">The lines are what <code>accel calibrate</code> has measured: the best "
        "rate of a large product, and of copies. They are of the machine that made this page, from "
        "<code>",
        to);
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
    const struct scatter_words words = {
        "roofline",
        "The rate of each call by its operations for each byte of its operands, below what the "
        "CPU, "
        "the GPU and copies can do at most. The table of routines has the numbers",
        "operations for each byte of operands",
        "Gflop/s of a call",
        " operations a byte",
        " Gflop/s"};
    struct scatter_roof roof[5];
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
    write_key(to, &page->seen->sums);
    scatter_write(to, rates, &words, roof, roofs_of(roof, page));
    write_left_out(to, rates->left_out);
}

static void write_timeline(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct timeline *timeline = &page->seen->timeline;
    char text[HTML_NUMBER_BYTES];
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
    write_key(to, &page->seen->sums);
    timeline_write(to, timeline);
    if (timeline->left_out > 0)
        fprintf(to, "<p class=\"soft\">Further threads have no lane: %s calls.</p>\n",
                html_count(text, timeline->left_out));
    if (timeline->untimed > 0)
        fprintf(to, "<p class=\"soft\">%s calls have no time of day, and are not here.</p>\n",
                html_count(text, timeline->untimed));
}

/* ---- The table ---- */

static void cell(FILE *to, double value, const char *text)
{
    fprintf(to, "<td data-value=\"%.9g\">%s</td>", value, text);
}

static void no_cell(FILE *to)
{
    fputs("<td></td>", to);
}

/* The columns of numbers of a row, or of the sum of several. */
static void write_numbers(FILE *to, const struct log_sum *sum, double all_ms, enum log_side side,
                          bool one_side)
{
    char text[HTML_NUMBER_BYTES], share[HTML_NUMBER_BYTES];
    cell(to, (double)sum->calls, html_count(text, (double)sum->calls));
    cell(to, sum->ms, html_ms(text, sum->ms));
    snprintf(share, sizeof share, "%.1f %%", all_ms > 0 ? 100 * sum->ms / all_ms : 0);
    cell(to, sum->ms, share);
    if (sum->timed)
        cell(to, sum->ms / (double)sum->timed, html_ms(text, sum->ms / (double)sum->timed));
    else
        no_cell(to);
    if (one_side && sum->estimated) {
        const double other = side == LOG_CPU ? sum->est_gpu_ms : sum->est_cpu_ms;
        cell(to, other, html_ms(text, other));
        cell(to, log_sum_saved_ms(sum, side), html_ms(text, log_sum_saved_ms(sum, side)));
    } else {
        no_cell(to);
        no_cell(to);
    }
    if (sum->operations_ms > 0) {
        const double gflops = sum->operations / sum->operations_ms * 1e-6;
        snprintf(text, sizeof text, gflops < 1000 ? "%.3g" : "%.0f", gflops);
        cell(to, gflops, text);
    } else {
        no_cell(to);
    }
}

static void write_row(FILE *to, const struct log_row *row, double all_ms)
{
    char sizes[LOG_SIZES_BYTES];
    fputs("<tr><td class=\"text\"><code>", to);
    html_text(to, row->name);
    fprintf(
        to,
        "</code></td><td data-value=\"%lld\">%s</td><td class=\"text\"><span class=\"%s\"></span>",
        (long long)row->high, log_sizes(sizes, row), side_classes[row->side]);
    html_text(to, row->ran);
    fputs("</td><td class=\"text\">", to);
    html_text(to, row->why);
    fputs("</td>", to);
    write_numbers(to, &row->sum, all_ms, row->side, true);
    fputs("</tr>\n", to);
}

static void add_sum(struct log_sum *sum, const struct log_sum *one)
{
    sum->calls += one->calls;
    sum->timed += one->timed;
    sum->ms += one->ms;
    sum->operations += one->operations;
    sum->operations_ms += one->operations_ms;
}

static void write_last_row(FILE *to, const char *name, const struct log_sum *sum, double all_ms)
{
    fprintf(to, "<tr><th class=\"text\" scope=\"row\">%s</th><td></td><td></td><td></td>", name);
    write_numbers(to, sum, all_ms, LOG_CPU, false);
    fputs("</tr>\n", to);
}

static void write_routines(FILE *to, const void *context)
{
    static const char *const heads[] = {"Routine",    "Largest size", "Ran",    "Why",
                                        "Calls",      "Time",         "Share",  "A call",
                                        "Other side", "Saved",        "Gflop/s"};
    const struct report_page *page = context;
    const struct log_sums *sums = &page->seen->sums;
    struct log_sum further = sums->left_out;
    fputs("<p class=\"soft\">Longest time first; a click on a heading sorts by it. <i>Other "
          "side</i> is the "
          "time that the calls were expected to take there, and <i>saved</i> what they gained on "
          "it by "
          "running where they did, as estimated.</p>\n<div class=\"scroll\"><table "
          "class=\"sorts\"><thead><tr>",
          to);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        fprintf(to, "<th scope=\"col\"%s%s>%s</th>",
                i == 0 || i == 2 || i == 3 ? " class=\"text\"" : "",
                i == 5 ? " aria-sort=\"descending\"" : "", heads[i]);
    fputs("</tr></thead>\n<tbody>\n", to);
    for (int i = 0; i < sums->rows; i++)
        if (i < ROWS_SHOWN)
            write_row(to, &sums->row[i], sums->all.ms);
        else
            add_sum(&further, &sums->row[i].sum);
    fputs("</tbody>\n<tfoot>\n", to);
    if (further.calls)
        write_last_row(to, "All other rows", &further, sums->all.ms);
    write_last_row(to, "All", &sums->all, sums->all.ms);
    fputs("</tfoot></table></div>\n", to);
}

/* ---- Processes, and what else is to be said ---- */

static void write_settings(FILE *to, const void *context)
{
    const struct report_page *page = context;
    const struct log_seen *seen = page->seen;
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
    if (seen->sums.inner)
        fprintf(to,
                "<li>%s calls were made inside others. The sums have all time once; the charts "
                "have the "
                "outer calls, and those inside that ran on the GPU.</li>\n",
                html_count(text, (double)seen->sums.inner));
    if (seen->sums.all.timed < seen->sums.all.calls)
        fprintf(to, "<li>%s calls were not timed, such as those that are too small to be.</li>\n",
                html_count(text, (double)(seen->sums.all.calls - seen->sums.all.timed)));
}

void report_page_write(FILE *to, const struct report_page *page)
{
    static const struct html_part parts[] = {
        {"TITLE", write_title},       {"SUBTITLE", write_subtitle}, {"TILES", write_tiles},
        {"SCATTER", write_scatter},   {"ROOFLINE", write_roofline}, {"TIMELINE", write_timeline},
        {"ROUTINES", write_routines}, {"SETTINGS", write_settings}, {"NOTES", write_notes}};
    html_template(to, report_html, parts, sizeof parts / sizeof *parts, page);
}
