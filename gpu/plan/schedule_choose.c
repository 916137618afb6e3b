#include "schedule_plan.h"

#include <float.h>

#include "call/call.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* ---- Sizes ---- */

/* A line of the caches; and a BLAS tile, by which a device's BLAS computes products (cuBLAS's have
 * 64 to 256 rows), whole ones at the rim, too: of many rows, an H100 multiplies fewer a second if
 * they are no multiple of it (block_paces.h). In panels, rows are the order of a triangle. */
enum { LINE = 64, BLAS_TILE = 128, MANY = 2048 };

static bool has_blas_tiles(const struct schedule_call *call)
{
    return call->kind == SCHEDULE_PRODUCT || call->kind == SCHEDULE_RANK_K;
}

static int64_t rounded_up(int64_t size, bool blas_tiles)
{
    const int64_t line = blas_tiles && size >= MANY ? BLAS_TILE : LINE;
    return (size + line - 1) / line * line;
}

int64_t schedule_tile_rows(const struct schedule_call *call, int64_t rows)
{
    return rounded_up(rows, has_blas_tiles(call));
}

int64_t schedule_tile_cols(int64_t cols)
{
    return rounded_up(cols, false);
}

/* Divides a size into equal steps of about `step`, long ones of whole lines, or of many elements of
 * whole BLAS tiles; none is longer than `longest`, itself below 64 or of whole lines. */
static int64_t even(int64_t all, int64_t step, int64_t longest, bool blas_tiles)
{
    step = accel_min(step, longest);
    if (all <= step || all <= 1)
        return accel_max(all, 1);
    const int64_t parts = accel_max((all + step / 2) / accel_max(step, 1),
                                    (all + longest - 1) / accel_max(longest, 1));
    const int64_t each = (all + parts - 1) / parts;
    return step < LINE ? each : accel_min(rounded_up(each, blas_tiles), longest);
}

/* The device's BLAS may have 32-bit sizes. */
static int64_t longest_of(const struct schedule_call *call)
{
    return call->most > 0 ? accel_min(call->most, 1 << 30) : 1 << 30;
}

static int64_t widest_of(const struct schedule_call *call)
{
    return call->widest > 0 ? call->widest : longest_of(call);
}

/* Sets the tiles' sizes: tiles of about side x side / aspect, longer where C is narrow. */
static void set_sizes(struct schedule *s, int64_t side, int64_t aspect, int64_t depth)
{
    const struct schedule_call *call = &s->call;
    const int64_t rows = accel_max(side, side * side / accel_max(call->n, 1));
    const int64_t cols =
        accel_max(accel_max(side, side * side / accel_max(call->m, 1)) / aspect, 1);
    const int64_t longest = longest_of(call);
    s->by.rows =
        even(call->m, call->kind == SCHEDULE_PRODUCT ? rows : side, longest, has_blas_tiles(call));
    if (call->kind == SCHEDULE_RANK_K && call->in_place[C])
        s->by.rows = accel_max(call->m, 1); /* one block: a part of it could not be computed anew */
    s->by.cols =
        call->kind == SCHEDULE_RANK_K ? s->by.rows : even(call->n, cols, widest_of(call), false);
    s->by.depth = call->kind == SCHEDULE_PRODUCT || call->kind == SCHEDULE_RANK_K
                      ? even(call->k,
                             accel_max(depth, depth * depth /
                                                  accel_max(accel_min(s->by.rows, s->by.cols), 1)),
                             longest, false)
                      : s->by.rows;
    schedule_set_tiles(s);
}

/* Returns a time that no schedule with these tiles is below: the kernels one after the other, or a
 * copy of all tiles. */
static double bound_of(const struct schedule *s, const struct schedule_rates *rates)
{
    const double tasks = schedule_tasks(s) * (s->call.kind == SCHEDULE_PRODUCT ? 1 : 0.9);
    const double copies = (double)s->tiles[A].rows * s->tiles[A].cols * 0.5 * rates->copy_ms;
    const double floor = schedule_floor(&s->call, rates);
    const struct schedule full = {.call = s->call,
                                  .by = {.rows = s->call.m, .cols = s->call.n, .depth = s->call.k}};
    const int64_t depth = s->call.k > 0 ? s->by.depth : 1;
    const double shortest = (double)accel_min(accel_min(s->by.rows, s->by.cols), depth);
    const double whole = (double)accel_min(accel_min(full.by.rows, full.by.cols),
                                           full.by.depth > 0 ? full.by.depth : 1);
    const double slower = shortest / (shortest + rates->half) * (whole + rates->half) / whole;
    const double operations = schedule_whole_ms(&s->call, rates) - rates->kernel_ms -
                              schedule_solve_ms(&full, rates, 0, 0, 0);
    const double kernels = operations / slower / block_pace_highest(&rates->paces) +
                           schedule_least_solve_ms(&s->call, rates) + tasks * rates->kernel_ms;
    return kernels > floor + copies ? kernels : floor + copies;
}

