/*
 * Measures svm_train() of the system's libsvm, for a calibration: what a kernel value and an iteration take on this CPU. Programs with
 * a copy of libsvm of their own are judged by it, too.
 */
#ifndef ACCEL_TOOL_SVM_SURVEY_H
#define ACCEL_TOOL_SVM_SURVEY_H

#include "survey.h"

/* Makes a survey of one track, which survey_close() frees: trainings of growing size, until the next one would take more
 * than the seconds left. No tracks: there is no libsvm.so.3. False if memory runs out. */
bool svm_survey_run(struct survey *survey, double seconds);

#endif
