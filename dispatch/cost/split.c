#include "split.h"

#include <float.h>

#include "lending.h"
#include "ops/op.h"
#include "part_ms.h"
#include "together.h"
#include "triangle.h"

/* What it takes to hand a part to another thread, and to wait for it. */
#define HAND_MS 0.05

/* The search takes about a tenth of this, times the square of the number of devices. */
#define LEAST_PAIR_MS 0.1

/* One thread packs so much when many do: 45 GB/s by eight threads (docs/measurements). */
#define THREAD_GBPS 5.7

double split_host_gbps(int threads)
{
    return THREAD_GBPS * threads;
}

/* ---- Devices and their weights ---- */

/* A way to divide a call: strips of columns, each divided by rows; or a triangle's grid. */
struct split_plan {
    const struct accel_call *call;
    const struct split_device *device;
    struct accel_region whole;
    bool triangle;
    int fewest;        /* parts that are looked at */
    int parts, strips; /* part i is in strip i % strips */
    int groups;        /* of a triangle's grid; 0: it is cut between rows */
    int64_t edge[TRIANGLE_GROUPS + 1];
    int on[SPLIT_MOST];
    double weight[SPLIT_MOST];
    double host_gbps;
    struct schedule_params params; /* of all parts' schedules; zero: not chosen yet */
    struct schedule_params common; /* the same where they lend each other operands */
    unsigned never;                /* operands that they do not, as bits */
    struct split split;
};

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Sets the sums, and the fastest, of the links of those that share a device's port. */
static void sum_port(const struct split_device *device, const int *on, int count, int64_t port,
                     struct schedule_rates *sum, struct schedule_rates *most)
{
    *sum = *most = (struct schedule_rates){.up = 0};
    for (int i = 0; i < count; i++) {
        const struct schedule_rates *r = &device[on[i]].rates;
        if (device[on[i]].port != port)
            continue;
        sum->up += r->up;
        sum->down += r->down;
        most->up = most->up < r->up ? r->up : most->up;
        most->down = most->down < r->down ? r->down : most->down;
    }
}

void split_links(struct schedule_rates *rates, const struct split_device *device, const int *on,
                 int count, double host_gbps)
{
    double up = 0, down = 0;
    for (int i = 0; i < count; i++) {
        struct schedule_rates sum, fastest;
        rates[i] = device[on[i]].rates;
        if (device[on[i]].port > 0) {
            sum_port(device, on, count, device[on[i]].port, &sum, &fastest);
            rates[i].up *= fastest.up / sum.up;
            rates[i].down *= fastest.down / sum.down;
        }
        up += rates[i].up;
        down += rates[i].down;
    }
    for (int i = 0; i < count; i++) {
        rates[i].up *= least(1, host_gbps / up);
        rates[i].down *= least(1, host_gbps / down);
    }
}

/* Sets what each part's device copies at while all of them copy. */
static void share_links(struct split_plan *p)
{
    struct schedule_rates rates[SPLIT_MOST];
    split_links(rates, p->device, p->on, p->parts, p->host_gbps);
    for (int i = 0; i < p->parts; i++) {
        p->split.part[i].device = p->on[i];
        p->split.part[i].rates = rates[i];
    }
}

/* Returns the square root of a share: by Newton's method, from above. */
static double root(double share)
{
    double x = 1;
    for (int i = 0; i < 40 && share > 0; i++)
        x = (x + share / x) / 2;
    return share > 0 ? x : 0;
}

/* Long parts are whole lines. */
static int64_t line_of(int64_t extent, int parts)
{
    return extent >= 128 * (int64_t)parts ? 64 : 1;
}

/* Returns the edge behind a share of an extent. */
static int64_t edge(int64_t extent, int parts, double share)
{
    const int64_t line = line_of(extent, parts);
    const int64_t lines = (int64_t)((double)extent * share / (double)line + 0.5);
    return accel_min(extent, lines * line);
}

/* The same with rows of a result: those of a triangle get longer. */
static int64_t edge_of_rows(const struct split_plan *p, int parts, double share)
{
    return edge(p->whole.rows, parts, p->triangle ? root(share) : share);
}

static void lay_out_grid(struct split_plan *p)
{
    struct accel_region region[SPLIT_MOST];
    triangle_lay_out(region, p->parts, p->edge);
    for (int i = 0; i < p->parts; i++)
        p->split.part[i].region = region[i];
}