/* A call that moves fewer bytes is one kernel: packing and copying it takes about as long as to
 * start them. */
#define DIVIDED_BYTES 4e6

static double bytes_of_operands(const struct schedule_call *call)
{
    const bool one_factor = call->kind == SCHEDULE_RANK_K && !call->two;
    return (call->in_place[A] ? 0 : schedule_bytes(call, A)) +
           (call->in_place[B] || one_factor ? 0 : schedule_bytes(call, B)) +
           (call->in_place[C] ? 0 : schedule_bytes(call, C));
}

/* A schedule has at most so many kernels for each millisecond of the floor, within limits, and
 * where there are few, more: it must be made in a small part of the call's time. Short of memory,
 * large tiles send much twice, so the call takes longer, and smaller tiles may shorten it by a
 * third: more is tried. If memory is so short that none has so few, the one with the largest tiles
 * is taken. */
enum {
    /* Kernels and steps of all schedules that are tried: they take about a twentieth of the call's
     * time. */
    TRIED_EACH_MS = 1500,
    TASKS_EACH_MS = 16,
    TIMES_IF_SHORT = 3, /* more of both */
    FEWEST_TASKS = 16,
    FEW_TASKS = 64,
    MANY_TASKS = 640,
    MOST_TASKS = 1 << 16,
    THIN_TASKS = 4,
    THIN = 64, /* columns */
    THIN_SHARE = 32
};

#define HIDDEN_SHARE 0.1

/* The share of tries for a grid of sizes, by the floor; others refine the best of these. */
#define IN_GRID 0.6

/* Copies and kernels of a small call take about as long as to start them; but of what devices lend
 * each other, each brings some tiles up. After a failure, a result in place that is computed in
 * parts would be lost. */
bool schedule_stays_whole(const struct schedule_call *call)
{
    const bool lends = call->lent[A] > 0 || call->lent[B] > 0;
    return (bytes_of_operands(call) < DIVIDED_BYTES && !lends) || call->in_place[C];
}

/* Returns whether a matrix is multiplied by few columns in a small part of the time of its upload.
 * The kernels hide behind that, however few they are; and few are better where the matrix is on the
 * device already, on which kernels must not depend: then each begins when the one before has
 * ended. */
static bool is_thin(const struct schedule_call *call, const struct schedule_rates *rates)
{
    const double factors = schedule_bytes(call, A) + schedule_bytes(call, B);
    return call->kind == SCHEDULE_PRODUCT && accel_min(call->m, call->n) <= THIN &&
           THIN_SHARE * schedule_bytes(call, C) < factors &&
           schedule_whole_ms(call, rates) < HIDDEN_SHARE * factors / rates->up * 1e-6;
}

static double most_tasks(const struct schedule_call *call, const struct schedule_rates *rates)
{
    const double ms = schedule_floor(call, rates);
    if (is_thin(call, rates))
        return THIN_TASKS;
    if (ms * FEW_TASKS < FEWEST_TASKS)
        return FEWEST_TASKS;
    if (ms < 1)
        return ms * FEW_TASKS;
    return ms * TASKS_EACH_MS < FEW_TASKS    ? FEW_TASKS
           : ms * TASKS_EACH_MS > MANY_TASKS ? MANY_TASKS
                                             : ms * TASKS_EACH_MS;
}

/* Returns whether some operands do not fit as wholes. */
static bool is_short(const struct schedule_call *call, int64_t memory_bytes)
{
    const bool half_a = call->kind == SCHEDULE_SYMMETRIC || schedule_in_panels(call);
    double bytes = 0;
    if (call->kind == SCHEDULE_BATCH) /* its groups send nothing twice */
        return false;
    for (int x = A; x < OPERANDS; x++) {
        const bool none = call->in_place[x] || (x == B && schedule_in_panels(call)) ||
                          (x == B && call->kind == SCHEDULE_RANK_K && !call->two);
        const bool half = x == A ? half_a : x == C && call->kind == SCHEDULE_RANK_K;
        bytes += none ? 0 : schedule_bytes(call, x) * (half ? 0.5 : 1);
    }
    return bytes > (double)memory_bytes;
}

/* ---- Trying ---- */

