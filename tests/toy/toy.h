/*
 * A library that is no BLAS, as test_toy.py needs one: a struct argument, a double result.
 */
#ifndef TOY_H
#define TOY_H

/* Of version 1. */
struct toy_model {
    int features;
    const double *weights; /* one for each feature */
    double bias;
};

/* Hundreds are the version that the layout of toy_model changes with. */
int toy_version(void);

/* bias + weights . x. Thread-safe. */
double toy_score(const struct toy_model *model, const double *x);

#endif
