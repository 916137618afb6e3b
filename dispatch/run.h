/*
 * Runs a decided call, on the GPU or by the original, and learns from its time. Each function fills
 * in the record. Thread-safe, except for the start.
 */
#ifndef ACCEL_RUN_H
#define ACCEL_RUN_H

#include "select.h"

/* The settings stay. adapts: see select.h. */
void run_start(const struct accel_settings *settings, bool adapts);

/* Runs it on the GPU. True: the result is complete. False: the operands are unchanged, and the
 * original is still to run. */
bool run_on_gpu(struct task *task, struct accel_record *record);

/* Runs the original, with the caller's own arguments. */
void run_forward(struct task *task, struct accel_record *record);

/* Whether the original's time is worth taking. */
bool run_is_worth_watching(const struct task *task);

/* Runs the original on copies of the operands that the host cannot read. */
void run_on_copies(const struct task *task, struct accel_record *record);

/* accel estimate: runs the original, and times it as a whole. Calls made inside one that the GPU
 * would have run are marked as its parts (record->inner). False: it has not been run. */
bool run_for_estimate(const struct task *task, struct accel_record *record);

#endif
