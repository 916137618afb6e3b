/*
 * Trains on the device: makes libsvm's quadratic problems of a training, and its decision functions of their solutions.
 */
#ifndef ACCEL_SVM_FIT_H
#define ACCEL_SVM_FIT_H

#include "gpu/smo.h"
#include "problem.h"

/* Fills in svm_function_count() functions, of which the caller frees each coefficient, also after a failure. Returns
 * GPU_UNSUPPORTED if the library itself must train. capped: a cap of iterations may end it (svm_function.converged). */
enum gpu_status svm_fit(struct smo *s, const struct svm_training *training,
                        const struct svm_classes *classes, bool capped,
                        struct svm_function *functions);

void svm_functions_free(struct svm_function *functions, int count);
void svm_matrix_free(struct svm_matrix *x);
void svm_classes_free(struct svm_classes *classes);

#endif
