/*
 * Judges trainings that the device has done: ACCEL_VERIFY.
 */
#ifndef ACCEL_SVM_JUDGE_H
#define ACCEL_SVM_JUDGE_H

#include "fit.h"

/* Returns the worst error of the functions divided by its bound (cpu_ref/svm.h); negative: not judged. Functions may be NULL: there is
 * nothing to judge. */
double svm_judge(const struct svm_matrix *x, const struct svm_training *training,
                 const struct svm_classes *classes, const struct svm_function *functions);

/* The same for all jobs of one matrix. */
double svm_judge_jobs(const struct svm_matrix *x, const struct svm_job *jobs, int count);

#endif
