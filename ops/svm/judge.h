/*
 * Judges trainings that the device has done: ACCEL_VERIFY.
 */
#ifndef ACCEL_SVM_JUDGE_H
#define ACCEL_SVM_JUDGE_H

#include "fit.h"

/* Returns the worst error of all functions divided by its bound (cpu_ref/svm.h); negative: not
 * judged. Jobs without functions have nothing to judge. */
double svm_judge_jobs(const struct svm_matrix *x, const struct svm_job *jobs, int count);

#endif
