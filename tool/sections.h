/*
 * What was measured, as the sections of a model file: one for each library, by the object that a routine's function lies
 * in, and one for the GPU.
 */
#ifndef ACCEL_TOOL_SECTIONS_H
#define ACCEL_TOOL_SECTIONS_H

#include "dispatch/cost/calibration.h"
#include "survey.h"

enum { SECTIONS_MAX = 2 * LIBRARIES_MAX + 1 };

struct sections {
    char key[SECTIONS_MAX][MODEL_KEY_BYTES];
    char *body[SECTIONS_MAX]; /* allocated */
    int routines[SECTIONS_MAX];
    int count;
};

/* Adds what a survey has measured to sections that start as all zero; a library that is there with as many threads stays as it is.
 * gpu: the one that was measured, NULL: none. False without memory. */
bool sections_add(struct sections *sections, const struct survey *survey,
                  const struct gpu_info *gpu);
void sections_free(struct sections *sections);

#endif