/* Trying one schedule takes about as long as so many of its kernels. */
enum { TRY_TASKS = 20, REMEMBERED = 128 };

struct schedule_search {
    struct schedule *best; /* has no steps before there is one */
    const struct schedule_rates *rates;
    int64_t memory_bytes;
    double limit;               /* the most kernels of a schedule */
    double most;                /* when the best one is refined */
    double left;                /* so many kernels and steps may be tried */
    uint32_t tried[REMEMBERED]; /* marks of the last parameters */
};

/* Returns whether these are none of the last parameters; then they are from now on. */
static bool is_new(struct schedule_search *search, const struct schedule_params *by)
{
    const int64_t word[] = {by->rows,       by->cols,   by->depth,  by->share,
                            by->along_rows, by->factor, by->buffers};
    uint64_t digest = 0;
    for (size_t n = 0; n < sizeof word / sizeof *word; n++) {
        digest = (digest ^ (uint64_t)word[n]) * 0x9e3779b97f4a7c15;
        digest ^= digest >> 29;
    }
    uint32_t *place = &search->tried[digest % REMEMBERED];
    const uint32_t mark = (uint32_t)(digest >> 32) | 1;
    if (*place == mark)
        return false;
    *place = mark;
    return true;
}

/* Makes a schedule of these tiles and slots, if there is time. Returns whether it is the best one,
 * and keeps that. */
static bool try_slots(struct schedule_search *search, struct schedule *s)
{
    struct schedule *best = search->best;
    const double tasks = schedule_tasks(s) + TRY_TASKS;
    if (best->step && tasks > search->left)
        return false;
    const bool made = schedule_make_one(s, search->rates, best->step ? best->ms : DBL_MAX);
    search->left -= tasks + s->count;
    return made && schedule_keep_faster(best, s);
}

/* ---- The grid ---- */

/* What is tried with the same tiles: see struct schedule_params. */
struct traversal {
    int share;
    bool along_rows;
    int factor;
};
static const struct traversal of_whole[] = {{0, false, A}, {8, false, A}};
static const struct traversal of_panels[] = {{0, false, A}, {8, false, A}};
static const struct traversal of_tiles[] = {
    {0, false, A}, {0, true, A}, {0, false, B}, {0, true, B}};
static const struct traversal of_triangle[] = {
    {0, false, A}, {0, true, A}, {12, false, C}, {12, true, C}};

/* Only small tiles that would not fit else have one slot: then nothing is filled while it is used.
 * Panels have several in any case. */
enum { SMALL_TILE = 64 };

static bool may_have_one(const struct schedule_call *call, const struct schedule_params *by)
{
    return schedule_in_panels(call) || (by->rows <= SMALL_TILE && by->cols <= SMALL_TILE);
}

/* Tries some schedules of these tiles. */
static void try_tiles(struct schedule_search *search, const struct schedule *tiles)
{
    const struct schedule_call *call = &tiles->call;
    struct schedule s = *tiles;
    s.by.buffers = schedule_in_panels(call) ? 1 : 2;
    if (search->best->step && bound_of(tiles, search->rates) >= search->best->ms)
        return;
    if (!schedule_choose_slots(&s, search->memory_bytes)) {
        s.by.buffers = 1;
        if (!may_have_one(call, &s.by) || !schedule_choose_slots(&s, search->memory_bytes))
            return;
    }
    const bool panels = schedule_in_panels(call), triangle = call->kind == SCHEDULE_RANK_K;
    const struct traversal *order = s.whole    ? of_whole
                                    : panels   ? of_panels
                                    : triangle ? of_triangle
                                               : of_tiles;
    const int orders = schedule_tasks(tiles) == 1 ? 1 : s.whole || panels ? 2 : 4;
    for (int n = 0; n < orders; n++) {
        struct schedule next = *tiles;
        next.by.buffers = s.by.buffers;
        next.by.share = order[n].share;
        next.by.along_rows = order[n].along_rows;
        next.by.factor = order[n].factor;
        if (schedule_choose_slots(&next, search->memory_bytes) && is_new(search, &next.by))
            try_slots(search, &next);
    }
}

/* Where so many kernels and steps may be tried, there is time for a finer grid. */
enum { ASPECTS = 4, MANY_TRIES = 12000 };

/* Tries tiles of many sizes, large ones first. Where memory is scarce, more depends on which tiles
 * just fit. */
