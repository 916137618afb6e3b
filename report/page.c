#define _GNU_SOURCE
#include "page.h"

#include "banner.h"
#include "hints.h"

#include <string.h>
#include <sys/mman.h>

#include "base/output/output.h"
#include "base/text/text.h"

enum { SHOWN = 20, LINE = 80 }; /* rows of the text; columns of a hint's words */

struct page_text {
    struct totals_row row[TOTALS_ROWS];
    int16_t order[TOTALS_ROWS]; /* of the rows, the longest time first */
    int count;
    struct totals_sums sums;
    struct totals *totals;
    struct accel_text text;
    char buffer[TOTALS_ROWS * 400 + TOTALS_ABOUTS * TOTALS_ABOUT_BYTES + 65536];
};

/* ---- The rows in order ---- */

static bool comes_before(const struct totals_row *a, const struct totals_row *b)
{
    if (a->inner != b->inner)
        return b->inner;
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds > b->seconds;
    return a->calls != b->calls ? a->calls > b->calls : strcmp(a->name, b->name) < 0;
}

/* Shell's sort: qsort(3) may allocate. */
static void sort(struct page_text *work)
{
    for (int gap = TOTALS_ROWS / 2; gap > 0; gap /= 2)
        for (int i = gap; i < work->count; i++) {
            const int16_t moved = work->order[i];
            int at = i;
            for (; at >= gap && comes_before(&work->row[moved], &work->row[work->order[at - gap]]);
                 at -= gap)
                work->order[at] = work->order[at - gap];
            work->order[at] = moved;
        }
}

static void read_rows(struct page_text *work, struct totals *totals)
{
    for (int i = 0; i < TOTALS_ROWS; i++)
        if (totals_read(totals, i, true, &work->row[work->count])) {
            work->order[work->count] = (int16_t)work->count;
            work->count++;
        }
    work->sums = totals_read_sums(totals, true);
    work->totals = totals;
    sort(work);
}

/* ---- What is told of all rows ---- */

struct whole {
    int64_t calls;
    double seconds;        /* of the run, or of its processes together */
    double called;         /* in calls, on all threads together */
    double outside;        /* negative: not known, because threads made calls at the same time */
    int rows;              /* that are not made inside other calls */
    struct totals_row out; /* those that the text has no room for */
};

static struct whole sum_up(const struct page_text *work, const struct page *page)
{
    struct whole whole = {.seconds = work->sums.seconds};
    if (work->sums.processes <= 1 && page->seconds >= 0)
        whole.seconds = page->seconds;
    for (int i = 0; i < work->count; i++) {
        const struct totals_row *row = &work->row[work->order[i]];
        if (row->inner)
            continue;
        whole.calls += row->calls;
        whole.called += row->seconds;
        if (whole.rows++ < SHOWN)
            continue;
        whole.out.calls += row->calls;
        whole.out.seconds += row->seconds;
    }
    whole.outside = whole.seconds > whole.called ? whole.seconds - whole.called : 0;
    if (work->sums.facts & TOTALS_THREADS)
        whole.outside = -1;
    return whole;
}

/* ---- Numbers ---- */

static void put_seconds(struct accel_text *text, double seconds)
{
    text_fixed(text, seconds, 3);
    text_string(text, " s");
}

/* Starts a short text; text_end() before it is used. */
struct short_text {
    struct accel_text text;
    char buffer[48];
};

static struct accel_text *cell_start(struct short_text *cell)
{
    text_start(&cell->text, cell->buffer, sizeof cell->buffer);
    return &cell->text;
}

static void put_cell(struct accel_text *text, struct short_text *cell, int width)
{
    text_end(&cell->text);
    text_padded(text, cell->buffer, width);
}

/* ---- Text ---- */

static int size_of(const struct totals_row *row, struct short_text *cell)
{
    struct accel_text *text = cell_start(cell);
    if (row->high > 0)
        text_integer(text, row->low);
    else
        text_char(text, '-');
    if (row->high > row->low) {
        text_char(text, '-');
        text_integer(text, row->high);
    }
    return (int)text->length;
}

struct widths {
    int name, size, calls, ran, why, time;
};

static int wider(int width, int other)
{
    return width > other ? width : other;
}

static int time_width(double seconds)
{
    struct short_text cell;
    text_fixed(cell_start(&cell), seconds, 3);
    return (int)cell.text.length;
}

