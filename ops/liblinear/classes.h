/* The classes of a problem, in the library's order, and what each costs. */
#ifndef ACCEL_LIBLINEAR_CLASSES_H
#define ACCEL_LIBLINEAR_CLASSES_H

#include <stdint.h>

#include "library.h"

struct linear_classes {
    int count;   /* 0: regression */
    int *label;  /* of each class */
    double *c;   /* of each class */
    int *of_row; /* of each row that counts, its class */
};

/* Returns false if memory is short, or a weight is for a label that no row has. The rows of the
 * problem that count: all, or those of scikit-learn with a weight greater than 0. */
bool linear_classes_make(struct linear_classes *classes, const struct linear_training *training);
/* Sets what each class costs. Returns false as above. */
bool linear_classes_weigh(struct linear_classes *classes, const struct linear_parameter *parameter);
void linear_classes_free(struct linear_classes *classes);

/* Returns whether a row counts. */
static inline bool linear_counts(const struct linear_training *training, int row)
{
    return training->library->layout != LINEAR_SKLEARN || training->problem->weight[row] > 0;
}

#endif