/* Divides the result by the weights. Parts may be empty. */
static void lay_out(struct split_plan *p)
{
    const struct accel_region whole = p->whole;
    const int64_t below = SCHEDULE_BETWEEN | SCHEDULE_TAIL; /* the rows before */
    double all = 0, before = 0;
    for (int i = 0; i < p->parts; i++)
        all += p->weight[i];
    for (int strip = 0; strip < p->strips; strip++) {
        double width = 0, above = 0;
        for (int i = strip; i < p->parts; i += p->strips)
            width += p->weight[i];
        const int64_t col = edge(whole.cols, p->strips, before / all);
        const bool last = strip == p->strips - 1;
        const int64_t end = last ? whole.cols : edge(whole.cols, p->strips, (before + width) / all);
        const int stacked = (p->parts - strip + p->strips - 1) / p->strips;
        for (int i = strip; i < p->parts; i += p->strips) {
            const int64_t row = edge_of_rows(p, stacked, above / width);
            const bool lowest = i + p->strips >= p->parts;
            above += p->weight[i];
            const int64_t bottom = lowest ? whole.rows : edge_of_rows(p, stacked, above / width);
            const int64_t rows = accel_max(0, bottom - row);
            p->split.part[i].region =
                p->triangle ? (struct accel_region){row, 0, rows, row, below}
                            : (struct accel_region){row, col, rows, accel_max(0, end - col), 0};
        }
        before += width;
    }
}

/* Sets the parts' times where they lend each other operands, by schedules of which all are made by
 * the same parameters. Returns the operands that may not be lent, because a part's device has no
 * room for all of their tiles, as bits. */
static unsigned take_lent_times(struct split_plan *p)
{
    unsigned never = 0;
    for (int i = 0; i < p->parts; i++) {
        struct split_part *part = &p->split.part[i];
        part->ms = 0;
        if (!split_is_empty(part)) {
            const struct accel_call call = accel_cut_part(p->call, &part->region);
            never |= lending_ms(part, &call, p->device[part->device].memory_bytes, &p->common);
        }
    }
    return never;
}

/* Sets the parts' times. exact: by schedules. */
static void take_parts_times(struct split_plan *p, bool exact)
{
    while (lending_find(p->split.part, p->parts, p->call, p->never) && exact) {
        const unsigned never = take_lent_times(p);
        if (never == 0)
            return;
        p->never |= never;
    }
    for (int i = 0; i < p->parts; i++) {
        struct split_part *part = &p->split.part[i];
        part->ms = 0;
        if (split_is_empty(part))
            continue;
        const struct accel_call call = accel_cut_part(p->call, &part->region);
        part->ms = exact ? part_ms(&call, &p->device[part->device], &part->rates, &p->params)
                         : part_floor_ms(&call, &part->rates, part->lent);
    }
}

/* Sets the parts' times, and that of all. */
static void take_times(struct split_plan *p, bool exact)
{
    take_parts_times(p, exact);
    p->split.ms = 0;
    p->split.count = 0;
    for (int i = 0; i < p->parts; i++) {
        const struct split_part *part = &p->split.part[i];
        p->split.count += !split_is_empty(part);
        p->split.ms = p->split.ms < part->ms ? part->ms : p->split.ms;
    }
    p->split.ms += HAND_MS * (p->split.count - 1);
}

/* Moves weight from parts that take long to those that do not. */
static void shift_weights(struct split_plan *p)
{
    double all = 0;
    for (int i = 0; i < p->parts; i++)
        all += p->split.part[i].ms;
    for (int i = 0; i < p->parts; i++) {
        const double ms = p->split.part[i].ms, mean = all / p->parts;
        p->weight[i] *= ms > 0 ? 0.5 + 0.5 * least(mean / ms, 4) : 2;
    }
}

/* Returns a part's time with one more line, about. */
static double ms_with(const struct split_plan *p, int i, int64_t line)
{
    const struct accel_region *r = &p->split.part[i].region;
    const double have = (double)accel_max(1, p->strips == p->parts ? r->cols : r->rows);
    return p->split.part[i].ms * (1 + (double)line / have);
}

/* Moves one line of the result from the part that takes longest to the one that takes the shortest
 * time with it. */
static void move_line(struct split_plan *p)
{
    const int64_t extent = p->strips == p->parts ? p->whole.cols : p->whole.rows,
                  line = line_of(extent, p->parts);
    int longest = 0, shortest = 0;
    double all = 0;
    for (int i = 0; i < p->parts; i++) {
        all += p->weight[i];
        longest = p->split.part[i].ms > p->split.part[longest].ms ? i : longest;
        shortest = ms_with(p, i, line) < ms_with(p, shortest, line) ? i : shortest;
    }
    const double weight = least(all * (double)line / (double)extent, p->weight[longest] / 2);
    p->weight[shortest] += weight;
    p->weight[longest] -= weight;
}

static bool is_better(struct split_plan *p, struct split_plan *best, bool exact)
{
    if (p->groups > 0)
        lay_out_grid(p);
    else
        lay_out(p);
    take_times(p, exact);
    if (!(p->split.ms < best->split.ms))
        return false;
    *best = *p;
    return true;
}

