/*
 * The kernels of a schedule in panels (panels.h): each changes a panel by a block, or factors it.
 */
#ifndef ACCEL_PANEL_STEPS_H
#define ACCEL_PANEL_STEPS_H

#include "gpu/plan/panels_shared.h"
#include "solver.h"

/* What a sweep does with the panel, and the letters of BLAS for it. A panel that is seen transposed
 * is on the other side of Q or the triangle. */
enum panels_deed { PANELS_SOLVES, PANELS_MULTIPLIES, PANELS_REFLECTS };
struct panels_action {
    enum panels_deed deed;
    char uplo, trans, diag;
};

/* The kernels take their workspaces from the solver's reserve, and do not wait: each panel's
 * outcome is in `outcomes`. */
struct panel_steps {
    struct solver *s;
    const struct panels *panels;
    const struct panels_action *action; /* apply: of each sweep */
    bool exchanges;                     /* apply: `swaps` come before the first block */
    const struct panels_shared *shared; /* NULL: no other device has panels of this matrix */
    int member;                         /* this device's number there */
    /* On the device: where the panels and blocks are; or in place of both, the whole matrix. */
    gpu_address panel, block;
    struct array whole;
    /* list: of LU the pivots, int64_t, of QR the scalars of reflectors; swaps: pivots, int32_t. The
     * pivots of LU count from their panel's first row, those that are applied from the matrix's. */
    struct array list, swaps, outcomes;
};

/* Return where a panel, and the block of a step, are on the device. slot: of the block. */
struct array panel_steps_panel(const struct panel_steps *k, int j);
struct array panel_steps_block(const struct panel_steps *k, const struct schedule_step *step,
                               int slot);

/* Return a tile of the matrix in panels as it is stored, one of the matrix that blocks are of, and
 * the part of the list that belongs to a panel. */
struct schedule_tile panel_steps_stored(const struct panel_steps *k, struct schedule_tile tile);
struct schedule_tile panel_steps_stored_block(const struct panel_steps *k,
                                              struct schedule_tile tile);
struct array panel_steps_list(const struct panel_steps *k, int j);

/* Returns whether a panel whose outcome is in host memory has been factored; of one to which blocks
 * are applied, whether all is well. */
bool panel_steps_succeeded(const struct panel_steps *k, const struct solver_outcome *outcome);

/* Takes memory for the lists that are not there. has_scalars: some are applied. */
void panel_steps_take_lists(struct panel_steps *k, bool has_scalars);

/* Asks cuSOLVER for the workspaces of all kernels, of which *reserve then tells the size. */
void panel_steps_measure(struct panel_steps *k, struct solver_reserve *reserve);
/* Takes them. The host's is freed with the solver's. */
void panel_steps_take_reserve(struct panel_steps *k, struct solver_reserve *reserve);

/* Puts the kernels of a step on the call's stream. */
void panel_steps_put(struct panel_steps *k, const struct schedule_step *step);

#endif