static void try_grid(struct schedule_search *search, const struct schedule_call *call,
                     bool is_scarce)
{
    const bool finer = is_scarce || search->left > MANY_TRIES;
    static const int64_t sides[][2] = {{INT32_MAX / 2, 8192},
                                       {6144, 4096},
                                       {3072, 2048},
                                       {1536, 1024},
                                       {768, 512},
                                       {384, 256},
                                       {192, 128},
                                       {96, 64},
                                       {48, 32},
                                       {24, 16}};
    const bool triangle = call->kind == SCHEDULE_RANK_K;
    const int aspects = triangle ? 1 : ASPECTS;
    const int depths = triangle ? (is_scarce ? 2 : 3) : call->kind == SCHEDULE_PRODUCT ? 2 : 1;
    for (int n = 0; n < 2 * (int)(sizeof sides / sizeof *sides); n++)
        for (int shape = 0; shape < aspects * depths; shape++) {
            struct schedule s = {.call = *call};
            const int64_t side = sides[n / 2][n % 2];
            const int aspect = shape / depths;
            const bool coarse = (n == 0 || n % 2 == 1) && aspect != 2;
            const int64_t deeper = triangle && shape == 1 ? 8 : shape % depths == 0 ? 2 : 1;
            if (search->best->step && (schedule_stays_whole(call) || search->left <= 0))
                return;
            if (!coarse && !finer)
                continue;
            set_sizes(&s, side, 1 << aspect, accel_min(side * deeper / 2, sides[0][0]));
            if (is_new(search, &s.by) &&
                schedule_tasks(&s) <= (search->best->step ? search->limit : MOST_TASKS))
                try_tiles(search, &s);
        }
}

/* ---- Refinement ---- */

/* How sizes change together: 1 is larger, -1 smaller. */
struct move {
    int rows, cols, depth;
};

/* By how much: times up / down, or times down / up. */
struct scale {
    int64_t up, down;
};

/* Tiles stay equally long, so that parts of a call on several devices (part_fit()) can have the
 * same. */
static int64_t moved(int64_t size, int direction, struct scale scale, int64_t all, int64_t longest,
                     bool blas_tiles)
{
    if (direction == 0 || all == 0)
        return size;
    const int64_t tiles = (all + size - 1) / size - direction;
    const int64_t to = direction > 0 ? size * scale.up / scale.down : size * scale.down / scale.up;
    const int64_t next = even(all, accel_max(to, 1), longest, blas_tiles);
    return next != size ? next
                        : even(all, accel_max(all / accel_max(tiles, 1), 1), longest, blas_tiles);
}

static struct schedule_params moved_params(const struct schedule *s, struct move move,
                                           struct scale scale)
{
    const struct schedule_call *call = &s->call;
    const int64_t longest = longest_of(call);
    struct schedule_params by = s->by;
    by.rows = moved(by.rows, move.rows, scale, call->m, longest, has_blas_tiles(call));
    by.cols = call->kind == SCHEDULE_RANK_K
                  ? by.rows
                  : moved(by.cols, move.cols, scale, call->n, widest_of(call), false);
    by.depth = call->kind == SCHEDULE_PRODUCT || call->kind == SCHEDULE_RANK_K
                   ? moved(by.depth, move.depth, scale, call->k, longest, false)
                   : by.rows;
    return by;
}

/* Returns whether parameters are better than the best ones, which they then are. */
static bool is_better(struct schedule_search *search, const struct schedule_params *by)
{
    struct schedule s = {.call = search->best->call, .by = *by};
    if (search->left <= 0 || !is_new(search, by))
        return false;
    if (!may_have_one(&s.call, by))
        s.by.buffers = (int)accel_max(2, by->buffers);
    schedule_set_tiles(&s);
    return schedule_tasks(&s) <= search->most && bound_of(&s, search->rates) < search->best->ms &&
           schedule_choose_slots(&s, search->memory_bytes) && try_slots(search, &s);
}

static bool try_moves(struct schedule_search *search, struct scale scale)
{
    static const struct move moves[] = {{-1, 0, 0}, {0, -1, 0}, {0, 0, -1},  {1, 0, 0},
                                        {0, 1, 0},  {0, 0, 1},  {-1, -1, 0}, {1, 1, 0},
                                        {1, -1, 0}, {-1, 1, 0}, {-1, -1, 1}, {1, 1, -1}};
    bool better = false;
    for (size_t n = 0; n < sizeof moves / sizeof *moves; n++) {
        struct schedule_params by = moved_params(search->best, moves[n], scale);
        for (; is_better(search, &by); better = true)
            by = moved_params(search->best, moves[n], scale);
    }
    return better;
}

/* Tries rows that a device multiplies faster than the best ones, wherever they are: those between
 * them may be slower than both. Where C is stored transposed, the device's rows are the tiles'
 * columns. */