/* Keeps the best division of some whose parts are more and more even, and moves single lines in
 * that: what the weights cannot tell, because parts are whole lines. */
static void balance(struct split_plan *p, bool exact, int rounds, int lines)
{
    struct split_plan best = *p;
    best.split.ms = DBL_MAX;
    for (int round = 0; round < rounds; round++) {
        is_better(p, &best, exact);
        shift_weights(p);
    }
    *p = best;
    for (int moved = 0; moved < lines; moved++) {
        move_line(p);
        is_better(p, &best, exact);
    }
    *p = best;
}

/* Moves the edges of a grid's groups to and fro, by shorter and shorter ways, as long as that makes
 * the call shorter. */
static void balance_grid(struct split_plan *p, bool exact, int64_t way, int tries)
{
    const int64_t line = line_of(p->whole.rows, p->groups);
    struct split_plan best = *p;
    best.split.ms = DBL_MAX;
    is_better(p, &best, exact);
    while (way > 0 && tries > 0) {
        bool moved = false;
        for (int at = 1; at < p->groups; at++)
            for (int sign = -1; sign <= 1 && tries > 0; sign += 2, tries--) {
                *p = best;
                p->edge[at] += sign * way;
                if (p->edge[at - 1] <= p->edge[at] && p->edge[at] <= p->edge[at + 1])
                    moved |= is_better(p, &best, exact);
            }
        if (!moved)
            way = way > line ? accel_max(line, way / 2 / line * line) : 0;
    }
    *p = best;
}

/* ---- Which devices ---- */

/* Sorts the devices, by the whole call's time on each. Returns the shortest. */
static double sort_devices(struct split_plan *p, int count)
{
    double ms[SPLIT_MOST];
    for (int i = 0; i < count; i++) {
        const double own = part_floor_ms(p->call, &p->device[i].rates, NULL);
        int at = i;
        for (; at > 0 && ms[at - 1] > own; at--) {
            ms[at] = ms[at - 1];
            p->on[at] = p->on[at - 1];
        }
        ms[at] = own;
        p->on[at] = i;
    }
    for (int i = 0; i < count; i++)
        p->weight[i] = 1 / (ms[i] > 0 ? ms[i] : 1);
    return ms[0];
}

/* Takes the fastest devices. Of a triangle, the slowest of them gets the first rows, which are the
 * shortest: a small share is most of a square there, and further down a few long rows, which do not
 * fill a device. */
static void take_devices(struct split_plan *p, int parts)
{
    p->parts = parts;
    for (int i = 0; p->triangle && p->groups == 0 && i < parts / 2; i++) {
        const int other = parts - 1 - i, on = p->on[i];
        const double weight = p->weight[i];
        p->on[i] = p->on[other];
        p->on[other] = on;
        p->weight[i] = p->weight[other];
        p->weight[other] = weight;
    }
}

/* How often parts are made more even, and lines are moved (for each part): by floors; by
 * schedules. */
enum { ROUNDS = 16, LINES = 2, EXACT_ROUNDS = 5, EXACT_LINES = 4 };

/* How often a grid's edges are moved, first by one of so many parts of the rows; by schedules. */
enum { MOVES = 100, WAY = 8, EXACT_MOVES = 8, EXACT_WAY = 64 };

/* Grids whose floors differ by less count as equal. */
#define ABOUT 1.03

/* A triangle's rows are looked at, too, unless their floor is so many times that of a grid. */
#define FAR 1.25

static void keep_shorter(struct split_plan *best, const struct split_plan *p)
{
    if (p->split.ms < best->split.ms)
        *best = *p;
}

/* Look, by floors, for the best division of a call over some of so many devices: in strips and
 * between rows; of a triangle, in a grid. *best: as all, without a division. */
static void find_strips(struct split_plan *best, const struct split_plan *all, int count,
                        bool by_rows, bool by_cols)
{
    for (int parts = all->fewest; parts <= count; parts++)
        for (int strips = by_cols ? parts : 1; strips >= (by_cols && !by_rows ? parts : 1);
             strips--) { /* columns are packed fastest */
            struct split_plan p = *all;
            take_devices(&p, parts);
            p.strips = strips;
            share_links(&p);
            balance(&p, false, ROUNDS, LINES * parts);
            keep_shorter(best, &p);
        }
}

static void find_grid(struct split_plan *best, const struct split_plan *all, int count)
{
    for (int parts = all->fewest; parts <= count; parts++) {
        struct split_plan p = *all;
        p.groups = triangle_groups(parts);
        if (p.groups == 0)
            continue;
        for (int i = 0; i < p.groups; i++)
            p.edge[i] = edge(p.whole.rows, p.groups, (double)i / p.groups);
        p.edge[p.groups] = p.whole.rows;
        take_devices(&p, parts);
        share_links(&p);
        balance_grid(&p, false, edge(p.whole.rows, p.groups, 1.0 / WAY), MOVES);
        if (p.split.ms < ABOUT * best->split.ms) /* each of more parts has less to do */
            *best = p;
    }
}

