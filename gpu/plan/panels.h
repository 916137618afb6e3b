/*
 * The schedule of a LAPACK call whose matrix is larger than the device's memory: the matrix stays
 * in host memory, and goes through the device in panels of columns, each of them once. While a
 * panel is there, all that changes it comes up again in blocks, in its order: the finished panels
 * before it (a left-looking factorisation), or the factors that are applied to a panel of
 * right-hand sides. Then the panel is factored itself, and comes down. Where two panels have room,
 * the one before is still there, and comes first if the order does not matter (Cholesky). A pure
 * function of shape, memory and rates; knows neither devices nor calls. pipeline_job.h runs the
 * schedule.
 *
 * And the schedule of one that fits, and stays on the device as a whole: its panels come up while
 * those before them are factored. They change a panel where they are. Nothing comes down before all
 * is well.
 *
 * Source: J. Dongarra, E. D'Azevedo, "The Design and Implementation of the Parallel Out-of-core
 * ScaLAPACK LU, QR, and Cholesky Factorization Routines" (LAPACK Working Note 118): left-looking,
 * since it writes each panel once.
 */
#ifndef ACCEL_PANELS_H
#define ACCEL_PANELS_H

#include "schedule.h"

enum panels_kind {
    PANELS_CHOLESKY, /* the lower triangle of an n x n matrix: a panel begins at the diagonal */
    PANELS_LU,       /* m x n */
    PANELS_QR,       /* m x n */
    PANELS_APPLY     /* the panels are of an m x n matrix; blocks of another one change them */
};

/* What a step copies: step->operand. A panel's list is its pivots, or the scalars of its
 * reflectors; INFO is small, too. */
enum panels_operand { PANELS_PANEL, PANELS_BLOCK, PANELS_LIST, PANELS_INFO };

/* Once through the columns of the other matrix, block by block. */
struct panels_sweep {
    bool backwards; /* from the last block on */
    /* A block has the rows from the first one to its diagonal; else those from there to the last
     * one */
    bool above;
    /* Of the other matrix, only the columns from the panel's first one on, or up to its last one:
     * those beside them do not change it. */
    bool from_panel, to_panel;
    bool reflects; /* which takes twice the operations */
};

enum { PANELS_SWEEPS = 2 };

struct panels_call {
    enum panels_kind kind;
    int sweeps; /* apply */
    struct panels_sweep sweep[PANELS_SWEEPS];
    bool across; /* the matrix in panels is seen transposed: of Cholesky an upper triangle; m = n */
    bool other_across; /* apply: so is the other one */
    /* apply: of both matrices the lower triangle; a panel begins at its diagonal, and each sweep
     * there; m = n = order */
    bool triangle;
    uint8_t unused[3]; /* 0, in place of padding */
    int64_t m, n;      /* of the matrix that is in panels */
    int64_t order;     /* apply: the columns of the other matrix, at most m; it has m rows */
    int64_t size;      /* bytes of an element */
    double per_term;   /* real operations for each multiply-add */
};
_Static_assert(sizeof(struct panels_call) == 24 + 5 * 8, "without padding: it is a cache key");

/* More panels than these, or narrower ones than the other, are not worth it: what has to come up
 * again grows with their number. A block may be narrower: of a tall matrix, what blocks leave makes
 * panels wider, and kernels on a narrow block are faster than its upload. */
enum { PANELS_MOST = 128, PANELS_LEAST_COLUMNS = 8, PANELS_LEAST_BLOCK_COLUMNS = 2 };

struct panels {
    struct panels_call call;
    /* The whole matrix has its place on the device: there are neither blocks nor downloads */
    bool in_core;
    int buffers; /* panels that have room on the device at the same time: 1, or 2 */
    /* A factored panel changes the next one from where it is: it does not come up for that */
    bool stays;
    int count;
    int64_t first[PANELS_MOST + 1];   /* each one's first column; then n */
    int64_t panel_bytes, block_bytes; /* of each of the buffers, and of each of two blocks */
    /* Steps: j is the panel; i the panel that a block is of, or the sweep; p the block's number in
     * that; in core, or if the panel stays, 0: all of the panel, which is where it was factored
     * (slot < 0). A kernel without a block (p < 0) factors the panel. `first` and `last` are of a
     * panel's kernels. */
    struct schedule schedule;
    double up_bytes, down_bytes; /* of all steps */
    struct schedule_times times; /* simulated */
};

/* Makes the fastest of some schedules that need at most so many bytes for panels and blocks.
 * Returns false if there is none, or no host memory. The caller gives it back by panels_free().
 * Which one it is is remembered. */
bool panels_make(struct panels *p, const struct panels_call *call,
                 const struct schedule_rates *rates, int64_t memory_bytes);
void panels_free(struct panels *p);

/* A matrix of less comes up as a whole if it fits. */
#define PANELS_LEAST_BYTES ((int64_t)32 << 10)

/* Makes the fastest of some schedules of a factorisation whose matrix stays on the device. Returns
 * false if none is faster than one copy of the matrix and one kernel, or there is no host
 * memory. */
bool panels_make_in_core(struct panels *p, const struct panels_call *call,
                         const struct schedule_rates *rates);

/* Return the milliseconds of the schedules that these two make, without making them again;
 * negative: there is none. */
double panels_ms(const struct panels_call *call, const struct schedule_rates *rates,
                 int64_t memory_bytes);
double panels_in_core_ms(const struct panels_call *call, const struct schedule_rates *rates);

/* Return the milliseconds of one copy of the matrix to the device and one kernel; and of one copy
 * of the result to host memory. */
double panels_whole_ms(const struct panels_call *call, const struct schedule_rates *rates);
double panels_down_ms(const struct panels_call *call, const struct schedule_rates *rates);

/* Returns whether there is a schedule for so much memory. */
bool panels_fit(const struct panels_call *call, int64_t memory_bytes);

/* Return where a panel and a block are in their matrices, as they are seen. */
struct schedule_tile panels_panel(const struct panels *p, int j);
struct schedule_tile panels_block(const struct panels *p, const struct schedule_step *step);

/* Columns [first, end). */
struct panels_columns {
    int64_t first, end;
};

/* Returns the columns of its panel that a block changes, from the panel's first one: of a sweep
 * that has a part of the other matrix, those on one side of the diagonal are zeros that stay, or
 * not wanted. */
struct panels_columns panels_changed(const struct panels *p, const struct schedule_step *step);

/* Returns the milliseconds of a kernel's step: with a block (step->p >= 0) or without. Looks at i,
 * j and p alone. */
double panels_kernel_ms(const struct panels *p, const struct schedule_rates *rates,
                        const struct schedule_step *step);

/* Returns how many of a panel's columns are factored: all, except those of a wide matrix beyond its
 * rows. */
int64_t panels_factored(const struct panels *p, int j);

/* Returns the milliseconds of the longest engine, if each element comes up and goes down once, and
 * the factorisation is one kernel: no schedule is faster. */
double panels_floor(const struct panels_call *call, const struct schedule_rates *rates);

#endif