static struct widths widths_of(const struct page_text *work, const struct whole *whole)
{
    struct widths widths = {sizeof "outside these calls" - 1, 9, 8, 4, 6, 9};
    struct short_text calls;
    text_integer(cell_start(&calls), whole->calls);
    widths.calls = wider(widths.calls, (int)calls.text.length);
    widths.time = wider(widths.time, time_width(whole->called));
    widths.time = wider(widths.time, time_width(whole->seconds));
    for (int i = 0; i < work->count; i++) {
        const struct totals_row *row = &work->row[i];
        struct short_text cell;
        if (row->inner)
            continue;
        widths.name = wider(widths.name, (int)strlen(row->name));
        widths.size = wider(widths.size, size_of(row, &cell));
        widths.ran = wider(widths.ran, (int)strlen(row->ran));
        widths.why = wider(widths.why, (int)strlen(accel_why_name(row->why)));
        widths.time = wider(widths.time, time_width(row->instead));
        widths.time = wider(widths.time, time_width(row->instead - row->estimated));
    }
    return widths;
}

static void put_time(struct accel_text *text, const struct widths *widths, bool known,
                     double seconds)
{
    struct short_text cell;
    cell_start(&cell);
    if (known)
        text_fixed(&cell.text, seconds, 3);
    else
        text_char(&cell.text, '-');
    put_cell(text, &cell, widths->time + 1);
}

static void put_words(struct accel_text *text, const struct widths *widths, const char *const *word)
{
    text_string(text, "accel: ");
    text_padded(text, word[0], -widths->name);
    text_padded(text, word[1], widths->size + 1);
    text_padded(text, word[2], widths->calls + 1);
    text_char(text, ' ');
    text_padded(text, word[3], -widths->ran);
    text_char(text, ' ');
    text_padded(text, word[4], -widths->why);
}

static void put_row(struct accel_text *text, const struct widths *widths,
                    const struct totals_row *row)
{
    struct short_text size, calls;
    const bool estimated = row->instead > 0;
    size_of(row, &size);
    text_end(&size.text);
    text_integer(cell_start(&calls), row->calls);
    text_end(&calls.text);
    put_words(
        text, widths,
        (const char *[]){row->name, size.buffer, calls.buffer, row->ran, accel_why_name(row->why)});
    put_time(text, widths, row->untimed < row->calls, row->seconds);
    put_time(text, widths, estimated, row->instead);
    put_time(text, widths, estimated && strcmp(row->ran, "cpu") != 0,
             row->instead - row->estimated);
    text_char(text, '\n');
}

/* A row of all, of what has no row, or of what is outside. calls 0: none are told. */
static void put_total(struct accel_text *text, const struct widths *widths, const char *name,
                      int64_t calls, double seconds)
{
    struct short_text cell;
    cell_start(&cell);
    if (calls)
        text_integer(&cell.text, calls);
    text_end(&cell.text);
    put_words(text, widths, (const char *[]){name, "", cell.buffer, "", ""});
    put_time(text, widths, true, seconds);
    text_char(text, '\n');
}

static void put_heading(struct accel_text *text, const struct page_text *work,
                        const struct page *page, const struct whole *whole)
{
    text_string(text, "accel: summary of ");
    text_string(text, page->program);
    if (page->pid) {
        text_string(text, ", pid ");
        text_integer(text, page->pid);
    }
    if (work->sums.processes > 1) {
        text_string(text, ": ");
        text_integer(text, work->sums.processes);
        text_string(text, " processes made calls, and ran ");
        put_seconds(text, whole->seconds);
        text_string(text, " together");
    } else {
        text_string(text, ": ");
        put_seconds(text, whole->seconds);
    }
    text_string(text, "\naccel: ");
    text_integer(text, whole->calls);
    text_string(text, whole->calls == 1 ? " call of" : " calls of");
    text_string(text, " BLAS, LAPACK or machine learning took ");
    put_seconds(text, whole->called);
    if (whole->outside < 0) {
        text_string(text, " on several threads");
    } else if (whole->seconds > 0) {
        text_string(text, ", ");
        text_integer(text, (int64_t)(100 * whole->called / whole->seconds + 0.5));
        text_string(text, " % of the time");
    }
    text_char(text, '\n');
}

