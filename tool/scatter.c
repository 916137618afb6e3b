#define _GNU_SOURCE
#include "scatter.h"

#include <math.h>
#include <string.h>

#include "html.h"

/* ---- Marks ---- */

enum { SPOTS_MOST = 80, SPOTS_MIXED = 20, SPOTS_LEAST = 5 };

static bool is_mark_of(const struct scatter_mark *mark, const struct scatter_mark *other)
{
    return mark->column == other->column && mark->row == other->row && mark->side == other->side &&
           strcmp(mark->name, other->name) == 0;
}

/* Returns the place of the mark that is like this one, or the free place where it belongs. */
static int *find_place(struct scatter *scatter, const struct scatter_mark *like)
{
    const unsigned places = sizeof scatter->place / sizeof *scatter->place;
    unsigned at = (unsigned)like->column * 2654435761u + (unsigned)like->row * 40503u + like->side;
    for (const char *c = like->name; *c; c++)
        at = at * 31 + (unsigned char)*c;
    for (;; at++) {
        int *place = &scatter->place[at % places];
        if (*place == 0 || is_mark_of(&scatter->mark[*place - 1], like))
            return place;
    }
}

/* Adds a mark to the one at its spot. False if there is no room for another one. */
static bool put(struct scatter *scatter, struct scatter_mark mark)
{
    mark.column = (int)floor(mark.log_x / mark.calls * scatter->spots);
    mark.row = (int)floor(mark.log_y / mark.calls * scatter->spots);
    if (scatter->mixed)
        *mark.name = 0;
    int *place = find_place(scatter, &mark);
    if (*place == 0 && scatter->marks == SCATTER_MARKS)
        return false;
    if (*place == 0) {
        scatter->mark[scatter->marks++] = mark;
        *place = scatter->marks;
        return true;
    }
    struct scatter_mark *old = &scatter->mark[*place - 1];
    old->log_x += mark.log_x;
    old->log_y += mark.log_y;
    old->calls += mark.calls;
    old->ms += mark.ms;
    return true;
}

/* Lets more calls share a mark: those of all routines first, then those of larger spots. False if that is at its end. */
static bool coarsen(struct scatter *scatter)
{
    const int marks = scatter->marks;
    if (scatter->spots <= SPOTS_LEAST)
        return false;
    if (scatter->spots <= SPOTS_MIXED && !scatter->mixed)
        scatter->mixed = true;
    else
        scatter->spots /= 2;
    scatter->marks = 0;
    memset(scatter->place, 0, sizeof scatter->place);
    for (int i = 0; i < marks; i++) /* each comes to its old index, or to an earlier one */
        put(scatter, scatter->mark[i]);
    return true;
}

void scatter_add(struct scatter *scatter, const struct log_decision *decision, double x, double y)
{
    if (!(x > 0 && x < 1e30 && y > 0 && y < 1e30))
        return;
    const double calls = (double)decision->calls;
    struct scatter_mark mark = {.side = decision->side,
                                .log_x = log10(x) * calls,
                                .log_y = log10(y) * calls,
                                .calls = calls,
                                .ms = decision->ms};
    snprintf(mark.name, sizeof mark.name, "%s", decision->name);
    if (scatter->spots == 0)
        scatter->spots = SPOTS_MOST;
    while (!put(scatter, mark))
        if (!coarsen(scatter)) {
            scatter->left_out += calls;
            return;
        }
}

/* ---- The chart ---- */

enum { WIDTH = 960, HEIGHT = 460, LEFT = 72, RIGHT = 20, TOP = 14, BOTTOM = 54 };

/* Of decimal logarithms. */
struct axis {
    double low, high, from, to;
};

