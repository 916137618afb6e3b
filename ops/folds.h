/*
 * How libsvm and liblinear draw the folds of a cross-validation: by rand() of the C library, whose
 * state a failed attempt puts back. Another thread's numbers between keeping and putting back come
 * again.
 */
#ifndef ACCEL_FOLDS_H
#define ACCEL_FOLDS_H

/* Shuffles by rand(). seed: of shuffles by other numbers. */
void accel_shuffle_by_rand(int *place, int count, int seed);

/* Returns the place at which a fold begins. The libraries' product is an int, which overflows for
 * more than INT32_MAX: then they must answer themselves. */
int accel_fold_start(int fold, int rows, int folds);

/* Where rand() is, to go back there. */
struct accel_rand {
    _Alignas(8) char state[256];
};
void accel_rand_keep(struct accel_rand *kept);
void accel_rand_put_back(const struct accel_rand *kept);

#endif
