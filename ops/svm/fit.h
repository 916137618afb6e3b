/*
 * Trains on the device: makes libsvm's quadratic problems of a training, and its decision functions
 * of their solutions.
 */
#ifndef ACCEL_SVM_FIT_H
#define ACCEL_SVM_FIT_H

#include "gpu/exec/ml/smo.h"
#include "call/svm.h"

/* Makes the problem of two classes i < j, or (0, 0) the only one, at its start. Returns false
 * without memory; the caller frees q->alpha, with which all its arrays go. */
bool svm_problem_of(struct smo_problem *q, const struct svm_training *training,
                    const struct svm_classes *classes, int i, int j);

/* Goes to the next pair of classes, from (0, 1); of one class there is one pair, (0, 0). */
void svm_next_pair(int classes, int *i, int *j);

/* One training of several whose rows are of one matrix. */
struct svm_job {
    struct svm_training training;
    struct svm_classes classes;
    struct svm_function *functions; /* svm_function_count() */
    int support;                    /* vectors that any function needs */
};

static inline int svm_job_functions(const struct svm_job *job)
{
    return svm_function_count(job->training.type, job->classes.count);
}

/* Trains all jobs side by side, whose functions are allocated and empty. All have the first one's
 * kernel. Returns GPU_UNSUPPORTED if the library itself must train. */
enum gpu_status svm_fit_jobs(struct smo *s, const struct smo_matrix *x, struct svm_job *jobs,
                             int count);

/* Whether the decisions of so many functions on all rows may be in memory at once. Of more, the
 * library itself has one fold's. */
bool svm_may_decide(double functions, double rows);

/* values[row * functions + k]: what function k of all jobs decides on a row of the matrix. */
enum gpu_status svm_decide_jobs(struct smo *s, const struct smo_matrix *x,
                                const struct svm_job *jobs, int count, double *values);

/* Returns what svm_predict() makes of the values of all functions: the label of the class that most
 * of them decide for, the first of several; 1 or -1; or the value of a regression. votes: room for
 * a number of each class. */
double svm_answer(int type, const int *label, int classes, const double *value, int64_t *votes);

/* Marks, in the places of the job's rows, the support vectors of all functions. Returns how many
 * there are. */
int svm_support_of(const struct svm_job *job, bool *used);

/* Copies the matrix to the device. */
struct smo_matrix svm_put(struct smo *s, const struct svm_matrix *x);

void svm_job_free(struct svm_job *job);
void svm_matrix_free(struct svm_matrix *x);
void svm_classes_free(struct svm_classes *classes);

#endif
