/*
 * liblinear's numbers and the rows of its problems, which all of its versions and scikit-learn's
 * copy have alike. Plain data.
 */
#ifndef ACCEL_CALL_LINEAR_H
#define ACCEL_CALL_LINEAR_H

/* liblinear's numbers of the solvers that run on the device. */
enum { LINEAR_LR = 0, LINEAR_L2_SVC = 2, LINEAR_L2_SVR = 11 };

/* The last of a row has index -1. */
struct linear_node {
    int index; /* from 1 */
    double value;
};

#endif