/* Makes the parts of both kinds even by their schedules, and returns the better one: floors tell
 * little of how soon a part's last blocks come down. One whose floor is far above the other's is
 * not looked at. */
static struct split_plan better_by_schedules(struct split_plan *strips, struct split_plan *grid)
{
    const bool near = strips->split.ms < FAR * grid->split.ms;
    if (grid->split.ms < strips->split.ms)
        balance_grid(grid, true, edge(grid->whole.rows, grid->groups, 1.0 / EXACT_WAY),
                     EXACT_MOVES);
    else
        grid->split.ms = DBL_MAX;
    if (near)
        balance(strips, true, EXACT_ROUNDS, EXACT_LINES);
    return near && strips->split.ms < grid->split.ms ? *strips : *grid;
}

/* Leaves out the empty parts. */
static void close_ranks(struct split *split, int parts)
{
    int count = 0;
    for (int i = 0; i < parts; i++)
        if (!split_is_empty(&split->part[i]))
            split->part[count++] = split->part[i];
    split->count = count;
}

/* Looks for the best division over so many devices. Its split has no parts if none can be worth
 * it. */
static struct split_plan find_split(const struct split_plan *all, int count)
{
    const unsigned cuts = accel_cuts_of(all->call);
    const bool by_rows = cuts & (ACCEL_CUT_ROWS | ACCEL_CUT_TRIANGLE);
    const bool by_cols = cuts & (ACCEL_CUT_COLS | ACCEL_CUT_PRODUCTS);
    struct split_plan best = *all, grid = *all;
    find_strips(&best, all, count, by_rows, by_cols);
    if (all->triangle)
        find_grid(&grid, all, count);
    if (least(best.split.ms, grid.split.ms) >= SPLIT_GAIN * all->split.whole_ms)
        return *all;
    best = better_by_schedules(&best, &grid);
    close_ranks(&best.split, best.parts);
    return best;
}

static bool may_lend(const struct split_device *device, int count)
{
    int peers = 0;
    for (int i = 0; i < count; i++)
        peers += device[i].rates.peer > 0;
    return peers > 1;
}

/* Looks for a better division with loans: over some devices, and over all of them. By their floors,
 * fewer do as well where the host's memory is the limit; but each of more has less to do when the
 * last tiles have come up. A part's own schedule does not know how long it waits for others, so all
 * are simulated together. */
static void find_with_loans(struct split_plan *best, const struct split_plan *all, int count)
{
    for (int fewest = 2;; fewest = count) {
        struct split_plan p = *all;
        p.fewest = fewest;
        p = find_split(&p, count);
        if (split_any_lends(&p.split) && together_ms(&p.split, all->call, all->device)) {
            p.split.ms += HAND_MS * (p.split.count - 1);
            keep_shorter(best, &p);
        }
        if (fewest == count || p.split.count == count)
            return;
    }
}

void split_make(struct split *split, const struct accel_call *call,
                const struct split_device *device, int count, double host_gbps)
{
    const unsigned cuts = accel_cuts_of(call);
    const int devices = count;
    *split = (struct split){.count = 1};
    if (cuts == 0 || count < 2)
        return;
    struct split_plan all = {.call = call,
                             .fewest = 2,
                             .device = device,
                             .whole = accel_cut_whole(call),
                             .triangle = (cuts & ACCEL_CUT_TRIANGLE) != 0,
                             .host_gbps = host_gbps};
    split->whole_ms = all.split.whole_ms = sort_devices(&all, count);
    if (split->whole_ms < SPLIT_LEAST_MS)
        return;
    while (LEAST_PAIR_MS * count * count > split->whole_ms) /* the fastest ones stay */
        count--;
    all.split.ms = DBL_MAX;
    struct split_plan apart = all;
    apart.never = ~0u;
    struct split_plan best = find_split(&apart, count);
    if (may_lend(device, devices))
        find_with_loans(&best, &all, count);
    double whole_ms = split->whole_ms;
    /* Is a schedule of the whole slower, too? */
    if (best.split.count > 1 && best.split.ms >= SPLIT_GAIN * whole_ms)
        whole_ms = part_ms(call, &device[all.on[0]], &device[all.on[0]].rates,
                           &(struct schedule_params){0});
    if (best.split.ms >= SPLIT_GAIN * whole_ms || best.split.count < 2)
        return;
    *split = best.split;
    /* DBL_MAX: no device has memory for it */
    split->whole_ms = whole_ms < DBL_MAX ? whole_ms : best.split.ms;
}