static bool try_paces(struct schedule_search *search)
{
    enum { LEAST_PARTS = 2, MOST_PARTS = 24 };
    const struct schedule_call *call = &search->best->call;
    const struct block_paces *paces = &search->rates->paces;
    bool better = false;
    for (int64_t parts = LEAST_PARTS; parts <= MOST_PARTS; parts++) {
        struct schedule_params by = search->best->by;
        int64_t *rows = call->across[C] ? &by.cols : &by.rows;
        const double pace = block_pace(paces, *rows);
        *rows = call->across[C]
                    ? even(call->n, call->n / parts, widest_of(call), false)
                    : even(call->m, call->m / parts, longest_of(call), has_blas_tiles(call));
        if (call->kind == SCHEDULE_RANK_K)
            by.cols = by.rows;
        else if (call->kind != SCHEDULE_PRODUCT)
            by.depth = by.rows;
        if (block_pace(paces, *rows) > pace)
            better = is_better(search, &by) || better;
    }
    return better;
}

static bool try_shares(struct schedule_search *search)
{
    static const int steps[] = {-1, 1, -2, 2, -4, 4, -8, 8};
    bool better = false;
    for (size_t n = 0; n < sizeof steps / sizeof *steps; n++) {
        struct schedule_params by = search->best->by;
        by.share = (int)accel_min(16, accel_max(0, by.share + steps[n]));
        better = is_better(search, &by) || better;
    }
    return better;
}

/* Short of memory: tries what else could stay. */
static bool try_keeping(struct schedule_search *search)
{
    const struct schedule_call *call = &search->best->call;
    const int other = call->kind == SCHEDULE_RANK_K ? C : B;
    bool better = false;
    for (int buffers = 1; buffers <= 3; buffers++) {
        struct schedule_params by = search->best->by;
        by.buffers = buffers;
        better = is_better(search, &by) || better;
    }
    for (int way = 1; way < 4 && !schedule_in_panels(call); way++) {
        struct schedule_params by = search->best->by;
        by.along_rows = by.along_rows != (way % 2 == 1);
        by.factor = way < 2 ? by.factor : by.factor == A ? other : A;
        better = is_better(search, &by) || better;
    }
    return better;
}

/* Changes the best parameters as long as that helps, by much first, then by less. */
static void refine(struct schedule_search *search)
{
    static const struct scale scales[] = {{2, 1}, {3, 2}, {5, 4}, {9, 8}};
    for (size_t n = 0; n < sizeof scales / sizeof *scales && search->left > 0;) {
        const struct schedule *best = search->best;
        bool better = try_moves(search, scales[n]);
        better = try_paces(search) || better;
        if (best->whole || schedule_in_panels(&best->call) || best->by.factor == C)
            better = try_shares(search) || better;
        if (!best->whole)
            better = try_keeping(search) || better;
        n += !better;
    }
}

bool schedule_make(struct schedule *best, const struct schedule_call *call,
                   const struct schedule_rates *rates, int64_t memory_bytes)
{
    const bool is_scarce = is_short(call, memory_bytes);
    const double times = is_scarce ? TIMES_IF_SHORT : 1;
    const double tries = schedule_floor(call, rates) * TRIED_EACH_MS * times;
    struct schedule_search search = {.best = best,
                                     .rates = rates,
                                     .memory_bytes = memory_bytes,
                                     .limit = most_tasks(call, rates) * times,
                                     .left = tries * IN_GRID};
    search.most = is_thin(call, rates) ? search.limit : 2 * search.limit;
    *best = (struct schedule){.call = *call};
    if (call->kind == SCHEDULE_BATCH)
        return schedule_make_batch(best, call, rates, memory_bytes, search.limit, tries);
    try_grid(&search, call, is_scarce);
    if (!best->step)
        try_grid(&search, call, true);
    if (!best->step)
        return false;
    search.left += best->ms * TRIED_EACH_MS * times - tries * IN_GRID;
    if (!schedule_stays_whole(call))
        refine(&search);
    return true;
}

bool schedule_make_by(struct schedule *s, const struct schedule_params *params,
                      const struct schedule_call *call, const struct schedule_rates *rates,
                      int64_t memory_bytes)
{
    *s = (struct schedule){.call = *call, .by = *params};
    if (call->kind == SCHEDULE_BATCH)
        return schedule_make_groups(s, rates, memory_bytes);
    schedule_set_tiles(s);
    return schedule_choose_slots(s, memory_bytes) && schedule_make_one(s, rates, DBL_MAX);
}
