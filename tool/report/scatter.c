#define _GNU_SOURCE
#include "scatter.h"

#include <math.h>
#include <string.h>

#include "base/memory/hash.h"
#include "tool/util/html.h"

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
    const int spot[] = {like->column, like->row, like->side};
    uint64_t at = hash_text(hash_bytes(spot, sizeof spot), like->name);
    for (;; at++) {
        int *place = &scatter->place[at % places];
        if (*place == 0 || is_mark_of(&scatter->mark[*place - 1], like))
            return place;
    }
}

/* Adds a mark to the one at its spot. False if there is no room for another one. */
static bool put_mark(struct scatter *scatter, struct scatter_mark mark)
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

/* Lets more calls share a mark: those of all routines first, then those of larger spots. False if
 * that is at its end. */
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
        put_mark(scatter, scatter->mark[i]);
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
    while (!put_mark(scatter, mark))
        if (!coarsen(scatter)) {
            scatter->left_out += calls;
            return;
        }
}

/* ---- The chart ---- */

static void write_mark(FILE *to, const struct scatter_mark *mark, const char *x_unit,
                       const char *y_unit)
{
    static const char *const places[] = {"on the CPU", "on the GPU",
                                         "begun on the GPU, finished on the CPU"};
    const double x = mark->log_x / mark->calls, y = mark->log_y / mark->calls;
    const bool one = mark->calls == 1;
    char calls[HTML_NUMBER_BYTES], ms[HTML_NUMBER_BYTES], number[HTML_NUMBER_BYTES], says[300];
    int length = snprintf(says, sizeof says, "%s %s: %s call%s, %s%s, %s%s",
                          *mark->name ? mark->name : "Several routines", places[mark->side],
                          html_count(calls, mark->calls), one ? "" : "s",
                          html_ms(ms, mark->ms / mark->calls), one ? "" : " each",
                          html_count(number, pow(10, x)), x_unit);
    if (*y_unit)
        snprintf(says + length, sizeof says - (size_t)length, ", %s%s",
                 html_count(number, pow(10, y)), y_unit);
    fprintf(to, "[%d,%.4f,%.4f,%.9g,", mark->side, x, y, mark->calls);
    html_json(to, says);
    fputc(']', to);
}

void scatter_write(FILE *to, const struct scatter *scatter, const char *x_unit, const char *y_unit)
{
    for (int i = 0; i < scatter->marks; i++) {
        fputs(i ? ",\n" : "", to);
        write_mark(to, &scatter->mark[i], x_unit, y_unit);
    }
}
