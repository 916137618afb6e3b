/*
 * What short columns of a matrix in host memory take besides their bytes, where libaccel packs or
 * unpacks them: each begins somewhere else in memory. A thread that packs them is slower for each;
 * but the link is not, as long as all threads together still are faster than it. So there is a
 * length from which on nothing is lost, and below it a time for each column that grows evenly as
 * columns get shorter. By traces on an H100 with 16 CPUs, columns of 2 KB came up at half the rate
 * of long ones, and of 5 KB at nine parts of ten; its measured rates are the same for columns of 8
 * KB and for one run of memory.
 */
#ifndef ACCEL_SHORT_COLUMNS_H
#define ACCEL_SHORT_COLUMNS_H

/* Columns of fewer bytes take longer: by so many milliseconds each if they had none. ms = 0: none
 * do; measured so, `bytes` is 1. */
struct short_columns {
    double bytes, ms;
};

/* Returns the milliseconds that each column of so many bytes takes besides. */
double short_columns_ms(const struct short_columns *x, double bytes);

/* Returns what columns of two lengths, the shorter one first, and the milliseconds that each took
 * besides say; these may be below 0, as measured times differ. */
struct short_columns short_columns_by(const double bytes[2], const double ms[2]);

#endif