static double at(const struct axis *axis, double log)
{
    return axis->from + (log - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

static void widen(struct axis *axis, double low, double high)
{
    axis->low = fmin(axis->low, low);
    axis->high = fmax(axis->high, high);
}

/* To whole thirds of decades, at least one decade. */
static void round_axis(struct axis *axis)
{
    axis->low = floor(axis->low * 3 - 0.3) / 3;
    axis->high = ceil(axis->high * 3 + 0.3) / 3;
    if (axis->high - axis->low < 1)
        axis->high = axis->low + 1;
}

/* 0.001, 1, 10, 1000, 10k, 1M: short, and the same on all axes. */
static void put_tick(FILE *to, double value)
{
    char text[HTML_NUMBER_BYTES];
    fputs(html_count(text, value), to);
}

static void put_grid(FILE *to, const struct axis *axis, bool is_x)
{
    const bool few = axis->high - axis->low < 2.5;
    for (int decade = (int)floor(axis->low); decade <= (int)ceil(axis->high); decade++)
        for (int digit = 1; digit < 10; digit++) {
            const double log = decade + log10(digit), p = at(axis, log);
            const bool named = digit == 1 || (few && (digit == 2 || digit == 5));
            if (log < axis->low - 1e-9 || log > axis->high + 1e-9 || !named)
                continue;
            if (is_x)
                fprintf(to,
                        "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
                        "text-anchor=\"middle\">",
                        p, TOP, HEIGHT - BOTTOM, p, HEIGHT - BOTTOM + 18);
            else
                fprintf(to,
                        "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
                        "text-anchor=\"end\">",
                        LEFT, p, WIDTH - RIGHT, LEFT - 8, p + 4);
            put_tick(to, digit * pow(10, decade));
            fputs("</text>\n", to);
        }
}

static void put_shape(FILE *to, enum log_side side, double x, double y, double r)
{
    if (side == LOG_GPU)
        fprintf(to, "<circle class=\"mark gpu\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\">", x, y, r);
    else if (side == LOG_CPU)
        fprintf(to, "<path class=\"mark cpu\" d=\"M%.1f %.1fl%.1f %.1f %.1f %.1f %.1f %.1fz\">", x,
                y - 1.2 * r, 1.2 * r, 1.2 * r, -1.2 * r, 1.2 * r, -1.2 * r, -1.2 * r);
    else
        fprintf(to,
                "<rect class=\"mark both\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">",
                x - r, y - r, 2 * r, 2 * r);
}

/* least: the size of a mark of one call. */
static void put_mark(FILE *to, const struct scatter_mark *mark, const struct axis *x,
                     const struct axis *y, const struct scatter_words *words, double least)
{
    static const char *const tags[] = {"path", "circle", "rect"};
    static const char *const places[] = {"on the CPU", "on the GPU",
                                         "begun on the GPU, finished on the CPU"};
    const double log_x = mark->log_x / mark->calls, log_y = mark->log_y / mark->calls;
    char calls[HTML_NUMBER_BYTES], ms[HTML_NUMBER_BYTES], number[HTML_NUMBER_BYTES];
    put_shape(to, mark->side, at(x, log_x), at(y, log_y), fmin(9, least + log10(mark->calls)));
    fputs("<title>", to);
    html_text(to, *mark->name ? mark->name : "Several routines");
    fprintf(to, " %s: %s call%s, ", places[mark->side], html_count(calls, mark->calls),
            mark->calls == 1 ? "" : "s");
    fprintf(to, "%s%s", html_ms(ms, mark->ms / mark->calls), mark->calls == 1 ? "" : " each");
    fprintf(to, ", %s%s", html_count(number, pow(10, log_x)), words->x_unit);
    if (*words->y_unit)
        fprintf(to, ", %s%s", html_count(number, pow(10, log_y)), words->y_unit);
    fprintf(to, "</title></%s>\n", tags[mark->side]);
}

/* From edge to edge; a sloping one ends at the highest of the level ones. */
static void put_roof(FILE *to, const struct scatter_roof *roof, const struct axis *x,
                     const struct axis *y, double top)
{
    const double log = log10(roof->value);
    double left = x->low, right = x->high;
    if (roof->slope) {
        left = fmax(left, y->low - log);
        right = fmin(right, top - log);
    }
    if (right <= left)
        return;
    const double x1 = at(x, left), y1 = at(y, log + roof->slope * left), x2 = at(x, right),
                 y2 = at(y, log + roof->slope * right);
    fprintf(to, "<path class=\"roof %s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", roof->kind, x1, y1, x2,
            y2);
    if (roof->slope)
        fprintf(
            to, "<text class=\"name roof-name\" transform=\"translate(%.1f %.1f) rotate(%.1f)\">",
            x1 + 0.08 * (x2 - x1), y1 + 0.08 * (y2 - y1) - 6, atan2(y2 - y1, x2 - x1) * 57.29578);
    else
        fprintf(to, "<text class=\"name roof-name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                roof->label_left ? x1 + 5 : x2 - 5, y1 + (roof->label_below ? 14 : -6),
                roof->label_left ? "start" : "end");
    html_text(to, roof->label);
    fputs("</text>\n", to);
}

void scatter_write(FILE *to, const struct scatter *scatter, const struct scatter_words *words,
                   const struct scatter_roof *roofs, int count)
{
    struct axis x = {INFINITY, -INFINITY, LEFT, WIDTH - RIGHT},
                y = {INFINITY, -INFINITY, HEIGHT - BOTTOM, TOP};
    double top = -INFINITY;
    if (scatter->marks == 0)
        return;
    for (int i = 0; i < scatter->marks; i++) {
        const struct scatter_mark *mark = &scatter->mark[i];
        widen(&x, mark->log_x / mark->calls, mark->log_x / mark->calls);
        widen(&y, mark->log_y / mark->calls, mark->log_y / mark->calls);
    }
    for (int i = 0; i < count; i++) {
        if (roofs[i].slope)
            continue;
        top = fmax(top, log10(roofs[i].value));
        widen(&y, log10(roofs[i].value), log10(roofs[i].value) + 0.15);
    }
    round_axis(&x);
    round_axis(&y);
    fprintf(to,
            "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"%s-t\">\n"
            "<title id=\"%s-t\">%s</title>\n",
            WIDTH, HEIGHT, words->id, words->id, words->title);
    put_grid(to, &x, true);
    put_grid(to, &y, false);
    fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, words->x);
    fprintf(to,
            "<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2, words->y);
    for (int i = 0; i < scatter->marks; i++)
        put_mark(to, &scatter->mark[i], &x, &y, words, scatter->marks < 200 ? 4.5 : 3.2);
    for (int i = 0; i < count; i++)
        put_roof(to, &roofs[i], &x, &y, isfinite(top) ? top : y.high);
    fputs("</svg></figure>\n", to);
}