static struct hints_of hints_of(const struct page_text *work, const struct whole *whole)
{
    return (struct hints_of){.row = work->row,
                             .count = work->count,
                             .seconds = whole->seconds,
                             .outside = whole->outside,
                             .starting = work->sums.starting,
                             .facts = work->sums.facts,
                             .known = ~0u,
                             .precision = work->sums.precision};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Whether a line may end at this blank: a number keeps its unit, a name the bracket behind it. */
static bool may_end_at(const char *sentence, int blank)
{
    int word = blank;
    while (word > 0 && sentence[word - 1] != ' ')
        word--;
    const bool number = word < blank && is_digit(sentence[word]) && is_digit(sentence[blank - 1]);
    return !number && sentence[blank + 1] != '(';
}

/* Returns how much of a sentence goes into a line of this width: whole words, if one fits. */
static int line_of(const char *sentence, int width)
{
    const int length = (int)strlen(sentence);
    int end = width, word = 0;
    if (length <= width)
        return length;
    for (; end > 0; end--) {
        if (sentence[end] != ' ')
            continue;
        if (may_end_at(sentence, end))
            return end;
        word = word ? word : end;
    }
    return word ? word : width;
}

static void put_hint(void *context, const char *sentence)
{
    struct accel_text *text = context;
    const char *begin = "accel: hint: ";
    while (*sentence) {
        const int length = line_of(sentence, LINE);
        text_string(text, begin);
        for (int i = 0; i < length; i++)
            text_char(text, sentence[i]);
        text_char(text, '\n');
        sentence += length;
        sentence += *sentence == ' ';
        begin = "accel:       ";
    }
}

static void put_nothing(struct accel_text *text, const struct page *page, const struct whole *whole)
{
    text_string(text, "accel: summary of ");
    text_string(text, page->program);
    text_string(text, ": in ");
    put_seconds(text, whole->seconds);
    text_string(text, ", no call of BLAS, LAPACK or machine learning was seen; accel doctor -- "
                      "PROGRAM, with its arguments, says why\n");
}

/* Each process tells the whole of its machine: a GPU that one uses goes before the reason why
 * another has none. */
static unsigned told_parts(struct totals *totals, bool json)
{
    unsigned parts = 0;
    for (int i = 0; i < BANNER_PARTS; i++)
        parts |= totals_told(totals, i, json) ? 1u << i : 0;
    return parts >> BANNER_GPU ? parts & ~(1u << BANNER_NO_GPU) : parts;
}

/* Whether a call would have gained by a GPU that was not there, or not yet. */
static bool has_missed_gpu(const struct page_text *work)
{
    for (int i = 0; i < work->count; i++)
        if (work->row[i].why == ACCEL_WARMING || work->row[i].why == ACCEL_NO_GPU)
            return true;
    return false;
}

static void put_banner(struct page_text *work)
{
    struct accel_text *text = &work->text;
    struct totals *totals = work->totals;
    const unsigned parts = told_parts(totals, false);
    for (int i = 0; i < BANNER_PARTS; i++)
        if (parts >> i & 1)
            text_string(text, totals_told(totals, i, false));
    if ((parts & ~(1u << BANNER_SLOW)) == 1u << BANNER_PROGRAM && !has_missed_gpu(work))
        banner_say_unused(text);
}

static void put_text(struct page_text *work, const struct page *page, const struct whole *whole)
{
    struct accel_text *text = &work->text;
    if (work->count == 0) {
        put_nothing(text, page, whole);
        return;
    }
    const struct widths widths = widths_of(work, whole);
    put_heading(text, work, page, whole);
    put_words(text, &widths, (const char *[]){"routine", "size", "calls", "ran", "why"});
    text_padded(text, "seconds", widths.time + 1);
    text_padded(text, "elsewhere", widths.time + 1);
    text_padded(text, "saved", widths.time + 1);
    text_char(text, '\n');
    for (int i = 0; i < whole->rows && i < SHOWN; i++)
        put_row(text, &widths, &work->row[work->order[i]]);
    if (whole->rows > SHOWN)
        put_total(text, &widths, "in further rows", whole->out.calls, whole->out.seconds);
    if (whole->outside >= 0) {
        put_total(text, &widths, "outside these calls", 0, whole->outside);
        put_total(text, &widths, "all", whole->calls, whole->called + whole->outside);
    } else {
        put_total(text, &widths, "all calls", whole->calls, whole->called);
    }
    put_banner(work);
    const struct hints_of hints = hints_of(work, whole);
    hints_make(&hints, put_hint, text);
    if (work->sums.dropped) {
        text_string(text, "accel: further calls, without a row: ");
        text_integer(text, work->sums.dropped);
        text_char(text, '\n');
    }
}

/* ---- JSON ---- */

static void put_key(struct accel_text *text, const char *key)
{
    text_string(text, ", ");
    text_json_string(text, key);
    text_string(text, ": ");
}

static void put_json_string(struct accel_text *text, const char *key, const char *value)
{
    put_key(text, key);
    text_json_string(text, value);
}

static void put_json_integer(struct accel_text *text, const char *key, int64_t value)
{
    put_key(text, key);
    text_integer(text, value);
}

static void put_json_decimal(struct accel_text *text, const char *key, double value)
{
    put_key(text, key);
    text_fixed(text, value, 6);
}

static void put_json_row(struct accel_text *text, const struct totals_row *row)
{
    text_string(text, "{\"routine\": ");
    text_json_string(text, row->name);
    if (row->high > 0) {
        put_json_integer(text, "size_min", row->low);
        put_json_integer(text, "size_max", row->high);
    }
    put_json_string(text, "ran", row->ran);
    put_json_string(text, "why", accel_why_name(row->why));
    put_key(text, "inner");
    text_string(text, row->inner ? "true" : "false");
    put_json_integer(text, "calls", row->calls);
    put_json_integer(text, "untimed", row->untimed);
    put_json_decimal(text, "s", row->seconds);
    if (row->instead > 0) {
        put_json_decimal(text, "estimated_s", row->estimated);
        put_json_decimal(text, "elsewhere_s", row->instead);
    }
    put_json_decimal(text, "up_mb", (double)row->up * 1e-6);
    put_json_decimal(text, "down_mb", (double)row->down * 1e-6);
    put_json_decimal(text, "kept_mb", (double)row->kept * 1e-6);
    put_json_decimal(text, "again_mb", (double)row->again * 1e-6);
    text_char(text, '}');
}

static void put_json_hint(void *context, const char *sentence)
{
    struct accel_text *text = context;
    if (text->at[text->length - 1] != '[')
        text_string(text, ", ");
    text_json_string(text, sentence);
}

static void put_json_banner(struct accel_text *text, struct totals *totals)
{
    const unsigned parts = told_parts(totals, true);
    put_key(text, "about");
    text_char(text, '[');
    for (int i = 0; i < BANNER_PARTS; i++) {
        if (!(parts >> i & 1))
            continue;
        text_string(text, text->at[text->length - 1] == '[' ? "" : ", ");
        text_string(text, totals_told(totals, i, true));
    }
    text_char(text, ']');
}

static void put_json(struct page_text *work, const struct page *page, const struct whole *whole)
{
    struct accel_text *text = &work->text;
    text_string(text, "{\"v\": 1");
    put_json_string(text, "event", "summary");
    if (page->pid)
        put_json_integer(text, "pid", page->pid);
    put_json_string(text, "program", page->program);
    put_json_integer(text, "processes", work->sums.processes);
    put_json_decimal(text, "s", whole->seconds);
    put_json_integer(text, "calls", whole->calls);
    put_json_decimal(text, "calls_s", whole->called);
    if (whole->outside >= 0)
        put_json_decimal(text, "outside_s", whole->outside);
    put_json_integer(text, "dropped", work->sums.dropped);
    put_key(text, "rows");
    text_char(text, '[');
    for (int i = 0; i < work->count; i++) {
        if (i)
            text_string(text, ", ");
        put_json_row(text, &work->row[work->order[i]]);
    }
    text_char(text, ']');
    put_json_banner(text, work->totals);
    put_key(text, "hints");
    text_char(text, '[');
    const struct hints_of hints = hints_of(work, whole);
    hints_make(&hints, put_json_hint, text);
    text_string(text, "]}\n");
}

/* ---- Both ---- */

void page_write(const struct page *page, struct totals *totals)
{
    struct page_text *work = mmap(NULL, sizeof *work, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (work == MAP_FAILED)
        return;
    read_rows(work, totals);
    text_start(&work->text, work->buffer, sizeof work->buffer);
    const struct whole whole = sum_up(work, page);
    if (page->json)
        put_json(work, page, &whole);
    else
        put_text(work, page, &whole);
    if (work->count || page->always)
        output_log_in_time(page->file, OUTPUT_SUMMARY, work->buffer, work->text.length);
    munmap(work, sizeof *work);
}
