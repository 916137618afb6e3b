/*
 * Measures trainings of the system's libsvm and liblinear, for a calibration: what an element, a kernel value or a row takes on this CPU.
 * Programs with a copy of these libraries of their own are judged by it, too.
 */
#ifndef ACCEL_TOOL_ML_SURVEY_H
#define ACCEL_TOOL_ML_SURVEY_H

#include "ops/svm/libsvm.h"
#include "survey.h"

/* The functions of a library that is there. */
struct ml_library {
    void *(*train)(const void *problem, const void *parameter);
    void (*destroy)(void **model);
};

/* A function that trains. */
struct ml_survey {
    const char *routine, *library;
    const char *version, *destroy, *set_print; /* what the library must have besides */
    void (*print)(const char *text);           /* gets the library's lines */
    /* Measures the training of a shape's size. Returns false if memory runs out. */
    bool (*measure)(const struct ml_library *library, struct survey_shape *shape);
    const int64_t (*size)[ACCEL_DIMENSIONS]; /* by work */
    int sizes;
    double (*work)(const int64_t size[ACCEL_DIMENSIONS]);
};

extern const struct ml_survey ml_survey_svm, ml_survey_linear;

/* Makes a survey of one track, of which survey_close() frees the memory: trainings of growing size, until the next one would take more
 * than the seconds left. No tracks: the library is not there. False if memory runs out. */
bool ml_survey_run(const struct ml_survey *one, struct survey *survey, double seconds);

/* Returns the milliseconds of a training, in CPU time of this thread, which trains alone: what else runs does not count. */
double ml_survey_train(const struct ml_library *library, const void *problem,
                       const void *parameter);

/* Rows of two classes, 1 and -1, that overlap so that a third of them or so lie between. The nodes of both libraries are alike. */
struct ml_survey_rows {
    struct libsvm_node *nodes;
    void *x; /* pointers to the rows */
    double *y;
};

/* False without memory. The caller frees them, whatever is returned. */
bool ml_survey_make(struct ml_survey_rows *made, int rows, int features);
void ml_survey_free(struct ml_survey_rows *made);

#endif
