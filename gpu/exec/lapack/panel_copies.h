/*
 * The copies of a schedule in panels (panels.h): of panels, blocks and lists between host memory
 * and where the kernels are (panel_steps.h).
 */
#ifndef ACCEL_PANEL_COPIES_H
#define ACCEL_PANEL_COPIES_H

#include "gpu/device/pipeline_job.h"
#include "panel_steps.h"

/* A matrix that goes through the device in panels. */
struct panels_job {
    struct panels_call call;
    /* The matrix in panels: its operand, where it comes from, and where the result goes. */
    const struct accel_span *x;
    const char *from;
    int64_t from_ld;
    char *to;
    /* A result of LU: min(m, n) pivots as LAPACK's, int64_t; of QR: as many scalars of
     * reflectors. */
    void *list;
    /* Apply: the other matrix; of LU without transposition its pivots, whose exchanges come first;
     * of QR the scalars. reads: what is read of a block, from its diagonal on: U, L, u, l as struct
     * host_rectangle has them; 0: all of it. scans: numbers that are not finite end the call. */
    const struct accel_span *other;
    const char *factors;
    int64_t factors_ld;
    char reads;
    bool scans;
    const int64_t *pivots;
    const void *scalars;
    struct panels_action action[PANELS_SWEEPS];
};

/* A job under way on a device; the context of its pipeline. */
struct panel_run {
    struct solver *s;
    const struct panels_job *job;
    struct panels panels;
    struct panel_steps steps;
    struct solver_reserve reserve;
    struct solver_outcome *outcome; /* of each panel, once it has come down */
    struct gpu_scan scan;
};

struct panel_run panel_run_begin(struct solver *s, const struct panels_job *job);

/* Plans the steps by a function for so many bytes, which are the device's at first, then less, and
 * takes the memory. */
void panel_run_prepare(struct panel_run *r, bool (*plan)(void *panel_run, int64_t bytes));

/* Runs the pipeline, of which the functions for copies and results are set, unless there has been a
 * failure. */
void panel_run_pipeline(struct panel_run *r, struct pipeline_job *pipeline);

/* Puts the kernels of a step on the stream, if the call can go on. */
enum gpu_status panel_run_compute(struct panel_run *r, const struct schedule_step *step,
                                  bool goes_on);

/* Says what a step copies, and counts what goes up. */
void panel_copies_of(void *panel_run, const struct schedule_step *step, struct tile_copy *copy);
/* Returns where the result of a panel goes in host memory. */
struct host_rectangle panel_copies_result(const struct panel_run *r, int j);

/* The operand for pivots or scalars of reflectors; NULL: the call has none. */
const struct accel_span *panel_copies_list_operand(const struct solver *s);

/* Counts a copy of so many elements. */
void panel_copies_note(struct solver *s, const struct accel_span *x, bool up, int64_t rows,
                       int64_t cols, int64_t size);

/* Makes LAPACK's result of LU's panels in host memory. first: of each panel the first column, then
 * n. */
void panel_copies_end_lu(const struct panels_job *job, const int64_t *first, int count);

#endif
