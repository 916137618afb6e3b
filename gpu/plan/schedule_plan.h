/*
 * What makes schedules (schedule.h, panels.h): one by its parameters (schedule_plan.c), whose
 * tiles have slots on the device (schedule_slots.c); the search for the best parameters
 * (schedule_choose.c). simulate.h gives it its time. Pure functions.
 */
#ifndef ACCEL_SCHEDULE_PLAN_H
#define ACCEL_SCHEDULE_PLAN_H

#include "schedule.h"

/* Return the rows and columns of a tile that has so many or a few more: multiples of 64, of
 * products with many rows of 128. */
int64_t schedule_tile_rows(const struct schedule_call *call, int64_t rows);
int64_t schedule_tile_cols(int64_t cols);

/* Sets the numbers of tiles that follow from s->call and the sizes in s->by. */
void schedule_set_tiles(struct schedule *s);

/* Returns how many blocks of k there are; 1 if C is only scaled. */
int schedule_depths(const struct schedule *s);

/* Returns how many kernels there are, of those of panels about. */
double schedule_tasks(const struct schedule *s);

/* Chooses slots for the tiles that are set, by s->by. Returns false if the least do not fit. */
bool schedule_choose_slots(struct schedule *s, int64_t memory_bytes);

/* Return the milliseconds of a tile's copy, and of a kernel. The diagonal of a triangle costs half;
 * of two factors, both products count. C alone is scaled in no time. */
double schedule_copy_ms(const struct schedule *s, const struct schedule_rates *rates, int engine,
                        int operand, int i, int j);
double schedule_kernel_ms(const struct schedule *s, const struct schedule_rates *rates, int i,
                          int j, int p);
/* The same of a tile that comes up from the host's memory, even if others of its operand are
 * lent. */
double schedule_upload_ms(const struct schedule *s, const struct schedule_rates *rates, int operand,
                          int i, int j);

/* Returns what of a kernel the calling thread takes to put steps that wait for each other on its
 * stream (schedule_rates.row_ms). */
double schedule_chain_ms(const struct schedule *s, const struct schedule_rates *rates, int i, int j,
                         int p);
/* Returns what one that solves takes besides its operations: these steps, or what it takes to go
 * through its columns (schedule_rates.solve). */
double schedule_solve_ms(const struct schedule *s, const struct schedule_rates *rates, int i, int j,
                         int p);
/* Returns what all kernels that solve take besides, at least, whatever the tiles. */
double schedule_least_solve_ms(const struct schedule_call *call,
                               const struct schedule_rates *rates);

/* Returns the bytes of an operand as a whole matrix, or of all of a batch's matrices. */
double schedule_bytes(const struct schedule_call *call, int operand);

/* Rank-k: returns how many of a factor's lines, or tiles, are needed, if there are so many in
 * either group. */
int64_t schedule_needed(const struct schedule_call *call, int operand, int64_t head, int64_t tail);

/* Returns the milliseconds of a call that one kernel computes, on the device, whatever the pace of
 * its rows. */
double schedule_whole_ms(const struct schedule_call *call, const struct schedule_rates *rates);

/* Returns the milliseconds of a product of so many operations whose smallest size is `shortest`,
 * without what each kernel takes besides. */
double schedule_product_ms(const struct schedule_rates *rates, double terms, double shortest);

/* Looks for the best groups of a batch, with at most so many of them, and trying about so many in
 * all. Returns as schedule_make(). */
bool schedule_make_batch(struct schedule *best, const struct schedule_call *call,
                         const struct schedule_rates *rates, int64_t memory_bytes, double most,
                         double tries);
/* Makes the batch's schedule by s->by. Returns as schedule_make_by(). */
bool schedule_make_groups(struct schedule *s, const struct schedule_rates *rates,
                          int64_t memory_bytes);
/* Returns a batch's tile: see schedule_tile_of(). */
struct schedule_tile schedule_group_tile(const struct schedule *s, int operand, int group);

/* Returns by how much all is later where operands are lent: the first tiles come from the host's
 * memory, whoever brings them up, and before another one's has come up, there is nothing to copy
 * from it. */
double schedule_lag_ms(const struct schedule *s, const struct schedule_rates *rates);

/* Adds a step, of which only the engine is set, to a schedule that has memory for it. */
static inline struct schedule_step *schedule_put(struct schedule *s, int engine)
{
    struct schedule_step *step = &s->step[s->count++];
    *step = (struct schedule_step){.engine = (uint8_t)engine};
    s->steps[engine]++;
    return step;
}

/* Takes `s` for the best one if it is faster, or there is none yet, and gives the other one back.
 * Returns whether it does. */
bool schedule_keep_faster(struct schedule *best, struct schedule *s);

/* Makes the steps for the tiles and slots that are set, and simulates them. Returns false, with
 * nothing to give back, if there are too few slots, or no host memory, or if the schedule takes
 * more milliseconds than so many. */
bool schedule_make_one(struct schedule *s, const struct schedule_rates *rates, double at_most);

#endif
